//! What a workload may ask for that Linux's fair class does not have.

use laxity_model::{
    InterruptHandling, Invocation, PriorityRule, ReadyQueueKind, ResourceProtocol, Scheduler, Task, ThreadPriority,
    Workload,
};

use crate::unsupported::UnsupportedFeatures;

/// Adds what of `workload`, whose nodes of graphs are among `tasks`, needs priorities, or another scheduler, if `scheduler` is the fair class.
pub(crate) fn check(workload: &Workload, tasks: &[Task], scheduler: &Scheduler, unsupported: &mut UnsupportedFeatures) {
    if scheduler.rule != PriorityRule::Fair {
        return;
    }
    if scheduler.invocation == Invocation::QuantumDriven
        || scheduler.ready_queue != ReadyQueueKind::Coarse
        || scheduler.coarse_lock
    {
        unsupported.add(format!(
            "{scheduler}: the fair class has slices, and for each CPU a queue and its lock, of its own; leave out \
             `invocation`, `ready_queue` and `coarse_lock`"
        ));
    }
    let platform = &workload.platform;
    if !platform.gpus.is_empty() || !platform.devices.is_empty() {
        check_handling(workload.gpu_management.handling, scheduler, unsupported);
    }
    for task in tasks.iter().filter(|task| task.server.is_some()) {
        unsupported.add(format!(
            "task \"{}\" under {scheduler}: a budget makes it a bandwidth server, which is scheduled by deadline or \
             priority; leave the budget out",
            task.name
        ));
    }
    for resource in &workload.resources {
        if resource.protocol == ResourceProtocol::PriorityCeiling {
            unsupported.add(format!(
                "resource \"{}\" under {scheduler}: a ceiling is a priority, and the fair class has none; write \
                 `priority-inheritance` or `fifo`, which are both first come, first served there",
                resource.name
            ));
        }
    }
}

fn check_handling(handling: InterruptHandling, scheduler: &Scheduler, unsupported: &mut UnsupportedFeatures) {
    let why = match handling {
        InterruptHandling::Linux | InterruptHandling::PreemptRt(ThreadPriority::High) => return,
        InterruptHandling::PreemptRt(ThreadPriority::Low) => "no thread has a lower priority than those of jobs there",
        InterruptHandling::ProcessAware => "it compares priorities of jobs, which have none there",
        InterruptHandling::Klmirqd { .. } => "its threads have the priorities of jobs, which have none there",
    };
    unsupported.add(format!(
        "{} under {scheduler}: {why}; choose `linux` or `preempt_rt_high`, or another scheduler",
        handling.name()
    ));
}
