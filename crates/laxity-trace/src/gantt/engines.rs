//! The engines that have rows of their own.

use laxity_model::{Engine, GpuId};

use crate::TraceHeader;

/// The row of an engine of a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EngineRow {
    pub gpu: GpuId,
    pub engine: Engine,
    /// The GPU's name and the engine's: `gpu0 EE`.
    pub name: String,
}

impl EngineRow {
    /// Whether operations on this engine belong in the row.
    pub fn is(&self, gpu: GpuId, engine: Engine) -> bool {
        (self.gpu, self.engine) == (gpu, engine)
    }
}

/// Every engine of every GPU, GPU by GPU: execution engine, then copy engines.
pub(super) fn engine_rows(header: &TraceHeader) -> Vec<EngineRow> {
    let gpus = (0..=u16::MAX).map(GpuId).zip(&header.gpus);
    gpus.flat_map(|(gpu, info)| {
        let engines = Engine::ALL.into_iter().take(1 + usize::from(info.copy_engines));
        engines.map(move |engine| EngineRow { gpu, engine, name: format!("{} {}", info.name, engine.name()) })
    })
    .collect()
}
