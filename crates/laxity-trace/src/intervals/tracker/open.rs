//! What is under way beside the CPUs: operations on engines, requests for locks, critical sections, inheritance.

use std::collections::BTreeMap;

use laxity_model::{Engine, GpuId, Instant, JobId, LockId, ReplicaId, TaskId};

use super::push;
use crate::Event;
use crate::intervals::{Activity, Interval};

/// What began and did not end.
#[derive(Clone, Debug, Default)]
pub(super) struct Open {
    operations: BTreeMap<(GpuId, Engine), (JobId, Instant)>,
    requests: BTreeMap<(JobId, LockId), Instant>,
    sections: BTreeMap<(JobId, LockId, ReplicaId), Instant>,
    inheritances: BTreeMap<JobId, Inherited>,
}

/// A priority that a job has from another task.
#[derive(Clone, Copy, Debug)]
struct Inherited {
    of: TaskId,
    level: u64,
    since: Instant,
}

impl Open {
    /// Takes the next event; pushes what it ends. Events of other kinds change nothing.
    pub fn follow(&mut self, at: Instant, event: &Event, intervals: &mut Vec<Interval>) {
        match *event {
            Event::EngineBegin { gpu, engine, job } => {
                // An engine that is occupied already: no legal schedule, but it stays drawable.
                self.end_operation(at, gpu, engine, intervals);
                self.operations.insert((gpu, engine), (job, at));
            }
            Event::EngineEnd { gpu, engine, .. } => self.end_operation(at, gpu, engine, intervals),
            Event::Request { job, lock } => {
                self.requests.entry((job, lock)).or_insert(at);
            }
            Event::Grant { job, lock, replica } => {
                self.end_request(at, job, lock, intervals);
                self.sections.entry((job, lock, replica)).or_insert(at);
            }
            Event::Withdraw { job, lock } => self.end_request(at, job, lock, intervals),
            Event::Unlock { job, lock, replica } => {
                if let Some(since) = self.sections.remove(&(job, lock, replica)) {
                    push(intervals, since, at, Activity::CriticalSection { job, lock, replica });
                }
            }
            Event::Priority { job, level, of } => self.change_priority(at, job, level, of, intervals),
            Event::Complete { job, .. } => self.end_inheritance(at, job, intervals),
            _ => {}
        }
    }

    /// The trace ends: pushes everything, ordered by kind and then by engine, job or lock.
    pub fn finish(mut self, at: Instant, intervals: &mut Vec<Interval>) {
        for ((gpu, engine), (job, since)) in self.operations {
            push(intervals, since, at, Activity::Operation { gpu, engine, job });
        }
        for ((job, lock), since) in self.requests {
            push(intervals, since, at, Activity::AwaitingLock { job, lock });
        }
        for ((job, lock, replica), since) in self.sections {
            push(intervals, since, at, Activity::CriticalSection { job, lock, replica });
        }
        while let Some((job, Inherited { of, level, since })) = self.inheritances.pop_first() {
            push(intervals, since, at, Activity::Inheritance { job, of, level });
        }
    }

    fn end_operation(&mut self, at: Instant, gpu: GpuId, engine: Engine, intervals: &mut Vec<Interval>) {
        if let Some((job, since)) = self.operations.remove(&(gpu, engine)) {
            push(intervals, since, at, Activity::Operation { gpu, engine, job });
        }
    }

    fn end_request(&mut self, at: Instant, job: JobId, lock: LockId, intervals: &mut Vec<Interval>) {
        if let Some(since) = self.requests.remove(&(job, lock)) {
            push(intervals, since, at, Activity::AwaitingLock { job, lock });
        }
    }

    fn change_priority(&mut self, at: Instant, job: JobId, level: u64, of: TaskId, intervals: &mut Vec<Interval>) {
        if self.inheritances.get(&job).is_some_and(|inherited| (inherited.of, inherited.level) == (of, level)) {
            return;
        }
        self.end_inheritance(at, job, intervals);
        if of != job.task {
            self.inheritances.insert(job, Inherited { of, level, since: at });
        }
    }

    fn end_inheritance(&mut self, at: Instant, job: JobId, intervals: &mut Vec<Interval>) {
        if let Some(Inherited { of, level, since }) = self.inheritances.remove(&job) {
            push(intervals, since, at, Activity::Inheritance { job, of, level });
        }
    }
}
