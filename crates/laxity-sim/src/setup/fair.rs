//! What a workload may ask for that Linux's fair class has not.

use laxity_model::{
    InterruptHandling, Invocation, PriorityRule, ReadyQueueKind, ResourceProtocol, Scheduler, ThreadPriority, Workload,
};

/// Refuses under the fair class what takes priorities, or another scheduler than it.
pub(super) fn refuse(workload: &Workload, scheduler: &Scheduler, reasons: &mut Vec<String>) {
    if scheduler.rule != PriorityRule::Fair {
        return;
    }
    if scheduler.invocation == Invocation::QuantumDriven
        || scheduler.ready_queue != ReadyQueueKind::Coarse
        || scheduler.coarse_lock
    {
        reasons.push(format!(
            "{scheduler}: the fair class has slices, and for each CPU a queue and its lock, of its own; leave out \
             `invocation`, `ready_queue` and `coarse_lock`"
        ));
    }
    let platform = &workload.platform;
    if !platform.gpus.is_empty() || !platform.devices.is_empty() {
        refuse_handling(workload.gpu_management.handling, scheduler, reasons);
    }
    for task in workload.tasks.iter().filter(|task| task.budget.is_some()) {
        reasons.push(format!(
            "task \"{}\" under {scheduler}: a budget makes it a bandwidth server, which is scheduled by deadline or \
             priority; leave the budget out",
            task.name
        ));
    }
    for resource in &workload.resources {
        if resource.protocol == ResourceProtocol::PriorityCeiling {
            reasons.push(format!(
                "resource \"{}\" under {scheduler}: a ceiling is a priority, and the fair class has none; write \
                 `priority-inheritance` or `fifo`, which are both first come, first served there",
                resource.name
            ));
        }
    }
}

fn refuse_handling(handling: InterruptHandling, scheduler: &Scheduler, reasons: &mut Vec<String>) {
    let why = match handling {
        InterruptHandling::Linux | InterruptHandling::PreemptRt(ThreadPriority::High) => return,
        InterruptHandling::PreemptRt(ThreadPriority::Low) => "no thread has a lower priority than those of jobs there",
        InterruptHandling::ProcessAware => "it compares priorities of jobs, which have none there",
        InterruptHandling::Klmirqd { .. } => "its threads have the priorities of jobs, which have none there",
    };
    reasons.push(format!(
        "{} under {scheduler}: {why}; choose `linux` or `preempt_rt_high`, or another scheduler",
        handling.name()
    ));
}
