//! The interface of a CPU policy: what the process scheduler tells it, and what it answers.
//!
//! A policy does *job scheduling* only: it assigns abstract jobs to abstract CPUs (paper 002, section 3, "Processor
//! mapping"). Switching processes is its driver's work, in the simulator and on a live system alike; the driver follows
//! the links and reports what really runs with [`Event::Switched`].
//!
//! A policy knows its own cluster only: tasks and CPUs are numbered from 0 within it.

use laxity_model::{CpuId, Instant, TaskId};

use super::Priority;

/// What happened, as far as job scheduling is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A job of `task` is ready for the first time. The task's previous job has completed.
    Released {
        /// The CPU that handled the release.
        cpu: CpuId,
        /// The task.
        task: TaskId,
        /// The job's absolute deadline.
        deadline: Instant,
    },
    /// The job of `task`, whose process is on `cpu`, completed.
    Completed {
        /// Where it ran.
        cpu: CpuId,
        /// The task.
        task: TaskId,
    },
    /// The job of `task`, whose process is on `cpu`, suspended itself.
    Suspended {
        /// Where it ran.
        cpu: CpuId,
        /// The task.
        task: TaskId,
    },
    /// The suspended job of `task` is ready again.
    Resumed {
        /// The CPU that noticed.
        cpu: CpuId,
        /// The task.
        task: TaskId,
    },
    /// The effective priority of the pending job of `task`, or of an active interrupt thread, is this from now on.
    Prioritized {
        /// The task.
        task: TaskId,
        /// See [`Priority::level`].
        level: (u64, u32),
    },
    /// An idle interrupt thread, one of the tasks, has work. If it works on behalf of `owner` the two are one entity:
    /// the thread goes before its owner, takes over the owner's CPU, and they never run side by side (paper 000,
    /// section III). Threads of the same owner go one after the other.
    Woken {
        /// The CPU that handled the interrupt.
        cpu: CpuId,
        /// The thread.
        thread: TaskId,
        /// On whose behalf.
        owner: Option<TaskId>,
        /// Its effective priority.
        level: (u64, u32),
    },
    /// A scheduling quantum begins on `cpu`, or for the fair class, a tick. Event-driven policies ignore it.
    Tick {
        /// The CPU.
        cpu: CpuId,
        /// Which quantum, counted from 0.
        quantum: u64,
    },
    /// The process of `task` (or the idle process) is now the one on `cpu`.
    Switched {
        /// The CPU.
        cpu: CpuId,
        /// The task whose process is switched in.
        task: Option<TaskId>,
    },
}

/// What the driver must do. A job that completes or suspends loses its link without being told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// From now on `cpu` should run the job of `task`, or none.
    Link {
        /// The CPU.
        cpu: CpuId,
        /// The task.
        task: Option<TaskId>,
    },
}

/// A CPU scheduling policy.
///
/// The driver hands over every event of an instant, in the order completions, timeouts, releases, ticks and within
/// each by the smaller job, and then asks once for the decision: no job is linked and displaced at the same instant.
/// The list of `(now, event)` with a decision after the last event of each instant is a complete input.
pub trait CpuPolicy {
    /// Takes note of `event`.
    fn handle(&mut self, now: Instant, event: Event);

    /// Appends to `actions` the links that changed since the last decision, by CPU in the order of change.
    fn decide(&mut self, now: Instant, actions: &mut Vec<Action>);

    /// The CPU that gives way first, and the priority of what is linked to it; idle CPUs first.
    fn lowest(&self) -> (CpuId, Option<Priority>);

    /// The priority of what is linked to `cpu`.
    fn linked(&self, cpu: CpuId) -> Option<Priority>;

    /// Whether a tick could change anything now. A driver whose ticks cost nothing need not report others.
    fn heeds_ticks(&self) -> bool {
        true
    }

    /// Panics if an invariant does not hold; for tests and fuzzing, O(tasks + CPUs).
    fn assert_invariants(&self);
}
