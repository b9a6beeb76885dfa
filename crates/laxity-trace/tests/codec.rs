//! The codec: what was written is read back, and a damaged trace is read up to the damage.

mod check_reference;

use std::io::{self, Write};

use check_reference::strange::any_records;
use laxity_model::{
    CpuId, Engine, EngineOrder, GpuId, Instant, InterruptHandling, JobId, Nanos, OverheadCosts, OverheadKind,
    Scheduler, TaskId,
};
use laxity_trace::codec::{Damage, MAGIC, ReadError, Trace, TraceReader, TraceWriter, read_all};
use laxity_trace::{
    DeviceInfo, EdgeInfo, EdgeKind, Event, GpuInfo, GraphInfo, LockInfo, LockKind, Origin, Record, Sink, TaskInfo,
    TaskKind, TraceHeader,
};
use proptest::prelude::*;

/// Magic, version, and the header's frame.
const HEADER_JSON_AT: usize = 8 + 4 + 8;

fn header() -> TraceHeader {
    let task = |name: &str, cluster, rank| TaskInfo {
        name: name.to_owned(),
        period: Nanos::from_millis(10),
        deadline: Nanos::from_millis(8),
        wcet: Nanos::from_millis(2),
        cluster,
        rank,
        kind: TaskKind::Task,
    };
    TraceHeader {
        origin: Origin::Simulated,
        workload: "two \"clusters\" \u{2713}".to_owned(),
        cpus: 4,
        clusters: vec![vec![CpuId(0), CpuId(1)], vec![CpuId(3)]],
        scheduler: Scheduler { coarse_lock: true, ..Scheduler::GLOBAL_EDF },
        quantum: Nanos::from_millis(1),
        costs: OverheadCosts { release: Nanos(1_700), cache_migration: Nanos(u64::MAX), ..OverheadCosts::default() },
        seed: u64::MAX,
        tasks: vec![task("camera", 0, 1), task("lidar", 1, 0)],
        ..TraceHeader::new(Origin::Simulated, "", 4, Scheduler::GLOBAL_EDF)
    }
}

fn write(header: &TraceHeader, records: &[Record]) -> Vec<u8> {
    let mut writer = TraceWriter::new(Vec::new(), header).expect("a vector takes all bytes");
    for record in records {
        writer.record(record.at, record.event);
    }
    writer.finish().expect("a vector takes all bytes")
}

fn at(at: u64, event: Event) -> Record {
    Record { at: Instant(at), event }
}

/// `jobs` jobs of task 0, one a period, each with the records of an undisturbed life, and the trace's end.
fn undisturbed(jobs: u32) -> Vec<Record> {
    let cpu = CpuId(1);
    let mut records = Vec::new();
    for index in 0..jobs {
        let job = JobId { task: TaskId(0), index };
        let arrival = u64::from(index) * 10_000_000;
        records.extend([
            at(arrival, Event::Release { job, deadline: Instant(arrival + 8_000_000) }),
            at(arrival, Event::Overhead { cpu, kind: OverheadKind::Release, duration: Nanos(1_700) }),
            at(arrival + 1_700, Event::Ready { job, cpu }),
            at(arrival + 1_700, Event::Link { cpu, job: Some(job) }),
            at(arrival + 1_700, Event::Dispatch { cpu, job }),
            at(arrival + 2_001_700, Event::Complete { cpu, job }),
            at(arrival + 2_001_700, Event::Link { cpu, job: None }),
        ]);
    }
    records.push(at(u64::from(jobs) * 10_000_000, Event::End));
    records
}

fn whole(bytes: &[u8]) -> (TraceHeader, Vec<Record>) {
    read_all(bytes).expect("the header is sound").whole().expect("the trace is whole")
}

fn damage(trace: &Trace) -> (u64, u64, bool, Damage) {
    match trace.damage {
        Some(ReadError::Damaged { chunk, offset, ended, damage }) => (chunk, offset, ended, damage),
        ref other => panic!("damage expected, not {other:?}"),
    }
}

#[test]
fn a_trace_reads_back_as_it_was_written() {
    let records = undisturbed(20_000);
    assert_eq!(whole(&write(&header(), &records)), (header(), records));
}

#[test]
fn a_typical_record_takes_less_than_five_bytes() {
    let records = undisturbed(20_000);
    let bytes = write(&header(), &records).len() - write(&header(), &[]).len();
    let (bytes, limit) = (bytes as u64, 5 * records.len() as u64);
    assert!(bytes < limit, "{} records took {bytes} bytes", records.len());
}

