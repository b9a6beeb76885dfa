//! Cost of judging a trace, on one core, and how it grows with the number of CPUs: a header may claim 65,536 of them.
//!
//! Four kinds of traces: job by job, with a backlog that waits for busy CPUs, with quanta whose ticks cost time, and
//! hopeless ones in which jobs wait for CPUs that idle.

use std::error::Error;

use clap::Parser;
use cpu_time::ProcessTime;
use laxity_model::{CpuId, Instant, JobId, Nanos, OverheadKind, Scheduler, TaskId};
use laxity_trace::check::{DeadlineCheck, LegalityCheck, PolicyCheck};
use laxity_trace::metrics::measure;
use laxity_trace::{Event, Origin, Record, Sink, TaskInfo, TaskKind, TraceHeader};

/// Measures the checkers and the metrics on wide traces.
#[derive(Parser)]
struct Arguments {
    /// CPUs of the small traces; the large ones have ten times as many.
    #[arg(long, default_value_t = 2_000)]
    cpus: u16,
}

/// What a trace is like.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// A job for every CPU, one after another.
    OneByOne,
    /// Two jobs for every CPU, all released at once.
    Backlog,
    /// As `OneByOne`, in quanta.
    Quanta,
    /// As `Backlog`, but half of the CPUs idle.
    Hopeless,
}

fn main() -> Result<(), Box<dyn Error>> {
    let Arguments { cpus } = Arguments::parse();
    let large = cpus.checked_mul(10).ok_or("at most 6,553 CPUs: ten times as many must be possible")?;
    println!("ms of CPU time to judge (legality, policy, deadlines) and to measure a wide trace");
    println!("{:<12} {:>12} {:>12} {:>8}", "shape", format!("{cpus} CPUs"), format!("{large} CPUs"), "growth");
    let mut worst = 0.0f64;
    let shapes = [
        ("one by one", Shape::OneByOne),
        ("backlog", Shape::Backlog),
        ("quanta", Shape::Quanta),
        ("hopeless", Shape::Hopeless),
    ];
    for (name, shape) in shapes {
        let (few, many) = (milliseconds(shape, cpus)?, milliseconds(shape, large)?);
        let growth = many / few;
        println!("{name:<12} {few:>12.2} {many:>12.2} {growth:>7.1}x");
        worst = worst.max(growth);
    }
    println!("growth at worst {worst:.1}x for ten times the CPUs and records; linear is 10x, quadratic 100x");
    Ok(())
}

/// The least of five runs.
fn milliseconds(shape: Shape, cpus: u16) -> Result<f64, Box<dyn Error>> {
    let header = header(shape, cpus)?;
    let records = records(shape, cpus);
    let run = || {
        let start = ProcessTime::now();
        let mut checks = (LegalityCheck::new(&header), (PolicyCheck::new(&header), DeadlineCheck::new(&header)));
        for record in &records {
            checks.record(record.at, record.event);
        }
        let summary = measure(&header, &records, records.last().map_or(Instant::ZERO, |record| record.at));
        assert_eq!(summary.total.completed, header.tasks.len() as u64, "every task's job completes");
        start.elapsed().as_secs_f64() * 1e3
    };
    Ok((0..5).map(|_| run()).fold(f64::INFINITY, f64::min))
}

fn header(shape: Shape, cpus: u16) -> Result<TraceHeader, Box<dyn Error>> {
    let (scheduler, tasks): (Scheduler, u32) = match shape {
        Shape::OneByOne => ("G-EDF/CEm".parse()?, cpus.into()),
        Shape::Quanta => ("G-EDF/CQm".parse()?, cpus.into()),
        Shape::Backlog | Shape::Hopeless => ("G-EDF/CEm".parse()?, 2 * u32::from(cpus)),
    };
    let mut header = TraceHeader::new(Origin::Simulated, "wide", cpus.into(), scheduler);
    header.costs.tick = Nanos(10);
    let task = |task: u32| TaskInfo {
        name: format!("t{task}"),
        period: Nanos::from_secs(10),
        deadline: Nanos::from_secs(10),
        wcet: Nanos::from_secs(1),
        cluster: 0,
        rank: task,
        kind: TaskKind::Task,
    };
    header.tasks = (0..tasks).map(task).collect();
    Ok(header)
}

fn records(shape: Shape, cpus: u16) -> Vec<Record> {
    match shape {
        Shape::OneByOne | Shape::Quanta => (0..cpus).flat_map(|cpu| one_job(cpu, cpu.into())).collect(),
        Shape::Backlog => backlog(cpus, cpus),
        Shape::Hopeless => backlog(cpus, cpus.div_ceil(2)),
    }
}

/// A job that is released, runs alone on `cpu`, and completes.
fn one_job(cpu: u16, task: u32) -> Vec<Record> {
    let (at, cpu, job) = (Instant(1_000 * u64::from(task)), CpuId(cpu), JobId { task: TaskId(task), index: 0 });
    let events = [
        Event::Release { job, deadline: at + Nanos::from_secs(10) },
        Event::Ready { job, cpu },
        Event::Overhead { cpu, kind: OverheadKind::Tick, duration: Nanos(10) },
        Event::Link { cpu, job: Some(job) },
        Event::Dispatch { cpu, job },
    ];
    let complete = Record { at: at + Nanos(500), event: Event::Complete { cpu, job } };
    events.map(|event| Record { at, event }).into_iter().chain([complete]).collect()
}

/// Two jobs for every CPU are released at once, the first `busy` of which get that many CPUs; each CPU whose job
/// completes gets the next.
fn backlog(cpus: u16, busy: u16) -> Vec<Record> {
    let job = |task: u32| JobId { task: TaskId(task), index: 0 };
    let jobs = 2 * u32::from(cpus);
    let mut records = Vec::new();
    let mut record = |at, event| records.push(Record { at, event });
    for task in 0..jobs {
        let deadline = Instant::ZERO + Nanos::from_secs(10);
        record(Instant::ZERO, Event::Release { job: job(task), deadline });
        record(Instant::ZERO, Event::Ready { job: job(task), cpu: CpuId(0) });
    }
    for task in 0..u32::from(busy) {
        let cpu = CpuId(task as u16);
        record(Instant::ZERO, Event::Link { cpu, job: Some(job(task)) });
        record(Instant::ZERO, Event::Dispatch { cpu, job: job(task) });
    }
    for task in 0..jobs {
        let (at, cpu) = (Instant(1_000 * u64::from(task + 1)), CpuId((task % u32::from(busy)) as u16));
        record(at, Event::Complete { cpu, job: job(task) });
        let next = task + u32::from(busy);
        if next < jobs {
            record(at, Event::Link { cpu, job: Some(job(next)) });
            record(at, Event::Dispatch { cpu, job: job(next) });
        }
    }
    records
}
