//! A process whose threads are tasks of the scheduler in the kernel, and those that ask how it is.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering, compiler_fence};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use laxity_model::{Instant, Nanos};
use laxity_sys::clock::{now, sleep_until};
use laxity_sys::packets::{Packets, Received};
use laxity_sys::scheduling::current_thread;
use laxity_sys::shared_page::SharedPage;

use crate::brakes::Brakes;
use crate::layout::{Entry, IS_ALIVE, PAGE};
use crate::lock::{Guard, Lock};
use crate::protocol::{
    ADDRESS, Answer, Begin, InterruptRequest, InterruptStatus, PACKET_MAX, Request, Status, TaskRequest,
};

/// Why the scheduler cannot be asked, or a thread not be a task.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// There is none.
    #[error("Laxity's scheduler is not in the kernel; `laxity sched start`, as root, loads it")]
    NotRunning,
    /// It cannot be asked.
    #[error("the scheduler in the kernel cannot be asked: {0}")]
    Connection(#[source] io::Error),
    /// It says no.
    #[error("the scheduler in the kernel: {0}")]
    Refused(String),
    /// It ended meanwhile.
    #[error("the scheduler in the kernel ended before it answered")]
    Ended,
}

/// This process as the scheduler knows it. Its tasks are no more once the process ends, or they leave.
#[derive(Debug)]
pub struct Membership {
    connection: Packets,
    page: Mutex<Option<Arc<SharedPage>>>,
}

