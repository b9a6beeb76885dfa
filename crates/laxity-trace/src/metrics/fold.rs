//! From records to results.

use laxity_model::{CpuId, Instant, JobId, Nanos, OverheadKind, TaskId};

use super::cpu::CpuFold;
use super::extras::Extras;
use super::job::JobFold;
use super::memory::MemoryFold;
use super::waits::Waits;
use super::{CpuSummary, MachineSummary, OverheadUse, Summary, TaskSummary};
use crate::replay::{Change, Cpu, Replay, Running};
use crate::{Event, Sink, TaskKind, TraceHeader};

/// Measures a schedule as its records come.
///
/// Records that name a task or CPU the header does not know, or a job out of turn, are not counted: judging a trace is
/// the checkers' work ([`check`](crate::check)).
#[derive(Clone, Debug)]
pub struct Metrics {
    names: Vec<String>,
    kinds: Vec<TaskKind>,
    replay: Replay,
    jobs: Vec<JobFold>,
    cpus: Vec<CpuFold>,
    extras: Option<Box<Extras>>,
    /// Without `extras`: the suspensions, which need no more than their records.
    suspensions: Option<Box<Waits>>,
    memory: Option<Box<MemoryFold>>,
}

impl Metrics {
    /// Nothing measured yet.
    pub fn new(header: &TraceHeader) -> Self {
        let extras = Extras::new(header);
        Metrics {
            names: header.tasks.iter().map(|task| task.name.clone()).collect(),
            kinds: header.tasks.iter().map(|task| task.kind).collect(),
            replay: if extras.is_some() { Replay::new(header) } else { Replay::of_jobs_and_cpus(header) },
            jobs: vec![JobFold::default(); header.tasks.len()],
            cpus: vec![CpuFold::default(); header.cpus],
            suspensions: extras.is_none().then(|| Box::new(Waits::new(header))),
            extras,
            memory: MemoryFold::new(header).map(Box::new),
        }
    }

    /// The results so far, up to `end`, which is no earlier than the last record; measuring may go on.
    pub fn summary(&self, end: Instant) -> Summary {
        let jobs = self.jobs_up_to(end);
        let (mut total, mut of_threads) = (JobFold::default(), JobFold::default());
        for (fold, kind) in jobs.iter().zip(&self.kinds) {
            match kind {
                TaskKind::Task | TaskKind::Event | TaskKind::Node { .. } => total.merge(fold),
                TaskKind::Thread => of_threads.merge(fold),
                TaskKind::Callback | TaskKind::BestEffort => {}
            }
        }
        let duration = end.saturating_since(Instant::ZERO);
        let cpus = self.cpus.iter().zip(self.replay.cpus());
        let mut usages: Vec<MachineSummary> =
            cpus.map(|(fold, cpu)| with_idle(fold.up_to(end, cpu), u128::from(duration.0))).collect();
        let memory = self.memory.as_ref().map(|memory| memory.summary(end, &self.replay, &mut usages));
        let machine = with_idle(sum(&usages), u128::from(duration.0) * usages.len() as u128);
        let kind = |summary: &TaskSummary| self.kinds[summary.task.index()];
        let (threads, tasks) = self
            .task_summaries(&jobs)
            .filter(|summary| kind(summary) != TaskKind::BestEffort)
            .partition(|summary| kind(summary).is_thread());
        let cpu = |(index, usage)| CpuSummary { cpu: CpuId(index as u16), usage };
        let extras = self.extras.as_deref();
        let devices = extras.and_then(|extras| extras.devices.as_ref());
        let in_threads = of_threads.use_of_cpu();
        Summary {
            duration,
            total: total.summary(false),
            tasks,
            threads,
            cpus: usages.into_iter().enumerate().map(cpu).collect(),
            engines: extras.map(|extras| extras.engines(end, &self.replay)).unwrap_or_default(),
            interrupts: devices.map(|devices| devices.interrupts(&machine, in_threads)),
            inversions: extras.and_then(|extras| extras.inversions(end, &self.replay)),
            graphs: extras.map(Extras::graphs).unwrap_or_default(),
            chains: extras.map(Extras::chains).unwrap_or_default(),
            memory,
            stolen: self.cpus.iter().enumerate().filter_map(|(cpu, fold)| fold.stolen(CpuId(cpu as u16))).collect(),
            outside: self
                .cpus
                .iter()
                .zip(self.replay.cpus())
                .enumerate()
                .filter_map(|(index, (fold, cpu))| fold.summary_outside(CpuId(index as u16), cpu, end))
                .collect(),
            machine,
        }
    }

