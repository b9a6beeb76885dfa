//! Best-effort tasks, throttling, the bandwidth lock, and how much traffic slowed GPU operations down.

use std::collections::BTreeMap;

use laxity_model::{CpuId, Engine, GpuId, Instant, JobId, Nanos, TaskId};
use serde::Serialize;

use super::MachineSummary;
use crate::replay::Replay;
use crate::{Event, LockKind, TaskKind, TraceHeader};

/// What became of best-effort tasks, and what memory traffic did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MemorySummary {
    /// Each best-effort task, by `TaskId`.
    pub best_effort: Vec<BestEffortSummary>,
    /// Each CPU, by `CpuId`.
    pub cpus: Vec<BudgetUse>,
    /// How long the bandwidth lock was held by at least one job.
    #[serde(rename = "lock_held_ns")]
    pub lock_held: Nanos,
    /// The operations of each engine whose rate was ever told, by GPU and engine.
    pub operations: Vec<OperationSummary>,
}

/// One best-effort task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BestEffortSummary {
    /// Which task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// What it executed.
    #[serde(rename = "execution_ns")]
    pub execution: Nanos,
    /// Whether all of its work is done.
    pub completed: bool,
    /// How long CPUs were throttled because of it.
    #[serde(rename = "throttled_ns")]
    pub throttled: Nanos,
    /// How often.
    pub throttled_periods: u64,
    /// The virtual time that it was charged for that: the sum of equation 3 of paper 004.
    #[serde(rename = "lost_virtual_time_ns")]
    pub lost_virtual_time: Nanos,
    /// In how many regulated periods of a CPU it executed (Fig. 6 of paper 004).
    pub periods_used: u64,
}

/// How regulation used one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BudgetUse {
    /// Regulated periods that began.
    pub periods: u64,
    /// How long it was throttled.
    #[serde(rename = "throttled_ns")]
    pub throttled: Nanos,
    /// How often.
    pub throttled_periods: u64,
}

/// Completed operations of one engine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OperationSummary {
    /// Of which GPU.
    pub gpu: GpuId,
    /// Which engine.
    #[serde(serialize_with = "super::devices::engine_name")]
    pub engine: Engine,
    /// How many.
    pub count: u64,
    /// How long they took.
    #[serde(rename = "time_ns")]
    pub time: Nanos,
    /// How long they would have taken without traffic.
    #[serde(rename = "solo_ns")]
    pub solo: Nanos,
    /// The greatest ratio of the two among them; for tables and plots.
    pub slowdown_max: f64,
}

/// The fold over a trace with best-effort tasks or memory.
#[derive(Clone, Debug)]
pub(super) struct MemoryFold {
    punishment: u64,
    tasks: BTreeMap<TaskId, Folded>,
    names: Vec<(TaskId, String)>,
    cpus: Vec<CpuFold>,
    locks: Vec<bool>,
    /// How many jobs hold the bandwidth lock, since when, and how long it was held before.
    holders: u64,
    held_since: Instant,
    held: u64,
    running: BTreeMap<(GpuId, Engine), Running>,
    operations: BTreeMap<(GpuId, Engine), OperationSummary>,
    tells_rates: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Folded {
    execution: u64,
    completed: bool,
    throttled: u64,
    throttled_periods: u64,
    lost_virtual_time: u64,
    periods_used: u64,
}

#[derive(Clone, Debug, Default)]
struct CpuFold {
    summary: BudgetUse,
    is_regulated: bool,
    /// When the present period began, and the tasks that were counted in it.
    since: Instant,
    counted: Vec<TaskId>,
    /// What best-effort tasks executed here before.
    executed: u64,
    /// The best-effort job that has the CPU, and since when.
    job: Option<(JobId, Instant)>,
    throttled: Option<(Option<TaskId>, Instant)>,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    begun: Instant,
    since: Instant,
    /// Work done in a nanosecond, in 2^-32 ns.
    rate: u64,
    /// In 2^-32 ns.
    done: u128,
}

impl MemoryFold {
    /// `None` if the header knows none of it.
    pub fn new(header: &TraceHeader) -> Option<MemoryFold> {
        let tasks = header.tasks.iter().enumerate().filter(|(_, info)| info.kind == TaskKind::BestEffort);
        let names: Vec<(TaskId, String)> = tasks.map(|(task, info)| (TaskId(task as u32), info.name.clone())).collect();
        (!names.is_empty() || header.memory.is_some()).then(|| MemoryFold {
            punishment: header.memory.as_ref().map_or(0, |memory| memory.punishment),
            tasks: names.iter().map(|&(task, _)| (task, Folded::default())).collect(),
            names,
            cpus: vec![CpuFold::default(); header.cpus],
            locks: header.locks.iter().map(|info| info.kind == LockKind::Bandwidth).collect(),
            holders: 0,
            held_since: Instant::ZERO,
            held: 0,
            running: BTreeMap::new(),
            operations: BTreeMap::new(),
            tells_rates: header.memory.is_some(),
        })
    }