#[test]
fn a_trace_without_its_end_says_that_it_was_cut_off() {
    let mut records = undisturbed(3);
    records.pop();
    let bytes = write(&header(), &records);
    let trace = read_all(bytes.as_slice()).expect("the header is sound");
    assert_eq!(trace.records, records);
    assert_eq!(damage(&trace), (1, bytes.len() as u64, false, Damage::Unfinished));
    let empty = write(&header(), &[]);
    let trace = read_all(empty.as_slice()).expect("the header is sound");
    assert_eq!(damage(&trace), (0, empty.len() as u64, false, Damage::Unfinished));
    let text = trace.whole().expect_err("unfinished").to_string();
    assert!(text.contains("the recording was cut off"), "{text}");
}

#[test]
fn a_trace_cut_within_a_chunk_keeps_the_whole_chunks_before_it() {
    let records = undisturbed(20_000);
    let bytes = write(&header(), &records);
    let all_but_the_last_byte = &bytes[..bytes.len() - 1];
    let trace = read_all(all_but_the_last_byte).expect("the header is sound");
    let (chunk, offset, ended, broken) = damage(&trace);
    assert!(chunk >= 2, "{} bytes are several chunks", bytes.len());
    assert_eq!(trace.records, records[..trace.records.len()]);
    assert!(trace.records.len() as u64 > chunk * 10_000, "{} records in {chunk} chunks", trace.records.len());
    assert!(!ended);
    let need = bytes.len() as u64 - offset;
    assert_eq!(broken, Damage::Truncated { have: need - 1, need });
    let text = trace.whole().expect_err("cut off").to_string();
    assert!(text.contains(&format!("chunk {chunk} at byte {offset}")), "{text}");
    assert!(text.ends_with("but the trace's end is missing"), "{text}");
}

#[test]
fn a_flipped_bit_stops_the_reader_at_its_chunk() {
    let records = undisturbed(20_000);
    let mut bytes = write(&header(), &records);
    let last = bytes.len() - 100;
    bytes[last] ^= 1;
    let trace = read_all(bytes.as_slice()).expect("the header is sound");
    let (_, offset, _, broken) = damage(&trace);
    assert!(matches!(broken, Damage::Checksum { .. }), "{broken:?}");
    assert!((offset as usize) < last);
    assert_eq!(trace.records, records[..trace.records.len()]);
}

#[test]
fn a_chunk_can_be_read_without_those_before_it() {
    let records = undisturbed(20_000);
    let bytes = write(&header(), &records);
    let first = write(&header(), &[]).len();
    let length = u32::from_le_bytes(bytes[first..first + 4].try_into().expect("four bytes")) as usize;
    let without_first = [&bytes[..first], &bytes[first + 8 + length..]].concat();
    let (_, rest) = whole(&without_first);
    assert!(rest.len() > 50_000 && rest.len() < records.len(), "{} records", rest.len());
    assert_eq!(rest, records[records.len() - rest.len()..]);
}

#[test]
fn bytes_after_the_end_are_reported_beside_a_trace_that_has_its_end() {
    let records = undisturbed(2);
    let mut bytes = write(&header(), &records);
    bytes.extend([1, 2, 3]);
    let trace = read_all(bytes.as_slice()).expect("the header is sound");
    assert_eq!(trace.records, records);
    let (chunk, _, ended, broken) = damage(&trace);
    assert_eq!((chunk, ended, broken), (1, true, Damage::Truncated { have: 3, need: 8 }));
}

/// A chunk as a future or faulty writer would frame it.
fn with_chunk(payload: &[u8]) -> Vec<u8> {
    let mut bytes = write(&header(), &[]);
    bytes.extend((payload.len() as u32).to_le_bytes());
    bytes.extend(crc32fast::hash(payload).to_le_bytes());
    bytes.extend(payload);
    bytes
}

#[test]
fn an_unknown_kind_is_named_and_the_records_before_it_are_kept() {
    let end_at_zero = 15 | 0x20;
    let bytes = with_chunk(&[end_at_zero, 31 | 0x20, 99]);
    let start = write(&header(), &[]).len() as u64;
    let trace = read_all(bytes.as_slice()).expect("the header is sound");
    assert_eq!(trace.records, [at(0, Event::End)]);
    assert_eq!(damage(&trace), (0, start + 8 + 1, true, Damage::UnknownKind { kind: 99 }));
}

#[test]
fn a_record_that_its_chunk_cuts_off_is_malformed() {
    let dispatch_without_its_job = [4 | 0x20, 1];
    let trace = read_all(with_chunk(&dispatch_without_its_job).as_slice()).expect("the header is sound");
    assert_eq!(damage(&trace).3, Damage::Malformed);
}

