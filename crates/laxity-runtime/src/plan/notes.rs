//! What is weaker live than a workload asks for.

use laxity_model::{ResourceProtocol, Scheduler, Step, Task, Workload};
use laxity_scx::SECTION_MAX;

use crate::linux::LinuxScheduler;
use crate::refusal;

/// That the realization of `asked` is not what runs, which is `ran` upon `linux`: only the scheduler in the kernel has quanta,
/// a CPU for interrupts and staggering.
pub(super) fn other_realization(asked: &Scheduler, ran: &Scheduler, linux: LinuxScheduler) -> Option<String> {
    // Another ready queue links the same jobs.
    let of = |scheduler: &Scheduler| (scheduler.invocation, scheduler.interrupts, scheduler.quanta);
    let is_other = linux != LinuxScheduler::Kernel && asked.to_string() != ran.to_string();
    is_other.then(|| {
        let remedy = match of(asked) == of(ran) {
            true => format!("take {ran}, which links the same jobs"),
            false => format!(
                "load the scheduler in the kernel with it (`laxity sched start --policy {asked}`), or take {ran}"
            ),
        };
        format!("it is run as {ran}, not as {asked}, which {linux} does not have; {remedy}")
    })
}

/// Notes on features of `workload`, whose nodes of graphs are among `tasks`, that `linux` does not have, or has in its own
/// way.
pub(super) fn left_out(workload: &Workload, tasks: &[Task], linux: LinuxScheduler, use_gpus: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if use_gpus {
        notes.push(
            "GPUs are soft: operations take the time of the model, on no CPU; each raises one interrupt, which a thread \
             of this process handles"
                .to_owned(),
        );
    }
    if !workload.platform.devices.is_empty() {
        notes.push(
            "devices other than GPUs: timers stand in for them, and threads above all tasks for the top halves of their \
             interrupts"
                .to_owned(),
        );
    }
    let is_enforced = |task: &&Task| task.server.is_some() && task.body.iter().any(refusal::uses_gpu);
    if let Some(task) = tasks.iter().find(is_enforced).filter(|_| use_gpus) {
        notes.push(format!(
            "task \"{}\": a job that has used up its budget goes on to the end of its GPU section; other jobs wait for its \
             token until then",
            task.name
        ));
    }
    if matches!(linux, LinuxScheduler::Fifo | LinuxScheduler::Laxity) {
        return notes;
    }
    if linux == LinuxScheduler::Kernel {
        let is_long = |step: &Step| matches!(step, Step::NonPreemptive(time) if time.wcet > SECTION_MAX);
        notes.extend(tasks.iter().filter(|task| task.body.iter().any(is_long)).map(|task| {
            format!(
                "task \"{}\": {linux} lets other jobs preempt a non-preemptive section after {SECTION_MAX}",
                task.name
            )
        }));
    } else if refusal::bodies(workload).any(|body| body.iter().any(refusal::is_non_preemptive)) {
        notes.push(format!("non-preemptive sections can be preempted under {linux}"));
    }
    if workload.resources.iter().any(|resource| resource.protocol == ResourceProtocol::PriorityCeiling) {
        notes.push(format!("there are no ceilings under {linux}: holders inherit priorities instead"));
    }
    notes
}
