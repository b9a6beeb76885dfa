//! How long protected GPU work takes beside the memory traffic of regulated CPUs: formula 9 of
//! `docs/reference/bandwidth-model.md`.
//!
//! Work of length G progresses, beside traffic X, at the rate 1/(1 + s (phi(X) - 1)) = 1 - loss(X) (formula 7). In an
//! interval of length R in which the bandwidth lock is held
//!
//! ```text
//!   R = G + min(R, T) loss(X) + n(R) sum_c share_c        share_c >= what the traffic of CPU c loses in a period
//!       |   |                   |
//!       |   |                   periods that the interval touches: ceil(R/T), or one more where it may begin amid one
//!       |   up to a period is not regulated yet, where the lock is seen when a period begins
//!       the work itself
//! ```
//!
//! The losses of CPUs may be added because loss is concave with loss(0) = 0: loss(x + y) <= loss(x) + loss(y). A CPU that
//! executes at demand d until it has used its budget Q loses loss(d)/d a byte, so that the task with the greatest ratio is
//! its worst, and in the latency of the regulator the one with the greatest loss. Never more than G (1 + s (phi(X) - 1)),
//! which holds unprotected. Losses are in 2^-32, rounded up.

use laxity_model::{Contention, Factor, ONE_Q32};

/// What may execute on a CPU beside the protected work: demands of tasks in bytes a second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aggressor {
    /// Of best-effort tasks, which have a budget.
    pub regulated: Vec<u64>,
    /// Of real-time tasks, which have none.
    pub unregulated: Vec<u64>,
}

/// How CPUs are regulated. Times in ticks (nanoseconds).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Regulation {
    /// The period of budgets.
    pub period: u64,
    /// The budget of a CPU, in bytes a second on average over a period.
    pub budget: u64,
    /// From the moment at which a budget is used up to standstill.
    pub latency: u64,
    /// Whether a lock is seen only when a period begins.
    pub waits_for_period: bool,
}

/// Where in the time in which the lock is held the work begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begins {
    /// With it.
    First,
    /// At any time in it.
    Later,
}

/// Whether losses may be added: slopes never rise.
pub fn is_concave(contention: &Contention) -> bool {
    contention.points.windows(3).all(|three| {
        let [left, middle, right] = three else { return true };
        let slope = |from: &laxity_model::ContentionPoint, to: &laxity_model::ContentionPoint| {
            (u128::from(to.factor.0 - from.factor.0), u128::from(to.traffic - from.traffic))
        };
        let ((rise, run), (next_rise, next_run)) = (slope(left, middle), slope(middle, right));
        // Factors of at most 10^9 millionths times 2^64.
        next_rise * run <= rise * next_run
    })
}

/// Bound on the time that work of length `work` and sensitivity `memory` takes, with no traffic withheld: every CPU
/// causes what its greediest task does.
pub fn unprotected(work: u64, memory: Factor, contention: &Contention, aggressors: &[Aggressor]) -> u64 {
    let slowdown = u128::from(contention.slowdown_q32(memory, greatest(aggressors)));
    let time = (u128::from(work) * slowdown).div_ceil(u128::from(ONE_Q32));
    // What a nanosecond does is rounded down, by less than 2^-32 of it.
    let rounding = (time >> 32) + u128::from(slowdown > u128::from(ONE_Q32));
    u64::try_from(time + rounding).unwrap_or(u64::MAX)
}

/// The same while the bandwidth lock is held.
pub fn protected(
    work: u64,
    memory: Factor,
    contention: &Contention,
    aggressors: &[Aggressor],
    regulation: &Regulation,
    begins: Begins,
) -> u64 {
    let most = unprotected(work, memory, contention, aggressors);
    if !is_concave(contention) || work == 0 {
        return most;
    }
    let loss = |traffic| loss(contention, memory, traffic);
    let share = aggressors.iter().map(|cpu| share(cpu, regulation, loss)).fold(0u128, u128::saturating_add);
    let all = if regulation.waits_for_period { loss(greatest(aggressors)) } else { 0 };
    let more = u64::from(begins == Begins::Later || !regulation.waits_for_period);
    let mut bound = work;
    loop {
        let periods = u128::from(bound.div_ceil(regulation.period) + more);
        let lost = u128::from(bound.min(regulation.period)) * all + periods.saturating_mul(share);
        // Rounded losses add up to less than 2^-32 of each nanosecond for each CPU, and one.
        let rounding = ((u128::from(bound) * (aggressors.len() as u128 + 2)) >> 32) + 1;
        let next = u128::from(work) + lost.div_ceil(u128::from(ONE_Q32)) + rounding;
        let next = u64::try_from(next).unwrap_or(u64::MAX).min(most);
        if next <= bound {
            return bound.min(most);
        }
        bound = next;
    }
}

/// What the greediest tasks of all CPUs cause together.
fn greatest(aggressors: &[Aggressor]) -> u64 {
    let of = |cpu: &Aggressor| cpu.regulated.iter().chain(&cpu.unregulated).copied().max().unwrap_or(0);
    aggressors.iter().map(of).fold(0, u64::saturating_add)
}

