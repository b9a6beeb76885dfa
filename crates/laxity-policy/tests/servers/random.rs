//! What servers guarantee whatever the load and whatever else has the CPU.

use laxity_model::rng::SplitMix64;
use laxity_policy::server::Kind;
use proptest::prelude::*;

use crate::driver::{Given, Run, run, server};

const HORIZON: u64 = 300;

/// Random bursts of work, and a CPU that is there for random stretches.
fn random_run(seed: u64, budget: u64, period: u64, kind: Kind) -> Run {
    let mut rng = SplitMix64::new(seed);
    let (idleness, starvation) = (rng.between(1, 2 * period), rng.between(1, 3));
    let mut cpu = (false, 0);
    let mut until = 0;
    let mut arrivals = rng.clone();
    let work = move |_| if arrivals.below(idleness) == 0 { arrivals.between(1, 2 * budget) } else { 0 };
    let has_cpu = move |now| {
        if now >= until {
            cpu = (rng.below(starvation) == 0, rng.between(1, 2 * period));
            until = now + cpu.1;
        }
        cpu.0
    };
    run(server(budget, period, kind), HORIZON, work, has_cpu)
}

/// Checks `served <= bound(t)` for every window of every length t.
fn assert_supply(run: &Run, bound: impl Fn(u64) -> u64) {
    let mut sums = vec![0u64];
    for served in run.served() {
        sums.push(sums.last().expect("one there") + u64::from(served));
    }
    for start in 0..sums.len() {
        for end in start..sums.len() {
            let (served, bound) = (sums[end] - sums[start], bound((end - start) as u64));
            assert!(served <= bound, "{served} served in [{start}, {end}), not {bound}: {}", run.drawn);
        }
    }
}

fn shapes() -> impl Strategy<Value = (u64, u64)> {
    (2..25_u64).prop_flat_map(|period| (1..=period, Just(period)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// `min(t, 2Q + (t - 2Q) * Q / P)`; served time is whole, so the bound may be rounded down.
    #[test]
    fn a_hard_server_never_exceeds_its_bandwidth_by_more_than_a_budget_late_and_one_at_once(
        seed in any::<u64>(), (budget, period) in shapes(),
    ) {
        let linear = |t: u64| if t <= 2 * budget { t } else { 2 * budget + (t - 2 * budget) * budget / period };
        assert_supply(&random_run(seed, budget, period, Kind::HardCbs), linear);
    }

    /// `min(t, Q * (1 + ceil(t / P)))`.
    #[test]
    fn a_sporadic_server_serves_each_unit_once_late_and_then_once_a_period(
        seed in any::<u64>(), (budget, period) in shapes(), replenishments in 1..6_u16,
    ) {
        let run = random_run(seed, budget, period, Kind::Sporadic { replenishments });
        assert_supply(&run, |t| t.min(budget * (1 + t.div_ceil(period))));
    }

    /// The isolation theorem of Abeni & Buttazzo: what is given from t1 on and due by t2 is at most (t2 - t1) * Q / P.
    /// A budget given late, in a system that misses deadlines, counts from a period before its deadline.
    #[test]
    fn the_demand_of_a_server_is_that_of_its_bandwidth(
        seed in any::<u64>(), (budget, period) in shapes(), is_hard in any::<bool>(),
    ) {
        let kind = if is_hard { Kind::HardCbs } else { Kind::SoftCbs };
        let run = random_run(seed, budget, period, kind);
        prop_assert!(run.given.iter().all(|given| given.used <= given.budget));
        let from = |given: &Given| given.at.min(given.deadline - period);
        let windows = run.given.iter().flat_map(|first| run.given.iter().map(move |last| (from(first), last.deadline)));
        for (start, end) in windows {
            let within = run.given.iter().filter(|it| from(it) >= start && it.deadline <= end);
            let demand: u64 = within.map(|it| it.used).sum();
            prop_assert!(demand * period <= end.saturating_sub(start) * budget, "{demand} in [{start}, {end}]");
        }
    }

    /// A server that always has work and the CPU gets all of its bandwidth.
    #[test]
    fn a_busy_server_gets_its_budget_in_every_period((budget, period) in shapes()) {
        for kind in [Kind::HardCbs, Kind::Sporadic { replenishments: 1 }] {
            let run = run(server(budget, period, kind), 6 * period, |now| if now == 0 { 1_000 } else { 0 }, |_| true);
            let served = run.served();
            for window in served.chunks(period as usize) {
                prop_assert_eq!(window.iter().filter(|it| **it).count() as u64, budget);
            }
        }
    }
}
