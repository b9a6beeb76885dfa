//! Rules of tasks.

use super::body::{self, Demand};
use super::own_code::own_code;
use super::platform::no_such_cluster;
use super::{memory, positive_span, span};
use crate::error::{ErrorKind, FieldPath, Findings};
use crate::{
    Arrival, BestEffortTask, Nanos, PriorityRule, ReleaseInterrupts, Scope, ServerKind, Task, TaskServer, Workload,
};

pub(super) fn task(task: &Task, workload: &Workload, at: &FieldPath, findings: &mut Findings) {
    positive_span("period", task.period, at, findings);
    if task.deadline != task.period {
        positive_span("deadline", task.deadline, at, findings);
    }
    span("phase", task.phase, at, findings);
    span("jitter", task.jitter, at, findings);
    if let Arrival::Sporadic { gap } = &task.arrival {
        body::distribution(gap, Nanos::LONGEST, &at.key("gap"), findings);
    }
    placement(task.priority, task.cluster, workload, at, findings);
    server(task.server, task.period, at, findings);
    if let Some(budget) = task.memory_budget {
        memory::budget("memory_budget", budget, at, findings);
    }
    let demand = body::body(&task.body, task.cluster, workload, at, findings);
    feasibility(&demand, task.deadline, at, findings);
    own_code(task.run.as_ref(), &task.body, at, findings);
}

/// The server of a task or node whose jobs are `separation` apart. Errors are told of the key that the file has: `budget`
/// is the short form of a server.
pub(super) fn server(server: Option<TaskServer>, separation: Nanos, at: &FieldPath, findings: &mut Findings) {
    let Some(TaskServer { kind, budget, period }) = server else { return };
    let is_short = (kind, period) == (ServerKind::CbsHard, None);
    let at = if is_short { at.clone() } else { at.key("server") };
    positive_span("budget", budget, &at, findings);
    if let Some(period) = period {
        positive_span("period", period, &at, findings);
        if budget > period && !period.is_zero() {
            let message = format!(
                "`budget` {budget} exceeds the server's period {period}; a job cannot execute for longer than that on one \
                 CPU, so lower it or extend the period"
            );
            findings.report(at.key("budget"), ErrorKind::Contradiction, message);
        }
    } else if budget > separation {
        let message = format!(
            "budget {budget} exceeds the period {separation}; a job cannot execute for longer than that on one CPU, so \
             lower it or leave it out"
        );
        findings.report(at.key("budget"), ErrorKind::Contradiction, message);
    }
}

/// Priority and cluster of a task or node.
pub(super) fn placement(
    priority: Option<u32>,
    cluster: Option<usize>,
    workload: &Workload,
    at: &FieldPath,
    findings: &mut Findings,
) {
    let (platform, scheduler) = (&workload.platform, &workload.scheduler);
    if scheduler.rule == PriorityRule::Given && priority.is_none() {
        let message = format!(
            "`priority` is missing, which {} ranks jobs by; write `priority = 1` (the smaller number first) or choose \
             another rule",
            scheduler.algorithm()
        );
        findings.report(at.key("priority"), ErrorKind::Contradiction, message);
    }
    let Some(index) = cluster else { return };
    let is_dedicated = scheduler.interrupts == ReleaseInterrupts::Dedicated;
    let runs_no_job = match scheduler.scope {
        Scope::Partitioned if index >= platform.cpus => {
            let message = format!(
                "there is no CPU {index}: under partitioned scheduling `cluster` is a CPU, and the platform has {}, \
                 counted from 0; write a smaller number",
                platform.cpus
            );
            findings.report(at.key("cluster"), ErrorKind::UnknownName, message);
            false
        }
        Scope::Partitioned => is_dedicated && index == 0,
        Scope::Global | Scope::Clustered => match platform.clusters.get(index) {
            None => {
                no_such_cluster(index, platform, at.key("cluster"), findings);
                false
            }
            Some(cpus) => is_dedicated && scheduler.scope == Scope::Clustered && cpus.iter().all(|cpu| cpu.0 == 0),
        },
    };
    if runs_no_job {
        let message = format!(
            "`cluster` {index} has CPU 0 alone, which handles interrupts and runs no job under {scheduler}; choose \
             another"
        );
        findings.report(at.key("cluster"), ErrorKind::Contradiction, message);
    }
}

/// A job that cannot finish in time even alone is a mistake in the file; an overloaded platform is not.
pub(super) fn feasibility(demand: &Demand, deadline: Nanos, at: &FieldPath, findings: &mut Findings) {
    let at = at.key("deadline");
    let total = demand.cpu + demand.waiting;
    let everything = total + demand.asynchronous;
    if everything > u128::from(Nanos::LONGEST.0) {
        let message = format!(
            "the steps of a job take {everything} ns, more than the longest span, {}; shorten it",
            Nanos::LONGEST
        );
        findings.report(at, ErrorKind::BadValue, message);
    } else if demand.cpu > u128::from(deadline.0) {
        let message = format!(
            "wcet {} exceeds relative deadline {deadline}; no policy can meet it, so lower the wcet or extend the \
             deadline",
            Nanos(demand.cpu as u64)
        );
        findings.report(at, ErrorKind::Infeasible, message);
    } else if total > u128::from(deadline.0) {
        let message = format!(
            "wcet {} and {} of waiting (suspensions, synchronous GPU operations) exceed relative deadline {deadline}; \
             no policy can meet it, so lower one of them or extend the deadline",
            Nanos(demand.cpu as u64),
            Nanos(demand.waiting as u64)
        );
        findings.report(at, ErrorKind::Infeasible, message);
    }
}

pub(super) fn best_effort(task: &BestEffortTask, workload: &Workload, at: &FieldPath, findings: &mut Findings) {
    if task.weight == 0 {
        let message = "`weight` is 0; write at least 1 (1024 is an ordinary task), or it would never run";
        findings.report(at.key("weight"), ErrorKind::BadValue, message);
    }
    let cpus = workload.platform.cpus;
    if let Some(cpu) = task.cpu.filter(|&cpu| cpu >= cpus) {
        let message = format!("there is no CPU {cpu}: the platform has {cpus}, counted from 0; write a smaller number");
        findings.report(at.key("cpu"), ErrorKind::UnknownName, message);
    }
    if let Some(work) = task.work {
        positive_span("work", work, at, findings);
    }
}
