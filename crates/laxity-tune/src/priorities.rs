//! Fixed priorities that no rule of a scheduler gives.

use laxity_analysis::check::{Options, check};
use laxity_model::{Nanos, PriorityRule, Workload};

/// Sets with more tasks and nodes than this keep Audsley's start, as its checks grow with the square.
const AUDSLEY_MAX: usize = 40;

/// Deadline minus worst case, the shortest first.
pub(crate) fn by_slack(workload: &mut Workload) {
    workload.scheduler.rule = PriorityRule::Given;
    let mut order = all(workload);
    order.sort_by_key(|&(deadline, wcet, index)| (deadline.0.saturating_sub(wcet.0), index));
    assign(workload, order.iter().map(|&(_, _, index)| index));
}

/// Audsley's order (Audsley 1991), by the bounds of the analysis: from the lowest priority up, each goes to the first task
/// that meets its deadline with it while all others that have none yet are above, the longest deadlines first. Where none
/// does, to the one that exceeds its deadline least.
///
/// That is optimal where a task's bound does not depend on the order of those above it, as on one CPU without locks; else
/// it is a good order.
pub(crate) fn audsley(workload: &mut Workload) {
    workload.scheduler.rule = PriorityRule::Given;
    let mut above: Vec<usize> = {
        let mut order = all(workload);
        order.sort_by_key(|&(deadline, _, index)| (deadline, index));
        order.into_iter().map(|(_, _, index)| index).collect()
    };
    assign(workload, above.iter().copied());
    if above.len() > AUDSLEY_MAX {
        return;
    }
    let options = Options { scaling: false, ..Options::default() };
    let mut below: Vec<usize> = Vec::new();
    while above.len() > 1 {
        let mut best: Option<(i128, usize)> = None;
        for place in (0..above.len()).rev() {
            let others = above.iter().enumerate().filter(|&(other, _)| other != place).map(|(_, &task)| task);
            assign(workload, others.chain([above[place]]).chain(below.iter().rev().copied()));
            let report = check(workload, &workload.scheduler, &options);
            if !report.refusals.is_empty() {
                // Nothing is known of any order.
                assign(workload, above.iter().copied().chain(below.iter().rev().copied()));
                return;
            }
            let laxity = report.tasks.get(above[place]).and_then(|task| task.laxity);
            let laxity = laxity.map_or(i128::MIN, |laxity| i128::from(laxity.0));
            if best.is_none_or(|(most, _)| laxity > most) {
                best = Some((laxity, place));
            }
            if laxity >= 0 {
                break;
            }
        }
        let Some((_, place)) = best else { break };
        below.push(above.remove(place));
    }
    let order: Vec<usize> = above.into_iter().chain(below.into_iter().rev()).collect();
    assign(workload, order.into_iter());
}

/// Deadline, worst case and number of each task, then of each node.
fn all(workload: &Workload) -> Vec<(Nanos, Nanos, usize)> {
    let tasks = workload.tasks.iter().map(|task| (task.deadline, task.wcet()));
    let nodes = workload.graphs.iter().flat_map(|graph| {
        // The period of a node that is no source follows from rates; its graph's fastest source stands for it.
        let period = graph.nodes.iter().filter_map(|node| node.period).min().unwrap_or(Nanos::ZERO);
        graph.nodes.iter().map(move |node| {
            let wcet = node.body.iter().map(laxity_model::Step::cpu_wcet).sum();
            (node.deadline.or(node.period).unwrap_or(period), wcet)
        })
    });
    tasks.chain(nodes).enumerate().map(|(index, (deadline, wcet))| (deadline, wcet, index)).collect()
}

/// Gives the priorities 0, 1, ... to the tasks and nodes in that order.
fn assign(workload: &mut Workload, order: impl Iterator<Item = usize>) {
    let tasks = workload.tasks.iter_mut().map(|task| &mut task.priority);
    let nodes = workload.graphs.iter_mut().flat_map(|graph| &mut graph.nodes).map(|node| &mut node.priority);
    let mut places: Vec<&mut Option<u32>> = tasks.chain(nodes).collect();
    for (priority, index) in order.enumerate() {
        *places[index] = Some(priority as u32);
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::{Platform, Scheduler, Task};

    use super::*;

    /// With deadlines beyond periods neither rate- nor deadline-monotonic order is optimal (Lehoczky 1990); Audsley's is.
    /// Here rate-monotonic order misses and the other one does not: a(52, 100, D 110), b(52, 140, D 154).
    #[test]
    fn audsleys_order_meets_deadlines_that_rates_do_not() {
        let task = |name: &str, wcet, period, deadline| Task {
            deadline: Nanos::from_millis(deadline),
            ..Task::periodic(name, Nanos::from_millis(wcet), Nanos::from_millis(period))
        };
        let tasks = vec![task("a", 3, 10, 10), task("b", 3, 12, 5)];
        let mut workload = Workload::new("w", Platform::identical(1), tasks);
        let is_proven =
            |workload: &Workload| check(workload, &workload.scheduler, &Options::default()).hard.is_schedulable();
        workload.scheduler = "G-RM".parse::<Scheduler>().expect("a scheduler");
        assert!(!is_proven(&workload), "b takes 6 ms at worst, and has 5");
        audsley(&mut workload);
        assert!(is_proven(&workload), "{:?}", workload.tasks);
        assert_eq!(workload.tasks[0].priority, Some(1));
    }
}
