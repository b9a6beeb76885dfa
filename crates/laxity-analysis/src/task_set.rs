//! What the tests read: tasks as (wcet, period, deadline) in ticks, on identical CPUs.

use std::cmp::Ordering;

use laxity_model::{Nanos, Task};

use crate::exact::{Rational, exact_sum, sign_of_sum, thousandths_of_sum};

/// The longest time a task may name, in ticks (36 years of nanoseconds). Sums of a few fit in `i64`, products of two
/// in `i128`.
pub const LONGEST_TICKS: u64 = 1 << 60;

const TASKS_MAX: usize = 1 << 20;
const CPUS_MAX: u32 = 1 << 16;

/// A sporadic task as the tests see it, in ticks. One tick is normally a nanosecond; all times of a set share a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AnalysisTask {
    /// Worst-case execution time C of a job.
    pub wcet: u64,
    /// Minimum separation T of arrivals.
    pub period: u64,
    /// Relative deadline D.
    pub deadline: u64,
    /// Whether the last that a job does is to wait. Afterwards it needs a CPU for an instant, to be complete; so the jobs that
    /// delay it are those that arrive up to its response, and also those that arrive at that very instant.
    pub ends_waiting: bool,
}

/// How deadlines relate to periods in a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeadlineClass {
    /// D = T for every task.
    Implicit,
    /// D <= T for every task.
    Constrained,
    /// Some D > T.
    Arbitrary,
}

/// A set of tasks on `cpus` identical CPUs. The order of tasks breaks ties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSet {
    cpus: u32,
    tasks: Vec<AnalysisTask>,
    class: DeadlineClass,
}

/// Why numbers do not form a task set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskSetError {
    /// The number of CPUs is zero or beyond the limit.
    #[error("{cpus} cpus given; analysis needs 1 to {CPUS_MAX}", CPUS_MAX = CPUS_MAX)]
    Cpus {
        /// CPUs given.
        cpus: u32,
    },
    /// More tasks than the limit.
    #[error("{tasks} tasks given; analysis takes at most {TASKS_MAX}", TASKS_MAX = TASKS_MAX)]
    Tasks {
        /// Tasks given.
        tasks: usize,
    },
    /// A wcet, period or deadline is zero or beyond [`LONGEST_TICKS`].
    #[error("task {task}: {}", parameter_error(.parameter, *.value))]
    Parameter {
        /// Index of the task.
        task: usize,
        /// "wcet", "period" or "deadline".
        parameter: &'static str,
        /// Ticks given.
        value: u64,
    },
}

impl AnalysisTask {
    /// A task of wcet, period and deadline in ticks.
    pub const fn new(wcet: u64, period: u64, deadline: u64) -> Self {
        AnalysisTask { wcet, period, deadline, ends_waiting: false }
    }

    /// A task whose deadline is its period.
    pub const fn implicit(wcet: u64, period: u64) -> Self {
        AnalysisTask::new(wcet, period, period)
    }

    /// The window in which jobs arrive that delay one which is complete after `response`.
    pub(crate) const fn arrivals_within(&self, response: u64) -> u64 {
        response.saturating_add(self.ends_waiting as u64)
    }

    /// The shorter of deadline and period: what the density divides by.
    pub const fn window(&self) -> u64 {
        if self.deadline < self.period { self.deadline } else { self.period }
    }
}

impl From<&Task> for AnalysisTask {
    /// The CPU demand of a model task, one tick a nanosecond. GPU work and suspensions are not in it.
    fn from(task: &Task) -> Self {
        let Nanos(wcet) = task.wcet();
        AnalysisTask::new(wcet, task.period.0, task.deadline.0)
    }
}

impl TaskSet {
    /// Checks the ranges of all parameters.
    ///
    /// # Errors
    /// If there is no CPU or more than 65536, more than 2^20 tasks, or a parameter outside `1..=LONGEST_TICKS`.
    pub fn new(cpus: u32, tasks: Vec<AnalysisTask>) -> Result<Self, TaskSetError> {
        if cpus == 0 || cpus > CPUS_MAX {
            return Err(TaskSetError::Cpus { cpus });
        }
        if tasks.len() > TASKS_MAX {
            return Err(TaskSetError::Tasks { tasks: tasks.len() });
        }
        let mut class = DeadlineClass::Implicit;
        for (index, task) in tasks.iter().enumerate() {
            let parameters = [("wcet", task.wcet), ("period", task.period), ("deadline", task.deadline)];
            for (parameter, value) in parameters {
                if value == 0 || value > LONGEST_TICKS {
                    return Err(TaskSetError::Parameter { task: index, parameter, value });
                }
            }
            class = class.max(match task.deadline.cmp(&task.period) {
                Ordering::Equal => DeadlineClass::Implicit,
                Ordering::Less => DeadlineClass::Constrained,
                Ordering::Greater => DeadlineClass::Arbitrary,
            });
        }
        Ok(TaskSet { cpus, tasks, class })
    }

    /// Number of CPUs m.
    pub fn cpus(&self) -> u32 {
        self.cpus
    }

    /// The tasks, in the order that breaks ties.
    pub fn tasks(&self) -> &[AnalysisTask] {
        &self.tasks
    }

    /// How deadlines relate to periods.
    pub fn class(&self) -> DeadlineClass {
        self.class
    }

    /// The same tasks on another number of CPUs.
    ///
    /// # Errors
    /// If `cpus` is 0 or more than 65536.
    pub fn on(&self, cpus: u32) -> Result<Self, TaskSetError> {
        if cpus == 0 || cpus > CPUS_MAX {
            return Err(TaskSetError::Cpus { cpus });
        }
        Ok(TaskSet { cpus, ..self.clone() })
    }

    /// Total utilization, the exact sum of C/T.
    pub fn utilization(&self) -> Rational {
        exact_sum(self.utilization_terms())
    }

    /// Total utilization in thousandths, rounded up.
    pub(crate) fn utilization_thousandths(&self) -> u64 {
        thousandths_of_sum(self.utilization_terms())
    }

    /// Total density, the exact sum of C/min(D, T).
    pub fn density(&self) -> Rational {
        exact_sum(self.tasks.iter().map(|task| (task.wcet.into(), task.window().into())))
    }

    /// Exact order of the total utilization and the number of CPUs.
    pub fn compare_utilization_to_cpus(&self) -> Ordering {
        sign_of_sum(self.utilization_terms().chain([(-i128::from(self.cpus), 1)]))
    }

    /// The total utilization rounded up to an integer, exactly.
    pub fn utilization_ceiling(&self) -> u64 {
        let approximate: f64 = self.tasks.iter().map(|task| task.wcet as f64 / task.period as f64).sum();
        // Each term is off by at most 3 units of 2^-53 and each addition by one: n + 8 units of 2^-52 bound it twice.
        let error = (self.tasks.len() as f64 + 8.0) * f64::EPSILON * approximate;
        if (approximate - error).ceil() == (approximate + error).ceil() {
            return approximate.ceil() as u64;
        }
        crate::exact::ceil_ticks(&self.utilization())
    }

    fn utilization_terms(&self) -> impl Iterator<Item = (i128, u128)> + Clone + '_ {
        self.tasks.iter().map(|task| (task.wcet.into(), task.period.into()))
    }
}

fn parameter_error(parameter: &str, value: u64) -> String {
    match value {
        0 => format!("{parameter} is 0; every {parameter} must be at least 1 tick"),
        value => format!("{parameter} {value} exceeds {LONGEST_TICKS} ticks; use a coarser tick"),
    }
}
