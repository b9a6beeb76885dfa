//! What is measured of GPUs, locks and graphs, read off drawn schedules.

mod check_reference;

use check_reference::hand::*;
use check_reference::strange::any_records;
use check_reference::{Setup, UNIT, any_setup, at};
use laxity_model::{Engine, EngineOrder, GpuId, Instant, JobId, Nanos, OverheadKind, TaskId};
use laxity_trace::metrics::{
    CompletionDelays, EndToEnd, EndToEndLatencies, Inversions, Lengths, OverheadUse, Report, WaitCause, measure,
};
use laxity_trace::{
    DeviceInfo, EdgeInfo, EdgeKind, Event, GpuInfo, GraphInfo, LockInfo, LockKind, Sink, TaskKind, TraceHeader,
};
use proptest::prelude::*;

const A: JobId = job(0, 0);
const B: JobId = job(1, 0);
/// Of an interrupt thread.
const T: JobId = job(2, 0);

fn units(units: u64) -> Nanos {
    Nanos(units * UNIT.0)
}

/// Two tasks, an interrupt thread, two CPUs, a GPU of one copy engine, an engine lock.
fn header() -> TraceHeader {
    let mut header = Setup::edf(2, &[(9, 10), (9, 20), (9, 40)], 0).header();
    header.tasks[2].kind = TaskKind::Thread;
    header.gpus = vec![GpuInfo { name: "gpu0".to_owned(), cluster: 0, copy_engines: 1 }];
    header.devices = vec![DeviceInfo { name: "gpu0".to_owned() }];
    let kind = LockKind::Engine { gpu: GpuId(0), engine: Engine::Execution, order: EngineOrder::Fifo };
    header.locks = vec![LockInfo { name: "EE".to_owned(), kind, replicas: 1 }];
    header
}

/// ```text
///          0 1 2 3 4 5 6 7 8 9
///   cpu0   A A . . . A A . . .      A asks for the lock at 1, B holds it until 2; A's operation is on EE from 2 to 3
///   cpu1   B B b ~ b B s s B .      b: bottom half on B's stack, interrupted at 3; s: B spins
///   EE     . . A . . . . . . .      the thread T serves A from 4 to 5 on cpu0
/// ```
fn eventful() -> Vec<(u64, Event)> {
    vec![
        (0, release(A, 10)),
        (0, release(B, 20)),
        (0, ready(A)),
        (0, ready(B)),
        (0, dispatch(0, A)),
        (0, dispatch(1, B)),
        (0, request(B, 0)),
        (0, grant(B, 0, 0)),
        (1, request(A, 0)),
        (2, suspend(0, A)),
        (2, unlock(B, 0, 0)),
        (2, grant(A, 0, 0)),
        (2, resume(A)),
        (2, dispatch(0, A)),
        (2, engine_begin(0, Engine::Execution, A)),
        (2, suspend(0, A)),
        (2, half_begin(1, B)),
        (3, engine_end(0, Engine::Execution, A)),
        (3, interrupt(1, A)),
        (3, overhead(1, OverheadKind::TopHalf, 1)),
        (4, release(T, 10)),
        (4, serve(T, A)),
        (4, ready(T)),
        (4, dispatch(0, T)),
        (5, half_end(1, B)),
        (5, complete(0, T)),
        (5, unlock(A, 0, 0)),
        (5, resume(A)),
        (5, dispatch(0, A)),
        (6, spin_begin(1, B)),
        (7, complete(0, A)),
        (8, spin_end(1, B)),
        (9, complete(1, B)),
        (10, Event::End),
    ]
}

#[test]
fn bottom_halves_and_spinning_are_no_execution_and_the_time_of_every_cpu_is_accounted_for() {
    let summary = measure(&header(), &trace(&eventful()), at(10));
    assert_eq!((summary.tasks[0].jobs.execution, summary.tasks[1].jobs.execution), (units(4), units(4)));
    let cpu1 = &summary.cpus[1].usage;
    assert_eq!((cpu1.busy, cpu1.spin, cpu1.idle), (units(4), units(2), units(1)));
    assert_eq!(cpu1.overheads.of(OverheadKind::BottomHalf), OverheadUse { count: 1, time: units(2) });
    assert_eq!(cpu1.overheads.of(OverheadKind::TopHalf), OverheadUse { count: 1, time: units(1) });
    let early = measure(&header(), &trace(&eventful()[..20]), at(4));
    let cpu1 = &early.cpus[1].usage;
    let half = cpu1.overheads.of(OverheadKind::BottomHalf);
    assert_eq!((cpu1.busy, half.time, cpu1.idle), (units(2), units(1), units(0)), "asked while it runs");
}

