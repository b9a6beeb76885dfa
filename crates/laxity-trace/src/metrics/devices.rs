//! Engines of GPUs and interrupts of devices.

use laxity_model::{CpuId, Engine, GpuId, Instant, Nanos};
use serde::{Serialize, Serializer};

use super::{MachineSummary, OverheadUse};
use crate::replay::Engines;
use crate::{Event, TaskKind, TraceHeader};

/// One engine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EngineSummary {
    /// Of which GPU.
    pub gpu: GpuId,
    /// Which.
    #[serde(serialize_with = "engine_name")]
    pub engine: Engine,
    /// Operations begun.
    pub operations: u64,
    /// How long they occupied it.
    #[serde(rename = "busy_ns")]
    pub busy: Nanos,
    /// `busy` as a fraction of the time there was, 0 to 1; for tables and plots.
    pub utilization: f64,
}

/// Interrupts of devices, and where their bottom halves ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InterruptSummary {
    /// Interrupts routed to each CPU, by `CpuId`.
    pub by_cpu: Vec<u64>,
    /// Bottom halves on the stacks of CPUs, without the time in which interrupts interrupted them.
    pub on_stacks: OverheadUse,
    /// Bottom halves as jobs of interrupt threads: completed ones, and the execution of all.
    pub in_threads: OverheadUse,
}

/// The fold over engines and interrupts.
#[derive(Clone, Debug)]
pub(super) struct Devices {
    engines: Vec<EngineFold>,
    interrupts: Vec<u64>,
}

#[derive(Clone, Debug)]
struct EngineFold {
    gpu: GpuId,
    engine: Engine,
    operations: u64,
    busy: u64,
}

impl Devices {
    pub fn new(header: &TraceHeader) -> Self {
        let engines = header.gpus.iter().enumerate().flat_map(|(index, gpu)| {
            let copies = (0..gpu.copy_engines.min(2)).map(Engine::Copy);
            std::iter::once(Engine::Execution).chain(copies).map(move |engine| EngineFold {
                gpu: GpuId(index as u16),
                engine,
                operations: 0,
                busy: 0,
            })
        });
        Devices { engines: engines.collect(), interrupts: vec![0; header.cpus] }
    }

    /// `before`: the operations before the event.
    pub fn record(&mut self, at: Instant, event: Event, before: &Engines) {
        match event {
            Event::EngineBegin { gpu, engine, .. } => {
                if let Some(fold) = self.engine(gpu, engine) {
                    fold.operations += 1;
                }
            }
            Event::EngineEnd { gpu, engine, job } => {
                if let Some(operation) = before.on(gpu, engine).filter(|operation| operation.job == job)
                    && let Some(fold) = self.engine(gpu, engine)
                {
                    fold.busy = fold.busy.saturating_add(at.saturating_since(operation.since).0);
                }
            }
            Event::Interrupt { cpu: CpuId(cpu), .. } => {
                if let Some(count) = self.interrupts.get_mut(usize::from(cpu)) {
                    *count += 1;
                }
            }
            _ => {}
        }
    }

    pub fn engines(&self, end: Instant, engines: &Engines) -> Vec<EngineSummary> {
        let duration = end.saturating_since(Instant::ZERO).0;
        let engine = |fold: &EngineFold| {
            let current = engines.on(fold.gpu, fold.engine).map_or(0, |running| end.saturating_since(running.since).0);
            let busy = fold.busy.saturating_add(current);
            let utilization = if duration == 0 { 0.0 } else { busy as f64 / duration as f64 };
            EngineSummary {
                gpu: fold.gpu,
                engine: fold.engine,
                operations: fold.operations,
                busy: Nanos(busy),
                utilization,
            }
        };
        self.engines.iter().map(engine).collect()
    }

    /// `in_threads`: the jobs of interrupt threads.
    pub fn interrupts(&self, machine: &MachineSummary, in_threads: OverheadUse) -> InterruptSummary {
        let on_stacks = machine.overheads.of(laxity_model::OverheadKind::BottomHalf);
        InterruptSummary { by_cpu: self.interrupts.clone(), on_stacks, in_threads }
    }

    fn engine(&mut self, gpu: GpuId, engine: Engine) -> Option<&mut EngineFold> {
        let index = self.engines.binary_search_by_key(&(gpu, engine), |fold| (fold.gpu, fold.engine)).ok()?;
        self.engines.get_mut(index)
    }
}

/// Whether the header knows anything that raises interrupts.
pub(super) fn has_devices(header: &TraceHeader) -> bool {
    !header.devices.is_empty()
        || !header.gpus.is_empty()
        || header.tasks.iter().any(|task| task.kind == TaskKind::Thread)
}

pub(super) fn engine_name<S: Serializer>(engine: &Engine, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(engine.name())
}
