//! Engines: one operation at a time, and the operations of a job one after another.

use laxity_model::{Engine, GpuId, Instant, JobId};

use super::super::{Problem, Report, Violation};
use crate::{Event, TraceHeader};

/// Finds operations that share an engine, end without a beginning, or overlap another of their job: a job issues its
/// operations into one stream (paper 003, section 5.4). A copy between two GPUs is one operation that begins on a copy
/// engine of each at once.
#[derive(Debug)]
pub(super) struct Engines<'a> {
    header: &'a TraceHeader,
    /// What goes on.
    operations: Vec<Operation>,
}

#[derive(Clone, Copy, Debug)]
struct Operation {
    gpu: GpuId,
    engine: Engine,
    job: JobId,
    since: Instant,
}

impl<'a> Engines<'a> {
    pub fn new(header: &'a TraceHeader) -> Self {
        Engines { header, operations: Vec::new() }
    }

    pub fn record(&mut self, at: Instant, event: Event, report: &mut Report) {
        let (job, found) = match event {
            Event::EngineBegin { gpu, engine, job } => {
                let operation = Operation { gpu, engine, job, since: at };
                let found = self.problem(operation);
                self.operations.retain(|other| !other.is_on(gpu, engine));
                self.operations.push(operation);
                (job, found)
            }
            Event::EngineEnd { gpu, engine, job } => {
                let ended = self.operations.iter().position(|other| other.is_on(gpu, engine) && other.job == job);
                let found = match ended {
                    Some(index) => {
                        self.operations.swap_remove(index);
                        None
                    }
                    None => Some(Problem::NoOperation { gpu, engine }),
                };
                (job, found)
            }
            _ => return,
        };
        if let Some(what) = found {
            report.push(Violation { at, cpu: None, job: Some(job), what });
        }
    }

    fn problem(&self, new: Operation) -> Option<Problem> {
        let Operation { gpu, engine, .. } = new;
        let exists = self.header.gpus.get(gpu.index()).is_some_and(|info| match engine {
            Engine::Execution => true,
            Engine::Copy(number) => number < info.copy_engines,
        });
        if !exists {
            return Some(Problem::UnknownEngine { gpu, engine });
        }
        if let Some(other) = self.operations.iter().find(|other| other.is_on(gpu, engine)) {
            return Some(Problem::EngineBusy { gpu, engine, by: other.job });
        }
        let overlapped = self.operations.iter().find(|other| other.job == new.job && !other.is_other_end_of(&new))?;
        Some(Problem::StreamOrder { gpu: overlapped.gpu, engine: overlapped.engine })
    }
}

impl Operation {
    fn is_on(&self, gpu: GpuId, engine: Engine) -> bool {
        (self.gpu, self.engine) == (gpu, engine)
    }

    /// Whether both are the two ends of one copy between GPUs.
    fn is_other_end_of(&self, other: &Operation) -> bool {
        let copies = |operation: &Operation| matches!(operation.engine, Engine::Copy(_));
        self.gpu != other.gpu && self.since == other.since && copies(self) && copies(other)
    }
}