    /// `before`: what was true before the event.
    pub fn record(&mut self, at: Instant, event: Event, before: &Replay) {
        match event {
            Event::Dispatch { cpu, job } if self.tasks.contains_key(&job.task) => {
                if let Some(state) = self.cpus.get_mut(cpu.index()) {
                    state.job = Some((job, at));
                }
            }
            Event::Preempt { cpu, job } | Event::Complete { cpu, job } if self.tasks.contains_key(&job.task) => {
                self.use_period(at, cpu);
                self.execute(at, cpu, job, before);
                if let Some(state) = self.cpus.get_mut(cpu.index()) {
                    state.job = None;
                }
                if let Some(task) = self.tasks.get_mut(&job.task) {
                    task.completed |= matches!(event, Event::Complete { .. });
                }
            }
            Event::Regulate { cpu, budget } => {
                self.use_period(at, cpu);
                if let Some(state) = self.cpus.get_mut(cpu.index()) {
                    state.is_regulated = budget.is_some();
                    state.summary.periods += u64::from(budget.is_some());
                    state.since = at;
                    state.counted.clear();
                }
            }
            Event::Throttle { cpu, task } => {
                if let Some(state) = self.cpus.get_mut(cpu.index()) {
                    state.throttled = Some((task, at));
                }
            }
            Event::Unthrottle { cpu, task, lost } => self.unthrottle(cpu, task, lost),
            Event::Grant { lock, .. } if self.is_bandwidth(lock) => {
                if self.holders == 0 {
                    self.held_since = at;
                }
                self.holders += 1;
            }
            Event::Unlock { lock, .. } if self.is_bandwidth(lock) => {
                self.holders = self.holders.saturating_sub(1);
                if self.holders == 0 {
                    self.held = self.held.saturating_add(at.saturating_since(self.held_since).0);
                }
            }
            Event::EngineBegin { gpu, engine, .. } if self.tells_rates => {
                self.running.insert((gpu, engine), Running { begun: at, since: at, rate: 1 << 32, done: 0 });
            }
            Event::EngineRate { gpu, engine, rate } => {
                if let Some(running) = self.running.get_mut(&(gpu, engine)) {
                    running.settle(at);
                    running.rate = rate;
                }
            }
            Event::EngineEnd { gpu, engine, .. } => self.end_operation(at, gpu, engine),
            _ => {}
        }
    }

    /// The results up to `end`, which is no earlier than the last record; says in `usages`, by CPU, what best-effort tasks had.
    pub fn summary(&self, end: Instant, replay: &Replay, usages: &mut [MachineSummary]) -> MemorySummary {
        let mut fold = self.clone();
        for cpu in 0..fold.cpus.len() as u16 {
            let cpu = CpuId(cpu);
            fold.use_period(end, cpu);
            if let Some((task, since)) = fold.cpus[cpu.index()].throttled {
                fold.add_throttled(cpu, task, end.saturating_since(since));
            }
            if let Some((job, _)) = fold.cpus[cpu.index()].job {
                fold.execute(end, cpu, job, replay);
            }
        }
        for (usage, cpu) in usages.iter_mut().zip(&fold.cpus) {
            usage.best_effort = Nanos(cpu.executed);
        }
        let held_now = if fold.holders > 0 { end.saturating_since(fold.held_since).0 } else { 0 };
        let best_effort = |(task, name): &(TaskId, String)| {
            let folded = fold.tasks.get(task).copied().unwrap_or_default();
            BestEffortSummary {
                task: *task,
                name: name.clone(),
                execution: Nanos(folded.execution),
                completed: folded.completed,
                throttled: Nanos(folded.throttled),
                throttled_periods: folded.throttled_periods,
                lost_virtual_time: Nanos(folded.lost_virtual_time),
                periods_used: folded.periods_used,
            }
        };
        MemorySummary {
            best_effort: fold.names.iter().map(best_effort).collect(),
            cpus: fold.cpus.iter().map(|cpu| cpu.summary).collect(),
            lock_held: Nanos(fold.held.saturating_add(held_now)),
            operations: fold.operations.values().cloned().collect(),
        }
    }

