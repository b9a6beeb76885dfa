//! A thread as a task of the scheduler in the kernel, and its jobs.

mod tokens;
mod waits;

pub use self::tokens::Teller;
pub use self::waits::Waits;

use std::sync::Arc;
use std::sync::atomic::{Ordering, compiler_fence};
use std::{process, thread};

use laxity_model::{Instant, Nanos};
use laxity_sys::clock::{now, sleep_until};
use laxity_sys::shared_page::SharedPage;

use crate::layout::{COMPLETE, COMPLETE_ASLEEP, Entry, IS_ALIVE};
use crate::lock::{Guard, Lock};
use crate::protocol::{InterruptStatus, Releases, TaskRequest};

/// The calling thread as a task.
///
/// When the scheduler ends, however that happens, the task goes on under Linux: [`Task::next_job`] then sleeps until the
/// next release, and says so. Until the end is written into its page a while may pass, in which Linux runs the thread and the
/// scheduler hears nothing; the thread notices by itself that a release is past.
#[derive(Debug)]
pub struct Task {
    page: Arc<SharedPage>,
    entry: Entry,
    /// Whose thread it is. A child made by fork has a copy of this.
    process: u32,
    /// The present job, from 1; 0: none yet.
    job: u32,
    /// It said that the present job is complete, and has not had the next one.
    awaits_job: bool,
    cluster: usize,
    /// Of the present job, or of the next one while it waits.
    release: Instant,
    due: Instant,
    deadline: Nanos,
    period: Nanos,
    releases: Releases,
    /// Its jobs are released by Linux's clock from now on.
    is_by_linux: bool,
}

/// A job that may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// From 1 on.
    pub number: u32,
    /// Its release.
    pub release: Instant,
    /// Its absolute deadline.
    pub deadline: Instant,
    /// Whether Laxity's scheduler released it; else Linux schedules this thread, because the scheduler ended.
    pub is_scheduled: bool,
}

/// So long a non-preemptive section keeps its CPU while another job should have it: as in `bpf/sections.h`.
pub const SECTION_MAX: Nanos = Nanos::from_millis(10);
/// Longer gaps are slept through: the kernel ends a scheduler that keeps a thread for half a minute.
const GAP: Nanos = Nanos::from_millis(500);
/// Up to so long before the release.
const EARLY: Nanos = Nanos::from_millis(2);
/// A thread that says that its job is complete, and yields, comes back with its next job: the scheduler keeps it meanwhile. If
/// it comes back so often without one, the scheduler does not hear it.
const TURNS: u32 = 8;
/// So long after the release it is not the scheduler's any more.
const GRACE: Nanos = Nanos::from_millis(1);

/// What it says of non-preemptive sections.
const NOT_INSIDE: u32 = 0;
const INSIDE: u32 = 1;

impl Task {
    /// The calling thread, which is one as `request` says, with that entry of a page; its first job is released at `release`.
    pub(crate) fn new(
        page: Arc<SharedPage>,
        entry: Entry,
        cluster: usize,
        release: Instant,
        request: &TaskRequest,
    ) -> Task {
        let TaskRequest { deadline, period, releases, .. } = *request;
        let told = match releases {
            Releases::Told { due } | Releases::Tokens { due } => due,
            Releases::Periodic | Releases::Events => None,
        };
        let due = told.unwrap_or(release.saturating_add(deadline));
        Task {
            page,
            entry,
            process: process::id(),
            job: 0,
            awaits_job: false,
            cluster,
            release,
            due,
            deadline,
            period,
            releases,
            is_by_linux: false,
        }
    }

    /// The cluster that its jobs run in.
    pub fn cluster(&self) -> usize {
        self.cluster
    }

    /// Whether the scheduler schedules this thread, as far as is known.
    pub fn is_scheduled(&self) -> bool {
        !self.is_by_linux && self.page.u32(IS_ALIVE).load(Ordering::Acquire) != 0
    }

    /// Since when this thread has its CPU, as the kernel's side saw it just before Linux switched to it; `None`: the scheduler
    /// does not measure ([`Settings::overheads`](crate::Settings::overheads)).
    pub fn runs_since(&self) -> Option<Instant> {
        match self.page.u64(self.entry.runs_since()).load(Ordering::Relaxed) {
            0 => None,
            at => Some(Instant(at)),
        }
    }

    /// The present job is complete: suspends this thread until the next one is released and has a CPU.
    pub fn next_job(&mut self) -> Job {
        let sleep = |until| {
            sleep_until(until);
            true
        };
        self.next_job_by(sleep).expect("it sleeps to the end")
    }

