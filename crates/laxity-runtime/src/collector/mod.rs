//! What all threads noted, as one trace.

mod locks;
mod stage;

use std::collections::VecDeque;
use std::iter::Peekable;

use laxity_model::{CpuId, Instant, JobId, LockId, ReplicaId, TaskId};
use laxity_sys::clock;
use laxity_trace::{Event, Sink};

use self::locks::Locks;
use self::stage::Stage;
use crate::draws::Releases;
use crate::log::{Deed, Entry, Reader};
use crate::plan::Plan;

/// Merges by time what the threads noted, and when jobs were released.
#[derive(Debug)]
pub(crate) struct Collector {
    start: Instant,
    sources: Vec<Source>,
    stage: Stage,
    locks: Locks,
    /// For each CPU of the workload its number in Linux.
    linux: Vec<usize>,
    /// Where each task was last.
    places: Vec<CpuId>,
    /// When the last record was, from the start.
    reached: Instant,
    /// Until when all is known, from the start.
    seen: Instant,
    completed: u64,
}

#[derive(Debug)]
struct Source {
    releases: Peekable<Releases>,
    reader: Reader,
    entries: VecDeque<Entry>,
}

impl Collector {
    /// For threads whose first job is released at `start` or later, in the order of the tasks.
    pub fn new(plan: &Plan, start: Instant, readers: Vec<Reader>) -> Collector {
        let source = |(task, reader): (&crate::plan::TaskPlan, Reader)| Source {
            releases: task.releases.clone().peekable(),
            reader,
            entries: VecDeque::new(),
        };
        let count = plan.tasks.len();
        let linux = plan.placement.linux.clone();
        Collector {
            start,
            sources: plan.tasks.iter().zip(readers).map(source).collect(),
            stage: Stage::new(linux.len(), count),
            locks: Locks::new(plan.locks, count),
            linux,
            places: vec![CpuId(0); count],
            reached: Instant::ZERO,
            seen: Instant::ZERO,
            completed: 0,
        }
    }

    /// Hands to `sink` what happened and is known for sure.
    pub fn collect(&mut self, sink: &mut impl Sink) {
        let horizon = self.read();
        self.merge(horizon, false, sink);
    }

