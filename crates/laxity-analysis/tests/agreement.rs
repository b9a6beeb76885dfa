//! What a check says in several places agrees: verdicts, bounds, and by how much execution times may grow.

use laxity_analysis::check::{Criterion, Options, Report, check};
use laxity_model::{Nanos, Workload};

/// What `check` says of the workload with this text, under the scheduler that it names.
fn checked(text: &str, criterion: Criterion) -> Report {
    let workload = Workload::from_toml(text, "test.toml").expect("it is valid");
    let report = check(&workload, &workload.scheduler, &Options { criterion, ..Options::default() });
    assert!(report.refusals.is_empty(), "{:?}", report.refusals);
    report
}

/// By how much execution times may grow, in thousandths.
fn growth(report: &Report) -> Option<u64> {
    report.scaling.expect("it was asked for").permille
}

/// A soft server of a device, which is starved, uses budget after budget: no test bounds what it takes (decision 142), at no factor.
#[test]
fn execution_times_do_not_grow_where_no_test_tells() {
    for (scheduler, priority) in [("P-FP", ", priority = 1"), ("P-EDF", "")] {
        let text = format!(
            r#"
            laxity = 1
            name = "soft"
            scheduler = "{scheduler}"
            [platform]
            cpus = 1
            [[platform.device]]
            name = "net"
            period = "1 ms"
            top_half = "10 us"
            bottom_half = "800 us"
            server = {{ kind = "cbs_soft", budget = "100 us", period = "1 ms"{priority} }}
            [gpu_management]
            handling = "klmirqd"
            [[task]]
            name = "a"
            period = "10 ms"
            wcet = "4 ms"
            {}
            "#,
            if scheduler == "P-FP" { "priority = 2" } else { "" }
        );
        for criterion in [Criterion::Hard, Criterion::Soft] {
            let report = checked(&text, criterion);
            assert!(!report.finding(criterion).is_schedulable());
            assert!(growth(&report) < Some(1_000), "{scheduler}, {criterion:?}: {:?}", report.scaling);
        }
    }
}

/// Three tasks of global EDF that fill two CPUs, with these deadlines.
fn full(deadline: u64) -> String {
    let task = |name: &str, wcet: u64| {
        format!("[[task]]\nname = \"{name}\"\nperiod = \"10 ms\"\ndeadline = \"{deadline} ms\"\nwcet = \"{wcet} ms\"\n")
    };
    let tasks = [("a", 9), ("b", 9), ("c", 2)].map(|(name, wcet)| task(name, wcet)).concat();
    format!("laxity = 1\nname = \"full\"\nscheduler = \"G-EDF\"\n[platform]\ncpus = 2\n{tasks}")
}

/// Bounds on tardiness prove deadlines, too: the factor is asked the same as the verdict.
#[test]
fn execution_times_may_grow_to_where_bounds_on_tardiness_are_within_deadlines() {
    let report = checked(&full(20), Criterion::Hard);
    assert!(report.hard.is_schedulable());
    assert_eq!(growth(&report), Some(1_000), "both CPUs are full");
}

/// All deadlines are 100 times the periods, or twice: the same jobs in the same order respond alike. Of the compliant vector, with
/// `S = 20`, `K = 1` and equal deadlines, `s = 14.5 ms` and `R = s + C / 2` (Erickson, Guan & Baruah, OPODIS 2010).
#[test]
fn deadlines_beyond_periods_lengthen_no_bound() {
    for deadline in [10, 19, 20, 25, 100, 1_000] {
        let report = checked(&full(deadline), Criterion::Soft);
        let times: Vec<Nanos> = report.tasks.iter().map(|task| task.response_time.expect("bounded").time).collect();
        assert_eq!(times, [19_000_000, 19_000_000, 15_500_000].map(Nanos), "{deadline} ms");
        assert_eq!(report.hard.is_schedulable(), deadline >= 19, "{deadline} ms");
    }
}

/// A source that is late by its phase: from its own arrivals on its successors take no longer than from end to end.
#[test]
fn nodes_are_complete_after_their_sources_as_the_graph_is() {
    let text = r#"
        laxity = 1
        name = "phases"
        scheduler = "G-DM"
        [platform]
        cpus = 4
        [[graph]]
        name = "G"
        node = [
            { name = "late", period = "4 ms", phase = "1.536 ms", wcet = "1 ms" },
            { name = "early", period = "4 ms", wcet = "1 ms" },
            { name = "sink", wcet = "2 ms" },
        ]
        edge = [{ from = "late", to = "sink", produce = 1, consume = 2 }]
        latest = ["early -> sink"]
    "#;
    let report = checked(text, Criterion::Hard);
    let graph = &report.graphs[0];
    let nodes = graph.nodes.as_ref().expect("bounded");
    let after: Vec<_> = nodes.iter().map(|node| (node.released_after_source, node.complete_after_source)).collect();
    let ms = |time: u64| Some(Nanos(time * 1_000_000));
    // The sink waits for a second token, a period later.
    assert_eq!(after, [(ms(0), ms(1)), (ms(0), ms(1)), (ms(5), ms(7))]);
    assert_eq!(graph.end_to_end, ms(7));
    // The same from the first arrival of any source.
    assert_eq!(nodes[2].completion, Nanos(8_536_000));
}
