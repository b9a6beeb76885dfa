//! Longer or shorter execution times.

use laxity_model::{Bin, Distribution, ExecutionTime, GpuWork, Nanos, Step, Workload};

/// What is scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All tasks and nodes.
    All,
    /// One task, an index into [`Workload::tasks`].
    Task(usize),
    /// One node of a graph.
    Node {
        /// Index into [`Workload::graphs`].
        graph: usize,
        /// Index into its nodes.
        node: usize,
    },
}

/// `workload` with the times that jobs compute, suspend and use GPUs of `permille` thousandths, worst cases and draws alike;
/// copies by size excepted. None becomes zero.
pub fn scaled(workload: &Workload, permille: u64, part: Part) -> Workload {
    let mut workload = workload.clone();
    let all = part == Part::All;
    for (index, task) in workload.tasks.iter_mut().enumerate() {
        if all || part == Part::Task(index) {
            task.body.iter_mut().for_each(|step| scale(step, permille));
        }
    }
    for (graph, info) in workload.graphs.iter_mut().enumerate() {
        for (node, info) in info.nodes.iter_mut().enumerate() {
            if all || part == (Part::Node { graph, node }) {
                info.body.iter_mut().for_each(|step| scale(step, permille));
            }
        }
    }
    workload
}

fn scale(step: &mut Step, permille: u64) {
    match step {
        Step::Cpu(time) | Step::NonPreemptive(time) | Step::Suspend(time) => scale_time(time, permille),
        Step::Critical { body, .. } | Step::GpuSection { body } => {
            body.iter_mut().for_each(|step| scale(step, permille));
        }
        Step::Gpu(operation) => match &mut operation.work {
            GpuWork::Kernel(time) | GpuWork::Copy { time: Some(time), .. } => scale_time(time, permille),
            GpuWork::Copy { time: None, .. } => {}
        },
    }
}

fn scale_time(time: &mut ExecutionTime, permille: u64) {
    let scaled = |span: Nanos| {
        let product = u128::from(span.0) * u128::from(permille) / 1_000;
        Nanos(u64::try_from(product).unwrap_or(u64::MAX).max(u64::from(!span.is_zero())))
    };
    time.wcet = scaled(time.wcet);
    match &mut time.actual {
        Distribution::WorstCase => {}
        Distribution::Constant(span) => *span = scaled(*span),
        Distribution::Uniform { min, max } => (*min, *max) = (scaled(*min), scaled(*max)),
        Distribution::Histogram(bins) => {
            for Bin { min, max, .. } in bins {
                (*min, *max) = (scaled(*min), scaled(*max));
            }
        }
        Distribution::Recorded(spans) => spans.iter_mut().for_each(|span| *span = scaled(*span)),
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::{Platform, Task};

    use super::*;

    #[test]
    fn one_task_grows_and_the_others_stay() {
        let tasks = vec![
            Task::periodic("a", Nanos::from_millis(2), Nanos::from_millis(10)),
            Task::periodic("b", Nanos::from_millis(3), Nanos::from_millis(10)),
        ];
        let workload = Workload::new("w", Platform::identical(1), tasks);
        let grown = scaled(&workload, 1_500, Part::Task(1));
        assert_eq!([grown.tasks[0].wcet(), grown.tasks[1].wcet()], [Nanos::from_millis(2), Nanos(4_500_000)]);
        assert_eq!(scaled(&workload, 0, Part::All).tasks[0].wcet(), Nanos(1), "nothing becomes nothing");
    }
}