    /// The results of a run that ended at `end`, which is no earlier than the last record.
    pub fn finish(self, end: Instant) -> Summary {
        self.summary(end)
    }

    fn task_summaries(&self, jobs: &[JobFold]) -> impl Iterator<Item = TaskSummary> {
        self.names.iter().zip(jobs).enumerate().map(|(index, (name, fold))| TaskSummary {
            task: TaskId(index as u32),
            name: name.clone(),
            jobs: fold.summary(true),
            waits: match (&self.extras, &self.suspensions) {
                (Some(extras), _) => extras.waits(index),
                (None, Some(suspensions)) => suspensions.summary(index),
                (None, None) => Vec::new(),
            },
        })
    }

    /// The tasks' jobs, including what those on a CPU have executed by `end`.
    fn jobs_up_to(&self, end: Instant) -> Vec<JobFold> {
        let tasks = self.jobs.iter().zip(self.replay.tasks());
        let mut jobs: Vec<JobFold> = tasks.map(|(fold, task)| fold.up_to(end, task)).collect();
        for cpu in self.replay.cpus() {
            if let Some(fold) = cpu.job().and_then(|job| jobs.get_mut(job.task.index())) {
                fold.execution = fold.execution.saturating_add(cpu.executed_by(end).0);
            }
        }
        jobs
    }

    /// The job left its CPU after it executed for so long. Returns its task's fold.
    #[inline]
    fn stop(&mut self, cpu: CpuId, job: JobId, executed: Nanos) -> Option<&mut JobFold> {
        let cpu = self.cpus.get_mut(cpu.index())?;
        cpu.busy = cpu.busy.saturating_add(executed.0);
        let fold = self.jobs.get_mut(job.task.index())?;
        fold.execution = fold.execution.saturating_add(executed.0);
        Some(fold)
    }

    /// Counts what had the CPU and was no task, before the record that ends it. Out of line: within `record` it would load
    /// the event in other pieces than the writer has just stored it in, and wait for them.
    #[inline(never)]
    fn end_outside(&mut self, at: Instant, event: Event) {
        match event {
            Event::Outside { cpu, .. } => {
                if let Some((Running::Outside(by), from)) = self.replay.cpu(cpu).map(Cpu::running) {
                    self.cpus[cpu.index()].outside(by, at.saturating_since(from));
                }
            }
            Event::OutsidersLost { cpu, records } => {
                self.cpus.get_mut(cpu.index()).into_iter().for_each(|fold| fold.lose(records));
            }
            _ => {}
        }
    }

    /// Counts what the record did.
    #[inline]
    fn count(&mut self, at: Instant, event: Event, change: Change) {
        match (event, change) {
            (Event::Release { job, .. }, Change::Released) => {
                if let Some(fold) = self.jobs.get_mut(job.task.index()) {
                    fold.released += 1;
                }
            }
            (Event::Dispatch { cpu, job }, Change::Dispatched { before: Some(before) }) if before != cpu => {
                if let Some(fold) = self.jobs.get_mut(job.task.index()) {
                    fold.migrations += 1;
                }
            }
            (Event::Preempt { cpu, job }, Change::Stopped { executed }) => {
                if let Some(fold) = self.stop(cpu, job, executed) {
                    fold.preemptions += 1;
                }
            }
            (Event::Suspend { cpu, job }, Change::Stopped { executed }) => {
                if let Some(fold) = self.stop(cpu, job, executed) {
                    fold.suspensions += 1;
                }
            }
            (Event::Complete { cpu, job }, Change::Completed { executed, job: completion }) => {
                if let Some(executed) = executed {
                    self.stop(cpu, job, executed);
                }
                if let (Some(completion), Some(fold)) = (completion, self.jobs.get_mut(job.task.index())) {
                    fold.complete(job.index, at, completion);
                }
            }
            (Event::Overhead { cpu, kind, .. }, Change::Covered { added }) => {
                self.cpus[cpu.index()].overhead(kind, added);
            }
            (Event::LockWait { cpu, .. }, Change::Covered { added }) => self.cpus[cpu.index()].lock_wait(added),
            (
                Event::Overhead { .. }
                | Event::CacheDelay { .. }
                | Event::Ipi { .. }
                | Event::BottomHalfBegin { .. }
                | Event::Stolen { .. },
                _,
            ) => {
                self.count_rare(event);
            }
            _ => {}
        }
    }

