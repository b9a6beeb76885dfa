//! What the simulator's tests share: running a workload, and reading a schedule off the records.
#![allow(dead_code, reason = "each test binary uses its own part")]

use laxity_model::{CpuId, Instant, JobId, Scheduler, Workload};
use laxity_plan::Plan;
use laxity_sim::Simulator;
use laxity_trace::{Event, Record};

/// Runs `workload` under `scheduler` up to `end` and returns the records.
pub fn simulate(workload: &Workload, scheduler: &str, end: Instant) -> Vec<Record> {
    simulate_seeded(workload, scheduler, end, 0)
}

/// The same with a seed.
pub fn simulate_seeded(workload: &Workload, scheduler: &str, end: Instant, seed: u64) -> Vec<Record> {
    let scheduler: Scheduler = scheduler.parse().expect("a scheduler's name");
    run(workload, &scheduler, end, seed)
}

/// The same with a scheduler by value.
pub fn run(workload: &Workload, scheduler: &Scheduler, end: Instant, seed: u64) -> Vec<Record> {
    let plan = Plan::new(workload, scheduler, seed).expect("the simulator can run it");
    let mut simulator = Simulator::new(&plan, Vec::new());
    simulator.run_until(end);
    simulator.finish()
}

/// An uninterrupted execution of a job on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    pub start: Instant,
    pub end: Instant,
    pub cpu: CpuId,
    pub job: JobId,
}

/// All executions, by start time and CPU; overheads split them, and adjacent ones of a job on a CPU are one.
pub fn executions(records: &[Record]) -> Vec<Run> {
    let mut open: Vec<Option<(Instant, JobId)>> = vec![None; 1024];
    let mut covered: Vec<Option<JobId>> = vec![None; 1024];
    let mut runs: Vec<Run> = Vec::new();
    let mut close = |open: &mut Vec<Option<(Instant, JobId)>>, cpu: CpuId, end: Instant| {
        if let Some((start, job)) = open[cpu.index()].take()
            && start < end
        {
            match runs.iter_mut().rev().find(|run| run.cpu == cpu) {
                Some(last) if last.end == start && last.job == job => last.end = end,
                _ => runs.push(Run { start, end, cpu, job }),
            }
        }
    };
    for record in records {
        match record.event {
            Event::Dispatch { cpu, job } => open[cpu.index()] = Some((record.at, job)),
            Event::Preempt { cpu, .. } | Event::Suspend { cpu, .. } | Event::Complete { cpu, .. } => {
                close(&mut open, cpu, record.at);
            }
            Event::Overhead { cpu, duration, .. } | Event::LockWait { cpu, duration } => {
                if covered[cpu.index()].is_some() {
                    // The bottom half there is interrupted, not the job.
                } else if let Some((_, job)) = open[cpu.index()] {
                    let going_on = open[cpu.index()].is_some_and(|(start, _)| start <= record.at);
                    if going_on {
                        close(&mut open, cpu, record.at);
                    }
                    open[cpu.index()] = Some((record.at + duration, job));
                }
            }
            Event::BottomHalfBegin { cpu, .. } => {
                covered[cpu.index()] = open[cpu.index()].map(|(_, job)| job);
                close(&mut open, cpu, record.at);
                open[cpu.index()] = None;
            }
            Event::BottomHalfEnd { cpu, .. } => {
                open[cpu.index()] = covered[cpu.index()].take().map(|job| (record.at, job));
            }
            Event::End => {
                for cpu in 0..1024 {
                    close(&mut open, CpuId(cpu), record.at);
                }
            }
            _ => {}
        }
    }
    runs.sort();
    runs
}

/// Draws the schedule: a row a CPU, a column a `step`, each column the task that runs throughout it, `.` for none.
pub fn draw(records: &[Record], cpus: u16, step: u64, columns: u64) -> String {
    let runs = executions(records);
    let mut rows = Vec::new();
    for cpu in 0..cpus {
        let mut row = format!("cpu{cpu} ");
        for column in 0..columns {
            let (from, to) = (Instant(column * step), Instant((column + 1) * step));
            let run = runs.iter().find(|run| run.cpu.0 == cpu && run.start <= from && to <= run.end);
            row.push_str(&run.map_or(".".to_owned(), |run| run.job.task.0.to_string()));
        }
        rows.push(row);
    }
    rows.join("\n")
}
