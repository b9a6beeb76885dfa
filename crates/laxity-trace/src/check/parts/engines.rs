//! Engines: one operation at a time, and the operations of a job one after another.

use std::collections::BTreeSet;

use laxity_model::{Engine, GpuId, Instant, JobId};

use super::super::{Problem, Report, Violation};
use crate::replay::Operation;
use crate::{Event, LockInfo, LockKind, Origin, TraceHeader};

/// Finds operations that share an engine, end without a beginning, or overlap another of their job: a job issues its
/// operations into one stream (paper 003, section 5.4), of each GPU where no lock says which GPU it has. A copy between two GPUs is one operation that begins on a copy
/// engine of each at once; live each GPU's server begins with its end when it gets to it.
#[derive(Debug)]
pub(super) struct Engines<'a> {
    header: &'a TraceHeader,
    /// Whether a job has one GPU at a time.
    has_one_gpu: bool,
    /// The operations of each job.
    by_job: BTreeSet<(JobId, GpuId, Engine)>,
}

impl<'a> Engines<'a> {
    pub fn new(header: &'a TraceHeader) -> Self {
        let grants_gpus = |lock: &LockInfo| {
            matches!(lock.kind, LockKind::Semaphore { .. } | LockKind::KFmlp { .. } | LockKind::Tokens { .. })
        };
        Engines { header, has_one_gpu: header.locks.iter().any(grants_gpus), by_job: BTreeSet::new() }
    }

    /// `before`: the operations before the event.
    pub fn record(&mut self, at: Instant, event: Event, before: &crate::replay::Engines, report: &mut Report) {
        let (job, found) = match event {
            Event::EngineBegin { gpu, engine, job } => {
                let found = self.problem(Operation { gpu, engine, job, since: at, name: None }, before);
                if let Some(ended) = before.on(gpu, engine) {
                    self.by_job.remove(&(ended.job, gpu, engine));
                }
                self.by_job.insert((job, gpu, engine));
                (job, found)
            }
            Event::EngineEnd { gpu, engine, job } => {
                let is_known = self.by_job.remove(&(job, gpu, engine));
                (job, (!is_known).then_some(Problem::NoOperation { gpu, engine }))
            }
            _ => return,
        };
        if let Some(what) = found {
            report.push(Violation { at, cpu: None, job: Some(job), what });
        }
    }

    fn problem(&self, new: Operation, before: &crate::replay::Engines) -> Option<Problem> {
        let Operation { gpu, engine, job, .. } = new;
        let exists = self.header.gpus.get(gpu.index()).is_some_and(|info| match engine {
            Engine::Execution => true,
            Engine::Copy(number) => number < info.copy_engines,
        });
        if !exists {
            return Some(Problem::UnknownEngine { gpu, engine });
        }
        if let Some(other) = before.on(gpu, engine) {
            return Some(Problem::EngineBusy { gpu, engine, by: other.job });
        }
        let (first, last) = if self.has_one_gpu { (GpuId(0), GpuId(u16::MAX)) } else { (gpu, gpu) };
        let all = (job, first, Engine::Execution)..=(job, last, Engine::Copy(u8::MAX));
        let others = self.by_job.range(all).filter_map(|&(_, gpu, engine)| before.on(gpu, engine));
        let overlapped = others.into_iter().find(|other| !self.are_ends_of_one_copy(other, &new))?;
        Some(Problem::StreamOrder { gpu: overlapped.gpu, engine: overlapped.engine })
    }

    /// Whether both are the two ends of one copy between GPUs.
    fn are_ends_of_one_copy(&self, one: &Operation, other: &Operation) -> bool {
        let copies = |operation: &Operation| matches!(operation.engine, Engine::Copy(_));
        let began_as_one = one.since == other.since || self.header.origin == Origin::Live;
        one.gpu != other.gpu && began_as_one && copies(one) && copies(other)
    }
}
