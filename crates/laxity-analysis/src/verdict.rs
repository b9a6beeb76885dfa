//! What a test answers: the test that decided, its outcome, and for which task or interval it failed.

use std::fmt;

use crate::Rational;

/// A schedulability test, under the name used in files, tables and papers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Test {
    /// Every job has a CPU of its own.
    Trivial,
    /// Goossens, Funk & Baruah 2003: the density test.
    Gfb,
    /// Baker 2003.
    Bak,
    /// Bertogna, Cirinei & Lipari 2005.
    Bcl,
    /// Bertogna, Cirinei & Lipari 2009: iterated slacks.
    BclIterative,
    /// Response-time analysis, least fixed point over all tasks at once.
    Rta,
    /// Response-time analysis in the slack form of Bertogna & Cirinei 2007.
    RtaSlack,
    /// Baruah et al. 2009: forced-forward demand bound, all speeds.
    FfDbf,
    /// The same with a grid of speeds, as a well-known toolkit does it.
    FfDbfGrid,
    /// Baruah 2007 in integer time.
    Bar,
    /// Baruah 2007 in dense time: scale-invariant.
    BarDense,
    /// Baruah 2007 with the non-strict comparison, as a well-known toolkit does it.
    BarLe,
    /// Baruah 2007 as printed. Unsound.
    BarPrintedUnsound,
    /// The exact test for EDF on one CPU.
    UniprocessorEdf,
    /// The utilization condition for bounded tardiness.
    BoundedTardiness,
    /// Response-time analysis for global fixed priorities.
    GlobalFixedPriority,
    /// Response-time analysis for fixed priorities on one CPU, with blocking.
    UniprocessorFixedPriority,
    /// Response-time analysis that counts waits as waits: [`suspension`](crate::suspension).
    SuspensionAware,
    /// EDF on one CPU, with handlers of interrupts counted once beside the jobs.
    UniprocessorEdfInterrupts,
    /// Response-time analysis for fixed priorities on one CPU, with handlers counted so.
    UniprocessorFixedPriorityInterrupts,
    /// All that is pending is complete when the longest busy period of all CPUs together ends.
    BusyPeriod,
    /// Processor demand on one CPU under EDF, with release jitter and blocking: [`edf`](crate::edf).
    UniprocessorEdfDemand,
    /// Response-time analysis for EDF on one CPU, with these: [`edf`](crate::edf).
    UniprocessorEdfResponse,
    /// Response-time analysis for fixed priorities on one CPU over all jobs of a busy period, with release jitter, waits for locks
    /// and last parts that nothing preempts: [`level_busy_period`](crate::fixed_priority::level_busy_period).
    LevelBusyPeriod,
}

/// A test and what it found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The test that decided.
    pub test: Test,
    /// What it found.
    pub outcome: Outcome,
}

/// What a test found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every job meets its deadline (or has bounded tardiness, where that is what the test is about).
    Schedulable(Evidence),
    /// This test cannot show it; another may.
    NotProven(Reason),
    /// No scheduler could (or, for an exact test, this one does not).
    Infeasible(Infeasibility),
    /// The test does not apply to this task set.
    NotApplicable(Precondition),
    /// The test gave up after a number of steps; with more it might answer.
    ResourceLimit {
        /// What was counted: "points", "rounds" or "steps".
        what: &'static str,
        /// How many were allowed.
        limit: u64,
    },
}

/// What a positive answer comes with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The test's condition holds.
    Condition,
    /// A bound on each task's response time, in ticks.
    ResponseTimes(Vec<u64>),
    /// A lower bound on each task's slack, in ticks.
    Slacks(Vec<u64>),
    /// A speed for which the condition holds.
    Speed(Rational),
}

