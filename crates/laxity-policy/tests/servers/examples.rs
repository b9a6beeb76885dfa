//! Worked examples. `#` runs, `:` ready, `x` throttled, `.` idle.

use laxity_model::{Instant, Nanos};
use laxity_policy::server::{Action, Config, ConfigError, Kind};

use crate::driver::{Run, run, server};

const SPORADIC: Kind = Kind::Sporadic { replenishments: 4 };

/// The server alone on its CPU, with arrivals `(at, work)`.
fn alone(budget: u64, period: u64, kind: Kind, arrivals: &[(u64, u64)], horizon: u64) -> Run {
    preempted(budget, period, kind, arrivals, horizon, 0..0)
}

/// The same, but the CPU is not there during `gap`.
fn preempted(
    budget: u64,
    period: u64,
    kind: Kind,
    arrivals: &[(u64, u64)],
    horizon: u64,
    gap: std::ops::Range<u64>,
) -> Run {
    let work = |now| arrivals.iter().filter(|it| it.0 == now).map(|it| it.1).sum();
    run(server(budget, period, kind), horizon, work, |now| !gap.contains(&now))
}

/// What was given: `(at, budget, deadline)`.
fn given(run: &Run) -> Vec<(u64, u64, u64)> {
    run.given.iter().map(|it| (it.at, it.budget, it.deadline)).collect()
}

/// Abeni & Buttazzo, RTSS 1998: "when c = 0, it is recharged to Q and the deadline is postponed by P".
#[test]
fn a_soft_server_goes_on_with_a_later_deadline() {
    let run = alone(3, 8, Kind::SoftCbs, &[(0, 7)], 12);
    assert_eq!(run.drawn, "#######.....");
    assert_eq!(given(&run), [(0, 3, 8), (3, 3, 16), (6, 3, 24)]);
}

#[test]
fn a_hard_server_waits_for_its_deadline() {
    let run = alone(3, 8, Kind::HardCbs, &[(0, 7)], 20);
    assert_eq!(run.drawn, "###xxxxx###xxxxx#...");
    assert_eq!(given(&run), [(0, 3, 8), (8, 3, 16), (16, 3, 24)]);
}

/// The admission test `c >= (d - r) * Q / P`. After 1 of 3 units c = 2, d = 8: at 2, (8 - 2) * 3 / 8 = 2.25 > 2 and the
/// pair stays; at 3, (8 - 3) * 3 / 8 = 1.875 <= 2 and it is replaced.
#[test]
fn a_waking_server_keeps_what_does_not_exceed_its_bandwidth() {
    for kind in [Kind::SoftCbs, Kind::HardCbs] {
        assert_eq!(given(&alone(3, 8, kind, &[(0, 1), (2, 1)], 8)), [(0, 3, 8)]);
        assert_eq!(given(&alone(3, 8, kind, &[(0, 1), (3, 1)], 8)), [(0, 3, 8), (3, 3, 11)]);
    }
}

/// Equality: c = 2, d = 8, Q/P = 1/2, r = 4. (8 - 4) / 2 = 2 is not above c.
#[test]
fn a_budget_that_just_reaches_the_bandwidth_is_replaced() {
    assert_eq!(given(&alone(4, 8, Kind::HardCbs, &[(0, 2), (3, 1)], 8)), [(0, 4, 8)]);
    assert_eq!(given(&alone(4, 8, Kind::HardCbs, &[(0, 2), (4, 1)], 8)), [(0, 4, 8), (4, 4, 12)]);
}

/// Work that ends with the budget leaves nothing for work that arrives before the deadline.
#[test]
fn a_hard_server_that_used_its_budget_up_is_throttled_when_it_wakes() {
    let run = alone(2, 6, Kind::HardCbs, &[(0, 2), (3, 1)], 9);
    assert_eq!(run.drawn, "##.xxx#..");
    let soft = alone(2, 6, Kind::SoftCbs, &[(0, 2), (3, 1)], 9);
    assert_eq!((soft.drawn.as_str(), given(&soft)), ("##.#.....", vec![(0, 2, 6), (3, 2, 12)]));
}

/// Starved from 1 to 19, a hard server is not owed two budgets: the next one comes when the first is used, due P later.
#[test]
fn a_starved_hard_server_is_not_owed_what_it_missed() {
    let run = preempted(2, 6, Kind::HardCbs, &[(0, 9)], 30, 1..19);
    assert_eq!(run.drawn, "#::::::::::::::::::###xxxx##xx");
    assert_eq!(given(&run), [(0, 2, 6), (20, 2, 26), (26, 2, 32)]);
}

