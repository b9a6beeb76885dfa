//! Refuses workloads that cannot be run live.

use laxity_model::{
    GpuArbitration, InterruptHandling, MigrationPath, ResourceProtocol, Step, Task, TaskServer, Workload,
};
use laxity_scx::layout::ENTRIES;
use thiserror::Error;

/// A workload cannot be run live; each reason names the thing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", .reasons.join("\n"))]
pub struct Refusal {
    reasons: Vec<String>,
}

impl Refusal {
    pub(crate) fn of(reasons: Vec<String>) -> Refusal {
        Refusal { reasons }
    }

    /// The reasons, each with the way out.
    pub fn reasons(&self) -> &[String] {
        &self.reasons
    }
}

/// Features of `workload` that can be simulated and not be run.
pub(crate) fn unsupported(workload: &Workload) -> Vec<String> {
    let is_empty = workload.tasks.is_empty() && workload.graphs.is_empty() && workload.best_effort.is_empty();
    is_empty.then(|| "the workload has no task; add a [[task]] or a [[graph]]".to_owned()).into_iter().collect()
}

/// Features of `workload`, whose nodes of graphs are among `tasks`, that Laxity's scheduler can run, and no class of Linux.
pub(crate) fn beyond_linux(workload: &Workload, tasks: &[Task]) -> Vec<String> {
    let mut reasons = beyond_both(workload, tasks);
    if bodies(workload).any(|body| body.iter().any(uses_gpu)) {
        shared_gpus(workload, &mut reasons);
    }
    reasons
}

/// Of these, what the scheduler in the kernel does not have either.
fn beyond_both(workload: &Workload, tasks: &[Task]) -> Vec<String> {
    let mut reasons = Vec::new();
    for (task, server) in tasks.iter().filter_map(|task| Some((task, task.server?))) {
        if server != TaskServer::hard(server.budget) {
            reasons.push(format!(
                "task \"{}\": no class of Linux has the deadlines and the ranks of a {} server in {}; take --scheduler \
                 laxity, write `budget` in place of `server`, or simulate",
                task.name,
                server.kind.name(),
                task.ranked_by().0
            ));
        }
    }
    if matches!(workload.gpu_management.handling, InterruptHandling::Klmirqd { .. }) {
        let with_server = workload.platform.devices.iter().filter(|device| device.server.is_some());
        reasons.extend(with_server.map(|device| {
            format!(
                "device \"{}\": no class of Linux has the server of its klmirqd thread; take --scheduler laxity, leave \
                 `server` out, or simulate",
                device.name
            )
        }));
    }
    let used = |resource: usize| bodies(workload).any(|body| body.iter().any(|step| locks_it(step, resource)));
    for (_, resource) in workload.resources.iter().enumerate().filter(|&(index, _)| used(index)) {
        if resource.replicas > 1 {
            reasons.push(format!(
                "resource \"{}\": {} replicas, and locks of Linux have one; take --scheduler laxity, write replicas = 1, \
                 or simulate",
                resource.name, resource.replicas
            ));
        }
        if resource.protocol == ResourceProtocol::Fifo {
            reasons.push(format!(
                "resource \"{}\": locks of Linux that lend priorities are granted by priority, not first come first \
                 served; take --scheduler laxity, priority inheritance or a ceiling, or simulate",
                resource.name
            ));
        }
    }
    if bodies(workload).any(|body| body.iter().any(uses_gpu))
        && workload.gpu_management.arbitration == GpuArbitration::Semaphore
    {
        reasons.push(
            "arbitration semaphore: without Laxity's scheduler in user space live GPUs are shared by k_fmlp or gpusync, or left to the \
             driver; choose one of these, take --scheduler laxity, or simulate"
                .to_owned(),
        );
    }
    reasons
}

