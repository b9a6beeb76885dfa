//! What a CPU does, moment by moment: which job has it, and whether that job really executes.

use laxity_model::{Instant, JobId, Nanos};

/// One CPU. From `Dispatch` to the event that ends its stint a job executes, except while the CPU is covered by an
/// `Overhead` or a `LockWait`.
///
/// ```text
///   dispatch      cover(1.5)     stop
///      |#########|~~~~~~~|#######|         # executes   ~ covered
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Occupancy {
    running: Option<JobId>,
    /// From when on the running job's execution is not yet in `executed`.
    executes_from: Instant,
    /// Execution of this stint up to `executes_from`.
    executed: Nanos,
    /// Where the last cover ends.
    covered_until: Instant,
}

impl Occupancy {
    /// The job that has the CPU.
    #[inline]
    pub fn running(&self) -> Option<JobId> {
        self.running
    }

    /// Where the last overhead or lock wait ends.
    #[inline]
    pub fn covered_until(&self) -> Instant {
        self.covered_until
    }

    /// A job gets the CPU; a job that still has it is forgotten.
    #[inline]
    pub fn dispatch(&mut self, at: Instant, job: JobId) {
        self.running = Some(job);
        self.executes_from = at.max(self.covered_until);
        self.executed = Nanos::ZERO;
    }

    /// No job executes for `duration`. Returns how much of it lies beyond an earlier cover: all of it, in a legal
    /// schedule.
    #[inline]
    pub fn cover(&mut self, at: Instant, duration: Nanos) -> Nanos {
        let until = at.saturating_add(duration);
        let added = until.saturating_since(at.max(self.covered_until));
        if self.running.is_some() {
            self.executed = self.executed_by(at);
            self.executes_from = self.executes_from.max(until);
        }
        self.covered_until = self.covered_until.max(until);
        added
    }

    /// How much the running job executed in this stint up to `at`.
    #[inline]
    pub fn executed_by(&self, at: Instant) -> Nanos {
        Nanos(self.executed.0.saturating_add(at.saturating_since(self.executes_from).0))
    }

    /// `job` leaves the CPU. Returns how much it executed in this stint; `None`, and nothing changes, if it did not
    /// have the CPU.
    #[inline]
    pub fn stop(&mut self, at: Instant, job: JobId) -> Option<Nanos> {
        if self.running != Some(job) {
            return None;
        }
        self.running = None;
        Some(self.executed_by(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity_model::TaskId;

    const JOB: JobId = JobId { task: TaskId(0), index: 0 };

    #[test]
    fn a_job_executes_between_its_dispatch_and_its_stop_except_while_covered() {
        let mut cpu = Occupancy::default();
        cpu.dispatch(Instant(10), JOB);
        assert_eq!(cpu.cover(Instant(15), Nanos(3)), Nanos(3));
        assert_eq!(cpu.executed_by(Instant(17)), Nanos(5), "within the cover nothing is added");
        assert_eq!(cpu.stop(Instant(20), JOB), Some(Nanos(7)));
        assert_eq!(cpu.stop(Instant(20), JOB), None);
    }

    #[test]
    fn a_cover_that_began_before_the_dispatch_delays_the_job() {
        let mut cpu = Occupancy::default();
        cpu.cover(Instant(8), Nanos(4));
        cpu.dispatch(Instant(10), JOB);
        assert_eq!(cpu.stop(Instant(20), JOB), Some(Nanos(8)));
    }

    #[test]
    fn a_cover_within_another_adds_only_what_lies_beyond_it() {
        let mut cpu = Occupancy::default();
        cpu.dispatch(Instant(0), JOB);
        cpu.cover(Instant(10), Nanos(10));
        assert_eq!(cpu.cover(Instant(12), Nanos(2)), Nanos(0));
        assert_eq!(cpu.cover(Instant(15), Nanos(8)), Nanos(3));
        cpu.cover(Instant(16), Nanos(1));
        assert_eq!(cpu.stop(Instant(30), JOB), Some(Nanos(17)));
    }
}