/// Why a test could not show schedulability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The total density exceeds what the densest task leaves.
    Density {
        /// Index of the densest task.
        densest: usize,
    },
    /// The others may interfere with a task for too large a share of its deadline.
    Load {
        /// Index of the task.
        task: usize,
    },
    /// The others may keep a task from running for longer than it can wait.
    Interference {
        /// Index of the task.
        task: usize,
        /// Execution of others that counts, in CPU ticks.
        interference: u128,
        /// What may not be reached, in CPU ticks.
        available: u128,
    },
    /// The demand in an interval that ends at a task's deadline is too large.
    Interval {
        /// Index of the task.
        task: usize,
        /// Length of the interval, in ticks.
        interval: u64,
        /// Execution of others that counts, in CPU ticks.
        demand: u128,
        /// What the demand must stay below, in CPU ticks.
        available: u128,
    },
    /// No response-time bound within the deadline.
    ResponseTime {
        /// Index of the task.
        task: usize,
        /// The deadline, in ticks.
        deadline: u64,
    },
    /// No speed satisfies the demand bound at this and all shorter intervals.
    Speed {
        /// Length of the interval, in ticks.
        interval: u64,
    },
    /// The condition holds wherever it was tested, but no interval bounds where it could fail.
    NoHorizon,
    /// The number of rounds asked for is over.
    Rounds {
        /// Rounds made.
        rounds: u32,
    },
}

/// Why no scheduler can meet the requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Infeasibility {
    /// A job cannot complete in time even alone.
    Window {
        /// Index of the task.
        task: usize,
        /// Its wcet, in ticks.
        wcet: u64,
        /// The shorter of deadline and period (the period for soft tasks), in ticks.
        window: u64,
    },
    /// The total utilization exceeds the number of CPUs.
    Utilization {
        /// Number of CPUs.
        cpus: u32,
    },
    /// On one CPU, the demand of an interval exceeds its length.
    Demand {
        /// Length of the interval, in ticks.
        interval: u64,
        /// Execution released and due in it, in ticks.
        demand: u128,
    },
    /// On one CPU, a task's response time exceeds its deadline in the worst case.
    ResponseTime {
        /// Index of the task.
        task: usize,
        /// Its deadline, in ticks.
        deadline: u64,
    },
}

/// Why a test does not apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// The test is proven for D <= T only.
    ConstrainedDeadlines,
    /// The test is proven for D = T only.
    ImplicitDeadlines,
    /// The test needs a utilization strictly below the number of CPUs.
    UtilizationBelowCpus,
    /// The test needs at least two CPUs.
    SeveralCpus,
    /// The test is for one CPU.
    OneCpu,
    /// The test needs as many tasks as CPUs or fewer.
    NoMoreTasksThanCpus,
    /// The bound holds only for tasks that do not suspend themselves.
    NoSuspension,
}

/// A set of tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TestSet(u32);

impl Test {
    /// Every test, in a fixed order.
    pub const ALL: [Test; 24] = [
        Test::Trivial,
        Test::Gfb,
        Test::Bak,
        Test::Bcl,
        Test::BclIterative,
        Test::Rta,
        Test::RtaSlack,
        Test::FfDbf,
        Test::FfDbfGrid,
        Test::Bar,
        Test::BarDense,
        Test::BarLe,
        Test::BarPrintedUnsound,
        Test::UniprocessorEdf,
        Test::BoundedTardiness,
        Test::GlobalFixedPriority,
        Test::UniprocessorFixedPriority,
        Test::SuspensionAware,
        Test::UniprocessorEdfInterrupts,
        Test::UniprocessorFixedPriorityInterrupts,
        Test::BusyPeriod,
        Test::UniprocessorEdfDemand,
        Test::UniprocessorEdfResponse,
        Test::LevelBusyPeriod,
    ];

    /// The name in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Test::Trivial => "trivial",
            Test::Gfb => "gfb",
            Test::Bak => "bak",
            Test::Bcl => "bcl",
            Test::BclIterative => "bcl_iterative",
            Test::Rta => "rta",
            Test::RtaSlack => "rta_slack",
            Test::FfDbf => "ffdbf",
            Test::FfDbfGrid => "ffdbf_grid",
            Test::Bar => "bar",
            Test::BarDense => "bar_dense",
            Test::BarLe => "bar_le",
            Test::BarPrintedUnsound => "bar_printed_unsound",
            Test::UniprocessorEdf => "uniprocessor_edf",
            Test::BoundedTardiness => "srt",
            Test::GlobalFixedPriority => "global_fixed_priority",
            Test::UniprocessorFixedPriority => "uniprocessor_fixed_priority",
            Test::SuspensionAware => "suspension_aware",
            Test::UniprocessorEdfInterrupts => "uniprocessor_edf_interrupts",
            Test::UniprocessorFixedPriorityInterrupts => "uniprocessor_fixed_priority_interrupts",
            Test::BusyPeriod => "busy_period",
            Test::UniprocessorEdfDemand => "uniprocessor_edf_demand",
            Test::UniprocessorEdfResponse => "uniprocessor_edf_response",
            Test::LevelBusyPeriod => "level_busy_period",
        }
    }
}