#[test]
fn a_chunk_that_claims_too_much_is_refused_before_it_is_read() {
    let mut bytes = write(&header(), &[]);
    bytes.extend(u32::MAX.to_le_bytes());
    bytes.extend([0; 100]);
    let trace = read_all(bytes.as_slice()).expect("the header is sound");
    assert_eq!(damage(&trace).3, Damage::ChunkLength { claimed: u32::MAX, longest: 1024 * 1024 });
}

#[test]
fn what_is_no_trace_is_refused() {
    for bytes in [&b""[..], b"LAX", b"LAXTRACF\x01\0\0\0", b"perfetto trace"] {
        assert!(matches!(TraceReader::new(bytes), Err(ReadError::NotATrace)), "{bytes:?}");
    }
}

#[test]
fn a_future_version_is_refused_by_number() {
    let mut bytes = write(&header(), &[]);
    bytes[MAGIC.len()] = 2;
    let error = TraceReader::new(bytes.as_slice()).expect_err("version 2");
    assert!(matches!(error, ReadError::Version { found: 2 }), "{error:?}");
    assert!(error.to_string().contains("version 2") && error.to_string().contains("version 1"), "{error}");
}

#[test]
fn a_header_cut_anywhere_is_an_error_and_never_a_trace() {
    let bytes = write(&header(), &[]);
    for length in 0..bytes.len() {
        assert!(TraceReader::new(&bytes[..length]).is_err(), "{length} of {} bytes", bytes.len());
    }
}

