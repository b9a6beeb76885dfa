//! What is written reads back exactly.

use laxity_model::Workload;
use proptest::prelude::*;

use crate::generate;

proptest! {
    #[test]
    fn any_workload_survives_toml_and_json(seed: u64, size in 0u64..5) {
        let workload = generate::workload(seed, size);
        let from_toml = Workload::from_toml(&workload.to_toml(), "w.toml");
        prop_assert_eq!(from_toml.as_ref(), Ok(&workload));
        let from_json = Workload::from_json(&workload.to_json(), "w.json");
        prop_assert_eq!(from_json.as_ref(), Ok(&workload));
    }
}

#[test]
fn a_dangling_reference_is_written_so_that_it_is_refused() {
    let mut workload = crate::examples::example("stabilizer.toml");
    let laxity_model::Step::Critical { resource, .. } = &mut workload.tasks[0].body[1] else { panic!("a section") };
    *resource = 7;
    let error = Workload::from_toml(&workload.to_toml(), "w.toml").expect_err("a dangling reference");
    assert!(error.to_string().contains("unknown resource \"number 7,"), "{error}");
}

#[test]
fn toml_is_written_for_people() {
    let written = crate::examples::example("paper002_fig1.toml").to_toml();
    let expected = r#"laxity = 1
name = "paper002-fig1"

[platform]
cpus = 2
tick = "1 ms"
quantum = "1 ms"
overheads = "none"

[scheduler]
policy = "G-EDF/CEm"

[[task]]
name = "T1"
period = "8 ms"
phase = "6.5 ms"
wcet = "2.5 ms"
"#;
    assert!(written.starts_with(expected), "{written}");
}
