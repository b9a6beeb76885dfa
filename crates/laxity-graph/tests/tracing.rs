//! Live graphs leave traces that are legal, complete, and read like any other.

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use laxity_graph::{Collected, Collector, Graph, NoRecorder, SpecError};
use laxity_model::{EdgeId, JobId, Nanos, TaskId};
use laxity_trace::check::{LegalityCheck, Report};
use laxity_trace::codec::{TraceReader, TraceWriter};
use laxity_trace::metrics::Metrics;
use laxity_trace::{Event, Record, Sink, TraceHeader, perfetto, table};
use proptest::prelude::*;
use support::random::{case, run};
use support::{Place, back, edge, ringed, spec};

/// Judged as what it is: a recording of everything.
fn judge(header: &TraceHeader, records: &[Record]) -> Report {
    let mut check = LegalityCheck::new(header).with_all_jobs();
    records.iter().for_each(|record| check.record(record.at, record.event));
    check.finish()
}

fn count(records: &[Record], is_it: impl Fn(&Event) -> bool) -> usize {
    records.iter().filter(|record| is_it(&record.event)).count()
}

/// A collector that comes last, as after a crash.
fn collect(graph: &Graph) -> (TraceHeader, Vec<Record>, Collected) {
    let collector = Collector::new(graph).expect("it has a recorder");
    let (header, mut records) = (collector.header().clone(), Vec::new());
    let collected = collector.finish(&mut records);
    (header, records, collected)
}

/// Runs `jobs` jobs of each of the nodes in turn, all of them in this thread.
fn turns(graph: &Graph, nodes: &[&str], jobs: u64) {
    let mut nodes: Vec<_> = nodes.iter().map(|name| graph.claim(name).expect("it is free")).collect();
    for _ in 0..jobs {
        nodes.iter_mut().for_each(|node| node.try_wait().expect("its tokens are there").complete());
    }
}

