//! Makes one trace of the logs of all workers and the histories of all GPUs.

mod budgets;
mod gpus;
mod grants;
mod graphs;
mod locks;
mod moved;
mod passing;
mod progress;
#[cfg(test)]
mod recorded;
mod regulation;
mod source;
mod told;

use std::collections::{BTreeMap, VecDeque};
use std::iter::Peekable;

use laxity_model::{CpuId, Instant, JobId, LockId, Nanos, OverheadKind, TaskId};
use laxity_plan::Release;
use laxity_policy::graph::LatestValues;
use laxity_sys::clock;
use laxity_trace::{CpuOccupancy, DeviceId, Event, LockKind, Sink};

pub(crate) use self::gpus::Streams;
use self::gpus::{GpuRecord, Gpus};
use self::grants::Overtaken;
use self::graphs::Graphs;
use self::locks::Locks;
use self::progress::Progress;
use self::source::{Next, Source};
pub(crate) use self::told::Numbering;
use crate::log::{Entry, JobStep, Reader};
use crate::outside::Outside;
use crate::plan::{LivePlan, ReleaseTimes, TaskPlan};

/// Merges by time the logs of workers, the histories of GPUs, and the releases of jobs.
#[derive(Debug)]
pub(crate) struct Collector {
    start: Instant,
    /// The tasks, then for each GPU the thread that handles its interrupts, the best-effort tasks, the regulators, and what
    /// watches CPUs.
    sources: Vec<Source>,
    tasks: usize,
    /// Tasks from this number on are best-effort tasks.
    first_best_effort: usize,
    /// Whether Laxity's scheduler schedules: jobs note when they suspend to wait for any lock.
    is_told: bool,
    /// The lock that Laxity's scheduler does not grant: that of the memory bandwidth.
    bandwidth: Option<LockId>,
    /// Whether its priorities are deadlines.
    by_deadline: bool,
    occupancy: CpuOccupancy,
    /// The task that each CPU is linked to, or was last, where Laxity's scheduler schedules.
    links: Vec<Option<TaskId>>,
    locks: Locks,
    /// Locks with smaller numbers are resources.
    resources: usize,
    graphs: Graphs,
    latest: LatestValues,
    gpus: Gpus,
    /// When the jobs are due that were released and are not complete.
    deadlines: BTreeMap<JobId, Instant>,
    /// For each CPU of the workload its number in Linux.
    linux: Vec<usize>,
    /// The CPUs of each cluster, and the cluster of each task.
    clusters: Vec<Vec<CpuId>>,
    cluster_of: Vec<usize>,
    /// The job of each task that Laxity's scheduler knows, or knew last.
    current: Vec<u32>,
    numbering: Numbering,
    /// A task that something was decided about, and that the trace has not: nothing that follows can be told.
    stranger: Option<TaskId>,
    /// The CPU that each task was on last, and its job there.
    last_seen: Vec<(CpuId, u32)>,
    /// Of each task.
    progress: Vec<Progress>,
    /// The size of the budget that each task is given.
    amounts: Vec<u64>,
    /// When the last record was, from the start.
    reached: Instant,
    /// Until when everything is known, from the start.
    seen: Instant,
    completed: u64,
    /// What happened after that may be missing in the logs.
    limit: Instant,
    lack_the_end: bool,
    /// What happened after that stays out of the trace.
    hold: Instant,
    /// When jobs arrive for the last time.
    last_arrival: Instant,
    /// What has the CPUs besides, if it is asked for.
    pub outside: Option<Outside>,
}

