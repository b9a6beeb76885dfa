//! From records to results.

use laxity_model::{CpuId, Instant, JobId, Nanos, OverheadKind, TaskId};

use super::cpu::CpuFold;
use super::extras::Extras;
use super::job::{JobFold, TaskFold};
use super::{CpuSummary, MachineSummary, OverheadUse, Summary, TaskSummary};
use crate::{Event, Sink, TaskKind, TraceHeader};

/// Measures a schedule as its records come.
///
/// Records that name a task or CPU the header does not know, or a job out of turn, are not counted: judging a trace is
/// the checkers' work ([`check`](crate::check)).
#[derive(Clone, Debug)]
pub struct Metrics {
    names: Vec<String>,
    tasks: Vec<TaskFold>,
    cpus: Vec<CpuFold>,
    kinds: Vec<TaskKind>,
    extras: Option<Box<Extras>>,
}

impl Metrics {
    /// Nothing measured yet.
    pub fn new(header: &TraceHeader) -> Self {
        Metrics {
            names: header.tasks.iter().map(|task| task.name.clone()).collect(),
            tasks: header.tasks.iter().map(|task| TaskFold::new(task.deadline, task.kind.is_thread())).collect(),
            cpus: vec![CpuFold::default(); header.cpus],
            kinds: header.tasks.iter().map(|task| task.kind).collect(),
            extras: Extras::new(header),
        }
    }

    /// The results so far, up to `end`, which is no earlier than the last record; measuring may go on.
    pub fn summary(&self, end: Instant) -> Summary {
        let jobs = self.jobs_up_to(end);
        let (mut total, mut of_threads) = (JobFold::default(), JobFold::default());
        for (fold, kind) in jobs.iter().zip(&self.kinds) {
            match kind {
                TaskKind::Task | TaskKind::Node { .. } => total.merge(fold),
                TaskKind::Thread => of_threads.merge(fold),
                TaskKind::Callback => {}
            }
        }
        let duration = end.saturating_since(Instant::ZERO);
        let usages: Vec<MachineSummary> =
            self.cpus.iter().map(|cpu| with_idle(cpu.up_to(end), u128::from(duration.0))).collect();
        let machine = with_idle(sum(&usages), u128::from(duration.0) * usages.len() as u128);
        let (threads, tasks) =
            self.task_summaries(&jobs).partition(|summary| self.kinds[summary.task.index()].is_thread());
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
            engines: devices.map(|devices| devices.engines(end)).unwrap_or_default(),
            interrupts: devices.map(|devices| devices.interrupts(&machine, in_threads)),
            inversions: extras.and_then(|extras| extras.inversions(end)),
            graphs: extras.map(Extras::graphs).unwrap_or_default(),
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
            waits: self.extras.as_ref().map(|extras| extras.waits(index)).unwrap_or_default(),
        })
    }

    /// The tasks' jobs, including what those on a CPU have executed by `end`.
    fn jobs_up_to(&self, end: Instant) -> Vec<JobFold> {
        let mut jobs: Vec<JobFold> = self.tasks.iter().map(|task| task.up_to(end)).collect();
        for occupancy in self.cpus.iter().map(|cpu| &cpu.occupancy) {
            if let Some(fold) = occupancy.running().and_then(|job| jobs.get_mut(job.task.index())) {
                fold.execution = fold.execution.saturating_add(occupancy.executed_by(end).0);
            }
        }
        jobs
    }

    #[inline]
    fn task(&mut self, job: JobId) -> Option<&mut TaskFold> {
        self.tasks.get_mut(job.task.index())
    }

    #[inline]
    fn dispatch(&mut self, at: Instant, cpu: CpuId, job: JobId) {
        let Some(fold) = self.cpus.get_mut(cpu.index()) else { return };
        let Some(task) = self.tasks.get_mut(job.task.index()) else { return };
        fold.occupancy.dispatch(at, job);
        task.dispatch(cpu);
        if task.spins {
            fold.occupancy.begin_spinning(at, job);
        }
    }

    /// `job` begins or ends to spin.
    fn spin(&mut self, at: Instant, cpu: CpuId, job: JobId, spins: bool) {
        let Some(task) = self.tasks.get_mut(job.task.index()) else { return };
        task.spins = spins;
        if let Some(fold) = self.cpus.get_mut(cpu.index()) {
            match spins {
                true => fold.occupancy.begin_spinning(at, job),
                false => fold.occupancy.end_spinning(at, job),
            }
        }
    }

    /// `job` leaves `cpu`: what it executed there is accounted for. `None` if it did not have the CPU.
    #[inline]
    fn stop(&mut self, at: Instant, cpu: CpuId, job: JobId) -> Option<&mut TaskFold> {
        let fold = self.cpus.get_mut(cpu.index())?;
        let executed = fold.occupancy.stop(at, job)?;
        fold.busy = fold.busy.saturating_add(executed.0);
        let task = self.tasks.get_mut(job.task.index())?;
        task.jobs.execution = task.jobs.execution.saturating_add(executed.0);
        Some(task)
    }
}

