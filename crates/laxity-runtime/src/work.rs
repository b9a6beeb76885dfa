//! CPU time used up by real instructions, and memory that they go through.

use std::hint::black_box;

use laxity_model::Nanos;
use laxity_sys::clock;

use crate::stop::StopSignal;

/// The working set of a task's jobs, and how they use the CPU.
#[derive(Debug)]
pub(crate) struct Work {
    /// The working set.
    memory: Vec<u64>,
    /// Where in it the next round works.
    position: usize,
    /// The CPU time at which the job began that has not gone through its working set yet.
    untouched_since: Option<Nanos>,
    state: u64,
}

/// Words in what a cache holds together.
const LINE: usize = 64 / size_of::<u64>();

/// Rounds of a few nanoseconds each: at first, and between two looks at the clock at most (a fraction of a millisecond).
const ROUNDS_FIRST: u64 = 64;
const ROUNDS_MAX: u64 = 1 << 16;
/// Rounds between two looks of the caller at most: some microseconds.
const ROUNDS_UNSEEN: u64 = 1 << 10;

impl Work {
    /// On a working set of `bytes`, rounded up to cache lines, all of which is in memory when this returns.
    ///
    /// # Errors
    /// That there is not enough memory.
    pub fn new(bytes: u64) -> Result<Work, String> {
        let no_memory = || format!("a working set of {bytes} bytes does not fit into memory; make it smaller");
        let words = usize::try_from(bytes).map_err(|_| no_memory())?.div_ceil(64) * LINE;
        let mut memory = Vec::new();
        memory.try_reserve_exact(words).map_err(|_| no_memory())?;
        // Not zero, which Linux would give out without memory behind it.
        memory.resize(words, 1);
        Ok(Work { memory, position: 0, untouched_since: None, state: 1 })
    }

    /// A job begins; all it does until [`Work::end_job`] is its own.
    pub fn begin_job(&mut self) {
        self.untouched_since = (!self.memory.is_empty()).then(clock::thread_cpu_time);
    }

    /// Goes through the working set if the job had no CPU time to do it in.
    pub fn end_job(&mut self) {
        if self.untouched_since.take().is_some() {
            self.touch();
        }
    }

    /// Uses the CPU for `span`, preempted or not; the first time in a job, going through its working set is a part of
    /// it. Answers whether it came to its end before it was stopped. The caller has a `look` every few microseconds.
    ///
    /// The speed is measured again by each call: a loop that is calibrated once would be wrong whenever the CPU's
    /// frequency changes. Looks at the clock, which are system calls, halve what is left, so that they are few and the
    /// end is met to a microsecond or so.
    pub fn execute(&mut self, span: Nanos, stop: &StopSignal, mut look: impl FnMut()) -> bool {
        let start = match self.untouched_since.take() {
            Some(start) => {
                self.touch();
                start
            }
            None if span.is_zero() => return true,
            None => clock::thread_cpu_time(),
        };
        let (mut done, mut rounds) = (0, ROUNDS_FIRST);
        loop {
            for unseen in (0..rounds).step_by(ROUNDS_UNSEEN as usize) {
                self.compute(ROUNDS_UNSEEN.min(rounds - unseen));
                look();
            }
            done += rounds;
            if stop.is_stopped() {
                return false;
            }
            let elapsed = clock::thread_cpu_time() - start;
            if elapsed >= span {
                return true;
            }
            let left = u128::from((span - elapsed).0);
            // Touching the working set counts as time but not as rounds, which errs on the side of more looks.
            let affordable = left * u128::from(done) / (2 * u128::from(elapsed.0.max(1)));
            rounds = (affordable as u64).clamp(ROUNDS_FIRST, ROUNDS_MAX);
        }
    }

    /// Arithmetic whose every round needs the result of the one before, on one cache line after the other.
    pub fn compute(&mut self, rounds: u64) {
        for round in 0..rounds {
            self.state = (self.state.rotate_left(29) ^ round).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            if let Some(word) = self.memory.get_mut(self.position) {
                *word ^= self.state;
                self.position += LINE;
            } else {
                self.position = 0;
            }
        }
        black_box(self.state);
    }

    /// Reads and writes every cache line of the working set once.
    fn touch(&mut self) {
        for word in self.memory.iter_mut().step_by(LINE) {
            *word = word.rotate_left(1) ^ self.state;
        }
        black_box(&mut self.memory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_uses_its_cpu_time_and_goes_through_all_of_its_working_set() {
        let stop = StopSignal::default();
        // The time is also too short to go through a megabyte while computing.
        for (bytes, span) in [(0, Nanos::from_millis(2)), (1, Nanos::from_millis(2)), (1_000_000, Nanos(1_000))] {
            let mut work = Work::new(bytes).expect("memory");
            let before = (work.memory.clone(), clock::thread_cpu_time());
            work.begin_job();
            assert!(work.execute(span, &stop, || {}));
            assert!(clock::thread_cpu_time() - before.1 >= span);
            work.end_job();
            assert_eq!(work.memory.len() * 8, (bytes as usize).next_multiple_of(64));
            let is_touched = |line: usize| work.memory[line] != before.0[line];
            assert!((0..work.memory.len()).step_by(LINE).all(is_touched), "{bytes}");
        }
    }

    #[test]
    fn a_job_without_cpu_time_goes_through_its_working_set() {
        let mut work = Work::new(128).expect("memory");
        let before = work.memory.clone();
        work.begin_job();
        work.end_job();
        assert!(work.memory[0] != before[0] && work.memory[LINE] != before[LINE]);
    }

    #[test]
    fn a_stopped_job_ends_and_answers_so() {
        let stop = StopSignal::default();
        stop.stop();
        assert!(!Work::new(0).expect("no memory").execute(Nanos::LONGEST, &stop, || {}));
        assert!(!stop.suspend_until(laxity_model::Instant::NEVER));
    }

    #[test]
    fn a_working_set_beyond_memory_is_refused() {
        assert!(Work::new(u64::MAX).expect_err("too much").ends_with("make it smaller"));
    }
}
