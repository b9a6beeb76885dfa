//! How Linux schedules the workers of a graph.

use std::fs;
use std::io;

use laxity_graph::Spec;
use laxity_graph::hooks::Fifo;
use laxity_model::Nanos;
use laxity_runtime::Attributes;
use laxity_sys::scheduling;

use crate::error::SpawnError;
use crate::options::{Budgets, Policy};
use crate::verified::Executable;

/// How the worker of one node is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheduling {
    /// The same from its beginning to its end.
    Fixed(Attributes),
    /// `SCHED_OTHER` for so many frames, and then `SCHED_DEADLINE`.
    Measured { frames: u32, margin_percent: u32 },
    /// Laxity's own scheduler.
    Laxity,
}

/// How each worker of `spec`, whose nodes are `nodes`, is scheduled.
///
/// # Errors
/// [`SpawnError`], if what is asked for can never be.
pub(crate) fn plan(spec: &Spec, nodes: &[Executable], policy: Policy) -> Result<Vec<Scheduling>, SpawnError> {
    let positions = 0..nodes.len();
    match policy {
        Policy::Laxity { .. } => Ok(vec![Scheduling::Laxity; nodes.len()]),
        Policy::Other => Ok(vec![Scheduling::Fixed(Attributes::Other); nodes.len()]),
        Policy::Fifo { base } => positions
            .map(|node| Ok(Scheduling::Fixed(Fifo::of(spec, node, base).map_err(SpawnError::Priority)?.into())))
            .collect(),
        Policy::Deadline { budgets } => {
            let planned: Result<Vec<_>, _> = positions.map(|node| with_budget(spec, node, nodes, budgets)).collect();
            let planned = planned?;
            check_budgets(nodes, &planned, period(spec))?;
            Ok(planned)
        }
    }
}

fn with_budget(spec: &Spec, node: usize, nodes: &[Executable], budgets: Budgets) -> Result<Scheduling, SpawnError> {
    let is_callback = node == 0 || node + 1 == nodes.len();
    let budget = match (nodes[node].budget, budgets) {
        (Some(budget), _) | (None, Budgets::Given { default: Some(budget) }) => budget,
        (None, Budgets::Given { default: None }) if is_callback => Budgets::CALLBACK,
        (None, Budgets::Given { default: None }) => {
            return Err(SpawnError::NoBudget { node: nodes[node].name.clone() });
        }
        (None, Budgets::Measured { frames, margin_percent }) => {
            return Ok(Scheduling::Measured { frames, margin_percent });
        }
    };
    Ok(Scheduling::Fixed(Attributes::deadline_of(spec, node, budget)))
}

/// Linux would refuse the same, one thread at a time.
fn check_budgets(nodes: &[Executable], planned: &[Scheduling], period: Nanos) -> Result<(), SpawnError> {
    for (node, scheduling) in nodes.iter().zip(planned) {
        let Some(budget) = scheduling.budget() else { continue };
        if budget < Budgets::MIN || budget > period {
            return Err(SpawnError::Budget { node: node.name.clone(), budget, period });
        }
    }
    let (needed, offered) = (needed(planned, period), offered());
    if needed > offered { Err(SpawnError::Overload { needed, offered }) } else { Ok(()) }
}

/// A budget as a part of a CPU, in thousandths.
pub(crate) fn thousandths(budget: Nanos, period: Nanos) -> u64 {
    // Beyond 2^64 is more than any machine has.
    u64::try_from(u128::from(budget.0) * 1000 / u128::from(period.0.max(1))).unwrap_or(u64::MAX)
}

/// What Linux promises at most on all CPUs of this process, in thousandths of a CPU.
fn offered() -> u64 {
    let cpus = scheduling::usable_cpus().map_or(1, |cpus| cpus.len()) as u64;
    let limit = |name: &str| -> Option<i64> {
        fs::read_to_string(format!("/proc/sys/kernel/sched_rt_{name}_us")).ok()?.trim().parse().ok()
    };
    match (limit("runtime"), limit("period")) {
        (Some(runtime @ 0..), Some(period @ 1..)) => cpus * 1000 * (runtime as u64) / (period as u64),
        // No limit, or none that Linux tells.
        _ => cpus * 1000,
    }
}

impl Scheduling {
    /// How the worker is scheduled when it starts.
    pub fn at_first(self) -> Attributes {
        match self {
            Scheduling::Fixed(attributes) => attributes,
            Scheduling::Measured { .. } | Scheduling::Laxity => Attributes::Other,
        }
    }

    /// What it reserves from the start.
    fn budget(self) -> Option<Nanos> {
        match self.at_first() {
            Attributes::Deadline { runtime, .. } => Some(runtime),
            Attributes::Other | Attributes::Fifo { .. } => None,
        }
    }
}

/// The error if Linux does not schedule the worker of `node` by `attributes`; all nodes together reserve `needed`.
pub(crate) fn refused(node: String, attributes: Attributes, needed: u64, error: io::Error) -> SpawnError {
    match attributes {
        Attributes::Deadline { runtime, period, .. } => {
            SpawnError::Deadline { node, budget: runtime, period, needed, offered: offered(), error }
        }
        Attributes::Fifo { .. } | Attributes::Other => SpawnError::Fifo {
            node,
            priority: attributes.priority().unwrap_or(0),
            limit: scheduling::fifo_limit(),
            error,
        },
    }
}

/// What all nodes reserve together, in thousandths of a CPU.
pub(crate) fn needed(planned: &[Scheduling], period: Nanos) -> u64 {
    let budgets = planned.iter().filter_map(|scheduling| scheduling.budget());
    budgets.map(|budget| thousandths(budget, period)).fold(0, u64::saturating_add)
}

/// The period of the graph: of its only source, the input callback.
pub(crate) fn period(spec: &Spec) -> Nanos {
    spec.plan().nodes()[0].period.floor()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_part_of_a_cpu_whatever_the_numbers() {
        assert_eq!(thousandths(Nanos::from_millis(5), Nanos::from_millis(20)), 250);
        assert_eq!(thousandths(Nanos(u64::MAX), Nanos(1)), u64::MAX);
    }
}
