//! Jobs of a program that announces none: when one begins and ends.

use std::collections::VecDeque;

use laxity_model::{Instant, Nanos};

/// When the jobs of a program begin and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobRule {
    /// A job begins with the first operation and ends when the program has waited for its completion.
    EverySync,
    /// Jobs are released periodically, from the first operation on; an operation belongs to the period in which it is
    /// issued, whose end is its job's deadline.
    Period(Nanos),
    /// The program, or its scheduler, says. Operations issued outside of jobs form jobs of their own, as by `EverySync`.
    Announced,
}

/// A job began or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobEvent {
    /// The first operation of job `number` is issued.
    Began {
        /// Counted from 0.
        number: u32,
        /// From when on its response time counts.
        release: Instant,
        /// Absolute; `None`: it has none.
        deadline: Option<Instant>,
    },
    /// Job `number` is over, since `at`: then its last operation was complete, and the job was said to end, or seen to.
    Ended {
        /// Counted from 0.
        number: u32,
        /// When.
        at: Instant,
    },
}

/// The jobs of a stream that have operations under way, and the one that operations are issued for.
#[derive(Clone, Debug)]
pub(super) struct Jobs {
    rule: JobRule,
    /// In the order of their numbers; only the last may be open.
    under_way: VecDeque<Job>,
    next: u32,
    /// Of the job that operations issued from now on belong to, if it was announced.
    announced: Option<Option<Instant>>,
    /// When the first period began.
    start: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Job {
    number: u32,
    release: Instant,
    deadline: Option<Instant>,
    /// No operation is added any more.
    is_closed: bool,
    operations: u32,
    /// When its last operation was complete.
    retired: Instant,
}

impl Jobs {
    pub fn new(rule: JobRule) -> Self {
        Jobs { rule, under_way: VecDeque::new(), next: 0, announced: None, start: None }
    }

    /// The number and deadline of the job that an operation issued now belongs to; it begins if need be.
    pub fn issue(&mut self, now: Instant, events: &mut Vec<JobEvent>) -> u32 {
        let (release, deadline) = match (self.rule, self.announced) {
            (JobRule::Period(period), _) => {
                let start = *self.start.get_or_insert(now);
                let period = period.max(Nanos(1));
                let release = start + Nanos(now.saturating_since(start).0 / period.0 * period.0);
                if self.open().is_some_and(|job| job.release != release) {
                    self.close(events);
                }
                (release, Some(release.saturating_add(period)))
            }
            (_, Some(deadline)) => (now, deadline),
            (_, None) => (now, None),
        };
        if self.open().is_none() {
            let number = self.next;
            self.next = self.next.wrapping_add(1);
            let job = Job { number, release, deadline, is_closed: false, operations: 0, retired: now };
            self.under_way.push_back(job);
            events.push(JobEvent::Began { number, release, deadline });
        }
        let job = self.under_way.back_mut().expect("one is open");
        job.operations += 1;
        job.number
    }

    /// An operation of job `number` is complete.
    pub fn retire(&mut self, now: Instant, number: u32, events: &mut Vec<JobEvent>) {
        if let Some(job) = self.under_way.iter_mut().find(|job| job.number == number) {
            job.operations -= 1;
            job.retired = now;
        }
        self.end_closed(events);
    }

    /// The program has waited for all that it issued.
    pub fn synchronize(&mut self, events: &mut Vec<JobEvent>) {
        let ends = match self.rule {
            JobRule::EverySync => true,
            JobRule::Period(_) => false,
            JobRule::Announced => self.announced.is_none(),
        };
        if ends {
            self.close(events);
        }
    }

    /// The program says that a job begins; one that has not ended ends.
    pub fn begin(&mut self, deadline: Option<Instant>, events: &mut Vec<JobEvent>) {
        self.close(events);
        self.announced = Some(deadline);
    }

    /// The job that was announced, or whatever is issued so far, is all.
    pub fn end(&mut self, events: &mut Vec<JobEvent>) {
        self.announced = None;
        self.close(events);
    }

