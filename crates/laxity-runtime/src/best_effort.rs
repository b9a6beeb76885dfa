//! The thread of a best-effort task: it computes, and moves memory at the rate that the task asks for, until its work is
//! done or the run ends.

use std::sync::Arc;

use laxity_gpu::Arbitration;
use laxity_measure::memory::{Pattern, Stream};
use laxity_model::{Instant, Nanos};
use laxity_sys::{clock, fairness, scheduling};

use crate::jobs::JobError;
use crate::log::{JobStep, Writer};
use crate::plan::BestEffortTask;
use crate::stop::StopSignal;
use crate::work::Work;
use crate::worker::{Body, Interrupted, Job};

/// Computation between two looks at the clock: some ten microseconds.
const ROUNDS: u64 = 1 << 13;
/// Chunks of memory between two looks, at most: as long.
const CHUNKS: u32 = 2;
/// A thread that was off its CPU for longer says that it is on one again: above any interrupt, below any job.
const AWAY: Nanos = Nanos::from_micros(10);
/// Traffic that it could not cause in time is caught up with for so long: beyond, memory is slower than the demand.
const BEHIND_MAX: Nanos = Nanos::from_millis(1);

/// The body of a best-effort task.
pub(crate) struct BestEffortJob {
    task: BestEffortTask,
    log: Writer,
    stop: Arc<StopSignal>,
    traffic: Option<Traffic>,
    /// Where it counts its traffic, if that may be regulated.
    counts: Option<Arbitration>,
    work: Work,
}

/// Memory traffic in proportion to the time on a CPU.
struct Traffic {
    stream: Stream,
    /// Bytes a second.
    demand: u64,
    moved: u64,
}

/// What the clocks said when the thread last looked.
#[derive(Clone, Copy)]
struct Look {
    at: Instant,
    /// The thread's own time.
    executed: Nanos,
    cpu: usize,
}

impl BestEffortJob {
    /// Made on the thread of `task`, which gets its niceness.
    ///
    /// # Errors
    /// What Linux refuses.
    pub fn new(
        task: BestEffortTask,
        log: Writer,
        stop: Arc<StopSignal>,
        counts: Option<Arbitration>,
    ) -> Result<BestEffortJob, String> {
        let niceness = task.niceness;
        fairness::set_niceness(scheduling::current_thread(), niceness)
            .map_err(|error| format!("niceness {niceness} is refused: {error}"))?;
        let stream =
            |&cpu| Traffic { stream: Stream::beyond_caches(Pattern::Write, cpu), demand: task.demand, moved: 0 };
        let traffic = task.cpus.first().filter(|_| task.demand > 0).map(stream);
        Ok(BestEffortJob { traffic, task, log, stop, counts, work: Work::new(0)? })
    }

    /// Answers whether its work came to its end before it was stopped.
    fn carry_out(&mut self) -> bool {
        let begin = Look::now();
        let mut last = begin;
        while !self.stop.is_stopped() {
            let executed = Nanos(last.executed.0 - begin.executed.0);
            if self.task.work.is_some_and(|work| executed >= work) {
                return true;
            }
            let moved = self.traffic.as_mut().is_some_and(|traffic| traffic.follow(executed, self.counts.as_ref()));
            if !moved {
                self.work.compute(ROUNDS);
            }
            let look = Look::now();
            if look.is_back(last) {
                self.log.note(0, JobStep::Executes);
            }
            last = look;
        }
        false
    }
}

impl Look {
    fn now() -> Look {
        Look { at: clock::now(), executed: clock::thread_cpu_time(), cpu: scheduling::current_cpu() }
    }

    /// Whether the thread was off its CPU since `last`, or moved.
    fn is_back(self, last: Look) -> bool {
        let executed = self.executed.0.saturating_sub(last.executed.0);
        self.cpu != last.cpu || self.at.saturating_since(last.at).0 > executed + AWAY.0
    }
}

impl Traffic {
    /// Moves what is due after `executed` on a CPU, a few chunks at most. Answers whether anything was.
    fn follow(&mut self, executed: Nanos, counts: Option<&Arbitration>) -> bool {
        let bytes = |span: Nanos| {
            let bytes = u128::from(span.0) * u128::from(self.demand) / 1_000_000_000;
            u64::try_from(bytes).unwrap_or(u64::MAX)
        };
        let due = bytes(executed);
        self.moved = self.moved.max(due.saturating_sub(bytes(BEHIND_MAX)));
        let mut chunks = 0;
        while self.moved < due && chunks < CHUNKS {
            let chunk = self.stream.step();
            self.moved += chunk;
            counts.into_iter().for_each(|counts| counts.count_traffic(chunk));
            chunks += 1;
        }
        chunks > 0
    }
}

impl Body for BestEffortJob {
    type Error = JobError;

    fn execute(&mut self, _job: Job<'_>) -> Result<(), Interrupted<JobError>> {
        self.log.note(0, JobStep::Begin);
        if !self.carry_out() {
            return Err(Interrupted::Stopped);
        }
        self.log.note(0, JobStep::Complete);
        Ok(())
    }

    fn end(self, outcome: Result<(), JobError>) -> Result<(), String> {
        outcome.map_err(|error| format!("best-effort task \"{}\": {error}", self.task.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_is_the_demand_times_the_time_on_a_cpu_and_lags_by_no_more_than_it_catches_up_with() {
        let mut traffic = Traffic { stream: Stream::new(Pattern::Write, 1 << 20), demand: 100_000_000, moved: 0 };
        let ms = Nanos::from_millis;
        assert!(!traffic.follow(Nanos::ZERO, None), "nothing is due");
        while traffic.follow(ms(1), None) {}
        assert!((100_000..100_000 + (16 << 10)).contains(&traffic.moved), "{}", traffic.moved);
        traffic.follow(ms(100), None);
        let behind = 10_000_000 - traffic.moved;
        assert!(behind <= 100_000, "99 ms were slept through, and {behind} bytes are to be caught up with");
    }
}
