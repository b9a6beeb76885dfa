//! What GPUs and their interrupts did.

use laxity_model::{CpuId, Engine, GpuId, Instant, JobId, Nanos};
use serde::{Serialize, Serializer};

use super::units;
use super::{MachineSummary, OverheadUse};
use crate::{Event, TaskKind, TraceHeader};

/// One engine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EngineSummary {
    /// Of which GPU.
    #[serde(serialize_with = "gpu_number")]
    pub gpu: GpuId,
    /// Which.
    #[serde(serialize_with = "engine_name")]
    pub engine: Engine,
    /// Operations begun.
    pub operations: u64,
    /// How long they occupied it.
    #[serde(rename = "busy_ns", serialize_with = "units::nanos")]
    pub busy: Nanos,
    /// `busy` as a fraction of the time there was, 0 to 1; for tables and plots.
    pub utilization: f64,
}

/// Interrupts of devices, and where their bottom halves ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InterruptSummary {
    /// Interrupts routed to each CPU, by `CpuId`.
    pub by_cpu: Vec<u64>,
    /// Bottom halves on the stacks of CPUs, without what interrupted them.
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
    current: Option<(JobId, Instant)>,
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
                current: None,
            })
        });
        Devices { engines: engines.collect(), interrupts: vec![0; header.cpus] }
    }

    pub fn record(&mut self, at: Instant, event: Event) {
        match event {
            Event::EngineBegin { gpu, engine, job } => {
                if let Some(fold) = self.engine(gpu, engine) {
                    fold.operations += 1;
                    fold.current = Some((job, at));
                }
            }
            Event::EngineEnd { gpu, engine, job } => {
                if let Some(fold) = self.engine(gpu, engine)
                    && let Some((_, since)) = fold.current.take_if(|(by, _)| *by == job)
                {
                    fold.busy = fold.busy.saturating_add(at.saturating_since(since).0);
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

    pub fn engines(&self, end: Instant) -> Vec<EngineSummary> {
        let duration = end.saturating_since(Instant::ZERO).0;
        let engine = |fold: &EngineFold| {
            let current = fold.current.map_or(0, |(_, since)| end.saturating_since(since).0);
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

    /// `in_threads`: what the jobs of interrupt threads did.
    pub fn interrupts(&self, machine: &MachineSummary, in_threads: OverheadUse) -> InterruptSummary {
        let on_stacks = machine.overheads.of(laxity_model::OverheadKind::BottomHalf);
        InterruptSummary { by_cpu: self.interrupts.clone(), on_stacks, in_threads }
    }

    fn engine(&mut self, gpu: GpuId, engine: Engine) -> Option<&mut EngineFold> {
        self.engines.iter_mut().find(|fold| (fold.gpu, fold.engine) == (gpu, engine))
    }
}

/// Whether the header knows anything that raises interrupts.
pub(super) fn has_devices(header: &TraceHeader) -> bool {
    !header.devices.is_empty()
        || !header.gpus.is_empty()
        || header.tasks.iter().any(|task| task.kind == TaskKind::Thread)
}

fn gpu_number<S: Serializer>(gpu: &GpuId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(gpu.0)
}

fn engine_name<S: Serializer>(engine: &Engine, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(engine.name())
}