impl Collector {
    /// For threads whose first job is released at `start` or later, which wrote `readers` ([`LivePlan::logs`], then any of what
    /// watches CPUs and stands in for devices).
    pub fn new(
        plan: &LivePlan,
        start: Instant,
        readers: Vec<Reader>,
        gpus: crate::gpus::Gpus,
        streams: &Streams,
    ) -> Collector {
        let mut releases: Vec<Option<ReleaseTimes>> = plan.tasks.iter().map(TaskPlan::releases).collect();
        let count = readers.len();
        let bandwidth = plan.header().locks.iter().position(|lock| matches!(lock.kind, LockKind::Bandwidth));
        let regulated = plan.protection.as_ref().map_or(0, |protection| protection.cpus.len());
        let first_best_effort = plan.logs() - regulated - plan.best_effort.tasks.len();
        releases.resize_with(first_best_effort, || None);
        releases.extend(plan.best_effort.releases().map(Some));
        releases.resize_with(count, || None);
        let source = |(releases, reader): (Option<ReleaseTimes>, Reader)| Source {
            releases: releases.map(Iterator::peekable),
            reader,
            entries: VecDeque::new(),
        };
        let sources = releases.into_iter().zip(readers).map(source).collect();
        let linux = plan.placement.linux.clone();
        Collector {
            start,
            sources,
            tasks: plan.tasks.len(),
            first_best_effort,
            is_told: plan.system.is_some(),
            bandwidth: bandwidth.map(|lock| LockId(lock as u16)),
            by_deadline: plan.header().scheduler.rule.goes_by_deadline(),
            occupancy: CpuOccupancy::new(linux.len(), count).told(plan.system.is_some()),
            links: vec![None; linux.len()],
            clusters: plan.placement.clusters.clone(),
            cluster_of: plan.placement.cluster_of.clone(),
            current: vec![0; count],
            numbering: Numbering::new(count, &[]),
            stranger: None,
            locks: Locks::new(plan.header().locks.iter().map(|lock| lock.replicas), count),
            resources: plan.resources,
            graphs: Graphs::new(plan),
            latest: LatestValues::new(&plan.latest, count),
            gpus: Gpus::new(gpus, streams),
            deadlines: BTreeMap::new(),
            linux,
            last_seen: vec![(CpuId(0), 0); count],
            progress: vec![Progress::default(); count],
            amounts: vec![0; count],
            reached: Instant::ZERO,
            seen: Instant::ZERO,
            completed: 0,
            limit: Instant::NEVER,
            lack_the_end: false,
            hold: Instant::NEVER,
            last_arrival: Instant::NEVER,
            outside: None,
        }
    }

    /// Tasks have these numbers in the trace.
    pub fn numbered(self, numbering: Numbering) -> Collector {
        Collector { numbering, ..self }
    }

    /// The task that is none of the trace's, where that ends.
    pub fn stranger(&self) -> Option<TaskId> {
        self.stranger
    }

    /// Hands to `sink` all records that nothing can precede any more.
    pub fn collect(&mut self, sink: &mut impl Sink) {
        let horizon = self.read();
        self.merge(horizon, false, sink);
    }

    /// Hands the rest to `sink`, up to `end` from the start or a later entry; the workers have ended. Answers when the
    /// trace ends, and whether it is whole. A trace that is not whole has no [`Event::End`].
    pub fn finish(&mut self, end: Instant, sink: &mut impl Sink) -> (Instant, bool) {
        let horizon = self.read();
        if self.is_broken() {
            self.merge(horizon, false, sink);
            return (self.reached, false);
        }
        let noted = self.sources.iter().filter_map(|source| source.entries.back()).map(|entry| entry.at);
        let last = noted.chain(self.gpus.last()).max().map(|at| self.since(at));
        let end = last.map_or(end, |last| last.max(end)).min(self.since(self.hold)).max(self.reached);
        self.merge(self.start.saturating_add(end - Instant::ZERO), true, sink);
        sink.record(end, Event::End);
        (end, true)
    }

    /// Until when it is known what happened.
    pub fn seen(&self) -> Instant {
        self.seen
    }

    /// How many jobs it has completed.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// The process of `task` was killed.
    pub fn writer_has_died(&self, task: usize) {
        self.sources[task].reader.writer_has_died();
    }

    /// The logs are complete until `until` at most; if they `lack_the_end`, nothing is known of what comes after.
    pub fn trust(&mut self, until: Instant, lack_the_end: bool) {
        (self.limit, self.lack_the_end) = (until, lack_the_end);
    }

    /// Nothing that happens after `at` is handed to a sink until it is let go, and no job arrives later, but for one that a worker
    /// began before it knew.
    pub fn hold_at(&mut self, at: Instant) {
        (self.hold, self.last_arrival) = (at, at);
    }