    /// Tells suspensions from waits for a budget.
    #[inline(never)]
    fn count_suspension(&mut self, at: Instant, event: Event) {
        let seemed = match (event, &mut self.extras, &mut self.suspensions) {
            (Event::Replenish { task, .. }, Some(extras), _) => extras.budget_comes(task, &self.replay).then_some(task),
            (Event::Replenish { task, .. }, None, Some(waits)) => waits.budget_comes(task).then_some(task),
            (_, None, Some(waits)) => {
                waits.record_suspension(at, event);
                None
            }
            _ => None,
        };
        if let Some(fold) = seemed.and_then(|task| self.jobs.get_mut(task.index())) {
            fold.suspensions = fold.suspensions.saturating_sub(1);
        }
    }

    /// Events that are rare in schedules of tasks without GPUs: out of line, so that the rest stays small.
    #[inline(never)]
    fn count_rare(&mut self, event: Event) {
        match event {
            // It leaves the CPU to its job.
            Event::Overhead { cpu, kind, duration } => {
                if let Some(fold) = self.cpus.get_mut(cpu.index()) {
                    fold.count(kind, duration);
                }
            }
            Event::CacheDelay { cpu, job, kind, duration } => {
                if let Some(fold) = self.cpus.get_mut(cpu.index()) {
                    fold.count(kind, duration);
                }
                if let Some(fold) = self.jobs.get_mut(job.task.index()) {
                    fold.cache_delay = fold.cache_delay.saturating_add(duration.0);
                }
            }
            Event::Ipi { to, latency, .. } => {
                if let Some(fold) = self.cpus.get_mut(to.index()) {
                    fold.count(OverheadKind::IpiLatency, latency);
                }
            }
            Event::BottomHalfBegin { cpu, .. } => {
                if let Some(fold) = self.cpus.get_mut(cpu.index()) {
                    fold.begin_bottom_half();
                }
            }
            Event::Stolen { cpu, duration } => {
                if let Some(fold) = self.cpus.get_mut(cpu.index()) {
                    fold.steal(duration);
                }
            }
            _ => {}
        }
    }
}

impl Sink for Metrics {
    #[inline]
    fn record(&mut self, at: Instant, event: Event) {
        if let Some(memory) = &mut self.memory {
            memory.record(at, event, &self.replay);
        }
        if matches!(event, Event::Outside { .. } | Event::OutsidersLost { .. }) {
            self.end_outside(at, event);
        }
        let change = match &mut self.extras {
            None => self.replay.apply(at, event),
            Some(extras) => extras.record(at, event, &mut self.replay),
        };
        let tells = match event {
            Event::Suspend { .. } => matches!(change, Change::Stopped { .. }),
            Event::Resume { .. } | Event::Replenish { .. } => true,
            _ => false,
        };
        self.count(at, event, change);
        if tells {
            self.count_suspension(at, event);
        }
    }
}

/// All CPUs together, without `idle` and `utilization`.
fn sum(usages: &[MachineSummary]) -> MachineSummary {
    let mut total = MachineSummary::default();
    let add = |a: Nanos, b: Nanos| Nanos(a.0.saturating_add(b.0));
    for usage in usages {
        total.busy = add(total.busy, usage.busy);
        total.best_effort = add(total.best_effort, usage.best_effort);
        total.lock_wait = add(total.lock_wait, usage.lock_wait);
        total.spin = add(total.spin, usage.spin);
        for (mine, their) in total.overheads.by_kind.iter_mut().zip(usage.overheads.by_kind) {
            *mine = OverheadUse { count: mine.count + their.count, time: add(mine.time, their.time) };
        }
    }
    total
}

/// Fills in the idle time: the rest of `available` nanoseconds of CPU time.
fn with_idle(usage: MachineSummary, available: u128) -> MachineSummary {
    let used = [usage.busy, usage.overheads.cpu_time(), usage.lock_wait, usage.spin];
    let used: u128 = used.into_iter().map(|time| u128::from(time.0)).sum();
    MachineSummary {
        idle: Nanos(u64::try_from(available.saturating_sub(used)).unwrap_or(u64::MAX)),
        utilization: if available == 0 { 0.0 } else { usage.busy.0 as f64 / available as f64 },
        ..usage
    }
}
