//! Which operations occupy the engines of GPUs.

use laxity_model::{Engine, GpuId, Instant, JobId};

use crate::TraceHeader;
use crate::intervals::Activity;

/// An operation on an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    pub gpu: GpuId,
    pub engine: Engine,
    pub job: JobId,
    /// When it began.
    pub since: Instant,
    /// Its name, an index into those of the header.
    pub name: Option<u32>,
}

impl Operation {
    /// As an interval has it.
    pub fn activity(self) -> Activity {
        let Operation { gpu, engine, job, name, .. } = self;
        Activity::Operation { gpu, engine, job, name }
    }
}

/// The operations that began and did not end.
#[derive(Clone, Debug)]
pub(crate) struct Engines {
    gpus: Vec<[Option<Operation>; Engine::ALL.len()]>,
}

impl Engines {
    pub fn new(header: &TraceHeader) -> Self {
        Engines { gpus: vec![[None; Engine::ALL.len()]; header.gpus.len()] }
    }

    /// The operation on the engine.
    #[inline]
    pub fn on(&self, gpu: GpuId, engine: Engine) -> Option<Operation> {
        *self.gpus.get(gpu.index())?.get(engine.index())?
    }

    /// Every operation, by GPU and engine.
    pub fn operations(&self) -> impl Iterator<Item = Operation> + '_ {
        self.gpus.iter().flatten().copied().flatten()
    }

    /// An operation that still occupies the engine is forgotten.
    pub(super) fn begin(&mut self, operation: Operation) {
        let engine = self.gpus.get_mut(operation.gpu.index()).and_then(|gpu| gpu.get_mut(operation.engine.index()));
        if let Some(engine) = engine {
            *engine = Some(operation);
        }
    }

    /// The operation on the engine, if there is one, has this name.
    pub(super) fn name(&mut self, gpu: GpuId, engine: Engine, name: u32) {
        if let Some(engine) = self.gpus.get_mut(gpu.index()).and_then(|gpu| gpu.get_mut(engine.index())) {
            *engine = engine.map(|operation| Operation { name: Some(name), ..operation });
        }
    }

    /// Does nothing if there is no operation of `job` on the engine.
    pub(super) fn end(&mut self, gpu: GpuId, engine: Engine, job: JobId) {
        if let Some(engine) = self.gpus.get_mut(gpu.index()).and_then(|gpu| gpu.get_mut(engine.index())) {
            engine.take_if(|operation| operation.job == job);
        }
    }
}