    /// What happened after the time at which it holds is handed on.
    pub fn let_go(&mut self) {
        self.hold = Instant::NEVER;
    }

    /// Whether a log was full or lacks the end, or a GPU forgot entries before they were read.
    pub fn is_broken(&self) -> bool {
        self.lack_the_end
            || self.stranger.is_some()
            || self.gpus.is_broken()
            || self.sources.iter().any(|source| source.reader.is_full())
    }

    /// Takes the entries of all logs. Answers until when they are complete.
    fn read(&mut self) -> Instant {
        let now = clock::now();
        self.gpus.read();
        let until = self.outside.as_mut().map_or(now, |outside| outside.read(now));
        let taken = self.sources.iter_mut().map(|source| source.reader.take(now, &mut source.entries));
        taken.min().unwrap_or(now).min(until).min(self.limit).min(self.hold)
    }

    fn since(&self, at: Instant) -> Instant {
        Instant(at.saturating_since(self.start).0)
    }

    fn merge(&mut self, horizon: Instant, is_last: bool, sink: &mut impl Sink) {
        let until = self.since(horizon);
        while self.stranger.is_none() && self.decide(horizon, is_last, sink) {
            self.put_to_sleep(sink);
            let Some((at, next)) = self.next() else { break };
            if at > until {
                break;
            }
            let mut moved = None;
            if let Next::Entry(task) = next {
                let Ok(gave_way) = self.moved(task, is_last) else { break };
                moved = gave_way;
                match self.overtaken(task, horizon, is_last) {
                    Overtaken::No => {}
                    Overtaken::Until(later) => {
                        self.put_off(task, later);
                        continue;
                    }
                    Overtaken::Unknown => break,
                }
            }
            self.reached = self.reached.max(at);
            moved.into_iter().for_each(|moved| self.follow(moved, sink));
            self.carry_on(next, sink);
        }
        self.seen = self.seen.max(until);
    }

    /// The next thing that happened, and when.
    fn next(&mut self) -> Option<(Instant, Next)> {
        let since = |at: Instant| Instant(at.saturating_since(self.start).0);
        let last_arrival = since(self.last_arrival);
        let timeout = self.graphs.next_timeout().map(|(at, graph)| (at, Next::Timeout(graph)));
        let gpu = self.gpus.next().map(|(at, gpu)| (since(at), Next::Gpu(gpu)));
        let heads = self.sources.iter_mut().enumerate().filter_map(|(task, source)| {
            let entry = source.entries.front().map(|entry| (since(entry.at), Next::Entry(task)));
            let release = source.releases.as_mut().and_then(Peekable::peek);
            let release = release.filter(|release| release.at <= last_arrival || entry.is_some());
            let release = release.map(|release| (release.at, Next::Release(task)));
            release.into_iter().chain(entry).min()
        });
        let outside = self.outside.as_ref().and_then(Outside::next).map(|at| (since(at), Next::Outside));
        heads.chain(timeout).chain(gpu).chain(outside).min()
    }

    fn carry_on(&mut self, next: Next, sink: &mut impl Sink) {
        let at = self.reached;
        let deadlines = &mut self.deadlines;
        let mut record = |event| {
            if let Event::Release { job, deadline } = event {
                deadlines.insert(job, deadline);
            }
            sink.record(at, event);
        };
        match next {
            Next::Outside => self.outside.as_mut().and_then(Outside::take).into_iter().for_each(record),
            Next::Timeout(graph) => self.graphs.timeout(graph, at, &mut record),
            Next::Release(task) => {
                let releases = self.sources[task].releases.as_mut().and_then(Iterator::next);
                let Release { index, deadline, .. } = releases.expect("it was seen");
                if !self.graphs.arrive(task, at, &mut record) {
                    record(Event::Release { job: JobId { task: TaskId(task as u32), index }, deadline });
                }
            }
            Next::Gpu(gpu) => match self.gpus.take(gpu) {
                Some(GpuRecord::Event(event)) => record(event),
                Some(GpuRecord::Interrupt { cpu, job }) => {
                    let cpu = self.cpu(cpu);
                    sink.record(at, Event::Interrupt { cpu, device: DeviceId(gpu as u16), job: Some(job) });
                }
                None => {}
            },
            Next::Entry(task) => {
                let entry = self.sources[task].entries.pop_front().expect("it was seen");
                self.entry(task, entry, sink);
            }
        }
    }

