//! Jobs, deadlines, overheads and interrupts.

use std::collections::BTreeMap;

use laxity_model::{CpuId, Instant, OverheadKind};
use laxity_trace::intervals::TrackError;
use laxity_trace::perfetto::messages::{TracePacket, Value};
use laxity_trace::perfetto::{ExportError, Exporter};
use laxity_trace::{Event, Outsider, OutsiderKind, Record, ShortName, TraceHeader};
use proptest::prelude::*;

use super::fixtures::*;
use super::packets;

/// An event as a reader sees it: names resolved, time in tenths.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    pub at: u64,
    pub track: String,
    pub kind: i32,
    pub name: String,
    pub facts: BTreeMap<String, Value>,
    pub flows: (Vec<u64>, Vec<u64>),
}

/// All track events. Panics where an event refers to a name or track that was not introduced before.
pub fn seen(header: &TraceHeader, records: &[Record]) -> Vec<Seen> {
    let mut event_names = BTreeMap::new();
    let mut fact_names = BTreeMap::new();
    let mut tracks: BTreeMap<u64, String> = BTreeMap::new();
    let mut seen = Vec::new();
    for packet in packets(header, records) {
        if let Some(interned) = packet.interned_data {
            event_names.extend(interned.event_names.into_iter().map(|entry| (entry.iid, entry.name)));
            fact_names.extend(interned.debug_annotation_names.into_iter().map(|entry| (entry.iid, entry.name)));
        }
        if let Some(track) = packet.track_descriptor {
            let own = track.name.or(track.process.and_then(|process| process.process_name));
            let own = own.or(track.thread.and_then(|thread| thread.thread_name)).expect("a track has a name");
            let parent = track.parent_uuid.map(|parent| tracks[&parent].clone() + "/").unwrap_or_default();
            tracks.insert(track.uuid.expect("a track has a number"), parent + &own);
        }
        if let Some(event) = packet.track_event {
            let name = match (event.name_iid, event.name) {
                (Some(iid), None) => event_names[&Some(iid)].clone().expect("an interned name"),
                (None, name) => name.unwrap_or_default(),
                both => panic!("an event with two names: {both:?}"),
            };
            let facts = event.debug_annotations.into_iter().map(|fact| {
                (fact_names[&fact.name_iid].clone().expect("an interned name"), fact.value.expect("a value"))
            });
            seen.push(Seen {
                at: packet.timestamp.expect("an event has a time") / TENTH.0,
                track: tracks[&event.track_uuid.expect("an event has a track")].clone(),
                kind: event.r#type.expect("an event has a type"),
                name,
                facts: facts.collect(),
                flows: (event.flow_ids, event.terminating_flow_ids),
            });
        }
    }
    seen
}

pub const BEGIN: i32 = 1;
pub const END: i32 = 2;
pub const INSTANT: i32 = 3;

pub fn on<'a>(seen: &'a [Seen], track: &str) -> Vec<(u64, i32, &'a str)> {
    seen.iter().filter(|event| event.track == track).map(|event| (event.at, event.kind, event.name.as_str())).collect()
}

#[test]
fn a_job_is_a_slice_from_release_to_completion_that_knows_its_response_time() {
    let seen = seen(&figure_1_header(), &figure_1a());
    assert_eq!(on(&seen, "T2/jobs"), [(39, BEGIN, "T2 0"), (114, END, "")]);
    let facts: Vec<_> = seen.iter().filter(|event| event.track == "T2/jobs").map(|event| &event.facts).collect();
    let value = |facts: &BTreeMap<String, Value>, name: &str| facts[name].clone();
    assert_eq!(value(facts[0], "job"), Value::Unsigned(0));
    assert_eq!(value(facts[0], "arrival_ns"), Value::Unsigned(3_900_000));
    assert_eq!(value(facts[0], "deadline_ns"), Value::Unsigned(14_900_000));
    assert_eq!(value(facts[1], "response_time_ns"), Value::Unsigned(7_500_000));
    assert_eq!(value(facts[1], "lateness_ns"), Value::Signed(-3_500_000));
    assert_eq!(value(facts[1], "executed_ns"), Value::Unsigned(6_000_000));
    assert_eq!(value(facts[1], "preemptions"), Value::Unsigned(1));
    assert_eq!(value(facts[1], "migrations"), Value::Unsigned(1));
    assert_eq!(value(facts[1], "missed"), Value::Bool(false));
}

#[test]
fn releases_and_deadlines_are_instants_on_the_tasks_track() {
    let seen = seen(&figure_1_header(), &figure_1a());
    assert_eq!(on(&seen, "T1"), [(65, INSTANT, "release"), (145, INSTANT, "deadline")]);
    assert_eq!(on(&seen, "T3"), [(15, INSTANT, "release"), (135, INSTANT, "deadline")]);
}

#[test]
fn a_missed_deadline_is_called_missed_and_a_pending_job_stays_open() {
    let (header, records) = suspension_and_misses();
    let seen = seen(&header, &records);
    assert_eq!(
        on(&seen, "control"),
        [
            (0, INSTANT, "release"),
            (40, INSTANT, "release"),
            (40, INSTANT, "deadline missed"),
            (80, INSTANT, "deadline missed"),
        ]
    );
    assert_eq!(on(&seen, "logger/jobs"), [(0, BEGIN, "logger 0")]);
}

