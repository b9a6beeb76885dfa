//! The study of global EDF: splits, tests left out, and what the paper says of single task sets.

use laxity_analysis::gedf::{HardMode, hard};
use laxity_analysis::{AnalysisTask, Limits, TaskSet, Test};
use laxity_gen::{generate, task_set_seed};
use laxity_study::gedf::{CPUS, GedfStudy, Options};
use laxity_study::{Chunk, Counts, Study, StudyError};
use proptest::prelude::*;

fn study() -> GedfStudy {
    GedfStudy::new(Options::default())
}

fn evaluate(study: &GedfStudy, scenario: u32, point: u64, first: u64, count: u64) -> Counts {
    study.evaluate(&Chunk { scenario, point, first, count }).expect("a chunk of the study")
}

/// Accepted sets of the curve `graph`/`name`.
fn accepted(study: &GedfStudy, counts: &Counts, graph: &str, name: &str) -> u64 {
    let curves = study.curves();
    let index = curves.iter().position(|curve| curve.graph == graph && curve.name == name).expect("a curve");
    counts.rows().filter(|row| row.curve == index as u32).map(|row| row.tally.accepted).sum()
}

#[test]
fn eighteen_scenarios_and_twenty_eight_curves_have_the_names_of_the_paper() {
    let (scenarios, curves) = (study().scenarios(), study().curves());
    assert_eq!(scenarios.len(), 18);
    assert_eq!((scenarios[1].as_str(), scenarios[17].as_str()), ("uni-light/moderate", "bimo-heavy/long"));
    let spec = study().spec(1, 2_000).expect("a scenario");
    assert_eq!(spec.to_string(), "uni-light/moderate cap=2");
    assert_eq!(curves.len(), 28);
    let names: Vec<&str> = curves[..10].iter().map(|curve| curve.name.as_str()).collect();
    assert_eq!(names, ["G-EDF", "CEm", "CE1", "FEm", "FE1", "HEm", "CQm", "CQ1", "S-CQm", "S-CQ1"]);
    assert!(curves[10..18].iter().all(|curve| curve.graph == "soft"));
    assert!(curves[18..].iter().all(|curve| curve.graph == "hard-strongest"));
}

#[test]
fn every_curve_sees_every_task_set() {
    let study = study();
    let counts = evaluate(&study, 7, 9_000, 0, 3);
    let rows: Vec<_> = counts.rows().collect();
    assert_eq!(rows.len(), 28);
    for row in &rows {
        assert_eq!((row.scenario, row.x, row.tally.sets), (7, 9_000, 3));
        assert_eq!(row.tally.weight, rows[0].tally.weight);
        assert!(row.tally.accepted <= 3 && row.tally.weight_accepted <= row.tally.weight);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn the_counts_do_not_depend_on_the_split(scenario in 0u32..18, point in 5u64..50, cut in 0u64..6) {
        let (study, point) = (study(), point * 200);
        let whole = evaluate(&study, scenario, point, 4, 5);
        let mut parts = evaluate(&study, scenario, point, 4 + cut.min(5), 5 - cut.min(5));
        parts.merge(&evaluate(&study, scenario, point, 4, cut.min(5)));
        prop_assert_eq!(parts, whole);
    }

    /// The study runs GFB, iterative BCL and BAR for speed; on sets with implicit deadlines, as all inflated ones are,
    /// the paper's other two cannot accept more, nor can FF-DBF and BAK add to the strongest.
    #[test]
    fn the_tests_left_out_would_change_nothing(scenario in 3u32..18, point in 10u64..140, replicate in any::<u64>()) {
        let spec = study().spec(scenario, point * 200).expect("a scenario");
        let drawn = generate(&spec, task_set_seed(1, point, replicate)).expect("a task set");
        let tasks: Vec<AnalysisTask> = drawn.tasks.iter().map(AnalysisTask::from).collect();
        let set = TaskSet::new(CPUS, tasks).expect("a task set");
        let limits = Limits::default();
        let accepted = |mode, tests: &[Test]| {
            let report = hard(&set, mode, &limits);
            (!report.accepted.is_empty(), tests.iter().any(|&test| report.accepted.contains(test)))
        };
        let paper = accepted(HardMode::PaperParity { without_bar: false }, &[Test::Gfb, Test::BclIterative, Test::Bar]);
        prop_assert_eq!(paper.0, paper.1);
        let all = accepted(HardMode::AllTests, &[Test::Trivial, Test::Gfb, Test::BclIterative, Test::Bar, Test::Rta]);
        prop_assert_eq!(all.0, all.1);
    }
}

/// Paper 002, section 4.3 on Fig. 5(a): "the best-performing plugin (FE1) supports task systems of total utilization up
/// to 26, whereas the worst-performing plugin (HEm) fails even for task systems with total utilization less than 5".
#[test]
fn many_light_tasks_run_under_fe1_and_not_under_hem() {
    let study = study();
    let at = |point, name| accepted(&study, &evaluate(&study, 1, point, 0, 10), "soft", name);
    assert_eq!((at(24_000, "FE1"), at(8_000, "HEm")), (10, 0));
    assert_eq!(at(3_000, "HEm"), 10);
    assert_eq!(at(32_000, "G-EDF"), 10);
}

#[test]
fn stronger_tests_accept_whatever_the_paper_s_accept() {
    let study = study();
    for (scenario, point) in [(1, 12_000), (8, 16_000), (14, 11_000)] {
        let counts = evaluate(&study, scenario, point, 0, 10);
        for name in ["G-EDF", "CEm", "FE1", "S-CQ1"] {
            let [paper, strongest] = ["hard", "hard-strongest"].map(|graph| accepted(&study, &counts, graph, name));
            assert!(strongest >= paper, "scenario {scenario}, {name}: {strongest} < {paper}");
        }
    }
}

#[test]
fn options_change_the_results_they_name() {
    let soft = |options: &str, point| {
        let study = GedfStudy::new(options.parse().expect("options"));
        let counts = evaluate(&study, 1, point, 0, 10);
        ["CEm", "CQm"].map(|name| accepted(&study, &counts, "soft", name))
    };
    // Largest caps with half of the sets schedulable, by either accounting: CEm 7 or 6, CQm 18 or 14.
    assert_eq!(soft("soft=task-centric", 16_000), [0, 10]);
    assert_eq!(soft("soft=preemption-centric", 16_000), [0, 0]);
    let dedicated = |options: &str| {
        let study = GedfStudy::new(options.parse().expect("options"));
        accepted(&study, &evaluate(&study, 1, 24_000, 0, 10), "soft", "FE1")
    };
    assert_eq!((dedicated("interrupt-cpu=keeps-up"), dedicated("interrupt-cpu=checked")), (10, 0));
    let default = GedfStudy::new(Options::default());
    assert_eq!(default.options(), Options::default().to_string());
}

#[test]
fn a_scenario_that_does_not_exist_is_refused() {
    let chunk = Chunk { scenario: 18, point: 1_000, first: 0, count: 1 };
    let error = study().evaluate(&chunk).expect_err("18 scenarios are counted from 0");
    assert_eq!(error, StudyError::Scenario { scenario: 18, scenarios: 18 });
    assert_eq!(error.to_string(), "scenario 18 does not exist; the study has 18, counted from 0");
    let chunk = Chunk { scenario: 6, point: 500, first: 0, count: 1 };
    assert!(matches!(study().evaluate(&chunk), Err(StudyError::Generate(_))), "a heavy task may not fit under 0.5");
}