/// What can go wrong with one record, each of which a checker must find.
fn damages(header: &TraceHeader, records: &[Record], at: usize) -> Vec<Vec<Record>> {
    let without = || {
        let mut records = records.to_vec();
        records.remove(at);
        records
    };
    let with = |event| {
        let mut records = records.to_vec();
        records[at].event = event;
        records
    };
    let of_next_job = |job: JobId| JobId { index: job.index + 1, ..job };
    match records[at].event {
        Event::Produce { job, edge, tokens } => {
            vec![
                with(Event::Produce { job, edge, tokens: tokens + 1 }),
                with(Event::Produce { job: of_next_job(job), edge, tokens }),
                with(Event::Produce { job, edge: EdgeId(header.edges.len() as u32), tokens }),
            ]
        }
        Event::Consume { job, edge, tokens } => {
            vec![without(), with(Event::Consume { job: of_next_job(job), edge, tokens })]
        }
        Event::Release { job, deadline } => vec![without(), with(Event::Release { job: of_next_job(job), deadline })],
        Event::Dispatch { .. } | Event::Ready { .. } => vec![without()],
        Event::Complete { cpu, job } => vec![with(Event::Complete { cpu, job: of_next_job(job) })],
        _ => Vec::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Whether it is collected afterwards or by a thread that looks again and again meanwhile.
    #[test]
    fn traces_of_random_live_graphs_are_legal_and_one_damaged_record_is_found(
        case in case(Nanos::from_millis(60)),
        is_meanwhile in any::<bool>(),
        damaged in any::<prop::sample::Index>(),
    ) {
        let place = Place::new("legal");
        let graph = place.create(&case.spec).expect("the name is free");
        let mut collector = Collector::new(&graph).expect("it has a recorder");
        let (header, mut records) = (collector.header().clone(), Vec::new());
        let is_over = AtomicBool::new(false);
        let jobs = thread::scope(|scope| {
            let looking = scope.spawn(|| {
                while is_meanwhile && !is_over.load(Ordering::SeqCst) {
                    collector.collect(&mut records);
                    thread::yield_now();
                }
                collector.finish(&mut records)
            });
            let jobs = run(&case, &graph, |_| {}, |job| job.index());
            is_over.store(true, Ordering::SeqCst);
            looking.join().expect("no panic");
            jobs
        });
        if !is_meanwhile {
            records = collect(&graph).1;
        }
        prop_assert_eq!(records.last().map(|record| record.event), Some(Event::End));
        let completed = count(&records, |event| matches!(event, Event::Complete { .. }));
        prop_assert_eq!(completed, jobs.iter().map(Vec::len).sum::<usize>());
        let report = judge(&header, &records);
        prop_assert!(report.is_clean(), "{}", report);

        let damaged = damaged.index(records.len());
        for damage in damages(&header, &records, damaged) {
            prop_assert!(!judge(&header, &damage).is_clean(), "{:?} was changed", records[damaged]);
        }
    }
}

/// All that is made of traces: a file, and its metrics. The source has 10 ms, and its jobs take none.
#[test]
fn a_live_trace_is_a_file_like_any_other() {
    let place = Place::new("file");
    let graph = place.create(&spec(&["a", "b"], vec![edge(0, 1)])).expect("the name is free");
    turns(&graph, &["a", "b"], 5);
    let collector = Collector::new(&graph).expect("it has a recorder");
    let header = collector.header().clone();
    let mut metrics = Metrics::new(&header);
    let mut records = Vec::new();
    let mut file = TraceWriter::new(Vec::new(), &header).expect("memory");
    collector.finish(&mut (&mut file, (&mut metrics, &mut records)));
    let file = file.finish().expect("memory");
    let reader = TraceReader::new(file.as_slice()).expect("a trace");
    assert_eq!(reader.header(), &header);
    let read: Vec<Record> = reader.collect::<Result<_, _>>().expect("whole");
    assert_eq!(read, records);
    let end = records.last().expect("records").at;
    let summary = metrics.finish(end);
    assert_eq!(summary.graphs[0].end_to_end.as_ref().map(|latencies| latencies.count), Some(5));
    let mut drawn = Vec::new();
    perfetto::export(&header, &records, &mut drawn).expect("memory");
    assert!(!drawn.is_empty());
}

/// ```text
///                    b of job 0
/// cpu   a: # # # # # # # #
///       b:     # # #
/// ```
/// A job that begins on a CPU where another runs has preempted it, which goes on later.
#[test]
fn a_job_that_runs_where_another_does_has_preempted_it() {
    let place = Place::new("preempted");
    let graph = place.create(&spec(&["a", "b", "c"], vec![edge(0, 2), edge(1, 2)])).expect("the name is free");
    laxity_sys::scheduling::pin(0).expect("CPU 0");
    let [mut a, mut b] = ["a", "b"].map(|name| graph.claim(name).expect("it is free"));
    let outer = a.wait().expect("a source");
    b.wait().expect("a source").complete();
    outer.complete();
    let (header, records, _) = collect(&graph);
    let job = |task| JobId { task: TaskId(task), index: 0 };
    let seen: Vec<(&str, JobId)> = records
        .iter()
        .filter_map(|record| match record.event {
            Event::Dispatch { job, .. } => Some(("dispatch", job)),
            Event::Preempt { job, .. } => Some(("preempt", job)),
            Event::Complete { job, .. } => Some(("complete", job)),
            _ => None,
        })
        .collect();
    let (a, b) = (job(0), job(1));
    let expected =
        [("dispatch", a), ("preempt", a), ("dispatch", b), ("complete", b), ("dispatch", a), ("complete", a)];
    assert_eq!(seen, expected);
    assert!(judge(&header, &records).is_clean());
}

#[test]
fn what_was_forgotten_is_counted_and_the_trace_does_not_claim_to_be_whole() {
    let place = Place::new("forgotten");
    let small = spec(&["a", "b"], vec![edge(0, 1)]).with_recorder(4).expect("few");
    let graph = place.create(&small).expect("the name is free");
    let mut collector = Collector::new(&graph).expect("it has a recorder");
    let mut records = Vec::new();
    turns(&graph, &["a", "b"], 3);
    thread::sleep(std::time::Duration::from_millis(2));
    assert_eq!(collector.collect(&mut records).lost, 0);
    assert_eq!(count(&records, |event| matches!(event, Event::Complete { .. })), 6);
    turns(&graph, &["a", "b"], 10);
    let collected = collector.finish(&mut records);
    // Of the ten the last four are left.
    assert_eq!(collected, Collected { lost: 12, missed: 0, late: 0, records: records.len() as u64 });
    assert_eq!(count(&records, |event| matches!(event, Event::Complete { .. })), 14);
    assert_eq!(count(&records, |event| matches!(event, Event::End)), 0);

    // A collector that starts now lacks nothing since, but sees no first job.
    let (_, records, collected) = collect(&graph);
    assert_eq!((collected.lost, collected.missed), (0, 18));
    assert_eq!(count(&records, |event| matches!(event, Event::Complete { .. })), 8);
    assert_eq!(records.last().map(|record| record.event), Some(Event::End));
}

/// Between the looks at two nodes both go on: no look may show what followed without what led to it.
#[test]
fn cause_comes_before_effect_however_often_a_running_graph_is_looked_at() {
    let place = Place::new("meanwhile");
    let deep = spec(&["a", "b"], vec![edge(0, 1), back(1, 0, 2)]).with_recorder(1 << 15).expect("not too deep");
    let graph = place.create(&deep).expect("the name is free");
    let mut collector = Collector::new(&graph).expect("it has a recorder");
    let (header, mut records) = (collector.header().clone(), Vec::new());
    let is_over = AtomicBool::new(false);
    let lost = thread::scope(|scope| {
        let looking = scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                collector.collect(&mut records);
            }
            collector.finish(&mut records).lost
        });
        let nodes = ["a", "b"].map(|name| {
            let mut node = graph.claim(name).expect("it is free");
            node.spin_for(Nanos::from_micros(5));
            scope.spawn(move || (0..20_000).for_each(|_| node.wait().expect("the other goes on").complete()))
        });
        nodes.into_iter().for_each(|node| node.join().expect("no panic"));
        is_over.store(true, Ordering::SeqCst);
        looking.join().expect("no panic")
    });
    assert_eq!(lost, 0);
    let report = judge(&header, &records);
    assert!(report.is_clean(), "{report}");
}