    /// As [`Task::next_job`], by a `sleep` until an instant that says whether to go on; `None`: it does not, and the task is to be
    /// dropped, or waits again for the same job. For the last half of a second before a release the scheduler keeps the thread, and
    /// nothing wakes it.
    pub fn next_job_by(&mut self, sleep: impl FnMut(Instant) -> bool) -> Option<Job> {
        if !self.awaits_job() {
            let release = self.release.saturating_add(self.period);
            self.complete(release, release.saturating_add(self.deadline));
        }
        self.await_job(sleep)
    }

    /// As [`Task::next_job_by`], for a job that is released and due then: of a sporadic task, or one with release jitter, whose
    /// job arrives as long before it is due as the task's deadline says. A release before that of the present job is taken
    /// for the same as that; `due` means nothing where the task has a budget. The first job is that of the [`TaskRequest`], whatever is
    /// said here, and after a wait that ended without a job the next one is for that job.
    ///
    /// Panics if the task began otherwise than with [`Releases::Told`] or [`Releases::Tokens`].
    pub fn next_job_at(&mut self, release: Instant, due: Instant, sleep: impl FnMut(Instant) -> bool) -> Option<Job> {
        let is_told = matches!(self.releases, Releases::Told { .. } | Releases::Tokens { .. });
        assert!(is_told, "the task began with {:?}, not Told", self.releases);
        if !self.awaits_job() {
            self.complete(release.max(self.release), due);
        }
        self.await_job(sleep)
    }

    /// The present job is complete. The next one is released by the event that `wait` waits for, in a system call or by spinning:
    /// when this thread wakes, or when `wait` returns if it does not sleep. It is due as the task's deadline says, and a period
    /// after the last one at the earliest, however fast events follow one another; it may execute at once. If `wait` sleeps more than
    /// once, the job suspends itself in the other sleeps.
    ///
    /// The first job is released by time; it is what the thread does before the first event.
    ///
    /// Panics if the task began otherwise than with [`Releases::Events`].
    pub fn next_event(&mut self, wait: impl FnOnce()) -> Job {
        self.begin_event();
        wait();
        self.end_event()
    }

    /// As [`Task::next_event`], before the thread waits for the event; [`Task::end_event`] follows. For callers that have no closures.
    ///
    /// Panics as [`Task::next_event`].
    pub fn begin_event(&mut self) {
        let has_events = matches!(self.releases, Releases::Events | Releases::Tokens { .. });
        assert!(has_events, "the task began with {:?}, not Events", self.releases);
        if self.job == 0 {
            self.next_job();
        }
        self.page.u64(self.entry.next()).store(0, Ordering::Relaxed);
        self.page.u32(self.entry.is_complete()).store(COMPLETE_ASLEEP, Ordering::Release);
    }

    /// The event is there, or the thread waits no longer: its job.
    pub fn end_event(&mut self) -> Job {
        let complete = self.page.u32(self.entry.is_complete());
        // If the thread slept, that said so, and the job was released by the wake-up.
        if complete.load(Ordering::Relaxed) != 0 {
            complete.store(COMPLETE, Ordering::Release);
        }
        let last = self.due;
        self.release = now();
        self.due = self.release.saturating_add(self.deadline).max(last.saturating_add(self.period));
        self.await_job(|_| true).expect("it does not stop")
    }

    /// The present job is complete, and the next one is released and due then.
    fn complete(&mut self, release: Instant, due: Instant) {
        (self.release, self.due, self.awaits_job) = (release, due, true);
        self.page.u64(self.entry.next()).store(release.0, Ordering::Relaxed);
        self.page.u64(self.entry.due()).store(due.0, Ordering::Relaxed);
        self.page.u32(self.entry.is_complete()).store(COMPLETE, Ordering::Release);
        // Not before: the job that ends a section would lose its CPU.
        self.page.u32(self.entry.is_non_preemptive()).store(NOT_INSIDE, Ordering::Release);
    }