impl Membership {
    /// Of the scheduler that is loaded now.
    ///
    /// # Errors
    /// [`ClientError::NotRunning`] if none is.
    pub fn join() -> Result<Membership, ClientError> {
        let connection = Packets::connect(ADDRESS).map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused => ClientError::NotRunning,
            _ => ClientError::Connection(error),
        })?;
        Ok(Membership { connection, page: Mutex::new(None) })
    }

    /// Has the scheduler do what takes long before the first task can begin: Linux waits until all programs have ended that do
    /// not know this process (a grace period of RCU, up to tens of milliseconds). [`Membership::begin`] does it otherwise.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with the scheduler's reason.
    pub fn prepare(&self) -> Result<(), ClientError> {
        let mut page = self.page.lock().unwrap_or_else(PoisonError::into_inner);
        match self.ask(&Request::Prepare, &mut page)? {
            Answer::Prepared => Ok(()),
            _ => Err(ClientError::Refused("an answer to another question".to_owned())),
        }
    }

    /// The calling thread is a task from now on. It waits for its first job with [`Task::next_job`].
    ///
    /// # Errors
    /// [`ClientError::Refused`] with the scheduler's reason.
    pub fn begin(&self, task: &TaskRequest) -> Result<Task, ClientError> {
        self.begin_then(task, || ())
    }

    /// As [`Membership::begin`]. Another thread calls `then` once the scheduler has answered: this one may not return before its
    /// first job is released.
    ///
    /// # Errors
    /// As of [`Membership::begin`].
    pub fn begin_then(&self, task: &TaskRequest, then: impl FnOnce() + Send) -> Result<Task, ClientError> {
        let request = Request::Begin(Begin { thread: current_thread(), task: task.clone() });
        // The scheduler keeps this thread from when it is a task until its first job. So another one asks, which no other
        // task of this process has to wait for.
        let asked = thread::scope(|scope| {
            // Where all memory is locked, Linux clears the whole stack first.
            let asking = thread::Builder::new().name("laxity-begin".to_owned()).stack_size(ASKING_STACK);
            let asking = asking.spawn_scoped(scope, || {
                let answer = self.ask_to_begin(&request);
                then();
                answer
            });
            let asking = asking.map_err(ClientError::Connection)?;
            asking.join().expect("it does not panic")
        });
        let (Answer::Begun { entry, cluster, release }, page) = asked? else {
            return Err(ClientError::Refused("an answer to another question".to_owned()));
        };
        let entry = Entry::new(entry).ok_or_else(|| ClientError::Refused(format!("no entry {entry}")))?;
        let (deadline, period) = (task.deadline, task.period);
        Ok(Task { page, entry, job: 0, cluster, release, deadline, period, is_by_linux: false })
    }

    fn ask_to_begin(&self, request: &Request) -> Result<(Answer, Arc<SharedPage>), ClientError> {
        // One thread asks at a time, and the first answer brings the page.
        let mut page = self.page.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = self.ask(request, &mut page)?;
        let page = page.clone().ok_or_else(|| ClientError::Refused("no control page".to_owned()))?;
        Ok((answer, page))
    }

    /// A thread of the kernel handles interrupts for tasks from now on, until it or the scheduler ends; then it has what it had
    /// before. It has the priority of the job that says by [`Task::expect`] that it works for it.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with the scheduler's reason.
    pub fn handle(&self, request: &InterruptRequest) -> Result<InterruptThread, ClientError> {
        match self.ask(&Request::Handle(request.clone()), &mut None)? {
            Answer::Handles(status) => Ok(InterruptThread::of(&status)),
            _ => Err(ClientError::Refused("an answer to another question".to_owned())),
        }
    }

    /// The thread of the kernel with that number in Linux, which handles interrupts for tasks.
    ///
    /// # Errors
    /// [`ClientError::Refused`] if it does not.
    pub fn interrupt_thread(&self, thread: u32) -> Result<InterruptThread, ClientError> {
        let status = self.status()?;
        let found = status.interrupts.iter().find(|it| it.thread == thread);
        let missing = || format!("thread {thread} handles no interrupts for tasks; `laxity sched irq` has it do so");
        found.map(InterruptThread::of).ok_or_else(|| ClientError::Refused(missing()))
    }

    /// The page by which a regulator of memory traffic throttles CPUs.
    ///
    /// # Errors
    /// [`ClientError::Refused`] by a scheduler that has none.
    pub fn brakes(&self) -> Result<Brakes, ClientError> {
        let mut page = None;
        match (self.ask(&Request::Brakes, &mut page)?, page) {
            (Answer::Brakes, Some(page)) => Ok(Brakes::of(page)),
            _ => Err(ClientError::Refused("an answer to another question".to_owned())),
        }
    }

    /// What the scheduler does.
    ///
    /// # Errors
    /// If it ends meanwhile.
    pub fn status(&self) -> Result<Status, ClientError> {
        match self.ask(&Request::Status, &mut None)? {
            Answer::Status(status) => Ok(status),
            _ => Err(ClientError::Refused("an answer to another question".to_owned())),
        }
    }

    /// Ends the scheduler, and waits until it has ended: all threads are scheduled by Linux from then on.
    ///
    /// # Errors
    /// If it ended before it could answer.
    pub fn stop(&self) -> Result<(), ClientError> {
        self.ask(&Request::Stop, &mut None)?;
        // The loader closes the connection by ending.
        while self.connection.receive(&mut [0; 64]) != Received::End {}
        Ok(())
    }

    fn ask(&self, request: &Request, page: &mut Option<Arc<SharedPage>>) -> Result<Answer, ClientError> {
        let packet = serde_json::to_vec(request).expect("requests have no maps");
        self.connection.send(&packet).map_err(|_| ClientError::Ended)?;
        let mut answer = vec![0; PACKET_MAX];
        let (Received::Packet(length), descriptors) = self.connection.receive_with(&mut answer) else {
            return Err(ClientError::Ended);
        };
        if let Some(descriptor) = descriptors.into_iter().next() {
            *page = Some(Arc::new(SharedPage::map(descriptor, PAGE).map_err(ClientError::Connection)?));
        }
        match serde_json::from_slice(&answer[..length]) {
            Ok(Answer::Refused(reason)) => Err(ClientError::Refused(reason)),
            Ok(answer) => Ok(answer),
            Err(error) => Err(ClientError::Connection(error.into())),
        }
    }
}

