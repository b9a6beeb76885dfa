//! Traces: files as they are, and files whose checksums are right, so that the damage reaches metrics, checkers and charts.

use laxity_fuzz::{edit, framed};
use laxity_model::{CpuId, Instant, JobId, Nanos, Scheduler, TaskId};
use laxity_trace::codec::{MAGIC, TraceWriter, read_all};
use laxity_trace::gantt::{SvgOptions, TextOptions};
use laxity_trace::{
    Event, Origin, Record, Sink, TaskInfo, TaskKind, TraceHeader, check, gantt, metrics, perfetto, table, why,
};

/// Does with a trace all that `laxity trace` can.
fn use_all(header: &TraceHeader, records: &[Record]) {
    let end = records.iter().map(|record| record.at).max().unwrap_or(Instant::ZERO);
    let _ = metrics::measure(header, records, end);
    let _ = check::legality(header, records, |_| None).to_string();
    let _ = check::policy(header, records).to_string();
    let _ = check::deadlines(header, records).to_string();
    let _ = gantt::text(header, records, &TextOptions::default());
    let _ = gantt::svg(header, records, &SvgOptions::default());
    let _ = perfetto::export(header, records, std::io::sink());
    let _ = table::csv(table::events(header, records), std::io::sink());
    let _ = table::jobs(header, records).map(|jobs| table::csv(jobs, std::io::sink()));
    for account in why::explain(header, records, |_| true).into_iter().flatten() {
        let _ = why::row(header, &account);
        let _ = (why::line(&account, 80), why::parts([&account]), account.time(), account.lateness());
    }
    let _ = table::intervals(header, records).map(|intervals| table::csv(intervals, std::io::sink()));
}

fn read(bytes: &[u8]) {
    if let Ok(trace) = read_all(bytes) {
        use_all(&trace.header, &trace.records);
    }
}

/// Three tasks on two CPUs.
fn header() -> TraceHeader {
    let task = |number: u32| TaskInfo {
        name: format!("task {number}"),
        period: Nanos(10),
        deadline: Nanos(8),
        wcet: Nanos(3),
        cluster: 0,
        rank: number,
        kind: TaskKind::Task,
    };
    TraceHeader {
        tasks: (0..3).map(task).collect(),
        ..TraceHeader::new(Origin::Simulated, "fuzzed", 2, Scheduler::GLOBAL_EDF)
    }
}

#[test]
fn file() {
    bolero::check!().for_each(read);
}

#[test]
fn header_json() {
    bolero::check!().for_each(|input: &[u8]| {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(1u32.to_le_bytes());
        bytes.extend(framed(input));
        read(&bytes);
    });
}

#[test]
fn records() {
    let start = TraceWriter::new(Vec::new(), &header()).and_then(TraceWriter::finish).expect("a vector takes all");
    bolero::check!().for_each(|input: &[u8]| {
        let mut bytes = start.clone();
        bytes.extend(framed(input));
        read(&bytes);
    });
}

/// Arbitrary edits of a schedule that was right: deep into checkers and charts, which a wrong tag would keep out.
#[test]
fn edited_schedule() {
    let start = TraceWriter::new(Vec::new(), &header()).and_then(TraceWriter::finish).expect("a vector takes all");
    let mut writer = TraceWriter::new(Vec::new(), &header()).expect("a vector takes all");
    for record in schedule() {
        writer.record(record.at, record.event);
    }
    let whole = writer.finish().expect("a vector takes all");
    // The records follow the length and checksum of their chunk.
    let payload = &whole[start.len() + 8..];
    let trace = read_all(whole.as_slice()).expect("a trace").whole().expect("whole");
    assert!(check::legality(&trace.0, &trace.1, |_| None).is_clean(), "what is edited is a legal schedule");
    bolero::check!().for_each(|input: &[u8]| {
        let mut payload = payload.to_vec();
        edit(&mut payload, &input[..input.len().min(12)]);
        let mut bytes = start.clone();
        bytes.extend(framed(&payload));
        read(&bytes);
    });
}

/// Twelve jobs of each task, one after the other on CPU 0.
fn schedule() -> Vec<Record> {
    let mut records = Vec::new();
    let cpu = CpuId(0);
    for index in 0..12u32 {
        let arrival = u64::from(index) * 10;
        let jobs = (0..3).map(|task| JobId { task: TaskId(task), index });
        let mut record = |at: u64, event| records.push(Record { at: Instant(at), event });
        for job in jobs.clone() {
            record(arrival, Event::Release { job, deadline: Instant(arrival + 8) });
            record(arrival, Event::Ready { job, cpu });
        }
        for (begin, job) in (arrival..).step_by(3).zip(jobs) {
            record(begin, Event::Link { cpu, job: Some(job) });
            record(begin, Event::Dispatch { cpu, job });
            record(begin + 3, Event::Complete { cpu, job });
        }
        record(arrival + 9, Event::Link { cpu, job: None });
    }
    records.push(Record { at: Instant(120), event: Event::End });
    records
}
