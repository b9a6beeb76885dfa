//! What it costs to judge and measure a trace grows with the trace, whatever its header claims.

use laxity_model::{CpuId, Instant, JobId, LockId, Nanos, OverheadKind, ReplicaId, Scheduler, TaskId};
use laxity_trace::check::{DeadlineCheck, LegalityCheck, PolicyCheck};
use laxity_trace::intervals::Timeline;
use laxity_trace::metrics::measure;
use laxity_trace::{Event, LockInfo, LockKind, Origin, Record, Sink, TaskInfo, TaskKind, TraceHeader};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// One cluster of so many CPUs under quantum-driven global EDF whose ticks cost time, and a task for each CPU.
fn header(cpus: u16) -> TraceHeader {
    let scheduler: Scheduler = "G-EDF/CQm".parse().expect("a scheduler of paper 002");
    let mut header = TraceHeader::new(Origin::Simulated, "wide", cpus.into(), scheduler);
    header.costs.tick = Nanos(10);
    // A quantum begins wherever a CPU ticks below.
    header.quantum = Nanos(1_000);
    let task = |task: u16| TaskInfo {
        name: format!("t{task}"),
        period: Nanos::from_millis(10),
        deadline: Nanos::from_millis(10),
        wcet: Nanos::from_millis(1),
        cluster: 0,
        rank: task.into(),
        kind: TaskKind::Task,
    };
    header.tasks = (0..cpus).map(task).collect();
    header.locks = vec![LockInfo {
        name: "wide".to_owned(),
        replicas: u16::MAX,
        kind: LockKind::Resource { order: Default::default() },
    }];
    header
}

/// At every instant one CPU ticks, gets its job, and loses the one that it had.
fn records(cpus: u16) -> Vec<Record> {
    let mut records = Vec::new();
    for cpu in 0..cpus {
        let (job, cpu) = (JobId { task: TaskId(cpu.into()), index: 0 }, CpuId(cpu));
        let at = Instant(1_000 * u64::from(cpu.0));
        let deadline = at + Nanos::from_millis(10);
        let (lock, replica) = (LockId(0), ReplicaId(cpu.0));
        let events = [
            Event::Release { job, deadline },
            Event::Ready { job, cpu },
            Event::Overhead { cpu, kind: OverheadKind::Tick, duration: Nanos(10) },
            Event::Link { cpu, job: Some(job) },
            Event::Dispatch { cpu, job },
            Event::Request { job, lock },
            Event::Grant { job, lock, replica },
            Event::Unlock { job, lock, replica },
        ];
        records.extend(events.map(|event| Record { at, event }));
        let at = at + Nanos(500);
        records.push(Record { at, event: Event::Complete { cpu, job } });
    }
    records
}

/// Bytes allocated in all by everything that reads a trace.
fn allocated(cpus: u16) -> u64 {
    let (header, records) = (header(cpus), records(cpus));
    let before = dhat::HeapStats::get().total_bytes;
    let mut checks = (LegalityCheck::new(&header), (PolicyCheck::new(&header), DeadlineCheck::new(&header)));
    for record in &records {
        checks.record(record.at, record.event);
    }
    let (legality, (policy, deadlines)) = checks;
    for report in [legality.finish(), policy.finish(), deadlines.finish()] {
        assert!(report.is_clean(), "{report}");
    }
    let end = records.last().expect("there are records").at;
    assert_eq!(measure(&header, &records, end).total.completed, u64::from(cpus));
    assert_eq!(Timeline::of(&header, &records).expect("it fits").jobs.len(), usize::from(cpus));
    dhat::HeapStats::get().total_bytes - before
}

/// Quadratic, as the quanta's lists of each CPU's peers were, would be a hundred times as much.
#[test]
fn ten_times_the_cpus_and_records_take_about_ten_times_the_memory() {
    let _profiler = dhat::Profiler::builder().testing().build();
    let (few, many) = (allocated(200), allocated(2_000));
    assert!(many < 15 * few, "{few} bytes for 200 CPUs, {many} for 2,000");
}