/// Sprunt, Sha & Lehoczky 1989: what is used comes back a period after it was activated; two activations, two
/// replenishments. Budget 4, period 10.
#[test]
fn a_sporadic_server_gets_back_what_it_used_a_period_after_each_activation() {
    let run = alone(4, 10, SPORADIC, &[(1, 2), (5, 2), (9, 4)], 22);
    //                      0         1         2
    assert_eq!(run.drawn, ".##..##..xx##xx##.....");
    assert_eq!(given(&run), [(1, 4, 11), (5, 2, 15), (11, 2, 21), (15, 2, 25)]);
}

/// The activation is the moment at which it becomes ready, though it is preempted until 5: the budget comes back at 10.
#[test]
fn a_preempted_sporadic_server_counts_from_its_activation() {
    let run = preempted(3, 10, SPORADIC, &[(0, 6)], 16, 0..5);
    assert_eq!(run.drawn, ":::::###xx###...");
}

/// Premature replenishment (Stanovich et al. 2010): two units come back at 12, two at 17. Were they one chunk, as in
/// POSIX, four would come back a period after the earlier activation.
#[test]
fn chunks_of_different_activations_stay_apart() {
    let run = alone(4, 10, SPORADIC, &[(2, 2), (7, 2), (10, 20)], 30);
    //                      0         1         2
    assert_eq!(run.drawn, "..##...##.xx##xxx##xxx##xxx##x");
}

/// One pending replenishment: what is used at 3 joins what is pending, at its own later time; nothing comes back at 10.
#[test]
fn beyond_the_limit_replenishments_join_the_latest() {
    let arrivals = [(0, 1), (3, 1), (6, 9)];
    let enough = alone(3, 10, SPORADIC, &arrivals, 18);
    assert_eq!(enough.drawn, "#..#..#xxx#xx#xx#x");
    let limited = alone(3, 10, Kind::Sporadic { replenishments: 1 }, &arrivals, 18);
    assert_eq!(limited.drawn, "#..#..#xxxxxxxxx##");
}

#[test]
fn a_sporadic_server_that_idles_keeps_its_budget() {
    let run = alone(3, 10, SPORADIC, &[(25, 5)], 40);
    assert_eq!(run.drawn, ".........................###xxxxxxx##...");
}

/// Two units late are, of Q = 2, a whole period of a CBS; three are a period and half the budget after it.
#[test]
fn an_overrun_is_paid_back() {
    let overrun = |kind, late: u64| {
        let mut server = server(2, 6, kind);
        let mut actions = Vec::new();
        server.wake(Instant(0), &mut actions);
        server.run(Instant(0));
        assert_eq!(server.next_timeout(), Some(Instant(2)));
        actions.clear();
        server.timeout(Instant(2 + late), &mut actions);
        if let [Action::Throttled { until }] = actions[..] {
            server.timeout(until, &mut actions);
        }
        server.assert_invariants();
        actions
    };
    let replenished = |budget, deadline| {
        let deadline = Instant(deadline);
        vec![Action::Replenished { budget: Nanos(budget), deadline }, Action::Ready { deadline }]
    };
    let throttled = |until, budget, deadline| {
        [vec![Action::Throttled { until: Instant(until) }], replenished(budget, deadline)].concat()
    };
    assert_eq!(overrun(Kind::HardCbs, 2), throttled(12, 2, 18));
    assert_eq!(overrun(Kind::HardCbs, 3), throttled(12, 1, 18));
    assert_eq!(overrun(Kind::SoftCbs, 2), replenished(2, 18));
    assert_eq!(overrun(Kind::SoftCbs, 3), replenished(1, 18));
    assert_eq!(overrun(SPORADIC, 2), throttled(8, 2, 14));
}

#[test]
fn configurations_that_make_no_sense_are_refused() {
    let config = |budget, period, kind| Config { budget: Nanos(budget), period: Nanos(period), kind }.build();
    for (budget, period) in [(0, 5), (6, 5)] {
        let error = config(budget, period, Kind::SoftCbs).expect_err("no such server");
        assert_eq!(error, ConfigError::Budget { budget: Nanos(budget), period: Nanos(period) });
    }
    assert!(config(5, 5, Kind::HardCbs).is_ok());
    let none = config(2, 5, Kind::Sporadic { replenishments: 0 }).expect_err("no such server");
    assert!(none.to_string().contains("0 pending replenishments"));
}
