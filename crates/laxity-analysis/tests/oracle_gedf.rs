//! Agreement with an independent toolkit on 5,418 task sets, under the variants that do what it does.

mod common;

use common::{boolean, integer, integers, lines, task_set};
use laxity_analysis::gedf::{
    BarVariant, HardMode, SpeedGrid, bak, bak_any_deadline, bar, bcl, bcl_iterative, ffdbf, ffdbf_grid, gfb, hard, rta,
    rta_slack,
};
use laxity_analysis::soft::{PriorityPoints, bounded_tardiness, compliant_vector, devi_anderson};
use laxity_analysis::{AnalysisTask, DeadlineClass, Limits, Outcome, Reason, TaskSet, rational};
use serde_json::Value;

const SETS: &[u8] = include_bytes!("data/gedf_tests.jsonl.gz");

/// The sets of the data; those with arbitrary deadlines too if asked for.
fn cases(arbitrary: bool) -> impl Iterator<Item = (Value, TaskSet)> {
    lines(SETS)
        .map(|case| {
            let set = task_set(&case);
            (case, set)
        })
        .filter(move |(_, set)| arbitrary || set.class() != DeadlineClass::Arbitrary)
}

/// Compares a verdict for verdict; returns how many sets were accepted and rejected.
fn agree(key: &str, decide: impl Fn(&TaskSet) -> bool) -> (u32, u32) {
    let (mut accepted, mut rejected) = (0, 0);
    for (case, set) in cases(false) {
        let Some(expected) = case[key].as_bool() else { continue };
        assert_eq!(decide(&set), expected, "{key} of {}", case["id"]);
        *(if expected { &mut accepted } else { &mut rejected }) += 1;
    }
    (accepted, rejected)
}

#[test]
fn gfb_agrees_on_every_set() {
    assert_eq!(agree("gfb", |set| gfb(set).is_schedulable()), (2222, 2146));
}

#[test]
fn bak_agrees_on_every_set() {
    assert_eq!(agree("bak", |set| bak(set).is_schedulable()), (1365, 3003));
}

#[test]
fn bcl_agrees_on_every_set() {
    assert_eq!(agree("bcl", |set| bcl(set).is_schedulable()), (1408, 2960));
}

#[test]
fn iterative_bcl_agrees_on_every_set() {
    let limits = Limits::default();
    assert_eq!(agree("bcl_iterative", |set| bcl_iterative(set, &limits).is_schedulable()), (2607, 1761));
}

#[test]
fn slack_rta_with_25_rounds_agrees_on_every_set() {
    let limits = Limits::default();
    assert_eq!(agree("rta", |set| rta_slack(set, Some(25), &limits).is_schedulable()), (2964, 1403));
}

#[test]
fn bar_le_agrees_on_every_set() {
    let limits = Limits::default();
    assert_eq!(agree("bar", |set| bar(set, BarVariant::NonStrict, &limits).is_schedulable()), (2528, 1839));
}

#[test]
fn the_utilization_condition_agrees_on_every_set() {
    let (mut bounded, mut unbounded) = (0, 0);
    for (case, set) in cases(true) {
        let expected = boolean(&case["srt"]);
        assert_eq!(bounded_tardiness(&set).is_schedulable(), expected, "{}", case["id"]);
        *(if expected { &mut bounded } else { &mut unbounded }) += 1;
    }
    assert_eq!((bounded, unbounded), (5204, 214));
}

#[test]
fn ffdbf_over_a_grid_accepts_what_the_toolkit_accepts_and_hardly_more() {
    let (grid, limits) = (SpeedGrid::default(), Limits::default());
    let (mut both, mut only_ours) = (0, 0);
    // The grid in exact rationals is slow; small sets suffice to show that it is the same grid.
    for (case, set) in cases(false).filter(|(_, set)| set.tasks().len() <= 12) {
        let Some(expected) = case["ffdbf"].as_bool() else { continue };
        let accepted = ffdbf_grid(&set, &grid, &limits).is_schedulable();
        assert!(accepted || !expected, "{} is accepted by the toolkit only", case["id"]);
        both += u32::from(expected);
        only_ours += u32::from(accepted && !expected);
    }
    assert_eq!((both, only_ours), (934, 1));
}

