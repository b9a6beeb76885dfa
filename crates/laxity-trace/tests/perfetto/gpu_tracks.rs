//! Engines, interrupts, locks, priorities and tokens.

use laxity_model::{Engine, GpuId};
use laxity_trace::perfetto::messages::Value;
use laxity_trace::table::intervals;
use laxity_trace::{Event, Record};
use proptest::prelude::*;

use super::fixtures::*;
use super::gpus::*;
use super::packets;
use super::tracks::{BEGIN, END, INSTANT, Seen, check_nesting, on, seen};

const CPU0: &str = "/overheads, G-EDF/CEm/cpu0";

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

/// The facts of the only event with this name.
fn facts_of<'a>(seen: &'a [Seen], name: &str) -> &'a std::collections::BTreeMap<String, Value> {
    let mut found = seen.iter().filter(|event| event.name == name);
    let event = found.next().expect(name);
    assert!(found.next().is_none(), "one {name}");
    &event.facts
}

/// Paper 000, Fig. 1.
#[test]
fn an_interrupt_and_its_halves_are_on_the_cpus_track_and_name_their_owner() {
    let (header, records) = inversion_slih();
    let seen = seen(&header, &records);
    let track = format!("{}{CPU0}", header.workload);
    assert_eq!(
        on(&seen, &track),
        [(40, INSTANT, "interrupt"), (40, BEGIN, "top half"), (43, END, ""), (43, BEGIN, "bottom half"), (58, END, ""),]
    );
    for name in ["interrupt", "top half", "bottom half"] {
        let facts = facts_of(&seen, name);
        assert_eq!((&facts["device"], &facts["owner"]), (&text("gpu0"), &text("H 0")), "{name}");
    }
}

#[test]
fn a_bottom_half_in_a_thread_is_a_job_that_names_its_owner() {
    let (header, records) = inversion_klmirqd();
    let seen = seen(&header, &records);
    assert_eq!(on(&seen, "klmirqd0/jobs"), [(44, BEGIN, "klmirqd0 0"), (75, END, "")]);
    assert_eq!(on(&seen, "klmirqd0/priority"), [(44, BEGIN, "inherits from H"), (75, END, "")]);
    let facts = facts_of(&seen, "serves");
    assert_eq!((&facts["owner"], &facts["job"]), (&text("H 0"), &Value::Unsigned(0)));
    let facts = facts_of(&seen, "thread release");
    assert_eq!(facts["owner"], text("H 0"), "queueing the bottom half is for its owner too");
    assert!(!seen.iter().any(|event| event.name == "bottom half"), "no CPU's stack was used");
}

#[test]
fn every_engine_has_a_track_of_operations_named_by_task() {
    let (header, records) = pipeline();
    let seen = seen(&header, &records);
    let group = format!("{}/GPUs, driver", header.workload);
    assert_eq!(
        on(&seen, &format!("{group}/gpu0 EE")),
        [(30, BEGIN, "detector"), (80, END, ""), (112, BEGIN, "lidar"), (128, END, "")]
    );
    assert_eq!(on(&seen, &format!("{group}/gpu0 CE0")), [(10, BEGIN, "detector"), (20, END, "")]);
    let operation = seen.iter().find(|event| event.track.ends_with("gpu0 EE")).expect("an operation");
    assert_eq!(operation.facts["job"], Value::Unsigned(0));
    let tracks = packets(&header, &records).into_iter().filter_map(|packet| packet.track_descriptor?.name);
    assert!(tracks.into_iter().any(|name| name == "gpu0 CE1"), "an idle engine has a track, too");
}

#[test]
fn an_operation_with_a_name_is_called_by_it_and_tells_its_job() {
    let (mut header, mut records) = pipeline();
    header.operations = vec!["copy".to_owned(), "gemm".to_owned()];
    let begins = |record: &Record| matches!(record.event, Event::EngineBegin { engine: Engine::Execution, .. });
    let first = records.iter().position(begins).expect("an operation");
    let name = Event::EngineOperation { gpu: GpuId(0), engine: Engine::Execution, name: 1 };
    records.insert(first + 1, Record { event: name, ..records[first] });
    let seen = seen(&header, &records);
    let engine = format!("{}/GPUs, driver/gpu0 EE", header.workload);
    assert_eq!(on(&seen, &engine), [(30, BEGIN, "gemm"), (80, END, ""), (112, BEGIN, "lidar"), (128, END, "")]);
    assert_eq!(facts_of(&seen, "gemm")["owner"], text("detector 0"));
    let rows = intervals(&header, &records).expect("it fits");
    let named: Vec<_> = rows.iter().filter_map(|row| Some((row.operation?, row.from_ns, row.task_name))).collect();
    assert_eq!(named, [("gemm", at(30).0, Some("detector"))], "the next operation has none");
}

