//! The worked examples for global EDF with hard deadlines.

mod common;

use common::{array, boolean, fraction, fractions, integer, integers, set, task_set, vectors};
use laxity_analysis::gedf::{
    BarVariant, HardMode, SpeedGrid, bak, bak_any_deadline, bar, bar_horizon, bcl, bcl_iterative, ffdbf, ffdbf_grid,
    gfb, gfb_bound, hard, rta, rta_slack, run_test,
};
use laxity_analysis::{Evidence, Limits, Outcome, Reason, TaskSet, Test, Verdict};
use serde_json::Value;

fn verdicts(set: &TaskSet) -> Vec<(&'static str, Verdict)> {
    let limits = Limits::default();
    vec![
        ("gfb", gfb(set)),
        ("bak", bak(set)),
        ("bcl", bcl(set)),
        ("bcl_iter", bcl_iterative(set, &limits)),
        ("rta_slack", rta_slack(set, None, &limits)),
        ("rta_lfp", rta(set, &limits)),
        ("bar_int", bar(set, BarVariant::Integer, &limits)),
        ("bar_dense", bar(set, BarVariant::Dense, &limits)),
        ("bar_le_mX_cap_X1", bar(set, BarVariant::NonStrict, &limits)),
        ("bar_printed_UNSOUND", bar(set, BarVariant::PrintedUnsound, &limits)),
        ("ffdbf", ffdbf(set, &limits)),
    ]
}

fn check_case(case: &Value) {
    let set = task_set(case);
    let expect = &case["expect"];
    assert_eq!(set.utilization(), fraction(&expect["utilization"]), "utilization of {}", case["id"]);
    for (name, verdict) in verdicts(&set) {
        if let Some(accept) = expect.get(name).and_then(Value::as_bool) {
            assert_eq!(verdict.is_schedulable(), accept, "{name} of {}: {verdict}", case["id"]);
        }
        if !verdict.is_schedulable() {
            continue;
        }
        match (name, &verdict.outcome) {
            ("bcl_iter", Outcome::Schedulable(Evidence::Slacks(slacks))) => {
                if let Some(expected) = expect.get("bcl_iter_slack") {
                    assert_eq!(*slacks, integers(expected), "slacks of {}", case["id"]);
                }
            }
            ("rta_slack" | "rta_lfp", Outcome::Schedulable(Evidence::ResponseTimes(bounds))) => {
                if let Some(expected) = expect.get(format!("{name}_R")) {
                    assert_eq!(*bounds, integers(expected), "{name} of {}", case["id"]);
                }
            }
            ("ffdbf", Outcome::Schedulable(Evidence::Speed(speed))) => {
                assert_eq!(*speed, fraction(&expect["ffdbf_sigma"]), "speed of {}", case["id"]);
            }
            _ => {}
        }
    }
}

#[test]
fn the_worked_sets_get_the_expected_verdicts_and_evidence() {
    let vectors = vectors();
    let cases = array(&vectors["gedf_hrt"]["cases"]);
    assert_eq!(cases.len(), 31);
    for case in cases {
        check_case(case);
        let (set, expect) = (task_set(case), &case["expect"]);
        assert_eq!(set.density(), fraction(&expect["gfb_sum"]), "{}", case["id"]);
        assert_eq!(gfb_bound(&set), fraction(&expect["gfb_bound"]), "{}", case["id"]);
        for (name, variant) in [("bar_amax_int", BarVariant::Integer), ("bar_amax_printed", BarVariant::NonStrict)] {
            match (bar_horizon(&set, variant), &expect[name]) {
                (None, Value::Null) => {}
                (Some(horizon), expected) => assert_eq!(horizon, fractions(expected), "{name} of {}", case["id"]),
                (None, expected) => panic!("no horizon for {}, expected {expected}", case["id"]),
            }
        }
    }
}

#[test]
fn generated_sets_at_nanosecond_resolution_get_the_expected_verdicts() {
    let vectors = vectors();
    let cases = array(&vectors["gedf_hrt"]["ns_cases"]);
    assert_eq!(cases.len(), 8);
    cases.iter().for_each(check_case);
}