#[test]
fn jobs_of_a_task_pending_at_once_are_on_tracks_of_the_same_name() {
    let (header, records) = suspension_and_misses();
    let seen = seen(&header, &records);
    // Job 1 is released at 40 while job 0 is pending until 50.
    assert_eq!(
        on(&seen, "control/jobs"),
        [
            (0, BEGIN, "control 0"),
            (20, BEGIN, "suspended"),
            (40, END, ""),
            (40, BEGIN, "control 1"),
            (50, END, ""),
            (90, END, "")
        ]
    );
    let lanes = packets(&header, &records)
        .into_iter()
        .filter_map(|packet| packet.track_descriptor)
        .filter(|track| track.name.as_deref() == Some("jobs"));
    assert_eq!(lanes.count(), 3, "two for control, one for logger");
}

#[test]
fn a_deadline_beyond_the_end_of_the_trace_is_not_shown() {
    let header = header("short", 1, &[("t", 10, 40)]);
    let records = [release(0, job(0, 0), 40), dispatch(0, 0, job(0, 0)), complete(10, 0, job(0, 0)), end(20)];
    assert_eq!(on(&seen(&header, &records), "t"), [(0, INSTANT, "release")]);
    let records = [release(0, job(0, 0), 40), dispatch(0, 0, job(0, 0)), complete(40, 0, job(0, 0)), end(40)];
    assert_eq!(on(&seen(&header, &records), "t"), [(0, INSTANT, "release"), (40, INSTANT, "deadline")]);
    let records = [release(0, job(0, 0), 40), dispatch(0, 0, job(0, 0)), end(40)];
    assert_eq!(on(&seen(&header, &records), "t"), [(0, INSTANT, "release"), (40, INSTANT, "deadline missed")]);
}

/// Paper 002, Fig. 1(c).
#[test]
fn every_cpu_has_a_track_of_overheads_and_an_interrupt_is_an_arrow_between_them() {
    let seen = seen(&figure_1_header(), &figure_1c());
    let track = "paper 002, Fig. 1/overheads, G-EDF/CEm/cpu0";
    assert_eq!(
        on(&seen, track)[..6],
        [
            (15, BEGIN, "release"),
            (17, END, ""),
            (17, BEGIN, "scheduling"),
            (20, END, ""),
            (20, BEGIN, "context switch"),
            (22, END, ""),
        ]
    );
    let ipis: Vec<_> = seen.iter().filter(|event| event.name.starts_with("IPI")).collect();
    assert_eq!(ipis.len(), 2);
    assert_eq!((ipis[0].at, ipis[0].track.as_str(), ipis[0].name.as_str()), (67, track, "IPI sent"));
    assert_eq!((ipis[1].at, ipis[1].name.as_str()), (70, "IPI received"));
    assert!(ipis[1].track.ends_with("/cpu1"));
    assert_eq!(ipis[0].flows, (vec![1], vec![]));
    assert_eq!(ipis[1].flows, (vec![], vec![1]));
}

#[test]
fn a_cache_refill_is_an_instant_with_its_duration() {
    let header = header("cache", 2, &[("t", 10, 40)]);
    let t = job(0, 0);
    let delay = Event::CacheDelay { cpu: CpuId(1), job: t, kind: OverheadKind::CacheMigration, duration: span(2) };
    let records =
        [release(0, t, 40), dispatch(0, 0, t), preempt(3, 0, t), dispatch(5, 1, t), record(5, delay), end(20)];
    let seen = seen(&header, &records);
    let instant = seen.iter().find(|event| event.name == "cache migration").expect("it is shown");
    assert_eq!((instant.at, instant.kind), (5, INSTANT));
    assert_eq!(instant.facts["duration_ns"], Value::Unsigned(200_000));
}

/// As the record comes when the time is over, it may begin before an overhead that was told earlier: on a track of its own it
/// cuts none.
#[test]
fn the_time_in_which_a_cpu_was_stolen_is_a_slice_on_its_own_track() {
    let header = header("stolen", 2, &[("t", 10, 40)]);
    let stolen = Event::Stolen { cpu: CpuId(1), duration: span(7) };
    let records = [overhead(5, 1, OverheadKind::Tick, 1), record(10, stolen), end(20)];
    let seen = seen(&header, &records);
    assert_eq!(on(&seen, "stolen/overheads, G-EDF/CEm/cpu1 stolen"), [(3, BEGIN, "stolen"), (10, END, "")]);
    assert_eq!(on(&seen, "stolen/overheads, G-EDF/CEm/cpu1").len(), 2, "the tick alone");
}

