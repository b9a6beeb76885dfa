//! Response-time analysis under the bandwidth lock: paper 004, equation 4.

use crate::fixed_priority::{FixedPriorityTask, response_time};
use crate::{Limits, Outcome};

/// A task on the real-time core, in ticks; its deadline is its period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BwlockTask {
    /// CPU execution.
    pub cpu: u64,
    /// GPU kernels and copies, asynchronous copies included, each of which runs at the ceiling priority while the job
    /// waits busily: a non-preemptive section.
    pub segments: Vec<u64>,
    /// Minimum separation of arrivals.
    pub period: u64,
    /// Whether the job suspends during a segment instead of waiting busily.
    pub suspends: bool,
}

/// The bound for one task, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BwlockBound {
    /// Execution with GPU time and system calls, E.
    pub execution: u64,
    /// The longest single segment of lower priority, B.
    pub blocking: u64,
    /// Response-time bound R; `None` if it exceeds the period.
    pub response_time: Option<u64>,
}

/// Why the analysis does not apply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BwlockError {
    /// A suspended job lets lower priorities run and lock again, so equation 4 does not hold.
    #[error("task {task}: it suspends during gpu work, and the bound needs busy waiting")]
    Suspends {
        /// Index of the task.
        task: usize,
    },
    /// A period is zero, or the times do not fit 64 bits.
    #[error("task {task}: its period is 0 or its times exceed 64 bits; use a coarser tick")]
    Range {
        /// Index of the task.
        task: usize,
    },
    /// The iteration was cut short.
    #[error("gave up after {limit} steps; raise the limit")]
    Steps {
        /// Steps allowed.
        limit: u64,
    },
}

/// Bounds for tasks listed by falling priority:
///
/// ```text
/// R = E_i + B_i + sum_{j above i} ceil(R / P_j) * E_j        E = C + segments + 2 * syscall for each segment
/// B_i = longest segment of a lower priority, with its two system calls                  (0 if there is none)
/// ```
///
/// At most one lower-priority section blocks a job. Valid where R <= P: the busy period then contains one job of the
/// task. The published system call takes 1.84 us.
///
/// # Errors
/// [`BwlockError`] if a task suspends, a number is out of range, or `limits.steps` is reached.
pub fn response_times(tasks: &[BwlockTask], syscall: u64, limits: &Limits) -> Result<Vec<BwlockBound>, BwlockError> {
    if let Some(task) = tasks.iter().position(|task| task.suspends && !task.segments.is_empty()) {
        return Err(BwlockError::Suspends { task });
    }
    let mut longest = Vec::with_capacity(tasks.len());
    for (index, task) in tasks.iter().enumerate() {
        longest.push(locked(task, syscall).ok_or(BwlockError::Range { task: index })?);
    }
    let mut higher: Vec<FixedPriorityTask> = Vec::new();
    let mut bounds = Vec::with_capacity(tasks.len());
    for (index, task) in tasks.iter().enumerate() {
        let (execution, _) = longest[index];
        let blocking = longest[index + 1..].iter().map(|lower| lower.1).max().unwrap_or(0);
        let response_time = match response_time(execution, blocking, &higher, task.period, limits) {
            Ok(bound) => bound,
            Err(Outcome::ResourceLimit { limit, .. }) => return Err(BwlockError::Steps { limit }),
            Err(_) => return Err(BwlockError::Range { task: index }),
        };
        bounds.push(BwlockBound { execution, blocking, response_time });
        higher.push(FixedPriorityTask { wcet: execution, period: task.period });
    }
    Ok(bounds)
}

/// Execution of a task with system calls, and its longest segment with them.
fn locked(task: &BwlockTask, syscall: u64) -> Option<(u64, u64)> {
    let calls = syscall.checked_mul(2)?;
    let mut execution = task.cpu;
    let mut longest = 0;
    for &segment in &task.segments {
        let segment = segment.checked_add(calls)?;
        execution = execution.checked_add(segment)?;
        longest = longest.max(segment);
    }
    (task.period > 0).then_some((execution, longest))
}
