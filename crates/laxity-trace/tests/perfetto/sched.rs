//! CPU tracks.

use laxity_trace::perfetto::messages::FtraceEvent;
use laxity_trace::{Record, TraceHeader};

use super::fixtures::*;
use super::packets;

/// The events of every CPU, in the order written.
fn events(header: &TraceHeader, records: &[Record]) -> Vec<Vec<FtraceEvent>> {
    let mut cpus = vec![Vec::new(); header.cpus];
    for packet in packets(header, records) {
        if let Some(bundle) = packet.ftrace_events {
            cpus[bundle.cpu.expect("a bundle names its CPU") as usize].extend(bundle.event);
        }
    }
    cpus
}

/// `(time in tenths, previous, state, next)` of every switch.
fn switches(events: &[FtraceEvent]) -> Vec<(u64, String, i64, String)> {
    events
        .iter()
        .filter_map(|event| {
            let switch = event.sched_switch.clone()?;
            let tenths = event.timestamp? / TENTH.0;
            Some((tenths, switch.prev_comm?, switch.prev_state?, switch.next_comm?))
        })
        .collect()
}

fn expected(rows: &[(u64, &str, i64, &str)]) -> Vec<(u64, String, i64, String)> {
    rows.iter().map(|&(at, prev, state, next)| (at, prev.to_owned(), state, next.to_owned())).collect()
}

/// Paper 002, Fig. 1(a). 1: sleeps until its next job; 256: preempted.
#[test]
fn a_preemption_is_one_switch_and_a_completion_without_successor_goes_idle() {
    let cpus = events(&figure_1_header(), &figure_1a());
    assert_eq!(
        switches(&cpus[0]),
        expected(&[(15, "swapper", 0, "T3"), (80, "T3", 1, "T2"), (114, "T2", 1, "swapper")])
    );
    assert_eq!(
        switches(&cpus[1]),
        expected(&[(39, "swapper", 0, "T2"), (65, "T2", 256, "T1"), (90, "T1", 1, "swapper")])
    );
}

/// Paper 002, Fig. 1(c).
#[test]
fn between_switch_out_and_in_the_cpu_is_idle_for_as_long_as_the_overhead_lasts() {
    let cpus = events(&figure_1_header(), &figure_1c());
    assert_eq!(
        switches(&cpus[0]),
        expected(&[
            (22, "swapper", 0, "T3"),
            (89, "T3", 1, "swapper"),
            (94, "swapper", 0, "T2"),
            (130, "T2", 1, "swapper"),
        ])
    );
}

#[test]
fn a_job_is_woken_where_its_release_was_handled() {
    let cpus = events(&figure_1_header(), &figure_1c());
    let wakings: Vec<_> = cpus
        .iter()
        .flatten()
        .filter_map(|event| {
            let waking = event.sched_waking.clone()?;
            Some((event.timestamp? / TENTH.0, waking.comm?, waking.pid?, waking.target_cpu?))
        })
        .collect();
    // T1's release interrupts T3 (thread 1003) on CPU 0; it will run on CPU 1.
    assert_eq!(
        wakings,
        [(17, "T3".to_owned(), 1_003, 0), (67, "T1".to_owned(), 1_001, 0), (41, "T2".to_owned(), 1_002, 1)]
    );
}

#[test]
fn a_thread_is_asleep_before_it_is_woken_at_the_same_time() {
    let header = header("back to back", 1, &[("t", 10, 10)]);
    let records = [
        release(0, job(0, 0), 10),
        ready(0, 0, job(0, 0)),
        dispatch(0, 0, job(0, 0)),
        complete(10, 0, job(0, 0)),
        release(10, job(0, 1), 20),
        ready(10, 0, job(0, 1)),
        dispatch(10, 0, job(0, 1)),
        end(15),
    ];
    let events = &events(&header, &records)[0];
    let at_10: Vec<&str> = events
        .iter()
        .filter(|event| event.timestamp == Some(at(10).0))
        .map(|event| if event.sched_switch.is_some() { "switch" } else { "waking" })
        .collect();
    assert_eq!(at_10, ["switch", "waking", "switch"]);
}

#[test]
fn bundles_are_written_while_the_trace_goes_on() {
    let (header, records) = busy(20, 4, 4_000);
    let bundles: Vec<_> = packets(&header, &records).into_iter().filter_map(|packet| packet.ftrace_events).collect();
    assert!(bundles.len() > 8, "{} bundles", bundles.len());
    assert!(bundles.iter().all(|bundle| bundle.event.len() <= 256));
    for events in events(&header, &records) {
        assert!(events.is_sorted_by_key(|event| event.timestamp), "the events of a CPU are in order");
        // Every switch continues where the one before it ended.
        let switches = switches(&events);
        assert!(switches.windows(2).all(|pair| pair[0].3 == pair[1].1));
    }
}
