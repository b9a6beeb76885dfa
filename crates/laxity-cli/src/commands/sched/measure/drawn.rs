//! The tasks that are measured: those of paper 002, for fewer CPUs.

use laxity_gen::{PeriodDistribution, UtilizationDistribution};
use laxity_model::Nanos;
use laxity_model::rng::SplitMix64;
use serde::{Deserialize, Serialize};

/// A periodic task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrawnTask {
    /// Its name.
    pub name: String,
    /// From one release to the next; the deadline is the same.
    pub period: Nanos,
    /// CPU time of each job.
    pub cost: Nanos,
    /// Of the first release, from when the tasks begin.
    pub phase: Nanos,
}

/// The paper's CPUs, and the most tasks that it measured on them.
const PAPER: (u64, u64) = (32, 450);

/// `count` tasks, the most that are measured, on so many CPUs of which they take `load` percent.
///
/// Periods are uniform from 10 to 100 ms (moderate), times 32 / `cpus` and `count` / 450, if that is more than one: each CPU then
/// releases as many jobs in a second as with the paper's most tasks. Utilizations are in the proportions of uniform ones from
/// 0.001 to 0.1 (light).
pub fn draw(count: u32, cpus: usize, load: u32, seed: u64) -> Vec<DrawnTask> {
    let (up, down) = (PAPER.0 * u64::from(count), PAPER.1 * cpus as u64);
    let stretched = |period: Nanos| if up > down { Nanos(period.0 * up / down) } else { period };
    let light = UtilizationDistribution::NAMED[0].1;
    let mut random = SplitMix64::new(seed);
    let drawn: Vec<(Nanos, u64, u64)> = (0..count)
        .map(|_| {
            let period = stretched(PeriodDistribution::MODERATE.draw(&mut random));
            // To the millionth of a CPU: only the proportions matter.
            let weight = (light.draw(&mut random).as_f64() * 1e6) as u64;
            (period, weight.max(1), random.next_u64())
        })
        .collect();
    let sum: u128 = drawn.iter().map(|&(_, weight, _)| u128::from(weight)).sum();
    let share = u128::from(load) * cpus as u128;
    let task = |(number, (period, weight, phase)): (usize, (Nanos, u64, u64))| {
        let cost = u128::from(period.0) * u128::from(weight) * share / (sum * 100);
        // A task has one CPU at a time.
        let cost = Nanos(u64::try_from(cost).unwrap_or(u64::MAX).clamp(1_000, period.0 * 9 / 10));
        DrawnTask { name: format!("task{number}"), period, cost, phase: Nanos(phase % period.0) }
    };
    drawn.into_iter().enumerate().map(task).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_cpus_have_longer_periods_and_the_load_that_was_asked_for() {
        let tasks = draw(250, 1, 20, 1);
        let load: f64 = tasks.iter().map(|task| task.cost.0 as f64 / task.period.0 as f64).sum();
        assert!((load - 0.2).abs() < 0.001, "{load}");
        let rate: f64 = tasks.iter().map(|task| 1e9 / task.period.0 as f64).sum();
        // 450 tasks of the paper release 450 / 32 * ln(10) / 90 ms = 360 jobs in a second on each CPU.
        assert!((300.0..420.0).contains(&rate), "{rate}");
        assert!(tasks.iter().all(|task| task.phase < task.period && task.cost <= task.period));
        assert_eq!(tasks, draw(250, 1, 20, 1), "the same seed, the same tasks");
        assert_ne!(tasks, draw(250, 1, 20, 2));
    }

    #[test]
    fn periods_are_never_shorter_than_the_papers() {
        let tasks = draw(10, 32, 50, 1);
        assert!(tasks.iter().all(|task| task.period >= Nanos::from_millis(10)));
    }
}
