//! Jobs in non-preemptive sections that Linux moves to other CPUs.
//!
//! ```text
//! CPU 0   s s s s|i i i i|b b b b b      an interrupt thread has the CPU from here on
//! CPU 1   b b b b|s s s s s s s s s      Linux lets s, which is above all other jobs, go on here at once
//! ```
//!
//! Under `SCHED_FIFO` an interrupt thread, or a thread of Linux itself, may take the CPU of such a job, and no job may. A thread does not
//! notice that it is moved; but one in a section looks every few microseconds, and notes where it is and that it was away. So where
//! anything else shows up on its CPU, the job is from that moment on where it notes something next. The collector reads on until it
//! knows where that is.
//!
//! If that is the same CPU, the job waited: where several interrupt threads take CPUs in turn, Linux moves a job to a CPU that
//! it is about to lose again, and lets another one have the CPU from which it came for some microseconds.

use laxity_model::{CpuId, JobId};
use laxity_trace::Sink;

use super::Collector;
use crate::log::JobStep;

/// Where a job in a section is that cannot be where it was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moved {
    job: JobId,
    to: CpuId,
}

impl Collector {
    /// Which job in a section gave way to the next entry of the log of that number, by moving; `Err`: that is not known yet.
    pub(super) fn moved(&self, log: usize, is_last: bool) -> Result<Option<Moved>, ()> {
        let Some(entry) = self.sources[log].entries.front().filter(|entry| shows_job(entry.step)) else {
            return Ok(None);
        };
        let cpu = self.cpu(entry.cpu);
        let in_section = |task: usize| task != log && self.progress[task].is_non_preemptive();
        let on = |cpu| self.occupancy.running(cpu).filter(|task| !self.is_told && in_section(task.index()));
        let Some(task) = on(cpu) else { return Ok(None) };
        match self.sources[task.index()].entries.front() {
            None if is_last => Ok(None),
            None => Err(()),
            Some(next) => {
                let to = self.cpu(next.cpu);
                let job = JobId { task, index: self.progress[task.index()].current() };
                // Another job in a section keeps its CPU: this one waits until there is one for it.
                Ok((to != cpu && on(to).is_none()).then_some(Moved { job, to }))
            }
        }
    }

    /// A job goes on where Linux moved it.
    pub(super) fn follow(&mut self, Moved { job, to }: Moved, sink: &mut impl Sink) {
        let at = self.reached;
        self.occupancy.enter(job, to, &mut |event| sink.record(at, event));
    }
}

/// Whether the job that notes `step` is on the CPU where it does.
fn shows_job(step: JobStep) -> bool {
    !matches!(
        step,
        JobStep::Regulate(_)
            | JobStep::Throttle(_)
            | JobStep::Unthrottle(..)
            | JobStep::Amount(_)
            | JobStep::Replenish(_)
            | JobStep::Priority(_)
            | JobStep::Released(_)
            | JobStep::TopHalf(..)
            | JobStep::Stolen(_)
    )
}

#[cfg(test)]
mod tests {
    use super::super::recorded;
    use crate::LinuxScheduler;
    use crate::log::JobStep::{Begin, Complete, Executes, NonPreemptiveBegin, NonPreemptiveEnd};

    const WORKLOAD: &str = "
laxity = 1
name = \"a section\"
scheduler = \"G-RM\"
platform.cpus = 2
platform.device = [{ name = \"d\", arrival = \"sporadic\", period = \"100 ms\", top_half = \"20 us\", bottom_half = \"60 us\" }]
task = [
    { name = \"s\", period = \"90 ms\", body = [{ nonpreemptive = \"3 ms\" }] },
    { name = \"b\", period = \"100 ms\", wcet = \"4 ms\" },
]
";
    const S: usize = 0;
    const B: usize = 1;
    /// The thread of the device's bottom halves.
    const I: usize = 2;

    /// The CPUs that the jobs got, at which microsecond, if this machine can have the run.
    fn dispatched(steps: &[(u64, usize, usize, crate::log::JobStep)]) -> Option<Vec<(u64, u32, u16)>> {
        let trace = recorded::trace(WORKLOAD, LinuxScheduler::Fifo, steps)?;
        let report = recorded::judge(&trace);
        assert!(report.is_clean(), "{report}");
        Some(recorded::dispatched(&trace))
    }

    #[test]
    fn a_job_in_a_section_goes_on_elsewhere_when_an_interrupt_thread_takes_its_cpu() {
        let dispatched = dispatched(&[
            (10, S, 0, Begin),
            (11, S, 0, NonPreemptiveBegin),
            (20, B, 1, Begin),
            (500, I, 0, Begin),
            // It notes where it is after the interrupt thread has gone, and the other job after that where it was.
            (560, I, 0, Complete),
            (570, S, 1, Executes),
            (3_020, S, 1, NonPreemptiveEnd),
            (3_030, S, 1, Complete),
            (4_000, B, 0, Complete),
        ]);
        let expected = [(10, 0, 0), (20, 1, 1), (500, 0, 1), (500, 2, 0), (3_030, 1, 1), (4_000, 1, 0)];
        assert!(dispatched.is_none_or(|dispatched| dispatched == expected));
    }

    #[test]
    fn a_job_in_a_section_has_moved_when_a_job_shows_up_on_its_cpu() {
        let dispatched = dispatched(&[
            (10, S, 0, Begin),
            (11, S, 0, NonPreemptiveBegin),
            (600, B, 0, Begin),
            (3_020, S, 1, NonPreemptiveEnd),
            (3_030, S, 1, Complete),
            (4_000, B, 0, Complete),
        ]);
        let expected = [(10, 0, 0), (600, 0, 1), (600, 1, 0)];
        assert!(dispatched.is_none_or(|dispatched| dispatched == expected));
    }

    /// It has been moved to a CPU that it lost before it executed there, and waits while another job has the one from which it came.
    #[test]
    fn a_job_in_a_section_that_had_no_cpu_for_a_while_waited_for_that_long() {
        let dispatched = dispatched(&[
            (10, S, 0, Begin),
            (11, S, 0, NonPreemptiveBegin),
            (500, B, 0, Begin),
            (560, S, 0, Executes),
            (2_000, S, 1, Executes),
            (3_020, S, 1, NonPreemptiveEnd),
            (3_030, S, 1, Complete),
            (4_000, B, 0, Complete),
        ]);
        let expected = [(10, 0, 0), (500, 1, 0), (560, 0, 0), (2_000, 1, 0), (2_000, 0, 1)];
        assert!(dispatched.is_none_or(|dispatched| dispatched == expected));
    }

    #[test]
    fn a_job_in_a_section_that_notes_nothing_elsewhere_goes_on_where_it_was() {
        let dispatched = dispatched(&[
            (10, S, 0, Begin),
            (11, S, 0, NonPreemptiveBegin),
            (500, I, 0, Begin),
            (560, I, 0, Complete),
            (3_020, S, 0, NonPreemptiveEnd),
            (3_030, S, 0, Complete),
        ]);
        let expected = [(10, 0, 0), (500, 2, 0), (560, 0, 0)];
        assert!(dispatched.is_none_or(|dispatched| dispatched == expected));
    }
}