#[test]
fn interrupt_threads_are_listed_apart_and_not_in_the_totals() {
    let summary = measure(&header(), &trace(&eventful()), at(10));
    assert_eq!((summary.total.released, summary.total.completed, summary.total.execution), (2, 2, units(8)));
    assert_eq!((summary.tasks.len(), summary.threads.len()), (2, 1));
    assert_eq!((summary.threads[0].task, summary.threads[0].jobs.completed), (TaskId(2), 1));
    let response_time = summary.threads[0].jobs.response_time.expect("it completed");
    assert!(response_time.max >= units(1), "from the release of the bottom half, whatever its owner's deadline");
}

#[test]
fn interrupts_and_engines_are_counted() {
    let summary = measure(&header(), &trace(&eventful()), at(10));
    let interrupts = summary.interrupts.expect("there is a device");
    assert_eq!(interrupts.by_cpu, [0, 1]);
    assert_eq!(interrupts.on_stacks, OverheadUse { count: 1, time: units(2) });
    assert_eq!(interrupts.in_threads, OverheadUse { count: 1, time: units(1) });
    let engines: Vec<_> =
        summary.engines.iter().map(|of| (of.engine, of.operations, of.busy, of.utilization)).collect();
    assert_eq!(engines, [(Engine::Execution, 1, units(1), 0.1), (Engine::Copy(0), 0, units(0), 0.0)]);
}

#[test]
fn waits_are_told_apart_by_cause() {
    let mut events = eventful();
    events.insert(events.len() - 2, (8, suspend(1, B)));
    events.insert(events.len() - 2, (9, resume(B)));
    events.insert(events.len() - 2, (9, dispatch(1, B)));
    let summary = measure(&header(), &trace(&events), at(10));
    let waits = |task: usize| -> Vec<_> {
        summary.tasks[task].waits.iter().map(|wait| (wait.cause, wait.count, wait.total, wait.max)).collect()
    };
    let gpu = (WaitCause::GpuOperation, 1, units(3), units(3));
    assert_eq!(waits(0), [(WaitCause::Engine, 1, units(1), units(1)), gpu]);
    let granted_at_once = (WaitCause::Engine, 1, units(0), units(0));
    assert_eq!(waits(1), [granted_at_once, (WaitCause::Suspension, 1, units(1), units(1))]);
}

#[test]
fn waits_for_a_resource_say_which() {
    let mut header = header();
    let resource = |name: &str| LockInfo {
        name: name.to_owned(),
        kind: LockKind::Resource { order: EngineOrder::Fifo },
        replicas: 1,
    };
    header.locks = vec![resource("map"), resource("log")];
    let events = [
        (0, release(A, 10)),
        (1, request(A, 0)),
        (4, grant(A, 0, 0)),
        (5, unlock(A, 0, 0)),
        (5, request(A, 1)),
        (6, grant(A, 1, 0)),
    ];
    let waits = &measure(&header, &trace(&events), at(10)).tasks[0].waits;
    let told: Vec<_> = waits.iter().map(|wait| (wait.cause, wait.resource.as_deref(), wait.total)).collect();
    assert_eq!(told, [(WaitCause::Resource, Some("map"), units(3)), (WaitCause::Resource, Some("log"), units(1))]);
}

#[test]
fn a_withdrawn_request_waited_too() {
    let events =
        [(0, release(A, 10)), (1, request(A, 0)), (4, withdraw(A, 0)), (5, request(A, 0)), (7, grant(A, 0, 0))];
    let waits = &measure(&header(), &trace(&events), at(10)).tasks[0].waits;
    assert_eq!((waits[0].count, waits[0].total, waits[0].max), (2, units(5), units(3)));
}

