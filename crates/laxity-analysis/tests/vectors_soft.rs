//! The worked examples for bounded tardiness.

mod common;

use common::{array, fraction, fractions, integers, task_set, vectors};
use laxity_analysis::soft::{PriorityPoints, compliant_vector, devi_anderson, tardiness};
use laxity_analysis::{Limits, Rational, rational};
use serde_json::Value;

#[test]
fn the_worked_sets_get_the_exact_compliant_vector() {
    let vectors = vectors();
    let cases = array(&vectors["gedf_srt"]["cases"]);
    assert_eq!(cases.len(), 7);
    for case in cases {
        let (set, expect) = (task_set(case), &case["expect"]);
        let vector = compliant_vector(&set, PriorityPoints::Edf).expect("tardiness is bounded");
        assert_eq!(vector.s, fraction(&expect["s"]), "{}", case["id"]);
        assert_eq!(vector.x, fractions(&expect["x"]), "{}", case["id"]);
        assert_eq!(vector.response_times, fractions(&expect["R"]), "{}", case["id"]);
        assert_eq!(vector.tardiness, fractions(&expect["tardiness"]), "{}", case["id"]);
        assert_eq!(vector.response_time_ticks(), integers(&expect["R_ceil"]), "{}", case["id"]);
    }
}

#[test]
fn the_worked_sets_get_the_exact_bound_of_devi_and_anderson() {
    let vectors = vectors();
    let mut seen = 0;
    for case in array(&vectors["gedf_srt"]["cases"]) {
        let Some(x) = case["expect"].get("da_x").filter(|x| **x != Value::Null) else { continue };
        let set = task_set(case);
        let bound = devi_anderson(&set).expect("implicit deadlines on several cpus");
        assert_eq!(bound.x, fraction(x), "{}", case["id"]);
        let responses: Vec<Rational> = set.tasks().iter().map(|task| bound.response_time(task)).collect();
        assert_eq!(responses, fractions(&case["expect"]["da_R"]), "{}", case["id"]);
        seen += 1;
    }
    assert_eq!(seen, 4);
}

#[test]
fn the_compliant_vector_of_generated_sets_rounds_up_to_the_expected_ticks() {
    for case in array(&vectors()["gedf_hrt"]["ns_cases"]) {
        let vector = compliant_vector(&task_set(case), PriorityPoints::Edf).expect("tardiness is bounded");
        assert_eq!(vector.response_time_ticks(), integers(&case["expect"]["gel_R_ceil"]), "{}", case["id"]);
    }
}

#[test]
fn each_task_gets_the_lesser_of_the_two_bounds() {
    let set = common::set(2, &[(1, 3, 3), (2, 5, 5), (4, 6, 6), (3, 10, 10)]);
    // Compliant vector: 73/40, 93/40, 133/40, 113/40; Devi & Anderson: ceil(3/2) + C = 3, 4, 6, 5.
    assert_eq!(tardiness(&set, &Limits::default()).expect("bounded").bounds, [2, 3, 4, 3]);
    assert_eq!(devi_anderson(&set).expect("implicit").x, rational(3, 2));
}
