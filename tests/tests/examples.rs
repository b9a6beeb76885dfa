//! `check` on the example workloads: what is refused, by name, and that the rest is analysed.

use std::fs;
use std::path::Path;

use laxity_analysis::check::{Options, check};
use laxity_model::Workload;

/// The examples of which something is refused, and the subjects.
const REFUSED: &[(&str, &[&str])] = &[
    // Operations that raise several interrupts on several CPUs.
    ("interrupts.toml", &["task \"lidar\"", "task \"map\""]),
];

#[test]
fn the_examples_are_analysed_but_for_what_is_named() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/workloads");
    let mut seen = 0;
    for entry in fs::read_dir(&folder).expect("the examples") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("an example");
        let workload = Workload::from_toml(&text, &name).unwrap_or_else(|errors| panic!("{name}: {errors}"));
        let report = check(&workload, &workload.scheduler, &Options { scaling: false, ..Options::default() });
        let refused: Vec<&str> = report.refusals.iter().map(|refusal| refusal.subject.as_str()).collect();
        let expected = REFUSED.iter().find(|(refused, _)| *refused == name).map_or(&[][..], |&(_, subjects)| subjects);
        assert_eq!(refused, expected, "{name}: {:?}", report.refusals);
        seen += 1;
    }
    assert!(seen > 8, "{seen} examples");
}
