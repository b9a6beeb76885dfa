//! What a CPU does, moment by moment: which job has it, and whether that job really executes.

use laxity_model::{Instant, JobId, Nanos};

use super::Source;
use crate::Outsider;

/// One CPU. From `Dispatch` to the event that ends its stint a job executes, except while the CPU is covered by an
/// `Overhead` or a `LockWait`, runs a bottom half on the job's stack, or spins on the job's behalf.
///
/// ```text
///   dispatch      cover(1.5)     bottom half       stop
///      |#########|~~~~~~~|#######|bb|~~~|bb|########|         # executes   ~ covered   b bottom half
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cpu {
    running: Running,
    /// From when on what runs is not yet in `executed`.
    executes_from: Instant,
    /// How long what runs ran up to `executes_from`; of a job in this stint.
    executed: Nanos,
    /// Where the last cover ends.
    covered_until: Instant,
    /// What goes on after the bottom half, or after what is no task.
    interrupted: Running,
    /// The job's execution in this stint, while it spins or is interrupted.
    set_aside: Nanos,
    /// Time of the bottom halves and of the spinning that ended.
    bottom_halves: Nanos,
    spun: Nanos,
}

/// What a CPU runs, apart from the overheads that cover it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Running {
    /// Nothing.
    #[default]
    Nothing,
    /// The job executes.
    Job(JobId),
    /// The job has the CPU and waits.
    Spinning(JobId),
    /// A bottom half runs on the stack of the job that has the CPU, or of none.
    BottomHalf(Source),
    /// Something that is no task, in the place of the job that has the CPU, or of none.
    Outside(Outsider),
}

impl Cpu {
    /// What the CPU runs, and since when; later than now while an overhead covers it.
    pub fn running(&self) -> (Running, Instant) {
        (self.running, self.executes_from)
    }

    /// The job that has the CPU, even if a bottom half borrows its stack.
    #[inline]
    pub fn job(&self) -> Option<JobId> {
        match self.running {
            Running::BottomHalf(_) | Running::Outside(_) => self.interrupted.job(),
            running => running.job(),
        }
    }

    /// The interrupt whose bottom half is on the CPU's stack.
    pub fn bottom_half(&self) -> Option<Source> {
        match self.running {
            Running::BottomHalf(source) => Some(source),
            _ => None,
        }
    }

    /// Whether a bottom half or something that is no task is in the place of a job.
    fn is_interrupted(&self) -> bool {
        matches!(self.running, Running::BottomHalf(_) | Running::Outside(_))
    }

    /// Where the last overhead or lock wait ends.
    #[inline]
    pub fn covered_until(&self) -> Instant {
        self.covered_until
    }

    /// A job gets the CPU. The execution of a job that still has it is forgotten; a bottom half goes on first.
    #[inline]
    pub fn dispatch(&mut self, at: Instant, job: JobId) {
        if self.is_interrupted() {
            self.interrupted = Running::Job(job);
            self.set_aside = Nanos::ZERO;
            return;
        }
        self.running = Running::Job(job);
        self.executes_from = at.max(self.covered_until);
        self.executed = Nanos::ZERO;
    }

    /// No job executes for `duration`. Returns how much of it lies beyond an earlier cover: all of it, in a legal
    /// schedule.
    #[inline]
    pub fn cover(&mut self, at: Instant, duration: Nanos) -> Nanos {
        if duration.is_zero() {
            return Nanos::ZERO;
        }
        let until = at.saturating_add(duration);
        let added = until.saturating_since(at.max(self.covered_until));
        if self.running != Running::Nothing {
            self.executed = self.ran_by(at);
            self.executes_from = self.executes_from.max(until);
        }
        self.covered_until = self.covered_until.max(until);
        added
    }

    /// A bottom half begins on the stack of what runs; another that is there ends.
    pub fn begin_bottom_half(&mut self, at: Instant, source: Source) {
        if !self.is_interrupted() {
            self.interrupted = self.running;
        }
        self.go_on_with(at, Running::BottomHalf(source));
    }

