//! Traces written by hand. Times are in tenths of a millisecond, so that they read as in paper 002.
#![allow(dead_code, reason = "every test binary uses some of them")]

use laxity_model::{CpuId, Instant, JobId, Nanos, OverheadCosts, OverheadKind, Scheduler, TaskId};
use laxity_trace::{Event, Origin, Record, TaskInfo, TaskKind, TraceHeader};

/// A tenth of a millisecond.
pub const TENTH: Nanos = Nanos(100_000);

/// `tenths` tenths of a millisecond after the start.
pub fn at(tenths: u64) -> Instant {
    Instant(tenths * TENTH.0)
}

/// A span of `tenths` tenths of a millisecond.
pub fn span(tenths: u64) -> Nanos {
    Nanos(tenths * TENTH.0)
}

/// Job `index` of task `task`.
pub fn job(task: u32, index: u32) -> JobId {
    JobId { task: TaskId(task), index }
}

pub fn record(tenths: u64, event: Event) -> Record {
    Record { at: at(tenths), event }
}

pub fn release(tenths: u64, job: JobId, deadline: u64) -> Record {
    record(tenths, Event::Release { job, deadline: at(deadline) })
}

pub fn ready(tenths: u64, cpu: u16, job: JobId) -> Record {
    record(tenths, Event::Ready { job, cpu: CpuId(cpu) })
}

pub fn dispatch(tenths: u64, cpu: u16, job: JobId) -> Record {
    record(tenths, Event::Dispatch { cpu: CpuId(cpu), job })
}

pub fn preempt(tenths: u64, cpu: u16, job: JobId) -> Record {
    record(tenths, Event::Preempt { cpu: CpuId(cpu), job })
}

pub fn suspend(tenths: u64, cpu: u16, job: JobId) -> Record {
    record(tenths, Event::Suspend { cpu: CpuId(cpu), job })
}

pub fn resume(tenths: u64, cpu: u16, job: JobId) -> Record {
    record(tenths, Event::Resume { cpu: CpuId(cpu), job })
}

pub fn complete(tenths: u64, cpu: u16, job: JobId) -> Record {
    record(tenths, Event::Complete { cpu: CpuId(cpu), job })
}

pub fn overhead(tenths: u64, cpu: u16, kind: OverheadKind, duration: u64) -> Record {
    record(tenths, Event::Overhead { cpu: CpuId(cpu), kind, duration: span(duration) })
}

pub fn end(tenths: u64) -> Record {
    record(tenths, Event::End)
}

/// A header for `cpus` CPUs and tasks `(name, wcet, period)` in tenths, implicit deadlines, one cluster.
pub fn header(workload: &str, cpus: u16, tasks: &[(&str, u64, u64)]) -> TraceHeader {
    TraceHeader {
        origin: Origin::Simulated,
        workload: workload.to_owned(),
        cpus: usize::from(cpus),
        clusters: vec![(0..cpus).map(CpuId).collect()],
        scheduler: Scheduler::GLOBAL_EDF,
        quantum: Nanos::from_millis(1),
        costs: OverheadCosts::default(),
        seed: 7,
        tasks: tasks
            .iter()
            .enumerate()
            .map(|(rank, &(name, wcet, period))| TaskInfo {
                name: name.to_owned(),
                period: span(period),
                deadline: span(period),
                wcet: span(wcet),
                cluster: 0,
                rank: rank as u32,
                kind: TaskKind::Task,
            })
            .collect(),
        ..TraceHeader::new(Origin::Simulated, workload, usize::from(cpus), Scheduler::GLOBAL_EDF)
    }
}

/// The three tasks of paper 002, Fig. 1: `(e, p)` = (2.5, 8), (6, 11), (6.5, 12) ms on two CPUs.
pub fn figure_1_header() -> TraceHeader {
    header("paper 002, Fig. 1", 2, &[("T1", 25, 80), ("T2", 60, 110), ("T3", 65, 120)])
}

/// Fig. 1(a): the ideal event-driven schedule. `T3` has the earliest deadline (13.5), then `T1` (14.5), then `T2`
/// (14.9), which `T1` preempts at 6.5 and which migrates to the CPU that `T3` leaves at 8.
pub fn figure_1a() -> Vec<Record> {
    let [t1, t2, t3] = [0, 1, 2].map(|task| job(task, 0));
    vec![
        release(15, t3, 135),
        ready(15, 0, t3),
        dispatch(15, 0, t3),
        release(39, t2, 149),
        ready(39, 1, t2),
        dispatch(39, 1, t2),
        release(65, t1, 145),
        ready(65, 0, t1),
        preempt(65, 1, t2),
        dispatch(65, 1, t1),
        complete(80, 0, t3),
        dispatch(80, 0, t2),
        complete(90, 1, t1),
        complete(114, 0, t2),
        end(150),
    ]
}