#[test]
fn every_lock_has_a_track_of_holders_and_a_wait_is_beside_its_job() {
    let (header, records) = pipeline();
    let seen = seen(&header, &records);
    let lock = |name: &str| format!("{}/locks/{name}", header.workload);
    assert_eq!(on(&seen, &lock("gpus 1")), [(10, BEGIN, "detector 0"), (110, END, "")], "one of two replicas");
    assert_eq!(on(&seen, &lock("gpus 0")), []);
    assert_eq!(
        on(&seen, &lock("gpu0 EE")),
        [(30, BEGIN, "detector 0"), (110, END, ""), (110, BEGIN, "lidar 0"), (130, END, "")]
    );
    assert_eq!(on(&seen, "lidar/lock waits"), [(40, BEGIN, "waits for gpu0 EE"), (110, END, "")]);
    assert_eq!(on(&seen, "detector/priority"), [(40, BEGIN, "inherits from lidar"), (110, END, "")]);
    assert_eq!(facts_of(&seen, "inherits from lidar")["level"], Value::Unsigned(at(175).0));
    let spins: Vec<_> = seen.iter().filter(|event| event.name == "spins").map(|event| event.at).collect();
    assert_eq!(spins, [10, 112]);
}

/// One token is there at the start. `camera` produces two and `detector` takes two, one of which was there; the second
/// of the first two is taken by the next job of `detector`, with one of the next two.
#[test]
fn tokens_are_arrows_from_their_producer_to_their_consumer() {
    let (header, records) = pipeline();
    let seen = seen(&header, &records);
    let graph = seen.iter().filter(|event| ["produces", "consumes"].contains(&event.name.as_str()));
    let graph: Vec<_> = graph.map(|event| (event.at, event.track.as_str(), event.flows.clone())).collect();
    assert_eq!(
        graph,
        [
            (5, "camera", (vec![1], vec![])),
            (5, "detector", (vec![1], vec![])),
            (135, "camera", (vec![2], vec![])),
            (135, "detector", (vec![2], vec![1])),
        ]
    );
    let first = seen.iter().find(|event| event.name == "consumes").expect("it consumes");
    assert_eq!((&first.facts["edge"], &first.facts["tokens"]), (&text("camera -> detector"), &Value::Unsigned(2)));
}

#[test]
fn a_replenished_server_shows_its_budget_and_deadline() {
    let (header, _) = inversion_klmirqd();
    let event = laxity_trace::Event::Replenish { task: laxity_model::TaskId(2), budget: span(3), deadline: at(90) };
    let seen = seen(&header, &[record(10, event), end(20)]);
    assert_eq!(on(&seen, "klmirqd0"), [(10, INSTANT, "replenished")]);
    let facts = facts_of(&seen, "replenished");
    assert_eq!((&facts["budget_ns"], &facts["deadline_ns"]), (&Value::Unsigned(300_000), &Value::Unsigned(9_000_000)));
}

#[test]
fn no_two_tracks_have_one_number() {
    for (header, records) in [inversion_slih(), inversion_klmirqd(), pipeline()] {
        let packets = packets(&header, &records);
        let tracks: Vec<u64> = packets.iter().filter_map(|packet| packet.track_descriptor.as_ref()?.uuid).collect();
        let distinct: std::collections::BTreeSet<u64> = tracks.iter().copied().collect();
        assert_eq!(distinct.len(), tracks.len());
        let nested = check_nesting(&packets).expect("slices are nested");
        let pending = laxity_trace::intervals::Timeline::of(&header, &records).expect("it fits").jobs;
        assert_eq!(nested, pending.iter().filter(|job| job.completed.is_none()).count());
    }
}

proptest! {
    /// Whatever is left out of a trace, and cut off its end: it is exported, and no slice ends that did not begin.
    #[test]
    fn any_part_of_a_trace_is_exported(kept in proptest::collection::vec(any::<bool>(), 60), until in 0usize..60) {
        for (header, records) in [inversion_slih(), inversion_klmirqd(), pipeline()] {
            let part: Vec<_> =
                records.iter().zip(&kept).take(until).filter(|(_, kept)| **kept).map(|(record, _)| *record).collect();
            let nested = check_nesting(&packets(&header, &part));
            prop_assert!(nested.is_ok(), "{nested:?}");
            seen(&header, &part);
        }
    }
}