    /// Something that is no task has the CPU from now on, or with `None` nothing of that kind any more. A bottom half that is
    /// there ends: where an operating system tells what has its CPUs, it tells of that, too.
    pub fn put_outside(&mut self, at: Instant, by: Option<Outsider>) {
        match (by, self.running) {
            (Some(by), running) => {
                if !self.is_interrupted() {
                    self.interrupted = running;
                }
                self.go_on_with(at, Running::Outside(by));
            }
            (None, Running::Outside(_)) => {
                self.go_on_with(at, self.interrupted);
                self.interrupted = Running::Nothing;
            }
            (None, _) => {}
        }
    }

    /// The bottom half ends, and what it interrupted goes on.
    pub fn end_bottom_half(&mut self, at: Instant) {
        if self.bottom_half().is_some() {
            self.go_on_with(at, self.interrupted);
            self.interrupted = Running::Nothing;
        }
    }

    /// `job`, if it has the CPU, spins from now on.
    pub fn begin_spinning(&mut self, at: Instant, job: JobId) {
        self.replace(at, Running::Job(job), Running::Spinning(job));
    }

    /// `job`, if it has the CPU, executes from now on.
    pub fn end_spinning(&mut self, at: Instant, job: JobId) {
        self.replace(at, Running::Spinning(job), Running::Job(job));
    }

    /// How much the job that has the CPU executed in this stint up to `at`.
    #[inline]
    pub fn executed_by(&self, at: Instant) -> Nanos {
        match self.running {
            Running::Job(_) => self.ran_by(at),
            _ => self.set_aside,
        }
    }

    /// The time of all bottom halves on this CPU's stacks up to `at`.
    pub fn bottom_halves_by(&self, at: Instant) -> Nanos {
        let current = if self.bottom_half().is_some() { self.ran_by(at) } else { Nanos::ZERO };
        add(self.bottom_halves, current)
    }

    /// The time of all spinning up to `at`.
    pub fn spun_by(&self, at: Instant) -> Nanos {
        let current = if matches!(self.running, Running::Spinning(_)) { self.ran_by(at) } else { Nanos::ZERO };
        add(self.spun, current)
    }

    /// `job` leaves the CPU. Returns how much it executed in this stint; `None`, and nothing changes, if it did not
    /// have the CPU.
    #[inline]
    pub fn stop(&mut self, at: Instant, job: JobId) -> Option<Nanos> {
        if self.running != Running::Job(job) {
            return self.stop_waiting(at, job);
        }
        self.running = Running::Nothing;
        Some(self.ran_by(at))
    }

    /// `job`, which does not execute, leaves the CPU.
    #[cold]
    fn stop_waiting(&mut self, at: Instant, job: JobId) -> Option<Nanos> {
        match (self.running, self.interrupted.job()) {
            (Running::Spinning(spinning), _) if spinning == job => self.go_on_with(at, Running::Nothing),
            (Running::BottomHalf(_) | Running::Outside(_), Some(interrupted)) if interrupted == job => {
                self.interrupted = Running::Nothing;
            }
            _ => return None,
        }
        Some(self.set_aside)
    }

    /// How long what runs has run up to `at`.
    #[inline]
    fn ran_by(&self, at: Instant) -> Nanos {
        add(self.executed, at.saturating_since(self.executes_from))
    }

    /// `from` becomes `to`, be it running or interrupted.
    fn replace(&mut self, at: Instant, from: Running, to: Running) {
        if self.running == from {
            self.go_on_with(at, to);
        } else if self.is_interrupted() && self.interrupted == from {
            self.interrupted = to;
        }
    }