    fn entry(&mut self, task: usize, entry: Entry, sink: &mut impl Sink) {
        if self.decision(&entry, sink) || self.regulation(entry, sink) || self.budget(task, entry, sink) {
            return;
        }
        if let JobStep::Stolen(duration) = entry.step {
            let cpu = self.cpu(entry.cpu);
            return sink.record(self.reached, Event::Stolen { cpu, duration: Nanos(duration) });
        }
        if let JobStep::TopHalf(device, duration) = entry.step {
            return self.top_half(DeviceId(device), entry.cpu, Nanos(duration), sink);
        }
        let progress = self.progress[task];
        if !progress.is_at(entry.index) {
            return;
        }
        self.progress[task].advance(entry.step);
        let at = self.reached;
        let job = JobId { task: TaskId(task as u32), index: entry.index };
        let cpu = match entry.step {
            // Its supervisor says so, from wherever that is.
            JobStep::Throttled => self.occupancy.place(job.task).unwrap_or(self.last_seen[task].0),
            _ => self.cpu(entry.cpu),
        };
        let host = self.host(job, cpu);
        let (before, _) = std::mem::replace(&mut self.last_seen[task], (cpu, entry.index));
        let mut record = |event| sink.record(at, event);
        match entry.step {
            JobStep::Begin if progress.has_begun() => {
                progress.end_of_killed(job, before).into_iter().for_each(&mut record);
                self.occupancy.enter(job, cpu, &mut record);
                self.latest.read(job.task, |edge, value| record(Event::Read { job, edge, value }));
            }
            JobStep::Begin => {
                if let Some(gpu) = task.checked_sub(self.tasks).filter(|_| task < self.first_best_effort) {
                    self.serve(job, gpu, &mut record);
                }
                record(Event::Ready { job, cpu });
                self.execute(job, cpu, sink);
                self.latest.begin(job, |edge, value| sink.record(at, Event::Read { job, edge, value }));
            }
            JobStep::Resume => {
                record(Event::Resume { cpu, job });
                self.occupancy.enter(job, cpu, &mut record);
            }
            JobStep::Serves => {
                self.current[task] = entry.index;
                self.serve(job, task - self.tasks, &mut record);
            }
            JobStep::Released(deadline) => {
                self.current[task] = entry.index;
                let deadline = Instant(Instant(deadline).saturating_since(self.start).0);
                record(Event::Release { job, deadline });
                record(Event::Serve { thread: job, device: DeviceId((task - self.tasks) as u16), job: None });
            }
            JobStep::Ready => {
                self.current[task] = entry.index;
                record(Event::Ready { job, cpu });
            }
            JobStep::Resumed => record(Event::Resume { cpu, job }),
            JobStep::Executes => {
                self.execute(job, cpu, sink);
                self.latest.begin(job, |edge, value| sink.record(at, Event::Read { job, edge, value }));
            }
            JobStep::Linked(..)
            | JobStep::Carried(..)
            | JobStep::Granted(..)
            | JobStep::Prioritized(..)
            | JobStep::Waits(_)
            | JobStep::GoesOn(_)
            | JobStep::Regulate(_)
            | JobStep::Throttle(_)
            | JobStep::Unthrottle(..)
            | JobStep::Amount(_)
            | JobStep::Replenish(_)
            | JobStep::Priority(_)
            | JobStep::TopHalf(..)
            | JobStep::Stolen(_) => unreachable!("they are decisions, and no steps of a job"),
            JobStep::NonPreemptiveBegin | JobStep::NonPreemptiveEnd | JobStep::SpinBegin | JobStep::SpinEnd => {
                self.occupancy.enter(job, cpu, &mut record);
                record(match entry.step {
                    JobStep::NonPreemptiveBegin => Event::NonPreemptiveBegin { cpu, job },
                    JobStep::NonPreemptiveEnd => Event::NonPreemptiveEnd { cpu, job },
                    JobStep::SpinBegin => Event::SpinBegin { cpu, job },
                    _ => Event::SpinEnd { cpu, job },
                });
            }
            JobStep::Suspend | JobStep::Throttled => {
                self.occupancy.leave(job, cpu, Event::Suspend { cpu, job }, &mut record);
            }
            JobStep::Complete => self.complete(job, cpu, sink),
            JobStep::Ended => self.end(job, cpu, sink),
            JobStep::Request(lock) => {
                self.occupancy.enter(job, cpu, &mut record);
                record(Event::Request { job, lock });
                if !self.is_told || self.bandwidth == Some(lock) {
                    self.locks.request(task, lock);
                }
            }
            JobStep::Wait(_) => {
                // If it was granted meanwhile, it does not wait.
                if let Some(wanted) = self.locks.wanted(task).filter(|wanted| !wanted.granted) {
                    wanted.suspended = true;
                    self.occupancy.leave(job, cpu, Event::Suspend { cpu, job }, &mut record);
                }
            }
            JobStep::Grant(lock, replica) => self.noted(task, job, cpu, (lock, replica), sink),
            JobStep::Unlock(lock, replica) => {
                self.occupancy.enter(job, cpu, &mut record);
                record(Event::Unlock { job, lock, replica });
                self.locks.unlock(lock, replica);
            }
        }
        host.into_iter().for_each(|host| self.go_on(host, cpu, sink));
    }