/// ```text
/// a: #           a -> b
/// b:         #   released when a completes, and begins after c was looked at
/// c:    #   #
/// ```
#[test]
fn a_job_that_begins_late_is_released_before_what_came_meanwhile_unless_its_node_has_ended() {
    for has_ended in [false, true] {
        let place = Place::new("held");
        let graph = place.create(&spec(&["a", "b", "c"], vec![edge(0, 1)])).expect("the name is free");
        let mut collector = Collector::new(&graph).expect("it has a recorder");
        let mut records = Vec::new();
        turns(&graph, &["a"], 1);
        turns(&graph, &["c"], 2);
        if has_ended {
            graph.terminate(1);
        }
        // Longer than anything is held back that is merely fresh.
        thread::sleep(Duration::from_millis(3));
        collector.collect(&mut records);
        let of_c = |event: &Event| matches!(event, Event::Complete { job, .. } if job.task == TaskId(2));
        assert_eq!(count(&records, of_c), if has_ended { 2 } else { 0 });
        if !has_ended {
            turns(&graph, &["b"], 1);
        }
        let collected = collector.finish(&mut records);
        assert_eq!((collected.late, collected.lost, count(&records, of_c)), (0, 0, 2));
        let at = |is_it: fn(&Event) -> bool| records.iter().find(|record| is_it(&record.event)).map(|record| record.at);
        let release = at(|event| matches!(event, Event::Release { job, .. } if job.task == TaskId(1)));
        let completion = at(|event| matches!(event, Event::Complete { job, .. } if job.task == TaskId(0)));
        assert_eq!(release, completion.filter(|_| !has_ended));
    }
}

#[test]
fn response_times_are_from_the_release_to_the_completion_of_the_last_jobs() {
    let place = Place::new("responses");
    let graph = place.create(&spec(&["a", "b"], vec![edge(0, 1)])).expect("the name is free");
    assert_eq!(graph.response_times(0, 256), []);
    turns(&graph, &["a"], 3);
    turns(&graph, &["b"], 3);
    let (header, records, _) = collect(&graph);
    let jobs = table::jobs(&header, &records).expect("legal");
    for node in 0..2 {
        // In a trace an early job is released when it begins.
        let span = |job: &table::JobRow<'_>| Some(Nanos(job.completion_ns? - job.release_ns?));
        let expected: Vec<Nanos> = jobs.iter().filter(|job| job.task == node).filter_map(span).collect();
        assert_eq!(expected.len(), 3);
        assert_eq!(graph.response_times(node as usize, 256), expected);
        assert_eq!(graph.response_times(node as usize, 2), expected[1..]);
    }
}