    /// Waits for the next job, whose release and deadline are known by now.
    fn await_job(&mut self, mut sleep: impl FnMut(Instant) -> bool) -> Option<Job> {
        if self.is_scheduled()
            && self.release.saturating_since(now()) > GAP
            && !sleep(Instant(self.release.0.saturating_sub(EARLY.0)))
        {
            return None;
        }
        let mut turns = 0;
        while self.is_scheduled() && !(turns > TURNS && self.is_overdue()) {
            if let Some(job) = self.released() {
                return Some(job);
            }
            // A sleep says that the job is complete, too.
            if turns == TURNS && !sleep(self.release) {
                return None;
            }
            thread::yield_now();
            turns += 1;
        }
        // It may have been released at the last moment, and then it counts in the page.
        self.released().or_else(|| self.next_by_linux(sleep))
    }

    /// Carries out `section` without a preemption by a job of another task. Sections do not nest. One longer than 10 ms may be
    /// preempted, and so is one by a thread of a class above; a sleep ends it.
    ///
    /// Costs two stores and a load where no job wants the CPU meanwhile, else one more `sched_yield`.
    pub fn non_preemptive<T>(&self, section: impl FnOnce() -> T) -> T {
        let _section = Section::begin(self);
        section()
    }

    /// Begins such a section, which [`Task::leave_section`] ends: for callers that have no closures.
    pub fn enter_section(&self) {
        self.page.u32(self.entry.is_non_preemptive()).store(INSIDE, Ordering::Relaxed);
        // The scheduler looks in an interrupt of this CPU: the order of the program is all that it takes.
        compiler_fence(Ordering::SeqCst);
    }

    /// Ends the section.
    pub fn leave_section(&self) {
        compiler_fence(Ordering::SeqCst);
        self.page.u32(self.entry.is_non_preemptive()).store(NOT_INSIDE, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        if self.page.u32(self.entry.is_awaited()).load(Ordering::Relaxed) != 0 && self.is_scheduled() {
            thread::yield_now();
        }
    }

    /// Takes `lock`, which tasks of this process share; suspends the job while another one has it. Guards end before the job
    /// does, which the compiler sees to.
    ///
    /// Panics if this task has it already.
    pub fn lock<'a>(&'a self, lock: &'a Lock) -> Guard<'a> {
        lock.take(self);
        Guard::of(lock, self)
    }

    /// A task with that entry of a page.
    #[cfg(test)]
    pub(crate) fn of_page(page: &Arc<SharedPage>, entry: Entry) -> Task {
        let request = TaskRequest::periodic("test", Nanos::from_millis(1), Nanos::ZERO);
        Task::new(Arc::clone(page), entry, 0, Instant::ZERO, &request)
    }

    /// How locks of this process call the task: never 0.
    pub(crate) fn word(&self) -> u32 {
        self.entry.word()
    }

    /// Has the scheduler know, while `sleep` sleeps, that task `holder` of this process has what this one waits for.
    pub(crate) fn while_waiting_for(&self, holder: u32, sleep: impl FnOnce()) {
        let word = self.page.u32(self.entry.waits_for());
        word.store(holder, Ordering::Relaxed);
        sleep();
        word.store(0, Ordering::Relaxed);
    }

    /// From now on, until the guard is dropped, `thread` works for this task's job: it has the priority of that when an interrupt
    /// comes, and goes before it. To be called before the device is told to begin. Of several jobs that say so the
    /// most urgent one is meant. Nothing follows for a thread of another cluster than [`Task::cluster`].
    ///
    /// Costs a store, and no system call. Panics if eight ([`SERVED`](crate::layout::SERVED)) threads work for it already.
    pub fn expect(&self, thread: &InterruptThread) -> Expectation<'_> {
        assert!(self.begin_expecting(thread), "no more interrupt threads than a page can name");
        Expectation { task: self, number: thread.number }
    }

    /// As [`Task::expect`], until [`Task::end_expecting`]: for callers that have no guards. Whether the page has room for it.
    pub fn begin_expecting(&self, thread: &InterruptThread) -> bool {
        self.replace_served(0, thread.number + 1)
    }

    /// The thread works for this task's job no more. Whether it did.
    pub fn end_expecting(&self, thread: &InterruptThread) -> bool {
        self.replace_served(thread.number + 1, 0)
    }

    /// Whether the thread waits for a job of which it knows the release: it said that the last one is complete, or has had none.
    pub fn awaits_job(&self) -> bool {
        self.awaits_job || self.job == 0
    }

    /// Replaces the first word that names what works for this task and is `old`. Whether there is one.
    fn replace_served(&self, old: u32, new: u32) -> bool {
        let mut words = self.entry.served_by().into_iter().map(|offset| self.page.u32(offset));
        let word = words.find(|word| word.load(Ordering::Relaxed) == old);
        word.map(|word| word.store(new, Ordering::Release)).is_some()
    }

