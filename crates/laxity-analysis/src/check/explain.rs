//! What a verdict says, with the names of tasks and with units.

use laxity_model::Nanos;

use super::Failure;
use super::context::Context;
use crate::{Infeasibility, Outcome, Precondition, Reason, TaskSet, Verdict};

/// A failure of a whole cluster before any test.
pub(super) fn of_cluster(context: &Context<'_>, message: String) -> Failure {
    Failure { cluster: number(context), test: None, task: None, interval: None, message }
}

/// A failure of one task before any test.
pub(super) fn of_task(context: &Context<'_>, task: usize, message: String) -> Failure {
    let message = format!("task \"{}\": {message}", context.analysed[task].name);
    let cluster = context.cluster.number_of(task);
    Failure { cluster, test: None, task: Some(task), interval: None, message }
}

/// The number of the cluster; the first, if it is several.
fn number(context: &Context<'_>) -> usize {
    context.cluster.parts[0].number
}

/// Why `verdict` about `set` is no acceptance; `order` are the analysed of the set, in its order.
pub(super) fn of_verdict(context: &Context<'_>, verdict: &Verdict, set: &TaskSet, order: &[usize]) -> Failure {
    let (task, interval) = place(&verdict.outcome, set);
    let name = |index: usize| context.analysed[order[index]].name.as_str();
    let message = match &verdict.outcome {
        Outcome::NotProven(reason) => of_reason(reason, name, set),
        Outcome::Infeasible(reason) => of_infeasibility(reason, name, set),
        Outcome::NotApplicable(Precondition::ConstrainedDeadlines) => beyond_period(task.map(name)),
        other => other.to_string(),
    };
    // That a job takes too long, or all jobs together, no single test needs to say.
    let is_plain = matches!(
        verdict.outcome,
        Outcome::Infeasible(Infeasibility::Window { .. } | Infeasibility::Utilization { .. })
    );
    Failure {
        cluster: number(context),
        test: (!is_plain).then_some(verdict.test),
        task: task.map(|index| order[index]),
        interval: interval.map(Nanos),
        message,
    }
}

fn beyond_period(task: Option<&str>) -> String {
    let why = task.map_or(String::new(), |task| format!(" and that of \"{task}\" is longer"));
    format!("not applicable: it is proven for deadlines up to the period only{why}")
}

/// For which task of the set and for which interval.
fn place(outcome: &Outcome, set: &TaskSet) -> (Option<usize>, Option<u64>) {
    match outcome {
        Outcome::NotApplicable(Precondition::ConstrainedDeadlines) => {
            (set.tasks().iter().position(|task| task.deadline > task.period), None)
        }
        Outcome::NotProven(reason) => match *reason {
            Reason::Density { densest } => (Some(densest), None),
            Reason::Load { task } | Reason::Interference { task, .. } | Reason::ResponseTime { task, .. } => {
                (Some(task), None)
            }
            Reason::Interval { task, interval, .. } => (Some(task), Some(interval)),
            Reason::Speed { interval } => (None, Some(interval)),
            Reason::NoHorizon | Reason::Rounds { .. } => (None, None),
        },
        Outcome::Infeasible(reason) => match *reason {
            Infeasibility::Window { task, .. } | Infeasibility::ResponseTime { task, .. } => (Some(task), None),
            Infeasibility::Demand { interval, .. } => (None, Some(interval)),
            Infeasibility::Utilization { .. } => (None, None),
        },
        _ => (None, None),
    }
}

fn of_reason<'n>(reason: &Reason, name: impl Fn(usize) -> &'n str, set: &TaskSet) -> String {
    match *reason {
        Reason::Density { densest } => {
            let task = set.tasks()[densest];
            let (wcet, window) = (Nanos(task.wcet), Nanos(task.window()));
            format!("the total density exceeds what its densest task leaves: \"{}\", {wcet} of {window}", name(densest))
        }
        Reason::Load { task } => format!("task \"{}\": too large a load beside it", name(task)),
        Reason::Interference { task, interference, available } => format!(
            "task \"{}\": others may execute for {} while it waits; it needs less than {}",
            name(task),
            span(interference),
            span(available)
        ),
        Reason::Interval { task, interval, demand, available } => format!(
            "task \"{}\": in an interval of {} up to its deadline others may execute for {}; it needs less than {}",
            name(task),
            Nanos(interval),
            span(demand),
            span(available)
        ),
        Reason::ResponseTime { task, deadline } => {
            format!("task \"{}\": no response-time bound within the {} it has", name(task), Nanos(deadline))
        }
        Reason::Speed { interval: 0 } => "what its densest task leaves is less than the utilization".to_owned(),
        Reason::Speed { interval } => {
            format!("the demand of some interval up to {} exceeds every speed", Nanos(interval))
        }
        Reason::NoHorizon | Reason::Rounds { .. } => reason.to_string(),
    }
}

fn of_infeasibility<'n>(reason: &Infeasibility, name: impl Fn(usize) -> &'n str, set: &TaskSet) -> String {
    match *reason {
        Infeasibility::Window { task, wcet, window } => {
            format!("task \"{}\": it may take {} and has {}", name(task), Nanos(wcet), Nanos(window))
        }
        Infeasibility::Utilization { cpus } => {
            format!("utilization {} exceeds {}", utilization(set), counted_cpus(cpus))
        }
        Infeasibility::Demand { interval, demand } => {
            format!("the jobs of an interval of {} may take {}", Nanos(interval), span(demand))
        }
        Infeasibility::ResponseTime { task, deadline } => {
            format!("task \"{}\": its response time exceeds the {} it has", name(task), Nanos(deadline))
        }
    }
}

/// `1 CPU`, `4 CPUs`.
pub(super) fn counted_cpus(cpus: u32) -> String {
    if cpus == 1 { "1 CPU".to_owned() } else { format!("{cpus} CPUs") }
}

/// The utilization of `set` with three decimals, rounded up: what exceeds a limit still does so as printed.
pub(super) fn utilization(set: &TaskSet) -> String {
    let thousandths = set.utilization_thousandths();
    format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000)
}

/// A sum of execution on several CPUs.
fn span(ticks: u128) -> String {
    Nanos(u64::try_from(ticks).unwrap_or(u64::MAX)).to_string()
}