/// Features of `workload`, whose nodes of graphs are among `tasks`, that the scheduler in the kernel does not have.
pub(crate) fn beyond_kernel(workload: &Workload, tasks: &[Task]) -> Vec<String> {
    const WAY_OUT: &str = "take another --scheduler";
    let mut reasons = beyond_both(workload, tasks);
    for (graph, node) in workload.graphs.iter().flat_map(|graph| graph.nodes.iter().map(move |node| (graph, node))) {
        if node.server.is_some() && node.period.is_none() {
            reasons.push(format!(
                "node \"{}.{}\": tokens release its jobs, perhaps before the arrivals that their deadlines count from, and in the \
                 kernel jobs with a budget are due by their releases; {WAY_OUT}",
                graph.name, node.name
            ));
        }
    }
    for task in tasks {
        if task.server.is_some() && !task.jitter.is_zero() {
            reasons.push(format!(
                "task \"{}\": release jitter and a budget, and in the kernel jobs with a budget are due by their releases; {WAY_OUT}",
                task.name
            ));
        }
        let longest = task.period.min(task.deadline);
        if task.wcet() > longest {
            reasons.push(format!(
                "task \"{}\": wcet {} exceeds {longest}, the lesser of its period and its deadline, which the scheduler in \
                 the kernel does not take; {WAY_OUT}",
                task.name,
                task.wcet()
            ));
        }
    }
    if tasks.len() > ENTRIES {
        reasons.push(format!(
            "{} tasks, and a process has at most {ENTRIES} of the scheduler in the kernel; {WAY_OUT}",
            tasks.len()
        ));
    }
    if bodies(workload).any(|body| body.iter().any(uses_gpu)) {
        gpus_in_kernel(workload, tasks, &mut reasons);
    }
    if !workload.platform.devices.is_empty() {
        reasons.push(format!(
            "devices: the scheduler in the kernel does not schedule threads of interrupts yet; {WAY_OUT}"
        ));
    }
    if workload.gpu_management.bandwidth_lock.is_some() {
        reasons.push(format!("`bandwidth_lock`: its holders do not inherit in the kernel yet; {WAY_OUT}"));
    }
    reasons
}

/// Whether the task locks something, and has a budget: where that ends in the kernel the job's deadline changes, of which no arbiter of
/// locks in user space hears.
pub(crate) fn locks_within_budget(task: &Task) -> bool {
    let locks = |step: &Step| any(step, &|step| matches!(step, Step::Gpu(_) | Step::Critical { .. }));
    task.server.is_some() && task.body.iter().any(locks)
}

/// What tasks that use GPUs, or share locks with such, must not have in the kernel.
fn gpus_in_kernel(workload: &Workload, tasks: &[Task], reasons: &mut Vec<String>) {
    for task in tasks.iter().filter(|task| locks_within_budget(task)) {
        reasons.push(format!(
            "task \"{}\": a budget, and locks in a workload with GPUs: where a budget ends in the kernel the job's deadline changes, and the \
             arbiter of the locks does not hear of that; leave `budget` out, or take another --scheduler",
            task.name
        ));
    }
    let arbitration = workload.gpu_management.arbitration;
    if matches!(workload.gpu_management.handling, InterruptHandling::Klmirqd { .. })
        && matches!(arbitration, GpuArbitration::Driver | GpuArbitration::DriverSpinning)
    {
        reasons.push(format!(
            "handling klmirqd and arbitration {}: several jobs may use a GPU at a time, and in the kernel a wake-up of its thread does not say \
             for which of them it is; write arbitration = \"k_fmlp\" or \"gpusync\", another `handling`, or take another --scheduler",
            if arbitration == GpuArbitration::Driver { "driver" } else { "driver_spinning" }
        ));
    }
}

/// GPUs that `laxity-gpu` does not share, though the simulator's arbiter would.
fn shared_gpus(workload: &Workload, reasons: &mut Vec<String>) {
    if let GpuArbitration::GpuSync(sync) = workload.gpu_management.arbitration
        && sync.migration.is_some()
        && sync.migration_path == MigrationPath::Peer
    {
        reasons.push(
            "arbitration gpusync with migration from GPU to GPU: a job that moves locks engines of both, and without \
             Laxity's scheduler it may have those of its token's GPU only; take --scheduler laxity, write \
             migration_path = \"host\", or simulate"
                .to_owned(),
        );
    }
    let engines = |gpu: &laxity_model::Gpu| gpu.copy_engines;
    let gpus = &workload.platform.gpus;
    let is_managed =
        !matches!(workload.gpu_management.arbitration, GpuArbitration::Driver | GpuArbitration::DriverSpinning);
    if let Some(other) = gpus.iter().find(|gpu| engines(gpu) != engines(&gpus[0])).filter(|_| is_managed) {
        reasons.push(format!(
            "GPU \"{}\": {} copy engines where \"{}\" has {}, and GPUs that are shared live are alike; give both as \
             many, take --scheduler laxity, or simulate",
            other.name, other.copy_engines, gpus[0].name, gpus[0].copy_engines
        ));
    }
}