/// 1 - 1/(1 + s (phi(X) - 1)), rounded up.
fn loss(contention: &Contention, memory: Factor, traffic: u64) -> u128 {
    let slowdown = u128::from(contention.slowdown_q32(memory, traffic));
    let one = u128::from(ONE_Q32);
    one - (one << 32) / slowdown
}

/// What the traffic of a CPU loses in a period at most, in 2^-32 ticks.
fn share(cpu: &Aggressor, regulation: &Regulation, loss: impl Fn(u64) -> u128) -> u128 {
    let period = u128::from(regulation.period);
    let greatest = |demands: &[u64]| demands.iter().map(|&demand| loss(demand)).max().unwrap_or(0);
    let (regulated, unregulated) = (greatest(&cpu.regulated), greatest(&cpu.unregulated));
    // A period of a demand d uses its budget up in Q T / d.
    let budget = u128::from(regulation.budget) * period;
    let until_used = |demand: u64| budget.div_ceil(u128::from(demand)).min(period);
    let demands = cpu.regulated.iter().filter(|&&demand| demand > 0);
    let within = demands.map(|&demand| until_used(demand).saturating_mul(loss(demand))).max().unwrap_or(0);
    // The nanosecond in which it is used up, and the latency.
    let beyond = u128::from(regulation.latency + 1).saturating_mul(regulated);
    within.saturating_add(beyond).min(period * regulated).max(period * unregulated)
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity_model::ContentionPoint;

    const MS: u64 = 1_000_000;
    const MB: u64 = 1_000_000;

    fn curve(points: &[(u64, u64)]) -> Contention {
        let point = |&(traffic, factor)| ContentionPoint { traffic, factor: Factor(factor) };
        Contention { points: points.iter().map(point).collect() }
    }

    fn hogs(count: usize) -> Vec<Aggressor> {
        vec![Aggressor { regulated: vec![300 * MB], unregulated: Vec::new() }; count]
    }

    fn regulation(budget: u64) -> Regulation {
        Regulation { period: MS, budget, latency: 0, waits_for_period: true }
    }

    /// 3.3 times as long beside three hogs of 300 MB/s; 100 ms of work under 100 MB/s: a period at loss(900) = 2.3/3.3,
    /// then of each of 178 periods a third at loss(300), three times: R = 100 + 0.697 + 178 * 0.434 = 177.9 ms.
    #[test]
    fn a_budget_bounds_the_time_of_protected_work() {
        let curve = curve(&[(0, 1_000_000), (900 * MB, 3_300_000)]);
        let bound = |budget| protected(100 * MS, Factor::ONE, &curve, &hogs(3), &regulation(budget), Begins::First);
        let unlimited = bound(u64::from(u32::MAX));
        assert!(
            (330 * MS..=330 * MS + 2).contains(&unlimited),
            "{unlimited} ns: a budget that is never used up protects nothing"
        );
        // loss(300) = 1 - 1/(1 + 2.3/3) = 0.43396; n periods of a third each of three CPUs: R = 100.697 + n 0.43396.
        let by_hand = (0..1_000u64).find(|&n| (100.697 + n as f64 * 0.43396) <= n as f64).expect("some n fits") as f64;
        let ms = bound(100 * MB) as f64 / 1e6;
        assert!((ms - (100.697 + by_hand * 0.43396)).abs() < 0.01, "{ms} ms, {by_hand} periods");
        assert!(bound(10 * MB) < bound(100 * MB));
    }

    #[test]
    fn work_that_is_not_sensitive_takes_its_time() {
        let curve = curve(&[(0, 1_000_000), (900 * MB, 3_300_000)]);
        assert_eq!(unprotected(MS, Factor::ZERO, &curve, &hogs(3)), MS);
        assert_eq!(protected(MS, Factor::ZERO, &curve, &hogs(3), &regulation(1), Begins::First), MS);
    }

    #[test]
    fn a_curve_whose_slope_rises_protects_nothing() {
        let convex = curve(&[(0, 1_000_000), (100 * MB, 1_100_000), (200 * MB, 3_000_000)]);
        assert!(!is_concave(&convex));
        let regulation = regulation(MB);
        let bound = protected(MS, Factor::ONE, &convex, &hogs(1), &regulation, Begins::First);
        assert_eq!(bound, unprotected(MS, Factor::ONE, &convex, &hogs(1)));
    }

    #[test]
    fn real_time_traffic_is_never_withheld() {
        let curve = curve(&[(0, 1_000_000), (300 * MB, 2_000_000)]);
        let cpu = [Aggressor { regulated: Vec::new(), unregulated: vec![300 * MB] }];
        let bound = protected(MS, Factor::ONE, &curve, &cpu, &regulation(1), Begins::First);
        assert_eq!(bound, unprotected(MS, Factor::ONE, &curve, &cpu));
    }
}