/// Fig. 1(c): event-driven with overheads, magnified as in the figure: release 0.2, scheduling 0.3, context switch
/// 0.2, IPI latency 0.3 ms. At 6.5 the release of `T1` interrupts `T3` on P1, which sends an IPI to P2, where `T2` is
/// preempted.
pub fn figure_1c() -> Vec<Record> {
    let [t1, t2, t3] = [0, 1, 2].map(|task| job(task, 0));
    let (release_kind, scheduling, switch) =
        (OverheadKind::Release, OverheadKind::Scheduling, OverheadKind::ContextSwitch);
    vec![
        release(15, t3, 135),
        overhead(15, 0, release_kind, 2),
        ready(17, 0, t3),
        overhead(17, 0, scheduling, 3),
        overhead(20, 0, switch, 2),
        dispatch(22, 0, t3),
        release(39, t2, 149),
        overhead(39, 1, release_kind, 2),
        ready(41, 1, t2),
        overhead(41, 1, scheduling, 3),
        overhead(44, 1, switch, 2),
        dispatch(46, 1, t2),
        release(65, t1, 145),
        overhead(65, 0, release_kind, 2),
        ready(67, 0, t1),
        record(67, Event::Ipi { from: CpuId(0), to: CpuId(1), latency: span(3) }),
        overhead(70, 1, scheduling, 3),
        overhead(73, 1, switch, 2),
        preempt(75, 1, t2),
        dispatch(75, 1, t1),
        complete(89, 0, t3),
        overhead(89, 0, scheduling, 3),
        overhead(92, 0, switch, 2),
        dispatch(94, 0, t2),
        complete(100, 1, t1),
        overhead(100, 1, scheduling, 3),
        overhead(103, 1, switch, 2),
        complete(130, 0, t2),
        overhead(130, 0, scheduling, 3),
        overhead(133, 0, switch, 2),
        end(150),
    ]
}

/// One CPU, two tasks: `control` suspends itself from 2 to 4 ms and misses its deadlines (4 and 8 ms) by 1 ms each;
/// `logger` is pending when the trace ends at 10 ms and by then 2 ms late.
pub fn suspension_and_misses() -> (TraceHeader, Vec<Record>) {
    let header = header("misses", 1, &[("control", 30, 40), ("logger", 60, 80)]);
    let (c0, c1, l0) = (job(0, 0), job(0, 1), job(1, 0));
    let records = vec![
        release(0, c0, 40),
        release(0, l0, 80),
        dispatch(0, 0, c0),
        suspend(20, 0, c0),
        dispatch(20, 0, l0),
        resume(40, 0, c0),
        release(40, c1, 80),
        preempt(40, 0, l0),
        dispatch(40, 0, c0),
        complete(50, 0, c0),
        dispatch(50, 0, l0),
        preempt(60, 0, l0),
        dispatch(60, 0, c1),
        complete(90, 0, c1),
        dispatch(90, 0, l0),
        end(100),
    ];
    (header, records)
}

/// Many tasks on a few CPUs until `tenths`: every task keeps one CPU's round robin, one tenth after the other, with
/// overhead before each dispatch, and jobs are preempted and migrate. No policy would do this; the trace is large and
/// has everything a chart must show.
pub fn busy(tasks: u32, cpus: u16, tenths: u64) -> (TraceHeader, Vec<Record>) {
    let names: Vec<String> = (0..tasks).map(|task| format!("camera-{task}")).collect();
    let specs: Vec<(&str, u64, u64)> =
        names.iter().enumerate().map(|(task, name)| (name.as_str(), 5, 100 + 7 * task as u64)).collect();
    let header = header("busy", cpus, &specs);
    let mut records = Vec::new();
    let mut running: Vec<Option<JobId>> = vec![None; usize::from(cpus)];
    let mut next: Vec<u32> = vec![0; tasks as usize];
    let mut served: std::collections::BTreeMap<JobId, u64> = std::collections::BTreeMap::new();
    for now in 0..tenths {
        for (task, index) in next.iter_mut().enumerate() {
            let period = 100 + 7 * task as u64;
            if now == u64::from(*index) * period {
                let job = job(task as u32, *index);
                records.push(release(now, job, now + period));
                served.insert(job, 0);
                *index += 1;
            }
        }
        for (cpu, slot) in running.iter_mut().enumerate() {
            if !(now + cpu as u64).is_multiple_of(5) {
                continue;
            }
            let number = cpu as u16;
            if let Some(job) = slot.take() {
                let got = served.get_mut(&job).expect("only pending jobs run");
                *got += 4;
                let done = *got >= 12 + 6 * u64::from(job.task.0 % 3);
                records.push(if done { complete(now, number, job) } else { preempt(now, number, job) });
                if done {
                    served.remove(&job);
                } else {
                    let got = *got;
                    served.insert(job, got);
                }
            }
            records.push(overhead(now, number, OverheadKind::Scheduling, 1));
        }
        for cpu in 0..running.len() {
            if (now + cpu as u64) % 5 != 1 || running[cpu].is_some() {
                continue;
            }
            let waiting = served.keys().copied().filter(|job| !running.contains(&Some(*job)));
            // The oldest job of the task whose turn it is, so that jobs of a task run in order.
            let mut candidates: Vec<JobId> = waiting.collect();
            candidates.dedup_by_key(|job| job.task);
            candidates.retain(|job| !running.iter().flatten().any(|other| other.task == job.task));
            if candidates.is_empty() {
                continue;
            }
            let chosen = candidates[(now as usize * 7 + cpu) % candidates.len()];
            records.push(dispatch(now, cpu as u16, chosen));
            running[cpu] = Some(chosen);
        }
    }
    records.push(end(tenths));
    (header, records)
}
