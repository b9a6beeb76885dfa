//! What scheduling costs: the six sources of paper 002 (section 2) and cache-related delay, constant or as a
//! function of the number of tasks.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// A source of overhead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OverheadKind {
    /// Interrupt that releases jobs.
    Release,
    /// Selecting the next process and re-queueing the previous one.
    Scheduling,
    /// Switching stack and registers.
    ContextSwitch,
    /// From sending an inter-processor interrupt to its receipt; no CPU is busy during it.
    IpiLatency,
    /// Periodic timer interrupt.
    Tick,
    /// Programming the timer of a future release, after the context switch that follows a completion.
    TimerRearming,
    /// Lost cache affinity of a preempted job that resumes on the same CPU.
    CachePreemption,
    /// Lost cache affinity of a preempted job that resumes on another CPU.
    CacheMigration,
    /// The part of a GPU interrupt that runs at once (paper 000, appendix B).
    TopHalf,
    /// The part of a GPU interrupt that is deferred.
    BottomHalf,
    /// Queueing a bottom half to a thread of klmirqd.
    ThreadRelease,
    /// Queueing a bottom half under process-aware interrupts.
    PaiEnqueue,
    /// Looking for a queued bottom half at a scheduling decision under process-aware interrupts.
    PaiCheck,
}

/// An overhead profile: one table per source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverheadProfile {
    /// Where the numbers come from: a published profile's name, or the file's own.
    pub name: String,
    /// A table per source, indexed by `OverheadKind as usize`.
    pub tables: [OverheadTable; OverheadKind::ALL.len()],
}

/// An overhead as a function of the number of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverheadTable {
    /// The same for any number of tasks.
    Constant(Nanos),
    /// Measured points `(tasks, picoseconds)`, tasks strictly increasing, at least one point. Published values have
    /// up to six decimals of a microsecond; picoseconds keep them exact.
    Points(Vec<(u32, u64)>),
}

/// The overheads of one system, after interpolation at its number of tasks. Serialized in nanoseconds; the sources that
/// traces did not always have may be absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OverheadCosts {
    /// See [`OverheadKind::Release`].
    #[serde(rename = "release_ns")]
    pub release: Nanos,
    /// See [`OverheadKind::Scheduling`].
    #[serde(rename = "scheduling_ns")]
    pub scheduling: Nanos,
    /// See [`OverheadKind::ContextSwitch`].
    #[serde(rename = "context_switch_ns")]
    pub context_switch: Nanos,
    /// See [`OverheadKind::IpiLatency`].
    #[serde(rename = "ipi_latency_ns")]
    pub ipi_latency: Nanos,
    /// See [`OverheadKind::Tick`].
    #[serde(rename = "tick_ns")]
    pub tick: Nanos,
    /// See [`OverheadKind::TimerRearming`].
    #[serde(rename = "timer_rearming_ns")]
    pub timer_rearming: Nanos,
    /// See [`OverheadKind::CachePreemption`].
    #[serde(rename = "cache_preemption_ns")]
    pub cache_preemption: Nanos,
    /// See [`OverheadKind::CacheMigration`].
    #[serde(rename = "cache_migration_ns")]
    pub cache_migration: Nanos,
    /// See [`OverheadKind::TopHalf`].
    #[serde(rename = "top_half_ns", default)]
    pub top_half: Nanos,
    /// See [`OverheadKind::BottomHalf`].
    #[serde(rename = "bottom_half_ns", default)]
    pub bottom_half: Nanos,
    /// See [`OverheadKind::ThreadRelease`].
    #[serde(rename = "thread_release_ns", default)]
    pub thread_release: Nanos,
    /// See [`OverheadKind::PaiEnqueue`].
    #[serde(rename = "pai_enqueue_ns", default)]
    pub pai_enqueue: Nanos,
    /// See [`OverheadKind::PaiCheck`].
    #[serde(rename = "pai_check_ns", default)]
    pub pai_check: Nanos,
}

impl OverheadKind {
    /// Every source, in the order of [`OverheadProfile::tables`].
    pub const ALL: [OverheadKind; 13] = [
        OverheadKind::Release,
        OverheadKind::Scheduling,
        OverheadKind::ContextSwitch,
        OverheadKind::IpiLatency,
        OverheadKind::Tick,
        OverheadKind::TimerRearming,
        OverheadKind::CachePreemption,
        OverheadKind::CacheMigration,
        OverheadKind::TopHalf,
        OverheadKind::BottomHalf,
        OverheadKind::ThreadRelease,
        OverheadKind::PaiEnqueue,
        OverheadKind::PaiCheck,
    ];

    /// The name in files and traces.
    pub const fn name(self) -> &'static str {
        match self {
            OverheadKind::Release => "release",
            OverheadKind::Scheduling => "scheduling",
            OverheadKind::ContextSwitch => "context_switch",
            OverheadKind::IpiLatency => "ipi_latency",
            OverheadKind::Tick => "tick",
            OverheadKind::TimerRearming => "timer_rearming",
            OverheadKind::CachePreemption => "cache_preemption",
            OverheadKind::CacheMigration => "cache_migration",
            OverheadKind::TopHalf => "top_half",
            OverheadKind::BottomHalf => "bottom_half",
            OverheadKind::ThreadRelease => "thread_release",
            OverheadKind::PaiEnqueue => "pai_enqueue",
            OverheadKind::PaiCheck => "pai_check",
        }
    }
}