/// The calling thread as a task.
///
/// When the scheduler ends, however that happens, the task goes on under Linux: [`Task::next_job`] then sleeps until the
/// next release, and says so. Until the end is written into its page a while may pass, in which Linux runs the thread and the
/// scheduler hears nothing; the thread notices by itself that a release is past.
#[derive(Debug)]
pub struct Task {
    page: Arc<SharedPage>,
    entry: Entry,
    /// The present job, from 1; 0: none yet.
    job: u32,
    cluster: usize,
    release: Instant,
    deadline: Nanos,
    period: Nanos,
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
/// Of the thread that asks: for JSON and a few calls.
const ASKING_STACK: usize = 128 * 1024;
/// Longer gaps are slept through: the kernel ends a scheduler that keeps a thread for half a minute.
const GAP: Nanos = Nanos::from_millis(500);
/// Up to so long before the release.
const EARLY: Nanos = Nanos::from_millis(2);
/// A thread that says that its job is complete, and yields, comes back with its next job: the scheduler keeps it meanwhile. If
/// it comes back so often without one, the scheduler does not hear it.
const TURNS: u32 = 8;
/// So long after the release it is not the scheduler's any more.
const GRACE: Nanos = Nanos::from_millis(1);

impl Task {
    /// The cluster that its jobs run in.
    pub fn cluster(&self) -> usize {
        self.cluster
    }

    /// Whether the scheduler schedules this thread, as far as is known.
    pub fn is_scheduled(&self) -> bool {
        !self.is_by_linux && self.page.u32(IS_ALIVE).load(Ordering::Acquire) != 0
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
    /// dropped. For the last half of a second before a release the scheduler keeps the thread, and nothing wakes it.
    pub fn next_job_by(&mut self, mut sleep: impl FnMut(Instant) -> bool) -> Option<Job> {
        let is_first = self.job == 0;
        if !is_first {
            self.release = self.release.saturating_add(self.period);
            self.page.u32(self.entry.is_complete()).store(1, Ordering::Release);
        }
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
        self.page.u32(self.entry.is_non_preemptive()).store(1, Ordering::Relaxed);
        // The scheduler looks in an interrupt of this CPU: the order of the program is all that it takes.
        compiler_fence(Ordering::SeqCst);
    }

    /// Ends the section.
    pub fn leave_section(&self) {
        compiler_fence(Ordering::SeqCst);
        self.page.u32(self.entry.is_non_preemptive()).store(0, Ordering::Relaxed);
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
        let (release, deadline, period) = (Instant::ZERO, Nanos::from_millis(1), Nanos::from_millis(1));
        Task { page: Arc::clone(page), entry, job: 0, cluster: 0, release, deadline, period, is_by_linux: false }
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
        let mut words = self.entry.served_by().into_iter().map(|offset| self.page.u32(offset));
        let word = words.find(|word| word.load(Ordering::Relaxed) == 0);
        let word = word.expect("no more interrupt threads than a page can name");
        word.store(thread.number + 1, Ordering::Release);
        Expectation { word }
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
        self.job = number;
        self.release = Instant(self.page.u64(self.entry.release()).load(Ordering::Relaxed));
        let deadline = Instant(self.page.u64(self.entry.deadline()).load(Ordering::Relaxed));
        Some(Job { number, release: self.release, deadline, is_scheduled: self.is_scheduled() })
    }

    fn next_by_linux(&mut self, mut sleep: impl FnMut(Instant) -> bool) -> Option<Job> {
        // If the scheduler schedules after all, it must not count on a thread that goes by another clock.
        self.is_by_linux = true;
        self.page.u32(self.entry.leaves()).store(1, Ordering::Release);
        if !sleep(self.release) {
            return None;
        }
        self.job += 1;
        let deadline = self.release.saturating_add(self.deadline);
        Some(Job { number: self.job, release: self.release, deadline, is_scheduled: false })
    }

    /// The thread is no task any more from the next moment on at which it has no CPU.
    pub fn leave(self) {
        drop(self);
    }
}

/// A thread of the kernel that handles interrupts for tasks: see [`Membership::handle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterruptThread {
    number: u32,
    cluster: usize,
}

impl InterruptThread {
    fn of(status: &InterruptStatus) -> InterruptThread {
        InterruptThread { number: status.number, cluster: status.cluster }
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
    /// Of the task's page.
    word: &'a AtomicU32,
}

impl Drop for Expectation<'_> {
    fn drop(&mut self) {
        self.word.store(0, Ordering::Release);
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