/// The bodies of all tasks and nodes.
pub(crate) fn bodies(workload: &Workload) -> impl Iterator<Item = &[Step]> {
    let nodes = workload.graphs.iter().flat_map(|graph| &graph.nodes);
    let nodes = nodes.map(|node| node.body.as_slice());
    workload.tasks.iter().map(|task| task.body.as_slice()).chain(nodes)
}

/// Whether `step` or what is inside satisfies `condition`.
fn any(step: &Step, condition: &dyn Fn(&Step) -> bool) -> bool {
    let inner = match step {
        Step::Critical { body, .. } | Step::GpuSection { body } => body.as_slice(),
        Step::Cpu(_) | Step::NonPreemptive(_) | Step::Suspend(_) | Step::Gpu(_) => &[],
    };
    condition(step) || inner.iter().any(|step| any(step, condition))
}

pub(crate) fn uses_gpu(step: &Step) -> bool {
    any(step, &|step| matches!(step, Step::Gpu(_)))
}

pub(crate) fn is_non_preemptive(step: &Step) -> bool {
    any(step, &|step| matches!(step, Step::NonPreemptive(_)))
}

pub(crate) fn locks_it(step: &Step, wanted: usize) -> bool {
    any(step, &|step| matches!(step, Step::Critical { resource, .. } if *resource == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_in_the_kernel_takes_independent_tasks_and_says_why_it_takes_no_others() {
        let all = r#"
            laxity = 1
            name = "w"
            platform = { cpus = 1, gpu = [{ name = "gpu", bandwidth = "12 GB/s" }] }
            scheduler = "P-RM"
            [[task]]
            name = "plain"
            period = "10 ms"
            wcet = "1 ms"
            [[task]]
            name = "radio"
            arrival = "sporadic"
            period = "10 ms"
            wcet = "1 ms"
            [[task]]
            name = "late"
            period = "10 ms"
            jitter = "1 ms"
            wcet = "1 ms"
            [[task]]
            name = "served"
            period = "10 ms"
            jitter = "1 ms"
            wcet = "1 ms"
            budget = "2 ms"
            [[task]]
            name = "camera"
            period = "50 ms"
            body = [{ cpu = "1 ms" }, { kernel = "1 ms" }]
            [[task]]
            name = "recorder"
            period = "50 ms"
            budget = "3 ms"
            body = [{ cpu = "1 ms" }, { kernel = "1 ms" }]
            [[graph]]
            name = "g"
            edge = ["a -> b"]
            node = [
                { name = "a", period = "10 ms", wcet = "1 ms", budget = "2 ms" },
                { name = "b", wcet = "1 ms", budget = "2 ms" },
            ]
        "#;
        let workload = Workload::from_toml(all, "w.toml").unwrap_or_else(|errors| panic!("{errors}"));
        let reasons = beyond_kernel(&workload, &workload.tasks);
        let starts = [
            "node \"g.b\": tokens release its jobs",
            "task \"served\": release jitter and a budget",
            "task \"recorder\": a budget, and locks in a workload with GPUs",
        ];
        assert_eq!(reasons.len(), starts.len(), "{reasons:?}");
        for (reason, start) in reasons.iter().zip(starts) {
            assert!(reason.starts_with(start) && reason.ends_with("take another --scheduler"), "{reason}");
        }
        let mut plain = Workload { tasks: [&workload.tasks[..3], &workload.tasks[4..5]].concat(), ..workload };
        plain.graphs[0].nodes[1].server = None;
        assert_eq!(beyond_kernel(&plain, &plain.tasks), Vec::<String>::new());
        let many = vec![plain.tasks[0].clone(); ENTRIES + 1];
        assert!(beyond_kernel(&plain, &many)[0].starts_with("32 tasks, and a process has at most 31"));
        let hopeless = [Task { deadline: laxity_model::Nanos(1), ..plain.tasks[0].clone() }];
        assert!(beyond_kernel(&plain, &hopeless)[0].contains("wcet 1 ms exceeds 1 ns"));
    }
}