impl OverheadProfile {
    /// A machine without overheads.
    pub fn zero() -> Self {
        OverheadProfile {
            name: "none".to_owned(),
            tables: std::array::from_fn(|_| OverheadTable::Constant(Nanos::ZERO)),
        }
    }

    /// A profile that costs the same for any number of tasks.
    pub fn constant(name: impl Into<String>, costs: OverheadCosts) -> Self {
        OverheadProfile {
            name: name.into(),
            tables: OverheadKind::ALL.map(|kind| OverheadTable::Constant(costs.of(kind))),
        }
    }

    /// The costs for `tasks` tasks.
    pub fn at(&self, tasks: usize) -> OverheadCosts {
        let cost = |kind: OverheadKind| self.tables[kind as usize].at(tasks);
        OverheadCosts {
            release: cost(OverheadKind::Release),
            scheduling: cost(OverheadKind::Scheduling),
            context_switch: cost(OverheadKind::ContextSwitch),
            ipi_latency: cost(OverheadKind::IpiLatency),
            tick: cost(OverheadKind::Tick),
            timer_rearming: cost(OverheadKind::TimerRearming),
            cache_preemption: cost(OverheadKind::CachePreemption),
            cache_migration: cost(OverheadKind::CacheMigration),
            top_half: cost(OverheadKind::TopHalf),
            bottom_half: cost(OverheadKind::BottomHalf),
            thread_release: cost(OverheadKind::ThreadRelease),
            pai_enqueue: cost(OverheadKind::PaiEnqueue),
            pai_check: cost(OverheadKind::PaiCheck),
        }
    }
}

impl OverheadTable {
    /// Monotone piece-wise linear interpolation at `tasks`, rounded up to the nanosecond (paper 002, section 4.1).
    ///
    /// Each measured value is first raised to the largest at fewer tasks. Below the first point its value holds
    /// (extrapolating there would fall to zero, which is unsafe); above the last the last segment continues.
    pub fn at(&self, tasks: usize) -> Nanos {
        match self {
            OverheadTable::Constant(cost) => *cost,
            OverheadTable::Points(points) => interpolate(points, tasks as u64),
        }
    }
}

fn interpolate(points: &[(u32, u64)], tasks: u64) -> Nanos {
    let (first, _) = points.split_first().expect("validation refuses an empty table");
    let up = |picos: u128| Nanos(picos.div_ceil(1_000) as u64);
    if tasks <= u64::from(first.0) || points.len() == 1 {
        return up(u128::from(first.1));
    }
    // The segment that contains `tasks`, or the last one; `low` and `high` carry the running maximum.
    let mut low = (u64::from(first.0), first.1);
    let mut high = low;
    for &(n, picos) in &points[1..] {
        low = high;
        high = (u64::from(n), picos.max(low.1));
        if tasks <= high.0 {
            break;
        }
    }
    // low + (tasks - low_n) * rise / run with one rounding: the numerator is exact in 128 bits.
    let run = u128::from(high.0 - low.0);
    let rise = u128::from(high.1 - low.1);
    let numerator = u128::from(low.1) * run + u128::from(tasks - low.0) * rise;
    Nanos(numerator.div_ceil(run * 1_000) as u64)
}

impl OverheadCosts {
    /// The cost of one source.
    pub const fn of(&self, kind: OverheadKind) -> Nanos {
        match kind {
            OverheadKind::Release => self.release,
            OverheadKind::Scheduling => self.scheduling,
            OverheadKind::ContextSwitch => self.context_switch,
            OverheadKind::IpiLatency => self.ipi_latency,
            OverheadKind::Tick => self.tick,
            OverheadKind::TimerRearming => self.timer_rearming,
            OverheadKind::CachePreemption => self.cache_preemption,
            OverheadKind::CacheMigration => self.cache_migration,
            OverheadKind::TopHalf => self.top_half,
            OverheadKind::BottomHalf => self.bottom_half,
            OverheadKind::ThreadRelease => self.thread_release,
            OverheadKind::PaiEnqueue => self.pai_enqueue,
            OverheadKind::PaiCheck => self.pai_check,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpolation_is_monotone_exact_and_rounded_up() {
        let table = OverheadTable::Points(vec![(50, 46_000_001), (100, 40_000_000), (150, 86_000_001)]);
        assert_eq!(table.at(1), Nanos(46_001), "below the first point its value holds");
        assert_eq!(table.at(100), Nanos(46_001), "a dip is raised to the largest value before it");
        assert_eq!(table.at(125), Nanos(66_001), "half way between 46.000001 and 86.000001 us");
        assert_eq!(table.at(200), Nanos(126_001), "the last segment continues");
        assert_eq!(OverheadTable::Points(vec![(50, 1)]).at(90), Nanos(1));
    }
}
