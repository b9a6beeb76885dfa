//! Memory that CPUs and GPUs share: how its traffic slows GPU work down, and how CPUs are kept from it.
//!
//! Source: paper 004; what it leaves out, from `docs/reference/bandwidth-model.md`.

use crate::{Factor, Nanos};

/// The memory of a [`Platform`](crate::Platform).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// What the traffic of the CPUs does to GPU work.
    pub contention: Contention,
    /// What keeps the traffic of best-effort tasks below a budget.
    pub regulator: MemoryRegulator,
}

/// How many times as long GPU work of sensitivity 1 takes beside traffic of the CPUs: a curve through points, linear
/// between them; its last segment goes on. Without points it is 1 everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contention {
    /// By ascending traffic, from none at all.
    pub points: Vec<ContentionPoint>,
}

/// A point of a [`Contention`] curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentionPoint {
    /// Traffic of all CPUs together, in bytes a second.
    pub traffic: u64,
    /// How many times as long GPU work takes beside it, at least 1.
    pub factor: Factor,
}

/// The regulator of every CPU that executes best-effort tasks (paper 004, algorithm 2): while a bandwidth lock is held
/// they may cause so much traffic in a period, and are throttled for the rest of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRegulator {
    /// The period of budgets.
    pub period: Nanos,
    /// From the moment at which a budget is used up to the one at which the CPU stands still.
    pub latency: Nanos,
    /// What an interrupt of the regulator costs: one at each beginning of a regulated period, one when a budget is used
    /// up.
    pub interrupt: Nanos,
    /// How the periods of the CPUs lie to one another.
    pub phase: RegulatorPhase,
    /// When a lock that is taken or unlocked has its effect.
    pub heed: LockHeed,
}

/// How the regulation periods of the CPUs lie to one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum RegulatorPhase {
    /// They begin at the same time.
    #[default]
    Aligned,
    /// Spread evenly: that of CPU `c` of `m` is `c/m` of a period late.
    Staggered,
}

/// When the regulator of a CPU notices that a lock was taken or unlocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum LockHeed {
    /// When its next period begins, as paper 004 does: up to a period of what is protected is not.
    #[default]
    Period,
    /// At once. A CPU's budget is still that of a period: a lock that is taken again within one grants no other.
    AtOnce,
}

/// A bandwidth lock around the GPU operations of every job (paper 004, section IV-B).
///
/// A job takes it before an operation and unlocks it when it has waited for all that it has issued. Any number of jobs
/// may hold it; each of them has the ceiling priority, above all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BandwidthLock {
    /// What a call that takes or unlocks it costs the job.
    pub call: Nanos,
    /// The traffic that best-effort tasks may cause on each CPU while it is held, in bytes a second. Where several jobs
    /// hold it, the least of theirs counts.
    pub budget: u64,
}

/// The scheduler of best-effort tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BestEffortScheduler {
    /// How a thread is charged.
    pub rule: BestEffortRule,
    /// The tunable `sched_latency`; `None`: what Linux sets for so many CPUs.
    pub latency: Option<Nanos>,
    /// `sched_min_granularity`, likewise.
    pub min_granularity: Option<Nanos>,
    /// `sched_wakeup_granularity`, likewise.
    pub wakeup_granularity: Option<Nanos>,
}

/// How a best-effort thread is charged for the time in which it does not execute because its CPU is throttled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum BestEffortRule {
    /// Not at all: Linux's Completely Fair Scheduler.
    #[default]
    Cfs,
    /// Throttle Fair Scheduler: so many times that time (rho of paper 004, equation 2).
    Tfs {
        /// The punishment factor.
        punishment: Factor,
    },
}

/// One in the fixed-point numbers of [`Contention::factor_q32`].
pub const ONE_Q32: u64 = 1 << 32;

impl Contention {
    /// Whether no traffic slows anything down.
    pub fn is_flat(&self) -> bool {
        self.points.iter().all(|point| point.factor == Factor::ONE)
    }

    /// The factor beside `traffic` bytes a second, in units of 2^-32, rounded up.
    ///
    /// It is below 2^42 as long as a factor is at most 1,000 and `traffic` within the curve, which validation demands of the
    /// former; beyond the last point it grows, up to what can be held.
    pub fn factor_q32(&self, traffic: u64) -> u64 {
        let after = self.points.partition_point(|point| point.traffic <= traffic);
        // The segment that contains it, or the last, which goes on.
        let right = after.min(self.points.len().saturating_sub(1));
        let (Some(left), Some(right)) =
            (right.checked_sub(1).and_then(|at| self.points.get(at)), self.points.get(right))
        else {
            return ONE_Q32;
        };
        let rise = u128::from(right.factor.0.saturating_sub(left.factor.0));
        let (run, along) = (u128::from(right.traffic - left.traffic), u128::from(traffic - left.traffic));
        // A rise below 2^30 (a factor of 1,000 in millionths) times 2^64: below 2^94, and with 32 more bits below 2^126.
        let risen = ((rise * along) << 32).div_ceil(run);
        let factor = (u128::from(left.factor.0) << 32) + risen;
        u64::try_from(factor.div_ceil(u128::from(Factor::ONE.0))).unwrap_or(u64::MAX)
    }

