//! How the threads of a graph ask Linux to schedule them.

use std::fs;
use std::io;

use laxity_graph::Spec;
use laxity_graph::hooks::{Deadline, Fifo, HookError};
use laxity_model::Nanos;
use laxity_sys::scheduling;

use crate::error::SpawnError;
use crate::options::{Budgets, Policy};
use crate::verified::Executable;

/// How the thread of one node is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheduling {
    Other,
    Fifo(Fifo),
    Deadline {
        budget: Nanos,
    },
    /// `SCHED_OTHER` for so many frames, and then `SCHED_DEADLINE`.
    Measured {
        frames: u32,
        margin_percent: u32,
    },
}

/// How each thread of `spec`, whose nodes are `nodes`, is scheduled.
///
/// # Errors
/// [`SpawnError`], if what is asked for can never be.
pub(crate) fn plan(spec: &Spec, nodes: &[Executable], policy: Policy) -> Result<Vec<Scheduling>, SpawnError> {
    let positions = 0..nodes.len();
    match policy {
        Policy::Other => Ok(vec![Scheduling::Other; nodes.len()]),
        Policy::Fifo { base } => positions
            .map(|node| Fifo::of(spec, node, base).map(Scheduling::Fifo).map_err(SpawnError::Priority))
            .collect(),
        Policy::Deadline { budgets } => {
            let planned: Result<Vec<_>, _> =
                positions.map(|node| with_budget(&nodes[node], is_callback(node, nodes), budgets)).collect();
            let planned = planned?;
            check_budgets(nodes, &planned, period(spec))?;
            Ok(planned)
        }
    }
}

fn is_callback(node: usize, nodes: &[Executable]) -> bool {
    node == 0 || node + 1 == nodes.len()
}

fn with_budget(node: &Executable, is_callback: bool, budgets: Budgets) -> Result<Scheduling, SpawnError> {
    match (node.budget, budgets) {
        (Some(budget), _) | (None, Budgets::Given { default: Some(budget) }) => Ok(Scheduling::Deadline { budget }),
        (None, Budgets::Given { default: None }) if is_callback => {
            Ok(Scheduling::Deadline { budget: Budgets::CALLBACK })
        }
        (None, Budgets::Given { default: None }) => Err(SpawnError::NoBudget { node: node.name.clone() }),
        (None, Budgets::Measured { frames, margin_percent }) => Ok(Scheduling::Measured { frames, margin_percent }),
    }
}

/// Linux would refuse the same, one thread at a time.
fn check_budgets(nodes: &[Executable], planned: &[Scheduling], period: Nanos) -> Result<(), SpawnError> {
    let mut needed = 0_u64;
    for (node, scheduling) in nodes.iter().zip(planned) {
        let Scheduling::Deadline { budget } = *scheduling else { continue };
        if budget < Budgets::MIN || budget > period {
            return Err(SpawnError::Budget { node: node.name.clone(), budget, period });
        }
        needed = needed.saturating_add(thousandths(budget, period));
    }
    let offered = offered();
    if needed > offered { Err(SpawnError::Overload { needed, offered }) } else { Ok(()) }
}

/// A budget as a part of a CPU.
pub(crate) fn thousandths(budget: Nanos, period: Nanos) -> u64 {
    // Beyond 2^64 is more than any machine has.
    u64::try_from(u128::from(budget.0) * 1000 / u128::from(period.0.max(1))).unwrap_or(u64::MAX)
}

/// What Linux promises at most on all CPUs of this process, in thousandths of a CPU.
pub(crate) fn offered() -> u64 {
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
    /// The priority under `SCHED_FIFO`.
    pub fn priority(self) -> Option<u8> {
        match self {
            Scheduling::Fifo(fifo) => Some(fifo.priority()),
            _ => None,
        }
    }

    /// Schedules the calling thread, which runs `node`; `needed` is what all nodes reserve.
    ///
    /// # Errors
    /// [`SpawnError`], if Linux refuses.
    pub fn apply(self, node: &mut laxity_graph::Node, spec: &Spec, needed: u64) -> Result<(), SpawnError> {
        match self {
            Scheduling::Other | Scheduling::Measured { .. } => Ok(()),
            Scheduling::Fifo(fifo) => node.schedule_by(fifo).map_err(|refused: HookError| SpawnError::Fifo {
                node: refused.node,
                priority: fifo.priority(),
                limit: scheduling::fifo_limit(),
                error: refused.error,
            }),
            Scheduling::Deadline { budget } => {
                let deadline = Deadline::of(spec, node.position(), budget);
                node.schedule_by(deadline).map_err(|refused: HookError| SpawnError::Deadline {
                    node: refused.node,
                    budget,
                    period: period(spec),
                    needed,
                    offered: offered(),
                    error: refused.error,
                })
            }
        }
    }
}

/// What all nodes reserve together, in thousandths of a CPU.
pub(crate) fn needed(planned: &[Scheduling], period: Nanos) -> u64 {
    let budgets = planned.iter().map(|scheduling| match *scheduling {
        Scheduling::Deadline { budget } => thousandths(budget, period),
        _ => 0,
    });
    budgets.fold(0, u64::saturating_add)
}

/// That of the graph: of its only source, the input callback.
pub(crate) fn period(spec: &Spec) -> Nanos {
    spec.plan().nodes()[0].period.floor()
}

/// Has the calling thread keep to `cpus`, if there are any.
///
/// # Errors
/// If it may not.
pub(crate) fn keep_on(cpus: &[usize]) -> io::Result<()> {
    if cpus.is_empty() { Ok(()) } else { scheduling::keep_on(cpus) }
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
