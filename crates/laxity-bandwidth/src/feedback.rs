//! How much nicer a throttled thread must be so that virtual run times grow alike (paper 004, equations 1 to 3).
//!
//! ```text
//! V += ran * 1024 / weight + punishment * lost        nicer = (V - mean V of those that also want the CPU) / GAIN
//! ```
//!
//! The difference of virtual run times integrates what a niceness got wrong, so that shares come out right in the long
//! run, whatever weights Linux gives. Measured: a niceness more makes a thread's V fall behind by 5 to 8 ms in each
//! interval of 50 ms, so that a gain of one for 10 ms settles without swinging.

use std::collections::BTreeMap;

use laxity_model::Nanos;

use crate::members::{Regulated, WEIGHT};

/// A difference of virtual run times for which a thread is nicer by one, in nanoseconds.
const GAIN: f64 = 10e6;
/// What a thread may be behind or ahead of the others at most: a newcomer, or one that slept, is neither owed nor owes
/// more. In nanoseconds.
const BEHIND_MAX: f64 = 50e6;
const AHEAD_MAX: f64 = 300e6;
/// Threads that wanted less of the CPU than this part of what all had compete for nothing.
const WANTED_MIN: f64 = 0.2;

/// What is known of a thread now; sums since it began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub of: Regulated,
    /// Time on a CPU, and time for which it was ready and had none.
    pub ran: Nanos,
    pub waited: Nanos,
    /// For how long its CPU was throttled because of it.
    pub lost: Nanos,
}

/// Virtual run times of threads.
#[derive(Clone, Debug)]
pub(crate) struct Feedback {
    punishment: f64,
    threads: BTreeMap<u32, (Sample, f64)>,
}

impl Feedback {
    pub fn new(punishment: f64) -> Self {
        Feedback { punishment, threads: BTreeMap::new() }
    }

    /// An interval is over. Answers with how much nicer each thread that was throttled ever should be than by itself.
    pub fn step(&mut self, samples: &[Sample]) -> Vec<(u32, i32)> {
        self.threads.retain(|thread, _| samples.iter().any(|sample| sample.of.thread == *thread));
        let mut wanted: BTreeMap<u32, f64> = BTreeMap::new();
        // Newcomers begin at what the others had before this interval.
        let before: Vec<f64> = samples.iter().map(|sample| self.mean(&sample.of, |_| true).unwrap_or(0.0)).collect();
        for (sample, mean) in samples.iter().zip(before) {
            let thread = sample.of.thread;
            let (last, virtual_time) = self.threads.get(&thread).cloned().unwrap_or((sample.clone(), mean));
            let span = |of: fn(&Sample) -> Nanos| of(sample).0.saturating_sub(of(&last).0) as f64;
            let (ran, waited, lost) = (span(|one| one.ran), span(|one| one.waited), span(|one| one.lost));
            wanted.insert(thread, ran + waited);
            let weighted = ran * f64::from(WEIGHT) / f64::from(sample.of.weight.max(1));
            self.threads.insert(thread, (sample.clone(), virtual_time + weighted + self.punishment * lost));
        }
        let mut nicer = Vec::new();
        for sample in samples.iter().filter(|sample| !sample.lost.is_zero()) {
            let thread = sample.of.thread;
            let rivals = samples.iter().filter(|rival| rival.of.competes_with(&sample.of));
            let most = rivals.filter_map(|rival| wanted.get(&rival.of.thread)).copied().fold(0.0, f64::max);
            let competes = |thread| wanted.get(&thread).is_some_and(|&time| time > 0.0 && time >= most * WANTED_MIN);
            let Some(others) = self.mean(&sample.of, |rival| rival != thread && competes(rival)) else {
                nicer.push((thread, 0));
                continue;
            };
            let Some((_, virtual_time)) = self.threads.get_mut(&thread) else { continue };
            *virtual_time = virtual_time.clamp(others - BEHIND_MAX, others + AHEAD_MAX);
            let step = ((*virtual_time - others) / GAIN).round() as i32;
            nicer.push((thread, step.clamp(0, 39)));
        }
        nicer
    }