impl Verdict {
    /// `outcome`, found by `test`.
    pub(crate) fn new(test: Test, outcome: Outcome) -> Self {
        Verdict { test, outcome }
    }

    /// Whether the test shows schedulability.
    pub fn is_schedulable(&self) -> bool {
        matches!(self.outcome, Outcome::Schedulable(_))
    }

    /// The response-time bounds in ticks, if the test found some.
    pub fn response_times(&self) -> Option<&[u64]> {
        match &self.outcome {
            Outcome::Schedulable(Evidence::ResponseTimes(bounds)) => Some(bounds),
            _ => None,
        }
    }
}

impl TestSet {
    /// No test.
    pub const NONE: TestSet = TestSet(0);

    /// Adds `test`.
    pub fn insert(&mut self, test: Test) {
        self.0 |= 1 << test as u32;
    }

    /// Whether `test` is in the set.
    pub const fn contains(self, test: Test) -> bool {
        self.0 >> test as u32 & 1 == 1
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The tests, in the order of [`Test::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Test> {
        Test::ALL.into_iter().filter(move |&test| self.contains(test))
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.test, self.outcome)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Schedulable(_) => f.write_str("schedulable"),
            Outcome::NotProven(reason) => write!(f, "not proven: {reason}"),
            Outcome::Infeasible(reason) => write!(f, "infeasible: {reason}"),
            Outcome::NotApplicable(precondition) => write!(f, "not applicable: {precondition}"),
            Outcome::ResourceLimit { what, limit } => {
                write!(f, "gave up after {limit} {what}; raise the limit or use a coarser tick")
            }
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Density { densest } => {
                write!(f, "the total density exceeds what the densest task {densest} leaves")
            }
            Reason::Load { task } => write!(f, "task {task}: too large a load beside it"),
            Reason::Interference { task, interference, available } => {
                write!(f, "task {task}: interference {interference} is not below {available} cpu ticks")
            }
            Reason::Interval { task, interval, demand, available } => write!(
                f,
                "task {task}: demand {demand} in an interval of {interval} ticks is not below {available} cpu ticks"
            ),
            Reason::ResponseTime { task, deadline } => {
                write!(f, "task {task}: no response-time bound within its deadline of {deadline} ticks")
            }
            Reason::Speed { interval } => {
                write!(f, "no speed satisfies the demand bound up to an interval of {interval} ticks")
            }
            Reason::NoHorizon => f.write_str("the condition holds wherever tested, but nothing bounds where to stop"),
            Reason::Rounds { rounds } => write!(f, "undecided after {rounds} rounds"),
        }
    }
}

impl fmt::Display for Infeasibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Infeasibility::Window { task, wcet, window } => {
                write!(f, "task {task}: wcet {wcet} exceeds the {window} ticks it has; lower the wcet")
            }
            Infeasibility::Utilization { cpus } => {
                write!(f, "the total utilization exceeds {cpus} cpus; lower it or add cpus")
            }
            Infeasibility::Demand { interval, demand } => {
                write!(f, "demand {demand} exceeds an interval of {interval} ticks on one cpu")
            }
            Infeasibility::ResponseTime { task, deadline } => {
                write!(f, "task {task}: its worst-case response time exceeds its deadline of {deadline} ticks")
            }
        }
    }
}

impl fmt::Display for Precondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Precondition::ConstrainedDeadlines => "it is proven for deadlines up to the period only",
            Precondition::ImplicitDeadlines => "it is proven for deadlines equal to the period only",
            Precondition::UtilizationBelowCpus => "it needs a utilization strictly below the number of cpus",
            Precondition::SeveralCpus => "it needs at least two cpus",
            Precondition::OneCpu => "it is for one cpu",
            Precondition::NoMoreTasksThanCpus => "it needs as many cpus as tasks or more",
            Precondition::NoSuspension => "it holds only for tasks that do not suspend themselves",
        })
    }
}
