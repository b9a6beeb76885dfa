//! Jobs that tokens of a graph release: threads of one process wake each other, and know when the jobs are due that they
//! thereby release.

use std::sync::Arc;
use std::sync::atomic::{Ordering, compiler_fence};

use laxity_model::Instant;
use laxity_sys::clock::now;
use laxity_sys::shared_page::SharedPage;

use super::{INSIDE, Job, Task};
use crate::layout::Entry;

impl Task {
    /// Waits for an event as [`Task::next_event`] does, until `wait` returns, and ends the non-preemptive section that the thread
    /// may be in. If it slept, that completed the present job: answers the one that the wake-up released, which is due as
    /// [`Teller::tell`] said in the thread that woke this one, or else as a job of [`Releases::Events`](crate::Releases::Events).
    /// `None`: it did not sleep, and the present job goes on; [`Task::next_job_at`] completes it.
    ///
    /// Panics if the task began otherwise than with [`Releases::Events`](crate::Releases::Events) or
    /// [`Releases::Tokens`](crate::Releases::Tokens).
    pub fn await_event<T>(&mut self, wait: impl FnOnce() -> T) -> (T, Option<Job>) {
        self.begin_event();
        let outcome = wait();
        self.leave_section();
        // If it slept, the scheduler took that back.
        if self.page.u32(self.entry.is_complete()).swap(0, Ordering::Relaxed) != 0 {
            return (outcome, None);
        }
        self.release = now();
        self.due = self.release.saturating_add(self.deadline).max(self.due.saturating_add(self.period));
        (outcome, self.await_job(|_| true))
    }

    /// Which of the tasks of its process it is, for [`Teller::tell`]: never 0.
    pub fn place(&self) -> u32 {
        self.word()
    }

    /// By which this task's thread says when the jobs are released and due that it releases by waking other threads.
    pub fn teller(&self) -> Teller {
        Teller { page: Arc::clone(&self.page), entry: self.entry }
    }
}

/// Says, in the page of a task, when jobs of other tasks of the process are released and due.
#[derive(Debug)]
pub struct Teller {
    page: Arc<SharedPage>,
    entry: Entry,
}

impl Teller {
    /// The thread of this task, which is in a non-preemptive section, is about to wake that of the task at `place`, which waits for
    /// that in [`Task::await_event`]. Its job is released and due then; a release that is past counts from now.
    ///
    /// Costs three stores. To be called by the task's thread only.
    pub fn tell(&self, place: u32, release: Instant, due: Instant) {
        self.page.u64(self.entry.next()).store(release.0.max(1), Ordering::Relaxed);
        self.page.u64(self.entry.due()).store(due.0, Ordering::Relaxed);
        // The scheduler looks in the system call by which this thread wakes the other: the order of the program is all that it takes.
        compiler_fence(Ordering::SeqCst);
        self.page.u32(self.entry.is_non_preemptive()).store(INSIDE + place, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }

    /// What the thread wakes from now on it says nothing of. It stays in the section.
    pub fn end(&self) {
        compiler_fence(Ordering::SeqCst);
        self.page.u32(self.entry.is_non_preemptive()).store(INSIDE, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use laxity_model::Nanos;
    use laxity_testing::Directory;

    use super::*;
    use crate::layout::{IS_ALIVE, PAGE};
    use crate::protocol::{Releases, TaskRequest};

    const PERIOD: Nanos = Nanos::from_millis(1);

    fn page(folder: &Directory) -> Arc<SharedPage> {
        let path = folder.path().join("page");
        std::fs::write(&path, vec![0; PAGE]).expect("a file");
        let file = File::options().read(true).write(true).open(path).expect("it is there");
        Arc::new(SharedPage::map(file, PAGE).expect("mapped"))
    }

    fn task(page: &Arc<SharedPage>, entry: usize) -> Task {
        let entry = Entry::new(entry).expect("a page has 31");
        let request = TaskRequest {
            releases: Releases::Tokens { due: None },
            ..TaskRequest::periodic("node", PERIOD, Nanos::ZERO)
        };
        Task::new(Arc::clone(page), entry, 0, Instant(1), &request)
    }

    #[test]
    fn a_thread_says_of_which_task_it_speaks_and_stays_in_its_section() {
        let folder = Directory::new("kernel-teller");
        let page = page(&folder);
        let (producer, consumer) = (task(&page, 2), task(&page, 7));
        let word = || page.u32(producer.entry.is_non_preemptive()).load(Ordering::Relaxed);
        let teller = producer.teller();
        producer.enter_section();
        teller.tell(consumer.place(), Instant(5), Instant(9));
        // bpf/arrivals.h: two above the number of the entry.
        assert_eq!(word(), 2 + 7);
        let says = |offset| page.u64(offset).load(Ordering::Relaxed);
        assert_eq!([says(producer.entry.next()), says(producer.entry.due())], [5, 9]);
        teller.end();
        assert_eq!(word(), 1);
        producer.leave_section();
        assert_eq!(word(), 0);
    }

    #[test]
    fn a_thread_that_did_not_sleep_goes_on_with_its_job_and_one_that_did_has_another() {
        let folder = Directory::new("kernel-await");
        let page = page(&folder);
        let mut task = task(&page, 0);
        let entry = task.entry;
        let scheduler = |number: u32, due: u64| {
            page.u64(entry.release()).store(1, Ordering::Relaxed);
            page.u64(entry.deadline()).store(due, Ordering::Relaxed);
            page.u32(entry.job()).store(number, Ordering::Release);
        };
        page.u32(IS_ALIVE).store(1, Ordering::Relaxed);
        // The scheduler releases the first job.
        scheduler(1, 10);
        task.enter_section();
        let (said, job) = task.await_event(|| page.u32(entry.is_complete()).load(Ordering::Relaxed));
        assert_eq!((said, job), (2, None));
        assert_eq!(page.u32(entry.is_complete()).load(Ordering::Relaxed), 0, "a sleep in the job would complete it");
        assert_eq!(page.u32(entry.is_non_preemptive()).load(Ordering::Relaxed), 0);
        let sleep = || {
            page.u32(entry.is_complete()).store(0, Ordering::Relaxed);
            scheduler(2, 70);
        };
        let (_, job) = task.await_event(sleep);
        let job = job.expect("it slept");
        assert_eq!((job.number, job.deadline, job.is_scheduled), (2, Instant(70), true));
        page.u32(IS_ALIVE).store(0, Ordering::Relaxed);
    }

    #[test]
    fn the_completion_of_a_job_ends_its_section() {
        let folder = Directory::new("kernel-section");
        let page = page(&folder);
        let mut task = task(&page, 0);
        task.next_job_at(Instant(1), Instant(2), |_| true).expect("by Linux");
        task.enter_section();
        let job = task.next_job_at(Instant(3), Instant(4), |_| true).expect("by Linux");
        assert_eq!((job.release, job.deadline, job.is_scheduled), (Instant(3), Instant(4), false));
        assert_eq!(page.u32(task.entry.is_non_preemptive()).load(Ordering::Relaxed), 0);
    }
}
