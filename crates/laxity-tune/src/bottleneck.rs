//! What stands in the way of a proof, and by how much it must shrink.

use laxity_analysis::check::{Options, Report, Scaling, TaskReport, check};
use laxity_model::Workload;
use serde::Serialize;

use crate::scale::{Part, scaled};

/// A task or node that alone can make the workload schedulable by shrinking.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bottleneck {
    /// Its name; of a node, with its graph's.
    pub name: String,
    /// To how many thousandths of its execution times it must shrink, at most, for every deadline to be proven.
    pub permille: u64,
}

/// The tasks and nodes whose shrinking alone makes `workload` proven, the ones that need to shrink least first; empty if it
/// is proven, or if none suffices alone. Once `is_over`, only those that were found by then.
///
/// By bisection: what shrinks delays no other job, so that what is proven stays proven.
pub fn bottlenecks(workload: &Workload, is_over: impl Fn() -> bool) -> Vec<Bottleneck> {
    let report = proof(workload);
    if report.hard.is_schedulable() {
        return Vec::new();
    }
    // If all others are more work than there are CPUs, no proof is asked for. Rounding decides nothing: what is not an overload
    // is asked about.
    let utilization = |task: &TaskReport| task.wcet.0 as f64 / task.period.0 as f64;
    let most = f64::from(workload.platform.cpus as u32) * (1.0 + 1e-9);
    let spare = most - report.tasks.iter().map(utilization).sum::<f64>();
    let parts = parts(workload).into_iter().zip(&report.tasks);
    let alone = parts.filter(|(_, task)| spare + utilization(task) >= 0.0).map(|(part, _)| part);
    let mut found: Vec<Bottleneck> = alone
        .take_while(|_| !is_over())
        .filter_map(|(name, part)| Some(Bottleneck { name, permille: largest_below(workload, part)? }))
        .collect();
    found.sort_by(|a, b| b.permille.cmp(&a.permille).then_with(|| a.name.cmp(&b.name)));
    found
}

/// By how many thousandths all execution times may be multiplied so that every deadline is still proven; below 1000 they
/// must shrink. `None`: nothing is proven, however short they are.
pub fn growth(workload: &Workload) -> Option<Scaling> {
    check(workload, &workload.scheduler, &Options::default()).scaling
}

fn parts(workload: &Workload) -> Vec<(String, Part)> {
    let tasks = workload.tasks.iter().enumerate().map(|(index, task)| (task.name.clone(), Part::Task(index)));
    let graphs = workload.graphs.iter().enumerate();
    let nodes = graphs.flat_map(|(graph, info)| {
        let nodes = info.nodes.iter().enumerate();
        nodes.map(move |(node, of)| (format!("{}/{}", info.name, of.name), Part::Node { graph, node }))
    });
    tasks.chain(nodes).collect()
}

/// The largest of 1 to 999 thousandths of `part` with which it is proven.
fn largest_below(workload: &Workload, part: Part) -> Option<u64> {
    let (mut low, mut high) = (1, 1_000);
    if !is_proven(workload, low, part) {
        return None;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if is_proven(workload, middle, part) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(low)
}

fn is_proven(workload: &Workload, permille: u64, part: Part) -> bool {
    proof(&scaled(workload, permille, part)).hard.is_schedulable()
}

fn proof(workload: &Workload) -> Report {
    check(workload, &workload.scheduler, &Options { scaling: false, ..Options::default() })
}

#[cfg(test)]
mod tests {
    use laxity_model::{Nanos, Platform, Scheduler, Task};

    use super::*;

    /// On one CPU under EDF utilization decides: 0.5 + 0.6 is too much by 0.1, which a has to give (5 of 6 parts of it) or b
    /// (4 of 5).
    #[test]
    fn the_bottleneck_that_must_shrink_least_comes_first() {
        let task = |name: &str, wcet| Task::periodic(name, Nanos::from_millis(wcet), Nanos::from_millis(10));
        let mut workload = Workload::new("w", Platform::identical(1), vec![task("a", 6), task("b", 5)]);
        workload.scheduler = "P-EDF".parse::<Scheduler>().expect("a scheduler");
        let found = bottlenecks(&workload, || false);
        assert_eq!(found[0], Bottleneck { name: "a".to_owned(), permille: 833 });
        assert_eq!(found[1], Bottleneck { name: "b".to_owned(), permille: 800 });
        assert_eq!(growth(&workload).and_then(|scaling| scaling.permille), Some(909));
        assert_eq!(bottlenecks(&workload, || true), [], "there is no time");
        // Without c it is as much as before, and without any other it is too much.
        workload.tasks.push(task("c", 10));
        assert_eq!(bottlenecks(&workload, || false), [], "two of them are too much without the third");
        workload.tasks.truncate(1);
        assert_eq!(bottlenecks(&workload, || false), [], "it is proven");
    }
}