    /// How many times as long work of `sensitivity`, from 0 to 1, takes beside `traffic`, in units of 2^-32, rounded up:
    /// 1 + s (phi(X) - 1), the reciprocal of formula 7 of `docs/reference/bandwidth-model.md`.
    pub fn slowdown_q32(&self, sensitivity: Factor, traffic: u64) -> u64 {
        let excess = u128::from(self.factor_q32(traffic).saturating_sub(ONE_Q32));
        let part = (excess * u128::from(sensitivity.0)).div_ceil(u128::from(Factor::ONE.0));
        u64::try_from(part).unwrap_or(u64::MAX).saturating_add(ONE_Q32)
    }
}

impl Default for MemoryRegulator {
    /// What paper 004 uses: 1 ms, at no cost; the periods of all CPUs begin together.
    fn default() -> Self {
        MemoryRegulator {
            period: Nanos::from_millis(1),
            latency: Nanos::ZERO,
            interrupt: Nanos::ZERO,
            phase: RegulatorPhase::Aligned,
            heed: LockHeed::Period,
        }
    }
}

impl MemoryRegulator {
    /// When the periods of CPU `cpu` of `cpus` begin: this long after a multiple of the period.
    pub fn offset(&self, cpu: usize, cpus: usize) -> Nanos {
        match self.phase {
            RegulatorPhase::Aligned => Nanos::ZERO,
            RegulatorPhase::Staggered => Nanos((u128::from(self.period.0) * cpu as u128 / cpus.max(1) as u128) as u64),
        }
    }
}

impl BestEffortRule {
    /// The punishment factor; none under CFS.
    pub fn punishment(self) -> Factor {
        match self {
            BestEffortRule::Cfs => Factor::ZERO,
            BestEffortRule::Tfs { punishment } => punishment,
        }
    }

    /// The name in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            BestEffortRule::Cfs => "CFS",
            BestEffortRule::Tfs { .. } => "TFS",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(u64, u64)]) -> Contention {
        let point = |&(traffic, factor)| ContentionPoint { traffic, factor: Factor(factor) };
        Contention { points: points.iter().map(point).collect() }
    }

    fn factor(curve: &Contention, traffic: u64) -> f64 {
        curve.factor_q32(traffic) as f64 / ONE_Q32 as f64
    }

    #[test]
    fn the_curve_is_linear_between_points_and_its_last_segment_goes_on() {
        let curve = curve(&[(0, 1_000_000), (100, 2_000_000), (300, 2_500_000)]);
        let factors = [0, 50, 100, 200, 300, 500].map(|traffic| factor(&curve, traffic));
        assert_eq!(factors, [1.0, 1.5, 2.0, 2.25, 2.5, 3.0]);
    }

    #[test]
    fn without_points_nothing_slows_down() {
        assert_eq!(Contention::default().factor_q32(u64::MAX), ONE_Q32);
        assert!(Contention::default().is_flat());
    }

    #[test]
    fn the_factor_is_rounded_up_and_extremes_are_held() {
        let thirds = curve(&[(0, 1_000_000), (3, 2_000_000)]);
        assert_eq!(thirds.factor_q32(1), (ONE_Q32 * 4).div_ceil(3));
        let steep = curve(&[(0, 1_000_000), (1, 1_000_000_000)]);
        assert_eq!(steep.factor_q32(u64::MAX), u64::MAX);
        assert!(steep.slowdown_q32(Factor::ONE, 1) == 1_000 * ONE_Q32);
    }

    #[test]
    fn sensitivity_scales_the_excess() {
        let curve = curve(&[(0, 1_000_000), (900, 3_300_000)]);
        assert_eq!(curve.slowdown_q32(Factor::ZERO, 900), ONE_Q32);
        let half = curve.slowdown_q32(Factor(500_000), 900) as f64 / ONE_Q32 as f64;
        assert!((half - 2.15).abs() < 1e-8, "{half}");
    }

    #[test]
    fn staggered_periods_are_spread_evenly() {
        let staggered = MemoryRegulator { phase: RegulatorPhase::Staggered, ..MemoryRegulator::default() };
        let offsets = [0, 1, 2, 3].map(|cpu| staggered.offset(cpu, 4));
        assert_eq!(offsets, [0, 250, 500, 750].map(Nanos::from_micros));
    }
}