impl Sink for Metrics {
    #[inline]
    fn record(&mut self, at: Instant, event: Event) {
        if let Some(extras) = &mut self.extras {
            extras.record(at, event);
        }
        match event {
            Event::Release { job, deadline } => {
                if let Some(task) = self.task(job) {
                    task.release(at, job.index, deadline);
                }
            }
            Event::Dispatch { cpu, job } => self.dispatch(at, cpu, job),
            Event::Preempt { cpu, job } => {
                if let Some(task) = self.stop(at, cpu, job) {
                    task.jobs.preemptions += 1;
                }
            }
            Event::Suspend { cpu, job } => {
                if let Some(task) = self.stop(at, cpu, job) {
                    task.jobs.suspensions += 1;
                }
            }
            Event::Complete { cpu, job } => {
                self.stop(at, cpu, job);
                if let Some(task) = self.task(job) {
                    task.complete(at, job.index);
                }
            }
            Event::Overhead { cpu, kind, duration } => {
                if let Some(fold) = self.cpus.get_mut(cpu.index()) {
                    fold.overhead(at, kind, duration);
                }
            }
            Event::Ready { .. } | Event::Link { .. } => {}
            rare => self.record_rare(at, rare),
        }
    }
}

impl Metrics {
    /// What ideal schedules of tasks without GPUs are not full of: kept apart, for the others' sake.
    #[inline(never)]
    fn record_rare(&mut self, at: Instant, event: Event) {
        match event {
            Event::LockWait { cpu, duration } => {
                if let Some(fold) = self.cpus.get_mut(cpu.index()) {
                    fold.lock_wait(at, duration);
                }
            }
            Event::CacheDelay { cpu, job, kind, duration } => {
                if let Some(fold) = self.cpus.get_mut(cpu.index()) {
                    fold.count(kind, duration);
                }
                if let Some(task) = self.task(job) {
                    task.jobs.cache_delay = task.jobs.cache_delay.saturating_add(duration.0);
                }
            }
            Event::Ipi { to, latency, .. } => {
                if let Some(fold) = self.cpus.get_mut(to.index()) {
                    fold.count(OverheadKind::IpiLatency, latency);
                }
            }
            Event::BottomHalfBegin { cpu, .. } => {
                if let Some(fold) = self.cpus.get_mut(cpu.index()) {
                    fold.begin_bottom_half(at);
                }
            }
            Event::BottomHalfEnd { cpu, .. } => {
                if let Some(fold) = self.cpus.get_mut(cpu.index()) {
                    fold.occupancy.end_bottom_half(at);
                }
            }
            Event::SpinBegin { cpu, job } => self.spin(at, cpu, job, true),
            Event::SpinEnd { cpu, job } => self.spin(at, cpu, job, false),
            Event::Release { .. }
            | Event::Ready { .. }
            | Event::Link { .. }
            | Event::Dispatch { .. }
            | Event::Preempt { .. }
            | Event::Suspend { .. }
            | Event::Complete { .. }
            | Event::Overhead { .. }
            | Event::Resume { .. }
            | Event::NonPreemptiveBegin { .. }
            | Event::NonPreemptiveEnd { .. }
            | Event::EngineBegin { .. }
            | Event::EngineEnd { .. }
            | Event::Interrupt { .. }
            | Event::Serve { .. }
            | Event::Request { .. }
            | Event::Grant { .. }
            | Event::Unlock { .. }
            | Event::Withdraw { .. }
            | Event::Priority { .. }
            | Event::Produce { .. }
            | Event::Consume { .. }
            | Event::Replenish { .. }
            | Event::End => {}
        }
    }
}

/// All CPUs together, without `idle` and `utilization`.
fn sum(usages: &[MachineSummary]) -> MachineSummary {
    let mut total = MachineSummary::default();
    let add = |a: Nanos, b: Nanos| Nanos(a.0.saturating_add(b.0));
    for usage in usages {
        total.busy = add(total.busy, usage.busy);
        total.lock_wait = add(total.lock_wait, usage.lock_wait);
        total.spin = add(total.spin, usage.spin);
        for (mine, their) in total.overheads.by_kind.iter_mut().zip(usage.overheads.by_kind) {
            *mine = OverheadUse { count: mine.count + their.count, time: add(mine.time, their.time) };
        }
    }
    total
}

/// Fills in what is left of `available` nanoseconds of CPU time.
fn with_idle(usage: MachineSummary, available: u128) -> MachineSummary {
    let used = [usage.busy, usage.overheads.cpu_time(), usage.lock_wait, usage.spin];
    let used: u128 = used.into_iter().map(|time| u128::from(time.0)).sum();
    MachineSummary {
        idle: Nanos(u64::try_from(available.saturating_sub(used)).unwrap_or(u64::MAX)),
        utilization: if available == 0 { 0.0 } else { usage.busy.0 as f64 / available as f64 },
        ..usage
    }
}