#[test]
fn deadlines_beyond_the_period_are_refused_or_answered_safely() {
    for case in array(&vectors()["gedf_arbitrary"]) {
        let set = task_set(case);
        assert_eq!(gfb(&set).is_schedulable(), boolean(&case["expect"]["gfb"]), "{case}");
        assert_eq!(bak_any_deadline(&set).is_schedulable(), boolean(&case["expect"]["bak_clipped"]), "{case}");
        let limits = Limits::default();
        for test in [Test::Bak, Test::Bcl, Test::BclIterative, Test::Rta, Test::RtaSlack, Test::Bar, Test::FfDbf] {
            let verdict = run_test(&set, test, &limits);
            assert!(matches!(verdict.outcome, Outcome::NotApplicable(_)), "{verdict}");
        }
    }
}

#[test]
fn the_known_counterexamples_to_sustainability_hold() {
    let vectors = vectors();
    let cases = array(&vectors["not_self_sustainable"]);
    assert_eq!(cases.len(), 8);
    for case in cases {
        let test = match case["test"].as_str().expect("a name") {
            "BAK" => Test::Bak,
            "BCL" => Test::Bcl,
            "RTAs" => Test::RtaSlack,
            "RTAl" => Test::Rta,
            "BARle" => Test::BarLe,
            other => panic!("unknown test {other}"),
        };
        for when in ["before", "after"] {
            let verdict = run_test(&task_set(&case[when]), test, &Limits::default());
            assert_eq!(verdict.is_schedulable(), boolean(&case[when]["accept"]), "{when} {case}: {verdict}");
        }
    }
}

#[test]
fn bar_as_printed_accepts_a_set_that_misses_and_no_default_test_does() {
    // Three jobs due at 2 on two CPUs, of 2 + 2 + 1 ticks.
    let set = set(2, &[(2, 10, 2), (2, 10, 2), (1, 10, 2)]);
    let limits = Limits::default();
    assert!(bar(&set, BarVariant::PrintedUnsound, &limits).is_schedulable());
    for mode in [HardMode::FirstAcceptance, HardMode::AllTests, HardMode::PaperParity { without_bar: false }] {
        let report = hard(&set, mode, &limits);
        assert!(report.accepted.is_empty(), "{:?}", report.verdicts);
        assert!(!report.verdict.is_schedulable());
    }
}

/// Found by the property that compares with all intervals: nothing has a kink from 1 to 5, and the longest interval that
/// needs testing is 4.
#[test]
fn bar_tests_what_follows_the_last_kink() {
    let set = set(3, &[(1, 8, 1), (1, 8, 1), (1, 6, 5), (1, 5, 1), (1, 6, 1)]);
    let verdict = bar(&set, BarVariant::PrintedUnsound, &Limits::default());
    assert!(matches!(verdict.outcome, Outcome::NotProven(Reason::Interval { interval: 2, .. })), "{verdict}");
}

#[test]
fn bar_tests_more_than_the_steps_of_the_demand_bound() {
    // The fourth task fails only at A = 1: sum 16 > 15, between two steps.
    let set = set(4, &[(1, 5, 5), (7, 15, 15), (2, 16, 16), (14, 16, 16), (2, 5, 5)]);
    let verdict = bar(&set, BarVariant::Integer, &Limits::default());
    let Outcome::NotProven(laxity_analysis::Reason::Interval { task, interval, .. }) = verdict.outcome else {
        panic!("{verdict}");
    };
    assert_eq!((task, interval), (3, 17));
}

#[test]
fn the_speed_grid_accepts_less_than_all_speeds() {
    let grid = SpeedGrid::default();
    let limits = Limits::default();
    let wide = set(2, &[(1, 5, 2), (1, 4, 2), (2, 8, 6), (1, 2, 2)]);
    assert!(ffdbf(&wide, &limits).is_schedulable());
    let accepted: Vec<bool> = array(&vectors()["gedf_hrt"]["cases"])
        .iter()
        .map(|case| (integer(&case["m"]) > 1).then(|| task_set(case)))
        .map(|set| set.is_some_and(|set| ffdbf_grid(&set, &grid, &limits).is_schedulable()))
        .collect();
    assert!(accepted.contains(&true) && accepted.contains(&false));
}