    /// Hands to `sink` all that is left, up to `end` from the start or what is noted later; the threads have ended.
    /// Answers when the trace ends, and whether it is whole. One that is not has no [`Event::End`].
    pub fn finish(mut self, end: Instant, sink: &mut impl Sink) -> (Instant, bool) {
        let horizon = self.read();
        if self.sources.iter().any(|source| source.reader.is_full()) {
            self.merge(horizon, false, sink);
            return (self.reached, false);
        }
        let last =
            self.sources.iter().filter_map(|source| source.entries.back()).map(|entry| self.since(entry.at)).max();
        let end = last.map_or(end, |last| last.max(end)).max(self.reached);
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

    /// Whether a thread had to stop noting.
    pub fn is_broken(&self) -> bool {
        self.sources.iter().any(|source| source.reader.is_full())
    }

    /// Takes what was noted. Answers until when that is all.
    fn read(&mut self) -> Instant {
        let now = clock::now();
        let taken = self.sources.iter_mut().map(|source| source.reader.take(now, &mut source.entries));
        taken.min().unwrap_or(now)
    }

    fn since(&self, at: Instant) -> Instant {
        Instant(at.saturating_since(self.start).0)
    }

    fn merge(&mut self, horizon: Instant, is_last: bool, sink: &mut impl Sink) {
        let until = self.since(horizon);
        while self.decide(horizon, is_last, sink) {
            let Some((at, source, is_release)) = self.next() else { break };
            if at > until {
                break;
            }
            self.reached = self.reached.max(at);
            if is_release {
                let release = self.sources[source].releases.next().expect("it was seen");
                let job = JobId { task: TaskId(source as u32), index: release.index };
                sink.record(self.reached, Event::Release { job, deadline: release.deadline });
            } else {
                let entry = self.sources[source].entries.pop_front().expect("it was seen");
                self.entry(source, entry, sink);
            }
        }
        self.seen = self.seen.max(until);
    }

    /// What comes next of all: when, of which task, and whether it is a release. Releases come before what they lead to.
    fn next(&mut self) -> Option<(Instant, usize, bool)> {
        let start = self.start;
        let heads = self.sources.iter_mut().enumerate().filter_map(|(task, source)| {
            let release = source.releases.peek().map(|release| (release.at, false, task));
            let entry = source.entries.front().map(|entry| (Instant(entry.at.saturating_since(start).0), true, task));
            release.into_iter().chain(entry).min()
        });
        heads.min().map(|(at, is_entry, task)| (at, task, !is_entry))
    }

    /// Grants locks that are free and wanted. Answers whether none is left for which it is not known yet who got it.
    fn decide(&mut self, horizon: Instant, is_last: bool, sink: &mut impl Sink) -> bool {
        while let Some(lock) = self.locks.undecided() {
            let Some(task) = self.next_holder(lock, horizon) else { return is_last };
            if !self.locks.waits(task, lock) {
                // Asked at the same instant as who waits, and was faster: it is about to ask here, too.
                return true;
            }
            self.grant(task, lock, sink);
        }
        true
    }

    /// Who notes next that it has `lock`.
    fn next_holder(&self, lock: LockId, horizon: Instant) -> Option<usize> {
        let noted = |(task, source): (usize, &Source)| {
            let is_grant = |entry: &&Entry| entry.at <= horizon && entry.deed == Deed::Grant(lock);
            source.entries.iter().find(is_grant).map(|entry| (entry.at, task))
        };
        self.sources.iter().enumerate().filter_map(noted).min().map(|(_, task)| task)
    }

    fn grant(&mut self, task: usize, lock: LockId, sink: &mut impl Sink) {
        let at = self.reached;
        let job = self.sources[task].entries.front().map_or(0, |entry| entry.index);
        let job = JobId { task: TaskId(task as u32), index: job };
        sink.record(at, Event::Grant { job, lock, replica: ReplicaId(0) });
        if self.locks.wanted(task).is_some_and(|wanted| wanted.suspended) {
            sink.record(at, Event::Resume { cpu: self.places[task], job });
        }
        self.locks.grant(task, lock);
    }

    fn entry(&mut self, task: usize, entry: Entry, sink: &mut impl Sink) {
        let at = self.reached;
        let job = JobId { task: TaskId(task as u32), index: entry.index };
        let cpu = self.cpu(entry.cpu);
        self.places[task] = cpu;
        let mut record = |event| sink.record(at, event);
        match entry.deed {
            Deed::Begin => {
                record(Event::Ready { job, cpu });
                self.stage.be_on(job, cpu, &mut record);
            }
            Deed::Resume => {
                record(Event::Resume { cpu, job });
                self.stage.be_on(job, cpu, &mut record);
            }
            Deed::NonPreemptiveBegin => {
                self.stage.be_on(job, cpu, &mut record);
                record(Event::NonPreemptiveBegin { cpu, job });
            }
            Deed::NonPreemptiveEnd => {
                self.stage.be_on(job, cpu, &mut record);
                record(Event::NonPreemptiveEnd { cpu, job });
            }
            Deed::Suspend => self.stage.leave(job, cpu, Event::Suspend { cpu, job }, &mut record),
            Deed::Complete => {
                self.completed += 1;
                self.stage.leave(job, cpu, Event::Complete { cpu, job }, &mut record);
            }
            Deed::Request(lock) => {
                self.stage.be_on(job, cpu, &mut record);
                record(Event::Request { job, lock });
                self.locks.request(task, lock);
            }
            Deed::Wait(_) => {
                // If it was granted meanwhile, it does not wait.
                if let Some(wanted) = self.locks.wanted(task).filter(|wanted| !wanted.granted) {
                    wanted.suspended = true;
                    self.stage.leave(job, cpu, Event::Suspend { cpu, job }, &mut record);
                }
            }
            Deed::Grant(lock) => self.noted(task, job, cpu, lock, sink),
            Deed::Unlock(lock) => {
                self.stage.be_on(job, cpu, &mut record);
                record(Event::Unlock { job, lock, replica: ReplicaId(0) });
                self.locks.unlock(lock);
            }
        }
    }

    /// The job has its lock and is on a CPU.
    fn noted(&mut self, task: usize, job: JobId, cpu: CpuId, lock: LockId, sink: &mut impl Sink) {
        let at = self.reached;
        let wanted = self.locks.noted(task);
        if wanted.is_none_or(|wanted| !wanted.granted) {
            // Somebody else was thought to have it, which only a race of two requests explains.
            sink.record(at, Event::Grant { job, lock, replica: ReplicaId(0) });
            if wanted.is_some_and(|wanted| wanted.suspended) {
                sink.record(at, Event::Resume { cpu, job });
            }
            self.locks.grant(task, lock);
        }
        self.stage.be_on(job, cpu, &mut |event| sink.record(at, event));
    }

    /// The CPU of the workload that stands for that of Linux; the last if none does.
    fn cpu(&self, number: usize) -> CpuId {
        let found = self.linux.iter().position(|&linux| linux == number);
        CpuId(found.unwrap_or(self.linux.len() - 1) as u16)
    }
}
