//! For how long a workload is simulated or run where the user does not say.

use laxity_model::{Nanos, Workload};

/// Ten periods of every task and source of a graph after its phase, so that each has released ten jobs (fewer if gaps are added to
/// its periods), and at least 1 s.
pub fn default_duration(workload: &Workload) -> Nanos {
    let tasks = workload.tasks.iter().map(|task| (task.phase, task.period));
    let nodes = workload.graphs.iter().flat_map(|graph| &graph.nodes);
    let sources = nodes.filter_map(|node| Some((node.phase, node.period?)));
    let longest =
        tasks.chain(sources).map(|(phase, period)| Nanos(phase.0.saturating_add(period.0.saturating_mul(10)))).max();
    longest.unwrap_or(Nanos::ZERO).clamp(Nanos::from_secs(1), Nanos::LONGEST)
}

#[cfg(test)]
mod tests {
    use laxity_model::{Platform, Task};

    use super::*;

    #[test]
    fn by_default_every_task_releases_ten_jobs() {
        let mut slow = Task::periodic("slow", Nanos(1), Nanos::from_secs(2));
        slow.phase = Nanos::from_secs(3);
        let fast = Task::periodic("fast", Nanos(1), Nanos::from_millis(1));
        let workload = |tasks| Workload::new("w", Platform::identical(1), tasks);
        assert_eq!(default_duration(&workload(vec![fast.clone()])), Nanos::from_secs(1));
        assert_eq!(default_duration(&workload(vec![fast, slow])), Nanos::from_secs(23));
    }
}