/// Two slots, overwritten all the time while they are read: what was read is of one job, or not at all.
#[test]
fn nothing_is_torn_however_fast_it_is_overwritten() {
    let place = Place::new("torn");
    let small = spec(&["a"], vec![]).with_recorder(2).expect("few");
    let graph = place.create(&small).expect("the name is free");
    let mut collector = Collector::new(&graph).expect("it has a recorder");
    let mut records = Vec::new();
    let is_over = AtomicBool::new(false);
    let (releases, collected) = thread::scope(|scope| {
        let looking = scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                collector.collect(&mut records);
            }
            let origin = collector.origin();
            (origin, collector.finish(&mut records))
        });
        let mut node = graph.claim("a").expect("it is free");
        let mut run = || {
            let job = node.wait().expect("a source");
            let release = job.release().expect("recorded");
            job.complete();
            release
        };
        let releases: Vec<_> = (0..50_000).map(|_| run()).collect();
        is_over.store(true, Ordering::SeqCst);
        (releases, looking.join().expect("no panic"))
    });
    let (origin, collected) = collected;
    let mut completed = 0;
    for record in &records {
        match record.event {
            Event::Release { job, deadline } => {
                let release = releases[job.index as usize];
                assert_eq!(origin.0 + deadline.0, release.0 + 10_000_000, "of {job}");
            }
            Event::Complete { .. } => completed += 1,
            _ => {}
        }
    }
    assert_eq!(completed + collected.lost, 50_000);
}

/// A job that is begun, given up and begun again by the next owner is one job.
#[test]
fn a_job_that_began_twice_is_released_once() {
    let place = Place::new("twice");
    let graph = place.create(&spec(&["a"], vec![])).expect("the name is free");
    let mut collector = Collector::new(&graph).expect("it has a recorder");
    let mut records = Vec::new();
    let mut node = graph.claim("a").expect("it is free");
    let release = node.wait().expect("a source").release();
    assert_eq!(node.wait().expect("the same job").release(), release);
    drop(node);
    thread::sleep(std::time::Duration::from_millis(2));
    collector.collect(&mut records);
    let mut node = graph.claim("a").expect("it is free");
    let job = node.wait().expect("the same job");
    assert_eq!(job.release(), release);
    job.complete();
    let header = collector.header().clone();
    collector.finish(&mut records);
    assert_eq!(count(&records, |event| matches!(event, Event::Release { .. })), 1);
    assert_eq!(count(&records, |event| matches!(event, Event::Dispatch { .. })), 2);
    let report = judge(&header, &records);
    assert!(report.is_clean(), "{report}");
}

/// Edges of 64-byte rings between 12 nodes, and what they remember: a quarter of a second at 1 kHz.
#[test]
fn twelve_nodes_with_recorders_stay_below_a_megabyte() {
    let names: Vec<String> = (0..12).map(|node| format!("node-{node}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut edges: Vec<_> = (1..12).map(|node| edge((node - 1) / 2, node)).collect();
    edges.push(back(11, 0, 4));
    let place = Place::new("twelve");
    let graph = place.create(&ringed(&names, edges, 64, 16)).expect("the name is free");
    assert_eq!(graph.spec().recorder(), 256);
    assert!(graph.memory() < 1_000_000, "{} bytes", graph.memory());
}

#[test]
fn a_recorder_may_be_of_any_depth_or_off_and_all_processes_agree() {
    let place = Place::new("depth");
    let plain = || spec(&["a"], vec![]);
    assert_eq!(plain().with_recorder(5).map(|spec| spec.recorder()), Ok(8));
    assert_eq!(plain().with_recorder(u32::MAX), Err(SpecError::Recorder { depth: u32::MAX }));
    let off = plain().with_recorder(0).expect("off");
    let graph = place.create(&off).expect("the name is free");
    assert_eq!(place.attach("g").expect("it exists").spec(), &off);
    let no_recorder = NoRecorder { graph: "g".to_owned() };
    assert_eq!(Collector::new(&graph).err(), Some(no_recorder));
    let mut node = graph.claim("a").expect("it is free");
    let job = node.wait().expect("a source");
    assert_eq!((job.release(), job.deadline()), (None, None));
    job.complete();
}
