//! From times to execution times of a workload.

use laxity_model::{Bin, Distribution, ExecutionTime, Nanos, Step, Workload};
use laxity_runtime::code::CallTimes;
use serde_json::{Value, json};

/// Bins of what was seen, each of as many jobs.
const BINS: usize = 20;

/// Worst cases are written to the microsecond.
const GRAIN: u64 = 1_000;

/// The times of one step.
pub struct Measured {
    pub task: String,
    pub step: u32,
    /// In order of length, alone and beside the rest.
    pub alone: Vec<Nanos>,
    pub together: Vec<Nanos>,
    /// What the file said, and what it will say.
    pub given: Nanos,
    pub wcet: Nanos,
}

/// The time that `percent` of `seen`, which is in order, are at most.
pub fn quantile(seen: &[Nanos], percent: usize) -> Option<Nanos> {
    let rank = (seen.len() * percent).div_ceil(100).max(1);
    seen.get(rank - 1).copied()
}

impl Measured {
    pub fn json(&self) -> Value {
        let seen = |seen: &[Nanos]| {
            let of = |percent| quantile(seen, percent).map(|time| time.0);
            json!({
                "jobs": seen.len(),
                "min_ns": seen.first().map(|time| time.0),
                "p50_ns": of(50),
                "p90_ns": of(90),
                "p99_ns": of(99),
                "max_ns": of(100),
            })
        };
        json!({
            "task": self.task,
            "step": self.step,
            "alone": seen(&self.alone),
            "beside": seen(&self.together),
            "given_wcet_ns": self.given.0,
            "wcet_ns": self.wcet.0,
        })
    }
}

/// The times of all steps that call code in `workload`, from runs of its parts and of the whole, with `margin` percent more
/// than the longest as the worst case.
pub fn measured(workload: &Workload, alone: &[CallTimes], together: &CallTimes, margin: u32) -> Vec<Measured> {
    let mut measured = Vec::new();
    for (name, body) in with_code(workload) {
        for (step, time) in timed(body).into_iter().enumerate() {
            let step = step as u32;
            let mut alone: Vec<Nanos> = alone.iter().flat_map(|times| times.of(&name, step)).collect();
            let mut together = together.of(&name, step);
            alone.sort_unstable();
            together.sort_unstable();
            let longest = alone.last().into_iter().chain(together.last()).max().copied();
            let wcet = longest.map_or(time.wcet, |longest| {
                let more = u128::from(longest.0) * u128::from(100 + margin);
                Nanos((more.div_ceil(100) as u64).next_multiple_of(GRAIN))
            });
            measured.push(Measured { task: name.clone(), step, alone, together, given: time.wcet, wcet });
        }
    }
    measured
}

/// `workload` with these times.
pub fn settled(workload: &Workload, measured: &[Measured]) -> Workload {
    let mut settled = workload.clone();
    let set = |name: String, body: &mut [Step]| {
        for (step, time) in timed_mut(body).into_iter().enumerate() {
            let found = measured.iter().find(|it| it.task == name && it.step == step as u32);
            if let Some(found) = found.filter(|found| !found.together.is_empty() || !found.alone.is_empty()) {
                let seen = if found.together.is_empty() { &found.alone } else { &found.together };
                *time = ExecutionTime { wcet: found.wcet, actual: distribution(seen) };
            }
        }
    };
    settled.tasks.iter_mut().for_each(|task| set(task.name.clone(), &mut task.body));
    for graph in &mut settled.graphs {
        let name = graph.name.clone();
        graph.nodes.iter_mut().for_each(|node| set(format!("{name}/{}", node.name), &mut node.body));
    }
    settled
}

/// What was seen, which is in order, as bins of as many jobs each.
fn distribution(seen: &[Nanos]) -> Distribution {
    let bins = BINS.min(seen.len());
    let place = |bin: usize| bin * seen.len() / bins;
    let bin = |bin: usize| {
        let (from, to) = (place(bin), place(bin + 1));
        Bin { min: seen[from], max: seen[to - 1], weight: (to - from) as u64 }
    };
    Distribution::Histogram((0..bins).map(bin).collect())
}

/// Tasks and nodes with code: names and bodies.
fn with_code(workload: &Workload) -> Vec<(String, &[Step])> {
    let tasks = workload.tasks.iter().filter(|task| task.run.is_some());
    let tasks = tasks.map(|task| (task.name.clone(), task.body.as_slice()));
    let nodes = workload.graphs.iter().flat_map(|graph| {
        let nodes = graph.nodes.iter().filter(|node| node.run.is_some());
        nodes.map(|node| (format!("{}/{}", graph.name, node.name), node.body.as_slice()))
    });
    tasks.chain(nodes).collect()
}

/// The times of the steps that call code, in their order.
fn timed(body: &[Step]) -> Vec<&ExecutionTime> {
    let mut found = Vec::new();
    for step in body {
        match step {
            Step::Cpu(time) | Step::NonPreemptive(time) | Step::Suspend(time) if !time.wcet.is_zero() => {
                found.push(time)
            }
            Step::Critical { body, .. } | Step::GpuSection { body } => found.extend(timed(body)),
            Step::Cpu(_) | Step::NonPreemptive(_) | Step::Suspend(_) | Step::Gpu(_) => {}
        }
    }
    found
}

fn timed_mut(body: &mut [Step]) -> Vec<&mut ExecutionTime> {
    let mut found = Vec::new();
    for step in body {
        match step {
            Step::Cpu(time) | Step::NonPreemptive(time) | Step::Suspend(time) if !time.wcet.is_zero() => {
                found.push(time)
            }
            Step::Critical { body, .. } | Step::GpuSection { body } => found.extend(timed_mut(body)),
            Step::Cpu(_) | Step::NonPreemptive(_) | Step::Suspend(_) | Step::Gpu(_) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_case_is_the_longest_of_all_and_a_margin_rounded_up() {
        let times: Vec<Nanos> = (1..=100).map(|time| Nanos(time * 10_001)).collect();
        assert_eq!(quantile(&times, 50), Some(Nanos(500_050)));
        assert_eq!(quantile(&times, 99), Some(Nanos(990_099)));
        assert_eq!((quantile(&times, 100), quantile(&[], 50)), (Some(Nanos(1_000_100)), None));
        let Distribution::Histogram(bins) = distribution(&times) else { panic!("bins") };
        assert_eq!(bins.len(), 20);
        assert_eq!(
            (bins[0].min, bins[19].max, bins.iter().map(|bin| bin.weight).sum::<u64>()),
            (times[0], times[99], 100)
        );
        assert_eq!(
            distribution(&times[..1]),
            Distribution::Histogram(vec![Bin { min: times[0], max: times[0], weight: 1 }])
        );
    }
}