#[test]
fn inversions_are_summed_up_by_kind() {
    let events = [(0, release(A, 10)), (0, ready(A)), (0, dispatch(0, A)), (0, release(B, 20))];
    let halves = [(1, half_begin(0, B)), (2, half_end(0, B)), (4, half_begin(0, B)), (7, half_end(0, B))];
    let events: Vec<_> = events.into_iter().chain(halves).collect();
    let inversions = measure(&header(), &trace(&events), at(10)).inversions.expect("there is a device");
    let all = inversions.all.expect("two inversions");
    assert_eq!((all.count, all.total, all.mean, all.max), (2, units(4), units(2), units(3)));
    assert_eq!((inversions.blocked_stack, inversions.co_scheduled), (Some(all), None));
}

/// ```text
///   node 0 --2/3--> node 1 --1/1--> node 3      node 0 and node 2 are sources, node 3 the sink;
///   node 2 ----------1/1--------------^         a back-edge from 1 to 1 and an initial token for 3 on 2 -> 3
/// ```
fn graph() -> TraceHeader {
    let mut header = Setup::edf(4, &[(1, 10), (1, 15), (1, 15), (1, 15)], 0).header();
    for (index, task) in header.tasks.iter_mut().enumerate() {
        task.kind = TaskKind::Node { graph: 0, source: index == 0 || index == 2 };
    }
    let nodes = (0..4).map(TaskId).collect();
    header.graphs = vec![GraphInfo { name: "graph".to_owned(), nodes }];
    let edge = |producer, consumer, produce, consume, initial, kind| EdgeInfo {
        producer: TaskId(producer),
        consumer: TaskId(consumer),
        produce,
        consume,
        threshold: consume,
        initial,
        kind,
    };
    header.edges = vec![
        edge(0, 1, 2, 3, 0, EdgeKind::Token),
        edge(1, 3, 1, 1, 0, EdgeKind::Token),
        edge(2, 3, 1, 1, 1, EdgeKind::Token),
        edge(1, 1, 1, 1, 1, EdgeKind::Back),
    ];
    header
}

/// Arrivals of node 0: 0, 10, 20; of node 2: 5. Node 1 takes tokens of node 0's jobs 0 and 1, then 1 and 2.
fn tokens() -> Vec<(u64, Event)> {
    let (s0, s1, s2) = (job(0, 0), job(0, 1), job(0, 2));
    let (n0, n1) = (job(1, 0), job(1, 1));
    let (other, e0, e1) = (job(2, 0), job(3, 0), job(3, 1));
    vec![
        (0, release(s0, 10)),
        (2, complete(0, s0)),
        (2, produce(s0, 0, 2)),
        (5, release(other, 20)),
        (7, produce(other, 2, 1)),
        (7, complete(2, other)),
        (11, release(s1, 20)),
        (12, produce(s1, 0, 2)),
        (12, complete(0, s1)),
        (12, release(n0, 27)),
        (12, consume(n0, 0, 3)),
        (12, consume(n0, 3, 1)),
        (14, produce(n0, 1, 1)),
        (14, produce(n0, 3, 1)),
        (14, complete(1, n0)),
        (14, release(e0, 29)),
        (14, consume(e0, 1, 1)),
        (14, consume(e0, 2, 1)),
        (17, complete(3, e0)),
        (20, release(s2, 30)),
        (22, produce(s2, 0, 2)),
        (22, complete(0, s2)),
        (22, release(n1, 37)),
        (22, consume(n1, 0, 3)),
        (22, consume(n1, 3, 1)),
        (24, produce(n1, 1, 1)),
        (24, complete(1, n1)),
        (24, release(e1, 39)),
        (24, consume(e1, 1, 1)),
        (24, consume(e1, 2, 1)),
        (26, complete(3, e1)),
    ]
}