    /// The mean virtual run time among the rivals of `one` that are `of`.
    fn mean(&self, one: &Regulated, of: impl Fn(u32) -> bool) -> Option<f64> {
        let is_meant = |known: &&(Sample, f64)| known.0.of.competes_with(one) && of(known.0.of.thread);
        let times: Vec<f64> = self.threads.values().filter(is_meant).map(|(_, time)| *time).collect();
        (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: f64 = 1e6;
    /// Weights of Linux for niceness 0 to 19.
    const WEIGHTS: [f64; 20] = [
        1024.0, 820.0, 655.0, 526.0, 423.0, 335.0, 272.0, 215.0, 172.0, 137.0, 110.0, 87.0, 70.0, 56.0, 45.0, 36.0,
        29.0, 23.0, 18.0, 15.0,
    ];

    /// The share of periods of a memory thread beside a CPU thread, if the memory thread runs for `beta` of a period and
    /// is throttled for the rest, and a fair class gives both time by their weights.
    fn share(punishment: f64, beta: f64, weight: u32) -> f64 {
        let own = WEIGHTS.iter().position(|&of_nice| of_nice as u32 == weight).expect("a weight of Linux");
        let mut feedback = Feedback::new(punishment);
        let (mut memory, mut cpu, mut lost, mut nicer) = (0.0, 0.0, 0.0, 0);
        let (mut early, mut of_early) = (0.0, 0.0);
        for interval in 0..400 {
            // Of the interval's 50 ms, x runs memory, x/beta of them are its periods; times run are as the weights.
            let (of_memory, of_cpu) = (WEIGHTS[(own + nicer as usize).min(19)], WEIGHTS[0]);
            let x = 50.0 * MS / (1.0 / beta + of_cpu / of_memory);
            memory += x;
            lost += x * (1.0 - beta) / beta;
            cpu += x * of_cpu / of_memory;
            let sample = |thread, ran: f64, lost: f64| {
                let waited = Nanos((50.0 * MS * f64::from(interval + 1) - ran) as u64);
                let of = Regulated { thread, weight: if thread == 1 { weight } else { WEIGHT }, cpus: vec![1] };
                Sample { of, ran: Nanos(ran as u64), waited, lost: Nanos(lost as u64) }
            };
            let step = feedback.step(&[sample(1, memory, lost), sample(2, cpu, 0.0)]);
            nicer = step.iter().find(|(thread, _)| *thread == 1).expect("it was throttled").1.min(19);
            if interval == 100 {
                (early, of_early) = (memory / beta, memory / beta + cpu);
            }
        }
        let periods = memory / beta - early;
        periods / (memory / beta + cpu - of_early)
    }

    /// Share 1 / (1 + beta + punishment * (1 - beta)) of the periods: BWLOCK.md's formula 5, from equations 1 and 2.
    #[test]
    fn shares_are_those_of_the_throttle_fair_scheduler() {
        for beta in [0.2, 1.0 / 3.0, 0.5] {
            for punishment in [0.0, 1.0, 3.0] {
                let expected = 1.0 / (1.0 + beta + punishment * (1.0 - beta));
                let found = share(punishment, beta, WEIGHT);
                assert!((found - expected).abs() < 0.02, "{found} and not {expected} at {beta} and {punishment}");
            }
        }
    }

    /// With a weight of W: in a period of the memory thread its virtual time grows by beta 1024/W + punishment (1 - beta).
    #[test]
    fn shares_are_by_weight() {
        for (beta, punishment) in [(1.0 / 3.0, 1.0), (0.5, 1.0), (0.5, 2.0)] {
            let (weight, part) = (335, 1024.0 / 335.0);
            let expected = 1.0 / (1.0 + beta * part + punishment * (1.0 - beta));
            let found = share(punishment, beta, weight);
            assert!((found - expected).abs() < 0.02, "{found} and not {expected} at {beta} and {punishment}");
        }
    }

    /// A thread of another CPU is neither ahead nor behind.
    #[test]
    fn threads_compete_only_where_they_share_a_cpu() {
        let mut feedback = Feedback::new(1.0);
        let sample = |thread, cpu, ran, waited, lost| Sample {
            of: Regulated { thread, weight: WEIGHT, cpus: vec![cpu] },
            ran: Nanos(ran),
            waited: Nanos(waited),
            lost: Nanos(lost),
        };
        feedback.step(&[sample(1, 0, 0, 0, 0), sample(2, 0, 0, 0, 0), sample(3, 1, 0, 0, 0)]);
        let ms = 1_000_000;
        // Thread 3 ran for all of the time on a CPU of its own, which was throttled, too.
        let step = feedback.step(&[
            sample(1, 0, 20 * ms, 30 * ms, 40 * ms),
            sample(2, 0, 30 * ms, 20 * ms, 0),
            sample(3, 1, 500 * ms, 0, 500 * ms),
        ]);
        assert_eq!(step, [(1, 3), (3, 0)]);
    }

    #[test]
    fn a_thread_that_sleeps_owes_nothing_and_one_that_ended_is_forgotten() {
        let mut feedback = Feedback::new(1.0);
        let of = |thread| Regulated { thread, weight: WEIGHT, cpus: vec![0] };
        let sample =
            |thread, ran, lost| Sample { of: of(thread), ran: Nanos(ran), waited: Nanos::ZERO, lost: Nanos(lost) };
        feedback.step(&[sample(1, 0, 1), sample(2, 0, 0)]);
        // Thread 2 sleeps: there is no competitor, so that thread 1 may have all.
        assert_eq!(feedback.step(&[sample(1, 900_000_000, 900_000_000), sample(2, 0, 0)]), [(1, 0)]);
        assert_eq!(feedback.step(&[sample(2, 0, 0)]), []);
        assert_eq!(feedback.threads.len(), 1);
    }
}
