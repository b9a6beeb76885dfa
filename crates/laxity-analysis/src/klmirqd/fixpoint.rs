//! The fixed point of tardiness and inflation on one cluster: paper 000, appendix B, conditions 4 and 5.

use super::{Blocking, Costs, GpuTask, Handling, blocking, inflate, interrupts};
use crate::exact::ceil_ticks;
use crate::soft::tardiness_ticks;
use crate::{AnalysisTask, Infeasibility, LONGEST_TICKS, Limits, Outcome, TaskSet, TaskSetError};

/// One round of the iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// Tardiness bounds it started from, in ticks.
    pub tardiness: Vec<u64>,
    /// Inflated execution times under them, in ticks.
    pub wcets: Vec<u64>,
}

/// Bounded tardiness on a cluster, overheads included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterResult {
    /// Tardiness bounds, in ticks.
    pub tardiness: Vec<u64>,
    /// Inflated execution times, in ticks.
    pub wcets: Vec<u64>,
    /// Blocking bounds, in ticks.
    pub blocking: Vec<u64>,
    /// Every round, the last of which reproduced itself.
    pub rounds: Vec<Round>,
}

/// Why a cluster has no bounded tardiness, or none was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unschedulable {
    /// Condition 4 fails: an inflated execution time exceeds its period.
    #[error("task {task}: inflated execution time {wcet} exceeds its period of {period} ticks")]
    Window {
        /// Index of the task.
        task: usize,
        /// Its inflated execution time, in ticks.
        wcet: u128,
        /// Its period, in ticks.
        period: u64,
        /// The rounds made, the failing one last.
        rounds: Vec<Round>,
    },
    /// Condition 5 fails: the inflated utilization exceeds the CPUs.
    #[error("the inflated utilization exceeds {cpus} cpus; lower it or add cpus")]
    Utilization {
        /// CPUs of the cluster.
        cpus: u32,
        /// The rounds made, the failing one last.
        rounds: Vec<Round>,
    },
    /// Tasks need a GPU and the cluster has none.
    #[error("a task uses a gpu and the cluster has none")]
    NoGpu,
    /// The numbers do not form a task set.
    #[error(transparent)]
    Invalid(TaskSetError),
    /// The iteration did not settle.
    #[error("tardiness bounds did not settle within {limit} rounds")]
    Rounds {
        /// Rounds allowed.
        limit: u32,
    },
}

/// Rounds allowed; the execution times climb a discrete grid below the periods, in practice for at most seven.
const ROUNDS_MAX: u32 = 1_000;

/// Bounded tardiness under clustered EDF on a cluster of `cpus` CPUs and `gpus` GPUs under k-FMLP.
///
/// From tardiness 0: inflate under the present tardiness, check conditions 4 (`e <= p`) and 5 (`U <= m`), bound the
/// tardiness of the inflated set by its compliant vector (0 on one CPU), and repeat with the larger of both until
/// nothing changes. Execution times and tardiness never fall from round to round.
///
/// `limits.steps` bounds the search for the exact blocking of each task.
///
/// # Errors
/// [`Unschedulable`], with the rounds made.
pub fn analyze_cluster(
    tasks: &[GpuTask],
    cpus: u32,
    gpus: u32,
    kind: Blocking,
    costs: &Costs,
    handling: Handling,
    limits: &Limits,
) -> Result<ClusterResult, Unschedulable> {
    let blocking = blocking_ticks(tasks, gpus, kind, limits)?;
    analyze_blocked(tasks, cpus, blocking, costs, handling, limits)
}

/// [`analyze_cluster`] with known blocking bounds, one for each task in ticks: they depend on neither the costs nor the
/// handling of interrupts, so several analyses can share them. Panics unless there is one for each task.
///
/// # Errors
/// [`Unschedulable`], with the rounds made.
pub fn analyze_blocked(
    tasks: &[GpuTask],
    cpus: u32,
    blocking: Vec<u64>,
    costs: &Costs,
    handling: Handling,
    limits: &Limits,
) -> Result<ClusterResult, Unschedulable> {
    assert_eq!(blocking.len(), tasks.len(), "each task has a blocking bound");
    if let Some(task) = tasks.iter().position(|task| task.period == 0) {
        return Err(Unschedulable::Invalid(TaskSetError::Parameter { task, parameter: "period", value: 0 }));
    }
    let mut tardiness = vec![0u64; tasks.len()];
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS_MAX.min(limits.rounds) {
        let exact: Vec<u128> = tasks
            .iter()
            .enumerate()
            .map(|(index, task)| {
                let interrupts = interrupts(tasks, &tardiness, index);
                inflate(task, blocking[index], interrupts, tardiness[index], costs, handling).ticked
            })
            .collect();
        let wcets: Vec<u64> = exact.iter().map(|&wcet| wcet.min(u128::from(u64::MAX)) as u64).collect();
        rounds.push(Round { tardiness: tardiness.clone(), wcets: wcets.clone() });
        if let Some(task) = (0..tasks.len()).find(|&task| exact[task] > u128::from(tasks[task].period)) {
            let (wcet, period) = (exact[task], tasks[task].period);
            return Err(Unschedulable::Window { task, wcet, period, rounds });
        }
        let next = match next_tardiness(tasks, &wcets, cpus) {
            Ok(next) => next,
            Err(Some(error)) => return Err(Unschedulable::Invalid(error)),
            Err(None) => return Err(Unschedulable::Utilization { cpus, rounds }),
        };
        if next.iter().zip(&tardiness).all(|(next, now)| next <= now) {
            return Ok(ClusterResult { tardiness, wcets, blocking, rounds });
        }
        for (now, next) in tardiness.iter_mut().zip(next) {
            *now = next.max(*now).min(LONGEST_TICKS);
        }
    }
    Err(Unschedulable::Rounds { limit: ROUNDS_MAX.min(limits.rounds) })
}

/// Blocking bounds of a cluster's tasks in ticks, rounded up, as [`analyze_cluster`] uses them.
///
/// # Errors
/// [`Unschedulable::NoGpu`] if a task needs a GPU and there is none.
pub fn blocking_ticks(
    tasks: &[GpuTask],
    gpus: u32,
    kind: Blocking,
    limits: &Limits,
) -> Result<Vec<u64>, Unschedulable> {
    let lengths: Vec<u64> = tasks.iter().map(|task| task.critical_section).collect();
    if gpus == 0 {
        let needed = tasks.iter().any(|task| task.uses_gpu() || task.critical_section > 0);
        return if needed { Err(Unschedulable::NoGpu) } else { Ok(vec![0; tasks.len()]) };
    }
    let bounds = blocking(&lengths, gpus, kind, limits.steps.min(1_000_000));
    Ok(bounds.iter().map(|bound| ceil_ticks(&bound.bound)).collect())
}

/// The tardiness of the inflated set; `Err(None)` if its utilization exceeds the CPUs.
fn next_tardiness(tasks: &[GpuTask], wcets: &[u64], cpus: u32) -> Result<Vec<u64>, Option<TaskSetError>> {
    let inflated = tasks.iter().zip(wcets).map(|(task, &wcet)| AnalysisTask::implicit(wcet.max(1), task.period));
    let set = TaskSet::new(cpus, inflated.collect()).map_err(Some)?;
    match tardiness_ticks(&set) {
        Ok(_) if cpus == 1 => Ok(vec![0; tasks.len()]),
        Ok(bounds) => Ok(bounds),
        Err(Outcome::Infeasible(Infeasibility::Utilization { .. })) => Err(None),
        Err(other) => panic!("with e <= p only the utilization can be too high, not: {other}"),
    }
}