#[test]
fn end_to_end_latency_begins_with_the_earliest_source_whose_tokens_led_to_the_sink() {
    let mut latencies = EndToEndLatencies::new(&graph());
    trace(&tokens()).iter().for_each(|record| latencies.record(record.at, record.event));
    // Job 0: from node 0's first arrival, 0. Job 1: node 0's second at 10, released late at 11, and node 2's at 5.
    let expected = [(job(3, 0), 17), (job(3, 1), 21)];
    let expected = expected.map(|(sink, latency)| EndToEnd { graph: 0, sink, latency: units(latency) });
    assert_eq!(latencies.finish(), expected);
    let graphs = measure(&graph(), &trace(&tokens()), at(30)).graphs;
    let end_to_end = graphs[0].end_to_end.expect("the sink completed");
    assert_eq!((end_to_end.count, end_to_end.max, end_to_end.mean), (2, units(21), units(19)));
}

#[test]
fn a_sink_fed_by_initial_tokens_alone_has_no_latency() {
    let events = [(1, release(job(3, 0), 16)), (1, consume(job(3, 0), 2, 1)), (3, complete(3, job(3, 0)))];
    let mut latencies = EndToEndLatencies::new(&graph());
    trace(&events).iter().for_each(|record| latencies.record(record.at, record.event));
    assert_eq!(latencies.finish(), []);
}

#[test]
fn completion_delays_are_the_differences_of_consecutive_completions() {
    let mut delays = CompletionDelays::new(&graph());
    trace(&tokens()).iter().for_each(|record| delays.record(record.at, record.event));
    assert_eq!(delays.finish(), [vec![units(10), units(10)], vec![units(10)], vec![], vec![units(9)]]);
    let nodes = &measure(&graph(), &trace(&tokens()), at(30)).graphs[0].nodes;
    let delay = nodes[0].completion_delay.expect("three completions");
    assert_eq!((delay.count, delay.mean, delay.stddev, delay.max), (2, units(10), units(0), units(10)));
    assert_eq!(nodes[2].completion_delay, None, "one completion");
}

#[test]
fn json_names_what_is_there_and_nothing_else() {
    let (header, records) = (header(), trace(&eventful()));
    let summary = measure(&header, &records, at(10));
    let json = serde_json::to_value(Report::new(&header, &summary, None, false)).expect("a report is JSON");
    assert_eq!(json["threads"][0]["name"], "task2");
    assert_eq!(json["tasks"].as_array().map(Vec::len), Some(2));
    assert_eq!((&json["engines"][0]["engine"], &json["engines"][0]["busy_ns"]), (&"EE".into(), &1_000_000.into()));
    assert_eq!(json["interrupts"]["in_threads"]["time_ns"], 1_000_000);
    assert_eq!(json["tasks"][0]["waits"][1]["cause"], "gpu_operation");
    assert_eq!(json["cpus"][1]["spin_ns"], 2_000_000);
    assert!(json["inversions"]["overtaken"].is_null() && json.get("graphs").is_none());
    let plain = Setup::edf(1, &[(1, 2)], 4);
    let (header, records) = (plain.header(), plain.schedule());
    let summary = measure(&header, &records, at(4));
    let json = serde_json::to_value(Report::new(&header, &summary, None, false)).expect("a report is JSON");
    let absent = ["threads", "engines", "interrupts", "inversions", "graphs"];
    assert!(absent.iter().all(|name| json.get(name).is_none()), "{json}");
    assert!(json["tasks"][0].get("waits").is_none() && json["machine"].get("spin_ns").is_none());
}

proptest! {
    #[test]
    fn without_bottom_halves_there_are_no_inversions(setup in any_setup()) {
        let mut inversions = Inversions::new(&setup.header(), Lengths::default());
        setup.schedule().iter().for_each(|record| inversions.record(record.at, record.event));
        prop_assert_eq!(inversions.finish(at(setup.horizon)).count(), 0);
    }

    #[test]
    fn no_records_make_the_metrics_panic(records in any_records(), sorted: bool) {
        let mut records = records;
        if sorted {
            records.sort_by_key(|record| record.at);
        }
        for header in [header(), graph()] {
            measure(&header, &records, Instant::NEVER);
            laxity_trace::check::legality(&header, &records, |_| None);
            laxity_trace::check::policy(&header, &records);
        }
    }
}
