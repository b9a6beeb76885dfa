//! What a workload may ask for that cannot be carried out.

use laxity_model::{InterruptHandling, Invocation, PriorityRule, Scheduler, Task, Workload};

use crate::{GpuChoice, Op, Plan, fair, resources};

/// What a workload asks for and cannot have, each feature by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{}", .reasons.join("\n"))]
pub struct UnsupportedFeatures {
    reasons: Vec<String>,
}

impl UnsupportedFeatures {
    /// Adds a feature; a reason that is known already is not repeated.
    pub fn add(&mut self, reason: impl Into<String>) {
        let reason = reason.into();
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    /// `self` as an error, if there is any feature in it.
    pub fn none(self) -> Result<(), UnsupportedFeatures> {
        if self.reasons.is_empty() { Ok(()) } else { Err(self) }
    }

    /// The reasons: one for each feature, with the way out.
    pub fn reasons(&self) -> &[String] {
        &self.reasons
    }
}

/// Adds what `workload`, whose nodes of graphs are among `tasks`, asks for and `scheduler` cannot give.
pub(crate) fn check(workload: &Workload, tasks: &[Task], scheduler: &Scheduler, unsupported: &mut UnsupportedFeatures) {
    resources::refuse_circles(workload, tasks, unsupported);
    fair::check(workload, tasks, scheduler, unsupported);
    let threads = matches!(workload.gpu_management.handling, InterruptHandling::Klmirqd { .. });
    if threads && !workload.platform.gpus.is_empty() && scheduler.invocation == Invocation::QuantumDriven {
        unsupported.add(format!(
            "klmirqd under {scheduler}: an interrupt thread takes over its owner's CPU within a quantum; choose an \
             event-driven scheduler (E instead of Q) or another interrupt handling"
        ));
    }
}

/// Adds the tasks whose jobs would spin for ever: under the bandwidth lock they have the ceiling priority, and the thread that is to
/// end that is on the same CPU, below it. See `docs/decisions/0166-a-ceiling-above-interrupt-threads.md`.
pub(crate) fn refuse_endless_spinning(
    workload: &Workload,
    scheduler: &Scheduler,
    plan: &Plan,
    unsupported: &mut UnsupportedFeatures,
) {
    let management = &workload.gpu_management;
    let InterruptHandling::PreemptRt(_) = management.handling else { return };
    if !plan.spins || plan.locks.bandwidth.is_none() || scheduler.rule == PriorityRule::Fair {
        return;
    }
    let thread_of = |device: usize| &plan.tasks[plan.threads.first_task + plan.threads.of_device[device]];
    for (task, info) in plan.tasks[..plan.threads.first_task].iter().zip(&plan.header.tasks) {
        let is_alone = plan.clusters[usize::from(task.cluster)].cpus.len() == 1;
        let waits_below = |op: &Op| match op {
            Op::Issue(operation) => {
                let gpus = match operation.gpu {
                    GpuChoice::Gpu(gpu) => gpu.index()..gpu.index() + 1,
                    GpuChoice::Granted | GpuChoice::Left => 0..plan.gpus.len(),
                };
                operation.interrupts > 0 && gpus.into_iter().any(|gpu| thread_of(gpu).cluster == task.cluster)
            }
            _ => false,
        };
        if is_alone && task.ops.iter().any(waits_below) {
            unsupported.add(format!(
                "task \"{}\": under the bandwidth lock it spins above all threads of its CPU, so that the one of handling = \"{}\" never ends \
                 its GPU operation; let that raise no interrupt (`interrupts = 0`), or take handling \"linux\" or \"klmirqd\"",
                info.name,
                management.handling.name()
            ));
        }
    }
}
