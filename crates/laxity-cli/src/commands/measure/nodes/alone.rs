//! The parts of a workload that run without the rest: each task with code, and each graph that has some.

use laxity_model::{CpuId, Nanos, Platform, Scheduler, Scope, Workload};

/// A part of a workload, alone on one CPU.
pub struct Part {
    pub name: String,
    pub workload: Workload,
}

/// A CPU that is busy for one part in so many waits for no job.
const LEISURE: u64 = 4;

/// At least so many jobs are measured.
const JOBS: u64 = 10;

impl Part {
    /// Of `wanted` and what it takes for some jobs the longer.
    pub fn duration(&self, wanted: Nanos) -> Nanos {
        let periods = self.workload.tasks.iter().map(|task| task.period);
        let nodes = self.workload.graphs.iter().flat_map(|graph| graph.nodes.iter().filter_map(|node| node.period));
        let longest = periods.chain(nodes).max().unwrap_or_default();
        wanted.max(Nanos(longest.0.saturating_mul(JOBS)))
    }
}

/// The parts of `workload`. A graph is one part, as its nodes need each other's messages: it has one CPU, so that no two
/// of its nodes execute at a time, and longer periods, so that none preempts another.
pub fn parts(workload: &Workload) -> Vec<Part> {
    let tasks = workload.tasks.iter().filter(|task| task.run.is_some()).map(|task| {
        let mut alone = on_one_cpu(workload);
        alone.tasks = vec![task.clone()];
        Part { name: task.name.clone(), workload: alone }
    });
    let with_code = workload.graphs.iter().filter(|graph| graph.nodes.iter().any(|node| node.run.is_some()));
    let graphs = with_code.map(|graph| {
        let mut alone = on_one_cpu(workload);
        alone.graphs = vec![graph.clone()];
        stretch(&mut alone);
        Part { name: graph.name.clone(), workload: alone }
    });
    tasks
        .chain(graphs)
        .map(|mut part| {
            part.workload.tasks.iter_mut().for_each(|task| (task.cluster, task.server) = (None, None));
            let nodes = part.workload.graphs.iter_mut().flat_map(|graph| &mut graph.nodes);
            nodes.for_each(|node| (node.cluster, node.server) = (None, None));
            part
        })
        .collect()
}

/// The resources and GPUs of `workload` on one CPU, without any task.
fn on_one_cpu(workload: &Workload) -> Workload {
    let mut alone = workload.clone();
    (alone.tasks, alone.graphs, alone.best_effort) = (Vec::new(), Vec::new(), Vec::new());
    let rule = workload.scheduler.rule;
    alone.scheduler = Scheduler { rule, scope: Scope::Global, ..Scheduler::GLOBAL_EDF };
    let one = Platform::identical(1);
    (alone.platform.cpus, alone.platform.clusters) = (one.cpus, one.clusters);
    alone.platform.devices.clear();
    for gpu in &mut alone.platform.gpus {
        (gpu.cluster, gpu.interrupt_cpus) = (0, vec![CpuId(0)]);
    }
    alone.gpu_management.bandwidth_lock = None;
    alone
}

/// Makes the periods of sources so long that the CPU is idle most of the time.
fn stretch(workload: &mut Workload) {
    let utilization = workload.utilization_f64();
    let factor = ((utilization * LEISURE as f64).ceil() as u64).max(1);
    for node in workload.graphs.iter_mut().flat_map(|graph| &mut graph.nodes) {
        node.period = node.period.map(|period| Nanos(period.0.saturating_mul(factor).min(Nanos::LONGEST.0)));
        node.deadline = None;
    }
}
