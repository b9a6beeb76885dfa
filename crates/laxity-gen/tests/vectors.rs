//! The reference vectors of the specification, to the last nanosecond.

use laxity_gen::{Decimal, GeneratorSpec, generate, mix, task_set_seed};
use laxity_model::rng::SplitMix64;
use serde_json::Value;

fn vectors() -> Value {
    serde_json::from_str(include_str!("data/generator.json")).expect("the vectors are JSON")
}

fn integer(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.parse().expect("a string of digits"),
        _ => value.as_u64().expect("an integer"),
    }
}

#[test]
fn the_stream_and_the_mixing_of_seeds_match_the_vectors() {
    let vectors = vectors();
    let mut rng = SplitMix64::new(0);
    for expected in vectors["splitmix64_seed0"].as_array().expect("a list") {
        assert_eq!(rng.next_u64(), integer(expected));
    }
    assert_eq!(mix(&[1, 2, 3]), integer(&vectors["mix_1_2_3"]));
    // The six sets stand at the first point of an experiment numbered by the year of paper 002.
    assert_eq!(task_set_seed(2009, 0, 0), integer(&vectors["sets"][0]["seed"]));
}

#[test]
fn the_six_reference_task_sets_are_reproduced() {
    let vectors = vectors();
    let sets = vectors["sets"].as_array().expect("a list");
    assert_eq!(sets.len(), 6);
    for expected in sets {
        let text = |key: &str| expected[key].as_str().expect("a string");
        let line = format!("{}/{} cap={}", text("dist"), text("period"), integer(&expected["cap"]));
        let spec: GeneratorSpec = line.parse().expect("a generator");
        let set = generate(&spec, integer(&expected["seed"])).expect("a task set");
        let drawn: Vec<Vec<u64>> = set.tasks.iter().map(|task| vec![task.wcet().0, task.period.0]).collect();
        let tasks: Vec<Vec<u64>> = expected["tasks_ns"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|task| task.as_array().expect("a pair").iter().map(integer).collect())
            .collect();
        assert_eq!(drawn, tasks, "{line}");
        assert_eq!(set.total_utilization().units(), integer(&expected["total_util_u53"]), "{line}");
        assert!(set.total_utilization() <= Decimal::from_thousandths(2_000).utilization());
    }
}