#[test]
fn our_rta_and_ffdbf_accept_supersets() {
    let limits = Limits::default();
    let mut gained = [0u32; 2];
    for (case, set) in cases(false) {
        for (gain, (key, ours)) in gained.iter_mut().zip([("rta", rta(&set, &limits)), ("ffdbf", ffdbf(&set, &limits))])
        {
            let Some(theirs) = case[key].as_bool() else { continue };
            assert!(ours.is_schedulable() || !theirs, "{key} of {}: {ours}", case["id"]);
            *gain += u32::from(ours.is_schedulable() && !theirs);
        }
    }
    assert_eq!(gained, [12, 417]);
}

/// The toolkit tests BAR only where a demand bound steps; we test every interval. So we may reject what it accepts,
/// but then at an interval it does not look at.
#[test]
fn our_bar_accepts_a_superset_but_for_failures_between_steps() {
    let limits = Limits::default();
    let (mut gained, mut lost) = (0, 0);
    for (case, set) in cases(false) {
        let Some(theirs) = case["bar"].as_bool() else { continue };
        let ours = bar(&set, BarVariant::Integer, &limits);
        gained += u32::from(ours.is_schedulable() && !theirs);
        if let (true, Outcome::NotProven(Reason::Interval { interval, .. })) = (theirs, &ours.outcome) {
            let steps =
                |task: &AnalysisTask| interval.checked_sub(task.deadline).is_some_and(|rest| rest % task.period == 0);
            assert!(!set.tasks().iter().any(steps), "{}: {ours}", case["id"]);
            lost += 1;
        } else {
            assert!(ours.is_schedulable() || !theirs, "{}: {ours}", case["id"]);
        }
    }
    assert_eq!((gained, lost), (227, 2));
}

#[test]
fn no_accepted_set_misses_in_the_toolkits_simulation() {
    let limits = Limits::default();
    let mut misses = 0;
    for (case, set) in cases(true).filter(|(case, _)| case["sim_first_miss"].as_u64() > Some(0)) {
        let report = hard(&set, HardMode::AllTests, &limits);
        assert!(report.accepted.is_empty(), "{} misses but {:?}", case["id"], report.accepted);
        assert!(!bak_any_deadline(&set).is_schedulable(), "{}", case["id"]);
        misses += 1;
    }
    assert_eq!(misses, 430);
}

#[test]
fn devi_and_andersons_bound_agrees_with_x_rounded_up() {
    let mut compared = 0;
    for (case, set) in cases(false) {
        let Some(expected) = case["tardiness"].as_array() else { continue };
        let bound = devi_anderson(&set).unwrap_or_else(|error| panic!("{}: {error}", case["id"]));
        let ours: Vec<u64> = set.tasks().iter().map(|task| bound.tardiness(task.wcet)).collect();
        let theirs: Vec<u64> = expected.iter().map(integer).collect();
        assert_eq!(ours, theirs, "{}", case["id"]);
        compared += 1;
    }
    assert_eq!(compared, 2037);
}

#[test]
fn the_compliant_vector_agrees_where_the_toolkit_does_not_lose_a_sign() {
    let (mut equal, mut sign_lost) = (0, 0);
    for (case, set) in cases(true).filter(|(case, _)| boolean(&case["srt"])) {
        // It rounds the priority points of fair lateness up to whole ticks.
        let fair = |task: &AnalysisTask| {
            task.deadline as i64 - ((u64::from(set.cpus()) - 1) * task.wcet / u64::from(set.cpus())) as i64
        };
        let fair: Vec<i64> = set.tasks().iter().map(fair).collect();
        let keys = [("gel_gedf_response", PriorityPoints::Edf), ("gel_gfl_response", PriorityPoints::Given(&fair))];
        for (key, points) in keys {
            let Some(_) = case[key].as_array() else { continue };
            let theirs = integers(&case[key]);
            let vector = compliant_vector(&set, points).unwrap_or_else(|error| panic!("{}: {error}", case["id"]));
            let ours = vector.response_time_ticks();
            // It adds |x_i| where x_i is negative.
            for ((x, ours), theirs) in vector.x.iter().zip(ours).zip(theirs) {
                let negative = *x < rational(0, 1);
                if negative {
                    assert!(ours <= theirs, "{key} of {}", case["id"]);
                    sign_lost += u32::from(ours < theirs);
                } else {
                    assert_eq!(ours, theirs, "{key} of {}", case["id"]);
                    equal += 1;
                }
            }
        }
    }
    assert_eq!((equal, sign_lost), (114194, 891));
}
