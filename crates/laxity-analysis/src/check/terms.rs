//! What makes up an inflated execution time.

use laxity_model::Nanos;

/// A term of an inflated execution time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Term {
    /// The job's own worst-case execution time.
    Execution,
    /// Its self-suspensions, which count as execution.
    Suspension,
    /// Release jitter, which counts as execution.
    Jitter,
    /// The longest non-preemptive section of others, once per release and resumption.
    Blocking,
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
    /// Tick interrupts.
    Ticks,
    /// Cache-related delay.
    Cache,
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
    pub const ALL: [Term; 16] = [
        Term::Execution,
        Term::Suspension,
        Term::Jitter,
        Term::Blocking,
        Term::Scheduling,
        Term::TimerRearming,
        Term::ContextSwitches,
        Term::HoldOff,
        Term::IpiLatency,
        Term::OwnReleases,
        Term::Backlog,
        Term::OtherReleases,
        Term::Ticks,
        Term::Cache,
        Term::Displacement,
        Term::Rounding,
    ];

    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Term::Execution => "execution",
            Term::Suspension => "suspension",
            Term::Jitter => "jitter",
            Term::Blocking => "blocking",
            Term::Scheduling => "scheduling",
            Term::TimerRearming => "timer_rearming",
            Term::ContextSwitches => "context_switches",
            Term::HoldOff => "hold_off",
            Term::IpiLatency => "ipi_latency",
            Term::OwnReleases => "own_releases",
            Term::Backlog => "backlog",
            Term::OtherReleases => "other_releases",
            Term::Ticks => "ticks",
            Term::Cache => "cache",
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

    /// The sum, saturating.
    pub(super) fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, &term| sum.saturating_add(term))
    }
}
