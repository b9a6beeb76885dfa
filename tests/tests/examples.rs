//! `check` on the example workloads: nothing of them is refused.

use std::fs;
use std::path::Path;

use laxity_analysis::check::{Options, check};
use laxity_model::Workload;

#[test]
fn all_examples_are_analysed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/workloads");
    let mut seen = 0;
    for entry in fs::read_dir(&folder).expect("the examples") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("an example");
        let workload = Workload::from_toml(&text, &name).unwrap_or_else(|errors| panic!("{name}: {errors}"));
        let report = check(&workload, &workload.scheduler, &Options { scaling: false, ..Options::default() });
        assert_eq!(report.refusals, [], "{name}");
        seen += 1;
    }
    assert!(seen > 8, "{seen} examples");
}
