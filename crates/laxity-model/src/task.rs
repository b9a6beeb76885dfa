//! Tasks: templates from which jobs are released.

use crate::{Distribution, ExecutionTime, Nanos, OwnCode, ServerKind, Step};

/// A real-time task. Its jobs are sequential: one starts only after its predecessor completed, and a tardy job does
/// not move later arrivals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Unique name.
    pub name: String,
    /// How jobs arrive.
    pub arrival: Arrival,
    /// Exact (periodic) or minimum (sporadic) separation of arrivals.
    pub period: Nanos,
    /// Relative deadline, counted from the arrival; may be shorter or longer than the period.
    pub deadline: Nanos,
    /// Arrival of the first job.
    pub phase: Nanos,
    /// Release jitter: a job becomes eligible to run at its arrival plus a uniform draw from `[0, jitter]`.
    pub jitter: Nanos,
    /// For fixed priorities given by hand: the smaller number is the higher priority.
    pub priority: Option<u32>,
    /// The cluster it runs on: an index into [`Platform::clusters`](crate::Platform::clusters), or under partitioned
    /// scheduling a CPU number. `None`: assigned by worst fit where the scheduler needs one.
    pub cluster: Option<usize>,
    /// Bytes a job touches, for cache-related delay.
    pub working_set: Option<u64>,
    /// The bandwidth server that its jobs execute in; `None`: they execute as much as they need.
    pub server: Option<TaskServer>,
    /// Memory bandwidth that its jobs use while they execute on a CPU, in bytes a second. It slows GPU work down and is
    /// never throttled.
    pub memory_demand: u64,
    /// What best-effort tasks may use of each CPU's memory bandwidth while a job of this task holds the bandwidth lock, in
    /// bytes a second; `None`: the [budget of the lock](crate::BandwidthLock::budget).
    pub memory_budget: Option<u64>,
    /// What a job does.
    pub body: Vec<Step>,
    /// The user's code that its jobs run live; `None`: they use up CPU time as the body says.
    pub run: Option<OwnCode>,
}

/// A bandwidth server that is a task: what its jobs may execute in a period, and what follows when that is used up.
///
/// Jobs go on when there is budget again, or with a later deadline, by [`ServerKind`]; others see no more than the budget
/// of them. A job that is in a critical section or in a non-preemptive one is throttled when it leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskServer {
    /// What happens when the budget is used up.
    pub kind: ServerKind,
    /// CPU time in each period, from 1 ns to the period.
    pub budget: Nanos,
    /// The period of its budgets, which is also the relative deadline of each. The task is then ranked as a task of this
    /// period and deadline. `None`: the period of the task, whose relative deadline it keeps.
    pub period: Option<Nanos>,
}

/// The arrival pattern of a task's jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Exactly one period apart.
    Periodic,
    /// At least one period apart; `gap` is what a simulated arrival waits beyond that.
    Sporadic {
        /// Extra separation, zero in the worst case.
        gap: Distribution,
    },
}

/// Work without deadlines that runs when no real-time job wants the CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BestEffortTask {
    /// Unique name.
    pub name: String,
    /// Share of the left-over time, relative to the others (1024 is one "nice 0" task of Linux).
    pub weight: u32,
    /// Memory bandwidth it would use unhindered, in bytes a second.
    pub memory_demand: u64,
    /// The CPU it is bound to, if any.
    pub cpu: Option<usize>,
    /// How long it executes until it ends; `None`: it never does.
    pub work: Option<Nanos>,
}

impl BestEffortTask {
    /// An endless task of ordinary weight that uses no memory and goes to any CPU.
    pub fn endless(name: impl Into<String>) -> Self {
        BestEffortTask { name: name.into(), weight: 1024, memory_demand: 0, cpu: None, work: None }
    }
}

impl TaskServer {
    /// A hard constant bandwidth server of the period of its task.
    pub const fn hard(budget: Nanos) -> TaskServer {
        TaskServer { kind: ServerKind::CbsHard, budget, period: None }
    }
}

impl Task {
    /// An implicit-deadline periodic task of one CPU step that always takes its worst case.
    pub fn periodic(name: impl Into<String>, wcet: Nanos, period: Nanos) -> Self {
        Task {
            name: name.into(),
            arrival: Arrival::Periodic,
            period,
            deadline: period,
            phase: Nanos::ZERO,
            jitter: Nanos::ZERO,
            priority: None,
            cluster: None,
            working_set: None,
            server: None,
            memory_demand: 0,
            memory_budget: None,
            body: vec![Step::Cpu(ExecutionTime::constant(wcet))],
            run: None,
        }
    }

    /// Worst-case CPU time of a job: the sum over its steps.
    pub fn wcet(&self) -> Nanos {
        self.body.iter().map(Step::cpu_wcet).sum()
    }

    /// The period and the relative deadline by which its jobs are ranked: those of its server if that has a period of its
    /// own.
    pub fn ranked_by(&self) -> (Nanos, Nanos) {
        let own = self.server.and_then(|server| server.period);
        own.map_or((self.period, self.deadline), |period| (period, period))
    }

    /// CPU utilization, `wcet / period`, for tables and plots; decisions compare integers.
    pub fn utilization_f64(&self) -> f64 {
        self.wcet().0 as f64 / self.period.0 as f64
    }
}
