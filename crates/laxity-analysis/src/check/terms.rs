//! What makes up an inflated execution time.

use laxity_model::Nanos;

/// A term of an inflated execution time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Term {
    /// The job's own worst-case execution time.
    Execution,
    /// Its self-suspensions, which count as execution.
    Suspension,
    /// Its GPU operations, which count as execution.
    Gpu,
    /// Release jitter, which counts as execution.
    Jitter,
    /// The longest non-preemptive section of others, once per release and resumption.
    Blocking,
    /// Waiting for resources.
    LockWaiting,
    /// Waiting for a GPU that others hold.
    GpuWaiting,
    /// Waiting for engines of a GPU that serve others' operations.
    EngineWaiting,
    /// Scheduling decisions at its start and end.
    Scheduling,
    /// Re-arming timers.
    TimerRearming,
    /// Context switches at its start and end.
    ContextSwitches,
    /// Scheduler code that cannot be interrupted: it may hold off the release's interrupt, and then the dispatch.
    HoldOff,
    /// Inter-processor interrupts.
    IpiLatency,
    /// The interrupts that release and resume it.
    OwnReleases,
    /// Waiting for other interrupts on a dedicated CPU.
    Backlog,
    /// Interrupts that release and resume others.
    OtherReleases,
    /// Top halves of GPU interrupts, and handing on their bottom halves.
    TopHalves,
    /// Bottom halves of GPU interrupts.
    BottomHalves,
    /// What the scheduler does for bottom halves that are not its own.
    HalfScheduling,
    /// Servers of tasks that are not in the set to test.
    Servers,
    /// Tick interrupts.
    Ticks,
    /// Cache-related delay.
    Cache,
    /// Jobs of graph nodes that run before they arrive, at the fixed priority of all their jobs.
    EarlyJobs,
    /// Being switched out and in again by quantum-driven scheduling.
    Displacement,
    /// Rounding up to whole quanta, and what a proportional accounting cannot attribute.
    Rounding,
}

/// The terms of one task, in nanoseconds each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Terms([u64; Term::ALL.len()]);

impl Term {
    /// Every term, in the order in which they are shown.
    pub const ALL: [Term; 25] = [
        Term::Execution,
        Term::Suspension,
        Term::Gpu,
        Term::Jitter,
        Term::Blocking,
        Term::LockWaiting,
        Term::GpuWaiting,
        Term::EngineWaiting,
        Term::Scheduling,
        Term::TimerRearming,
        Term::ContextSwitches,
        Term::HoldOff,
        Term::IpiLatency,
        Term::OwnReleases,
        Term::Backlog,
        Term::OtherReleases,
        Term::TopHalves,
        Term::BottomHalves,
        Term::HalfScheduling,
        Term::Servers,
        Term::Ticks,
        Term::Cache,
        Term::EarlyJobs,
        Term::Displacement,
        Term::Rounding,
    ];

    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Term::Execution => "execution",
            Term::Suspension => "suspension",
            Term::Gpu => "gpu",
            Term::Jitter => "jitter",
            Term::Blocking => "blocking",
            Term::LockWaiting => "lock_waiting",
            Term::GpuWaiting => "gpu_waiting",
            Term::EngineWaiting => "engine_waiting",
            Term::Scheduling => "scheduling",
            Term::TimerRearming => "timer_rearming",
            Term::ContextSwitches => "context_switches",
            Term::HoldOff => "hold_off",
            Term::IpiLatency => "ipi_latency",
            Term::OwnReleases => "own_releases",
            Term::Backlog => "backlog",
            Term::OtherReleases => "other_releases",
            Term::TopHalves => "top_halves",
            Term::BottomHalves => "bottom_halves",
            Term::HalfScheduling => "half_scheduling",
            Term::Servers => "servers",
            Term::Ticks => "ticks",
            Term::Cache => "cache",
            Term::EarlyJobs => "early_jobs",
            Term::Displacement => "displacement",
            Term::Rounding => "rounding",
        }
    }
}

impl Terms {
    /// One term.
    pub fn get(&self, term: Term) -> Nanos {
        Nanos(self.0[term as usize])
    }

    /// Every term with its value, zeros included.
    pub fn iter(&self) -> impl Iterator<Item = (Term, Nanos)> + '_ {
        Term::ALL.into_iter().map(|term| (term, self.get(term)))
    }

    /// Adds to a term; what cannot be written saturates, and its task is then refused as too long.
    pub(super) fn add(&mut self, term: Term, ticks: u64) {
        let value = &mut self.0[term as usize];
        *value = value.saturating_add(ticks);
    }

    /// The same terms without `term`.
    pub(super) fn without(mut self, term: Term) -> Self {
        self.0[term as usize] = 0;
        self
    }

    /// Those of a job of so many budgets, each of which has these, that executes for `wcet` in all.
    pub(super) fn of_budgets(self, budgets: u64, wcet: u64) -> Self {
        let mut terms = Terms(self.0.map(|term| term.saturating_mul(budgets)));
        terms.0[Term::Execution as usize] = wcet;
        terms
    }

    /// The sum, saturating.
    pub(super) fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, &term| sum.saturating_add(term))
    }
}
