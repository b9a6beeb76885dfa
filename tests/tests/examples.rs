//! `check` on the example workloads: nothing of them is refused, and its bound on a graph of many rates holds.

use std::fs;
use std::path::Path;

use laxity_analysis::check::{Options, check};
use laxity_model::{Instant, Nanos, Workload};
use laxity_tests::simulate;
use laxity_trace::metrics::measure;

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

/// Counted at the nodes' rates its sink is complete after 14.3 ms; but its jobs take older tokens.
#[test]
fn the_pipelines_latency_is_beyond_what_its_rates_alone_say_and_within_its_bound() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/workloads/pipeline.toml");
    let text = fs::read_to_string(&path).expect("the example");
    let workload = Workload::from_toml(&text, "pipeline.toml").expect("a valid workload");
    let report = check(&workload, &workload.scheduler, &Options { scaling: false, ..Options::default() });
    assert_eq!(report.graphs[0].end_to_end, Some(Nanos::from_micros(22_900)));
    let end = Instant(10_000_000_000);
    let (header, records) = simulate(&workload, &workload.scheduler, end, 0);
    let seen = measure(&header, &records, end).graphs[0].end_to_end.expect("it completes").max;
    assert!(seen > Nanos::from_millis(20) && seen <= Nanos::from_micros(22_900), "{seen}");
}