/// Everything that a header can hold. The text is what earlier versions of Laxity wrote, and must stay.
#[test]
fn a_header_keeps_its_bytes() {
    let node = TaskInfo {
        name: "node".to_owned(),
        period: Nanos(9),
        deadline: Nanos(8),
        wcet: Nanos(7),
        cluster: 0,
        rank: 2,
        kind: TaskKind::Node { graph: 0, source: true },
    };
    let lock = |name: &str, replicas, kind| LockInfo { name: name.to_owned(), replicas, kind };
    let (gpu, order) = (GpuId(0), EngineOrder::Priority);
    let header = TraceHeader {
        tasks: vec![
            TaskInfo { kind: TaskKind::Task, ..node.clone() },
            node.clone(),
            TaskInfo { kind: TaskKind::Thread, ..node.clone() },
            TaskInfo { kind: TaskKind::Callback, ..node },
        ],
        arbitration: "gpusync".to_owned(),
        handling: InterruptHandling::Klmirqd { threads: None },
        gpus: vec![GpuInfo { name: "gpu0".to_owned(), cluster: 0, copy_engines: 2 }],
        devices: vec![DeviceInfo { name: "gpu0".to_owned() }, DeviceInfo { name: "eth0".to_owned() }],
        locks: vec![
            lock("r", 1, LockKind::Resource { order: EngineOrder::Fifo }),
            lock("s", 2, LockKind::Semaphore { gpus: vec![gpu] }),
            lock("k", 2, LockKind::KFmlp { gpus: vec![gpu] }),
            lock("t", 6, LockKind::Tokens { gpus: vec![gpu] }),
            lock("e", 1, LockKind::Engine { gpu, engine: Engine::Copy(0), order }),
        ],
        graphs: vec![GraphInfo { name: "g".to_owned(), nodes: vec![TaskId(1)] }],
        edges: vec![EdgeInfo {
            producer: TaskId(1),
            consumer: TaskId(1),
            produce: 1,
            consume: 2,
            threshold: 3,
            initial: 4,
            kind: EdgeKind::Feedback,
        }],
        ..TraceHeader::new(Origin::Live, "all", 2, Scheduler::GLOBAL_EDF)
    };
    let costs = "release scheduling context_switch ipi_latency tick timer_rearming cache_preemption cache_migration \
                 top_half bottom_half thread_release pai_enqueue pai_check";
    let costs: Vec<String> = costs.split_whitespace().map(|kind| format!(r#""{kind}_ns":0"#)).collect();
    let task = |kind: &str| {
        format!(r#"{{"name":"node","period_ns":9,"deadline_ns":8,"wcet_ns":7,"cluster":0,"rank":2{kind}}}"#)
    };
    let kinds = ["", r#","kind":{"node":{"graph":0,"source":true}}"#, r#","kind":"thread""#, r#","kind":"callback""#];
    let expected = [
        r#"{"origin":"live","workload":"all","cpus":2,"clusters":[[0,1]],"scheduler":"G-EDF/CEm","coarse_lock":false,"#,
        r#""quantum_ns":1000000,"costs":{"#,
        &costs.join(","),
        r#"},"seed":0,"tasks":["#,
        &kinds.map(task).join(","),
        r#"],"arbitration":"gpusync","handling":{"klmirqd":{"threads":null}},"#,
        r#""gpus":[{"name":"gpu0","cluster":0,"copy_engines":2}],"devices":["gpu0","eth0"],"locks":["#,
        r#"{"name":"r","replicas":1,"kind":"resource","order":"fifo"},"#,
        r#"{"name":"s","replicas":2,"kind":"semaphore","gpus":[0]},"#,
        r#"{"name":"k","replicas":2,"kind":"k_fmlp","gpus":[0]},"#,
        r#"{"name":"t","replicas":6,"kind":"tokens","gpus":[0]},"#,
        r#"{"name":"e","replicas":1,"kind":"engine","gpu":0,"engine":1,"order":"priority"}],"#,
        r#""graphs":[{"name":"g","nodes":[1]}],"edges":[{"producer":1,"consumer":1,"produce":1,"consume":2,"#,
        r#""threshold":3,"initial":4,"kind":"feedback"}]}"#,
    ]
    .concat();
    let bytes = write(&header, &[]);
    assert_eq!(std::str::from_utf8(&bytes[HEADER_JSON_AT..]).expect("the header is text"), expected);
    assert_eq!(TraceReader::new(bytes.as_slice()).expect("it is a trace").header(), &header);
}

/// The bytes of a trace whose header says `to` where it should say `from`, checksum and length made to fit.
fn with_header_edited(from: &str, to: &str) -> Vec<u8> {
    let bytes = write(&header(), &[]);
    let json = std::str::from_utf8(&bytes[HEADER_JSON_AT..]).expect("the header is text");
    assert!(json.contains(from), "{json}");
    let json = json.replacen(from, to, 1);
    let mut edited = bytes[..12].to_vec();
    edited.extend((json.len() as u32).to_le_bytes());
    edited.extend(crc32fast::hash(json.as_bytes()).to_le_bytes());
    edited.extend(json.as_bytes());
    edited
}

#[test]
fn a_header_that_describes_no_possible_system_is_refused_with_both_numbers() {
    let cases = [
        ("\"cpus\":4", "\"cpus\":3", "cluster 1 has cpu3 where there are 3 CPUs"),
        ("\"cpus\":4", "\"cpus\":99999999999", "99999999999 CPUs where 1 to 65536 are possible"),
        ("\"cpus\":4", "\"cpus\":0", "0 CPUs where 1 to 65536 are possible"),
        ("\"cluster\":1", "\"cluster\":7", "task `lidar` is in cluster 7 where there are 2"),
        ("G-EDF", "Q-EDF", "unknown scheduler `Q-EDF/CEm`"),
        ("\"seed\"", "\"sead\"", "missing field `seed`"),
    ];
    for (from, to, message) in cases {
        let error = TraceReader::new(with_header_edited(from, to).as_slice()).expect_err(message);
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[test]
fn a_header_may_have_fields_of_a_later_laxity() {
    let bytes = with_header_edited("\"seed\"", "\"weather\":[1,{}],\"seed\"");
    assert_eq!(*TraceReader::new(bytes.as_slice()).expect("an extra field").header(), header());
}

/// Fails after some bytes, as a full disk does.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or_else(|| io::Error::other("disk full"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_error_of_the_writer_is_kept_until_the_end() {
    let mut writer = TraceWriter::new(Full(100_000), &header()).expect("the header fits");
    for record in undisturbed(20_000) {
        writer.record(record.at, record.event);
    }
    assert_eq!(writer.finish().err().expect("the disk was full").to_string(), "disk full");
}

proptest! {
    #[test]
    fn any_records_read_back_as_they_were_written(mut records in any_records()) {
        records.push(at(7, Event::End));
        let mut told = header();
        records.iter().for_each(|record| told.learn(&record.event));
        prop_assert_eq!(whole(&write(&header(), &records)), (told, records));
    }

    #[test]
    fn mutated_bytes_give_sound_records_and_an_error_but_never_a_panic(
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1..=255u8), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let records = undisturbed(4);
        let mut bytes = write(&header(), &records);
        for (place, flip) in flips {
            let place = place.index(bytes.len());
            bytes[place] ^= flip;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        if let Ok(trace) = read_all(bytes.as_slice()) {
            // One chunk: all of it is sound or none of it.
            prop_assert!(trace.records.is_empty() || trace.records == records);
        }
    }

    #[test]
    fn any_payload_with_a_sound_checksum_is_read_without_a_panic(payload in prop::collection::vec(any::<u8>(), 1..200)) {
        let trace = read_all(with_chunk(&payload).as_slice()).expect("the header is sound");
        // The fewest bytes a record takes is its tag alone.
        prop_assert!(trace.records.len() <= payload.len());
    }
}