    /// Accounts for what ran up to `at` and runs `to`; a job continues its stint.
    fn go_on_with(&mut self, at: Instant, to: Running) {
        let ran = self.ran_by(at);
        match self.running {
            Running::Nothing => self.set_aside = Nanos::ZERO,
            Running::Outside(_) => {}
            Running::Job(_) => self.set_aside = ran,
            Running::Spinning(_) => self.spun = add(self.spun, ran),
            Running::BottomHalf(_) => self.bottom_halves = add(self.bottom_halves, ran),
        }
        self.running = to;
        self.executed = if matches!(to, Running::Job(_)) { self.set_aside } else { Nanos::ZERO };
        self.executes_from = at.max(self.covered_until);
    }
}

impl Running {
    fn job(self) -> Option<JobId> {
        match self {
            Running::Job(job) | Running::Spinning(job) => Some(job),
            Running::Nothing | Running::BottomHalf(_) | Running::Outside(_) => None,
        }
    }
}

#[inline]
fn add(a: Nanos, b: Nanos) -> Nanos {
    Nanos(a.0.saturating_add(b.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceId;
    use laxity_model::TaskId;

    const JOB: JobId = JobId { task: TaskId(0), index: 0 };
    const OUTSIDER: Outsider = Outsider { kind: crate::OutsiderKind::Thread, number: 0 };
    const HALF: Source = Source { device: DeviceId(0), owner: None };

    #[test]
    fn a_job_executes_between_its_dispatch_and_its_stop_except_while_covered() {
        let mut cpu = Cpu::default();
        cpu.dispatch(Instant(10), JOB);
        assert_eq!(cpu.cover(Instant(15), Nanos(3)), Nanos(3));
        assert_eq!(cpu.executed_by(Instant(17)), Nanos(5), "within the cover nothing is added");
        assert_eq!(cpu.stop(Instant(20), JOB), Some(Nanos(7)));
        assert_eq!(cpu.stop(Instant(20), JOB), None);
    }

    #[test]
    fn a_cover_that_began_before_the_dispatch_delays_the_job() {
        let mut cpu = Cpu::default();
        cpu.cover(Instant(8), Nanos(4));
        cpu.dispatch(Instant(10), JOB);
        assert_eq!(cpu.stop(Instant(20), JOB), Some(Nanos(8)));
    }

    #[test]
    fn a_cover_within_another_adds_only_what_lies_beyond_it() {
        let mut cpu = Cpu::default();
        cpu.dispatch(Instant(0), JOB);
        cpu.cover(Instant(10), Nanos(10));
        assert_eq!(cpu.cover(Instant(12), Nanos(2)), Nanos(0));
        assert_eq!(cpu.cover(Instant(15), Nanos(8)), Nanos(3));
        cpu.cover(Instant(16), Nanos(1));
        assert_eq!(cpu.stop(Instant(30), JOB), Some(Nanos(17)));
    }

    /// ```text
    ///   0    5    10   15   20   25   30
    ///   #####bbbbb~~~~~bbbbb#####            b bottom half, ~ its CPU is interrupted
    /// ```
    #[test]
    fn a_bottom_half_delays_the_job_whose_stack_it_borrows_and_is_delayed_by_interrupts() {
        let mut cpu = Cpu::default();
        cpu.dispatch(Instant(0), JOB);
        cpu.begin_bottom_half(Instant(5), HALF);
        assert_eq!(cpu.job(), Some(JOB), "it has the CPU, though it does not execute");
        assert_eq!(cpu.cover(Instant(10), Nanos(5)), Nanos(5));
        assert_eq!((cpu.executed_by(Instant(17)), cpu.bottom_halves_by(Instant(17))), (Nanos(5), Nanos(7)));
        cpu.end_bottom_half(Instant(20));
        assert_eq!(cpu.stop(Instant(25), JOB), Some(Nanos(10)));
        assert_eq!(cpu.bottom_halves_by(Instant(30)), Nanos(10));
    }

    #[test]
    fn a_bottom_half_on_an_idle_cpu_executes_no_job() {
        let mut cpu = Cpu::default();
        cpu.begin_bottom_half(Instant(5), HALF);
        assert_eq!((cpu.job(), cpu.executed_by(Instant(9))), (None, Nanos(0)));
        cpu.end_bottom_half(Instant(9));
        assert_eq!((cpu.job(), cpu.bottom_halves_by(Instant(20))), (None, Nanos(4)));
    }

    #[test]
    fn a_job_whose_bottom_half_goes_on_leaves_with_what_it_executed() {
        let mut cpu = Cpu::default();
        cpu.dispatch(Instant(0), JOB);
        cpu.begin_bottom_half(Instant(5), HALF);
        assert_eq!(cpu.stop(Instant(8), JOB), Some(Nanos(5)));
        cpu.end_bottom_half(Instant(9));
        assert_eq!((cpu.job(), cpu.bottom_halves_by(Instant(20))), (None, Nanos(4)));
    }

    #[test]
    fn a_job_dispatched_under_a_bottom_half_executes_after_it() {
        let mut cpu = Cpu::default();
        cpu.begin_bottom_half(Instant(5), HALF);
        cpu.dispatch(Instant(8), JOB);
        assert_eq!((cpu.job(), cpu.bottom_half(), cpu.executed_by(Instant(9))), (Some(JOB), Some(HALF), Nanos(0)));
        cpu.end_bottom_half(Instant(10));
        assert_eq!(cpu.stop(Instant(12), JOB), Some(Nanos(2)));
    }

    /// ```text
    ///   0    5    10   15   20   25
    ///   #####sssssbbbbbsssss#####            s spins, b bottom half
    /// ```
    #[test]
    fn a_spinning_job_does_not_execute() {
        let mut cpu = Cpu::default();
        cpu.dispatch(Instant(0), JOB);
        cpu.begin_spinning(Instant(5), JOB);
        cpu.begin_bottom_half(Instant(10), HALF);
        cpu.end_bottom_half(Instant(15));
        assert_eq!((cpu.job(), cpu.spun_by(Instant(18))), (Some(JOB), Nanos(8)));
        cpu.end_spinning(Instant(20), JOB);
        assert_eq!(cpu.stop(Instant(25), JOB), Some(Nanos(10)));
        assert_eq!((cpu.spun_by(Instant(25)), cpu.bottom_halves_by(Instant(25))), (Nanos(10), Nanos(5)));
    }

    #[test]
    fn a_job_that_is_preempted_while_it_spins_keeps_what_it_executed() {
        let mut cpu = Cpu::default();
        cpu.dispatch(Instant(0), JOB);
        cpu.begin_spinning(Instant(5), JOB);
        assert_eq!(cpu.stop(Instant(9), JOB), Some(Nanos(5)));
        assert_eq!((cpu.job(), cpu.spun_by(Instant(20))), (None, Nanos(4)));
    }

    /// ```text
    ///   0    5    10   15   20   25   30
    ///   #####kkkkkiiiiikkkkk#####            k another thread, i an interrupt
    /// ```
    #[test]
    fn what_is_no_task_interrupts_the_job_that_has_the_cpu_and_not_its_dispatch() {
        let (thread, interrupt) = (Outsider { number: 0, ..OUTSIDER }, Outsider { number: 1, ..OUTSIDER });
        let mut cpu = Cpu::default();
        cpu.dispatch(Instant(0), JOB);
        for (at, by) in [(5, Some(thread)), (10, Some(interrupt)), (15, Some(thread)), (20, None), (22, None)] {
            cpu.put_outside(Instant(at), by);
            assert_eq!(cpu.job(), Some(JOB), "it has the CPU, though it does not execute");
        }
        assert_eq!(cpu.stop(Instant(25), JOB), Some(Nanos(10)));
        cpu.put_outside(Instant(25), Some(thread));
        cpu.dispatch(Instant(27), JOB);
        assert_eq!((cpu.running().0, cpu.executed_by(Instant(29))), (Running::Outside(thread), Nanos(0)));
        assert_eq!(cpu.stop(Instant(29), JOB), Some(Nanos(0)), "it may leave before the other does");
        cpu.put_outside(Instant(30), None);
        assert_eq!(cpu.running().0, Running::Nothing);
    }
}