    /// `job` says that it executes on `cpu`. Where Laxity schedules, a job may say so until Linux has carried out that another
    /// job has the CPU.
    fn execute(&mut self, job: JobId, cpu: CpuId, sink: &mut impl Sink) {
        if self.host(job, cpu).is_none() {
            let at = self.reached;
            self.occupancy.enter(job, cpu, &mut |event| sink.record(at, event));
        }
    }

    /// `device` interrupted a CPU, whose top half took that long, if it is known.
    fn top_half(&mut self, device: DeviceId, cpu: usize, duration: Nanos, sink: &mut impl Sink) {
        let (at, cpu) = (self.reached, self.cpu(cpu));
        sink.record(at, Event::Interrupt { cpu, device, job: None });
        if !duration.is_zero() {
            sink.record(at, Event::Overhead { cpu, kind: OverheadKind::TopHalf, duration });
        }
    }

    /// `thread` handles an interrupt of the device of that number, for its owner if that is a GPU.
    fn serve(&mut self, thread: JobId, gpu: usize, record: &mut impl FnMut(Event)) {
        let owner = self.gpus.handle(gpu);
        let deadline = owner.and_then(|owner| self.deadlines.get(&owner)).copied().unwrap_or(self.reached);
        record(Event::Release { job: thread, deadline });
        record(Event::Serve { thread, device: DeviceId(gpu as u16), job: owner });
    }

    fn complete(&mut self, job: JobId, cpu: CpuId, sink: &mut impl Sink) {
        let (at, task) = (self.reached, job.task.index());
        self.completed += u64::from(task < self.tasks);
        self.deadlines.remove(&job);
        let deadlines = &mut self.deadlines;
        let mut record = |event| {
            if let Event::Release { job, deadline } = event {
                deadlines.insert(job, deadline);
            }
            sink.record(at, event);
        };
        self.occupancy.leave(job, cpu, Event::Complete { cpu, job }, &mut record);
        self.latest.complete(job);
        self.graphs.complete(task, at, &mut record);
    }

    /// The node of `job` has ended in it: nothing follows from this job, and none comes after.
    fn end(&mut self, job: JobId, cpu: CpuId, sink: &mut impl Sink) {
        let at = self.reached;
        self.deadlines.remove(&job);
        self.sources[job.task.index()].releases = None;
        self.occupancy.leave(job, cpu, Event::Complete { cpu, job }, &mut |event| sink.record(at, event));
    }

    /// The CPU of the workload that stands for that of Linux; the last if none does.
    fn cpu(&self, number: usize) -> CpuId {
        let found = self.linux.iter().position(|&linux| linux == number);
        CpuId(found.unwrap_or(self.linux.len() - 1) as u16)
    }
}