#[test]
fn other_threads_and_interrupts_are_slices_with_their_names_on_a_track_of_their_own() {
    let header = header("outside", 2, &[("t", 10, 40)]);
    let outsider = |kind, number| Outsider { kind, number };
    let (thread, interrupt) = (outsider(OutsiderKind::Thread, 0), outsider(OutsiderKind::SoftInterrupt, 1));
    let name =
        |outsider, name: &str| record(0, Event::OutsiderName { outsider, piece: 0, name: ShortName::pieces(name)[0] });
    let outside = |at, by| record(at, Event::Outside { cpu: CpuId(1), by });
    let records = [
        name(thread, "cc1"),
        record(0, Event::OutsiderThread { outsider: thread, thread: 57 }),
        name(interrupt, "NET_RX"),
        outside(2, Some(thread)),
        outside(5, Some(interrupt)),
        outside(6, None),
        end(20),
    ];
    let seen = seen(&header, &records);
    assert_eq!(
        on(&seen, "outside/overheads, G-EDF/CEm/cpu1 other threads, interrupts"),
        [(2, BEGIN, "cc1 (57)"), (5, END, ""), (5, BEGIN, "softirq NET_RX"), (6, END, "")]
    );
}

#[test]
fn a_record_that_does_not_fit_is_refused_and_the_export_can_go_on() {
    let header = figure_1_header();
    let mut exporter = Exporter::new(&header, Vec::new()).expect("memory");
    let error = exporter.record(&dispatch(5, 7, job(0, 0))).expect_err("there is no CPU 7");
    assert!(matches!(error, ExportError::Track(TrackError::UnknownCpu { cpu: CpuId(7), .. })), "{error}");
    for record in figure_1a() {
        exporter.record(&record).expect("it fits");
    }
    assert_eq!(exporter.finish().expect("memory"), super::bytes(&header, &figure_1a()));
}

/// Takes so many bytes and then is full.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or_else(|| std::io::Error::other("disk full"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_failing_writer_is_reported() {
    let (header, records) = busy(20, 4, 2_000);
    let error = laxity_trace::perfetto::export(&header, &records, Full(70_000)).expect_err("the disk is full");
    assert_eq!(error.to_string(), "cannot write the exported trace: disk full");
}

/// Every slice that ends began before, and what is left open was pending at the end.
pub fn check_nesting(packets: &[TracePacket]) -> Result<usize, String> {
    let mut depth: BTreeMap<u64, i64> = BTreeMap::new();
    let mut events: Vec<_> =
        packets.iter().filter_map(|packet| Some((packet.timestamp?, packet.track_event.as_ref()?))).collect();
    // Readers sort by time and keep the order of equals.
    events.sort_by_key(|&(at, _)| at);
    for (at, event) in events {
        let depth = depth.entry(event.track_uuid.unwrap_or(0)).or_default();
        match event.r#type {
            Some(BEGIN) => *depth += 1,
            Some(END) => *depth -= 1,
            _ => {}
        }
        if *depth < 0 {
            return Err(format!("a slice ends at {at} that did not begin"));
        }
    }
    Ok(depth.values().sum::<i64>() as usize)
}

#[test]
fn slices_are_nested() {
    let (header, records) = busy(20, 4, 2_000);
    let pending = laxity_trace::intervals::Timeline::of(&header, &records).expect("it fits").jobs;
    let pending = pending.iter().filter(|job| job.completed.is_none()).count();
    assert_eq!(check_nesting(&packets(&header, &records)), Ok(pending));
}

proptest! {
    /// Whatever the records say, the export neither panics nor fails, and no slice ends that did not begin.
    #[test]
    fn any_trace_is_exported(
        steps in proptest::collection::vec((0u64..9, 0usize..9, 0u16..2, 0u32..2, 0u32..3, 0u64..30), 0..60),
    ) {
        let header = header("anything", 2, &[("a", 1, 10), ("b", 2, 20)]);
        let mut now = 0;
        let records: Vec<Record> = steps
            .into_iter()
            .map(|(gap, which, cpu, task, index, tenths)| {
                now += gap;
                let job = job(task, index);
                match which {
                    0 => release(now, job, now + tenths),
                    1 => ready(now, cpu, job),
                    2 => dispatch(now, cpu, job),
                    3 => preempt(now, cpu, job),
                    4 => suspend(now, cpu, job),
                    5 => resume(now, cpu, job),
                    6 => complete(now, cpu, job),
                    7 => overhead(now, cpu, OverheadKind::Tick, tenths),
                    _ => record(now, Event::Ipi { from: CpuId(cpu), to: CpuId(1 - cpu), latency: span(tenths) }),
                }
            })
            .collect();
        let nested = check_nesting(&packets(&header, &records));
        prop_assert!(nested.is_ok(), "{nested:?}");
    }
}

#[test]
fn time_is_the_traces_own() {
    let header = header("far", 1, &[("t", 1, 10)]);
    let far = Instant(1 << 62);
    let records = [Record { at: far, event: Event::End }];
    assert!(seen(&header, &records).is_empty());
    let records = [Record { at: far, event: Event::Release { job: job(0, 0), deadline: Instant(far.0 + 1) } }];
    let times: Vec<_> = packets(&header, &records).into_iter().filter_map(|packet| packet.timestamp).collect();
    assert_eq!(times, [far.0, far.0]);
}