    fn is_bandwidth(&self, lock: laxity_model::LockId) -> bool {
        self.locks.get(lock.index()).copied().unwrap_or(false)
    }

    /// The best-effort job leaves `cpu` at `at`, or the trace ends then.
    fn execute(&mut self, at: Instant, cpu: CpuId, job: JobId, before: &Replay) {
        let Some(state) = before.cpu(cpu).filter(|cpu| cpu.job() == Some(job)) else { return };
        let executed = state.executed_by(at).0;
        if let Some(state) = self.cpus.get_mut(cpu.index()) {
            state.executed = state.executed.saturating_add(executed);
        }
        if let Some(task) = self.tasks.get_mut(&job.task) {
            task.execution = task.execution.saturating_add(executed);
        }
    }

    /// The best-effort job on `cpu` used the present period, if that is regulated and it has executed in it.
    fn use_period(&mut self, at: Instant, cpu: CpuId) {
        let Some(state) = self.cpus.get_mut(cpu.index()).filter(|state| state.is_regulated) else { return };
        let Some((job, since)) = state.job.filter(|&(_, since)| since.max(state.since) < at) else { return };
        debug_assert!(since <= at, "time does not go back");
        if !state.counted.contains(&job.task) {
            state.counted.push(job.task);
            if let Some(task) = self.tasks.get_mut(&job.task) {
                task.periods_used += 1;
            }
        }
    }

    fn unthrottle(&mut self, cpu: CpuId, task: Option<TaskId>, lost: Nanos) {
        self.add_throttled(cpu, task, lost);
        if let Some(state) = self.cpus.get_mut(cpu.index()) {
            state.throttled = None;
        }
        let charge = u128::from(lost.0) * u128::from(self.punishment) / 1_000_000;
        if let Some(task) = task.and_then(|task| self.tasks.get_mut(&task)) {
            let charge = u64::try_from(charge).unwrap_or(u64::MAX);
            task.lost_virtual_time = task.lost_virtual_time.saturating_add(charge);
        }
    }

    fn add_throttled(&mut self, cpu: CpuId, task: Option<TaskId>, lost: Nanos) {
        if let Some(state) = self.cpus.get_mut(cpu.index()) {
            state.summary.throttled = Nanos(state.summary.throttled.0.saturating_add(lost.0));
            state.summary.throttled_periods += 1;
        }
        if let Some(task) = task.and_then(|task| self.tasks.get_mut(&task)) {
            task.throttled = task.throttled.saturating_add(lost.0);
            task.throttled_periods += 1;
        }
    }

    fn end_operation(&mut self, at: Instant, gpu: GpuId, engine: Engine) {
        let Some(mut running) = self.running.remove(&(gpu, engine)) else { return };
        running.settle(at);
        // What the last nanosecond did beyond the end is less than a nanosecond of work.
        let solo = u64::try_from(running.done >> 32).unwrap_or(u64::MAX);
        let time = at.saturating_since(running.begun).0;
        let summary = self.operations.entry((gpu, engine)).or_insert(OperationSummary {
            gpu,
            engine,
            count: 0,
            time: Nanos::ZERO,
            solo: Nanos::ZERO,
            slowdown_max: 1.0,
        });
        summary.count += 1;
        summary.time = Nanos(summary.time.0.saturating_add(time));
        summary.solo = Nanos(summary.solo.0.saturating_add(solo));
        if solo > 0 {
            summary.slowdown_max = summary.slowdown_max.max(time as f64 / solo as f64);
        }
    }
}

impl Running {
    fn settle(&mut self, at: Instant) {
        let span = at.saturating_since(self.since).0;
        self.done = self.done.saturating_add(u128::from(self.rate) * u128::from(span));
        self.since = at;
    }
}