    fn is_overdue(&self) -> bool {
        now() > self.release.saturating_add(GRACE)
    }

    /// The next job, if the scheduler has released it.
    fn released(&mut self) -> Option<Job> {
        let number = self.page.u32(self.entry.job()).load(Ordering::Acquire);
        // Under Linux this side counts on, and the page does not.
        if self.is_by_linux || number.wrapping_sub(self.job) as i32 <= 0 {
            return None;
        }
        (self.job, self.awaits_job) = (number, false);
        self.release = Instant(self.page.u64(self.entry.release()).load(Ordering::Relaxed));
        self.due = Instant(self.page.u64(self.entry.deadline()).load(Ordering::Relaxed));
        Some(Job { number, release: self.release, deadline: self.due, is_scheduled: self.is_scheduled() })
    }

    fn next_by_linux(&mut self, mut sleep: impl FnMut(Instant) -> bool) -> Option<Job> {
        // If the scheduler schedules after all, it must not count on a thread that goes by another clock.
        self.is_by_linux = true;
        self.page.u32(self.entry.leaves()).store(1, Ordering::Release);
        if !sleep(self.release) {
            return None;
        }
        (self.job, self.awaits_job) = (self.job + 1, false);
        Some(Job { number: self.job, release: self.release, deadline: self.due, is_scheduled: false })
    }

    /// The thread is no task any more from the next moment on at which it has no CPU.
    pub fn leave(self) {
        drop(self);
    }
}

/// A thread of the kernel that handles interrupts for tasks: see [`Membership::handle`](crate::Membership::handle).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterruptThread {
    number: u32,
    cluster: usize,
}

impl InterruptThread {
    pub(crate) fn of(status: &InterruptStatus) -> InterruptThread {
        InterruptThread { number: status.number, cluster: status.cluster }
    }

    /// One that is known by what [`InterruptThread::number`] and [`InterruptThread::cluster`] said of it.
    pub fn of_parts(number: u32, cluster: usize) -> InterruptThread {
        InterruptThread { number, cluster }
    }

    /// By which the scheduler knows it.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The cluster of the tasks that it works for.
    pub fn cluster(&self) -> usize {
        self.cluster
    }
}

/// While it exists an interrupt thread works for the task's job, which does not end before: see [`Task::expect`].
#[derive(Debug)]
#[must_use = "the thread works for the task until this is dropped"]
pub struct Expectation<'a> {
    task: &'a Task,
    number: u32,
}

impl Drop for Expectation<'_> {
    fn drop(&mut self) {
        self.task.replace_served(self.number + 1, 0);
    }
}

/// The word in the page is taken back even if the section panics.
struct Section<'a> {
    task: &'a Task,
}

impl Section<'_> {
    fn begin(task: &Task) -> Section<'_> {
        task.enter_section();
        Section { task }
    }
}

impl Drop for Section<'_> {
    fn drop(&mut self) {
        self.task.leave_section();
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if process::id() != self.process {
            return;
        }
        self.page.u32(self.entry.leaves()).store(1, Ordering::Release);
        // A scheduler that is about to end may not hear it.
        for _ in 0..TURNS {
            if !self.is_scheduled() || self.page.u32(self.entry.leaves()).load(Ordering::Acquire) == 0 {
                return;
            }
            thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use laxity_testing::Directory;

    use super::*;
    use crate::layout::PAGE;

    #[test]
    fn a_wait_that_ended_without_a_job_goes_on_for_the_same_one() {
        let folder = Directory::new("kernel-task");
        let path = folder.path().join("page");
        // Of a scheduler that has ended.
        std::fs::write(&path, vec![0; PAGE]).expect("a file");
        let file = File::options().read(true).write(true).open(path).expect("it is there");
        let page = Arc::new(SharedPage::map(file, PAGE).expect("mapped"));
        let mut task = Task::of_page(&page, Entry::new(0).expect("a page has 31"));
        assert_eq!(task.next_job_by(|_| false), None);
        assert!(task.awaits_job());
        let first = task.next_job_by(|_| true).expect("it slept");
        assert_eq!((first.number, first.release, task.awaits_job()), (1, Instant::ZERO, false));
        assert_eq!([(); 2].map(|()| task.next_job_by(|_| false)), [None; 2]);
        let second = task.next_job_by(|_| true).expect("it slept");
        assert_eq!((second.number, second.release), (2, Instant(1_000_000)), "one period later, not three");
    }
}