    /// Whether there is a job that may get more operations.
    pub fn has_open(&self) -> bool {
        self.open().is_some()
    }

    /// The deadline of job `number`, which is under way.
    pub fn deadline(&self, number: u32) -> Option<Instant> {
        self.under_way.iter().find(|job| job.number == number)?.deadline
    }

    fn open(&self) -> Option<&Job> {
        self.under_way.back().filter(|job| !job.is_closed)
    }

    fn close(&mut self, events: &mut Vec<JobEvent>) {
        if let Some(job) = self.under_way.back_mut() {
            job.is_closed = true;
        }
        self.end_closed(events);
    }

    /// Jobs end in order.
    fn end_closed(&mut self, events: &mut Vec<JobEvent>) {
        while let Some(job) = self.under_way.front().filter(|job| job.is_closed && job.operations == 0) {
            events.push(JobEvent::Ended { number: job.number, at: job.retired });
            self.under_way.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(events: &mut Vec<JobEvent>) -> Vec<String> {
        let name = |event| match event {
            JobEvent::Began { number, .. } => format!("+{number}"),
            JobEvent::Ended { number, at } => format!("-{number}@{}", at.0),
        };
        events.drain(..).map(name).collect()
    }

    #[test]
    fn a_job_by_synchronization_ends_with_its_last_operation_or_the_wait_for_it() {
        let (mut jobs, mut events) = (Jobs::new(JobRule::EverySync), Vec::new());
        assert_eq!([jobs.issue(Instant(1), &mut events), jobs.issue(Instant(2), &mut events)], [0, 0]);
        jobs.retire(Instant(5), 0, &mut events);
        jobs.retire(Instant(6), 0, &mut events);
        assert_eq!(numbers(&mut events), ["+0"], "the program may issue more before it waits");
        jobs.synchronize(&mut events);
        assert_eq!(jobs.issue(Instant(9), &mut events), 1);
        jobs.synchronize(&mut events);
        jobs.retire(Instant(12), 1, &mut events);
        assert_eq!(numbers(&mut events), ["-0@6", "+1", "-1@12"]);
    }

    #[test]
    fn an_operation_belongs_to_the_period_in_which_it_is_issued() {
        let (mut jobs, mut events) = (Jobs::new(JobRule::Period(Nanos(10))), Vec::new());
        let job = jobs.issue(Instant(100), &mut events);
        assert_eq!(jobs.deadline(job), Some(Instant(110)));
        assert_eq!(jobs.issue(Instant(109), &mut events), 0);
        jobs.synchronize(&mut events);
        // Two periods without work: no job. The operations of the first one are still under way.
        let late = jobs.issue(Instant(135), &mut events);
        assert_eq!((late, jobs.deadline(late)), (1, Some(Instant(140))));
        jobs.retire(Instant(136), 0, &mut events);
        jobs.retire(Instant(137), 0, &mut events);
        assert_eq!(numbers(&mut events), ["+0", "+1", "-0@137"]);
    }

    #[test]
    fn announced_jobs_last_beyond_synchronizations_and_other_work_has_jobs_of_its_own() {
        let (mut jobs, mut events) = (Jobs::new(JobRule::Announced), Vec::new());
        let own = jobs.issue(Instant(1), &mut events);
        jobs.retire(Instant(2), own, &mut events);
        jobs.begin(Some(Instant(50)), &mut events);
        let job = jobs.issue(Instant(3), &mut events);
        assert_eq!(jobs.deadline(job), Some(Instant(50)));
        jobs.retire(Instant(4), job, &mut events);
        jobs.synchronize(&mut events);
        assert_eq!(jobs.issue(Instant(5), &mut events), job);
        jobs.end(&mut events);
        jobs.retire(Instant(6), job, &mut events);
        assert_eq!(numbers(&mut events), ["+0", "-0@2", "+1", "-1@6"]);
    }
}
