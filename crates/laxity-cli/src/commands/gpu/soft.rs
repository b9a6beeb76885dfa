//! The soft GPUs that this user's processes have.

use laxity_softgpu::{Usage, look, names};
use serde::Serialize;

use crate::commands::named::{live, readable};
use crate::error::CliError;
use crate::quantity::bytes;
use crate::table::{Cell, Table};

/// A soft GPU in the list.
#[derive(Serialize)]
pub struct SoftGpu {
    name: String,
    copy_engines: u8,
    /// Bytes of device memory.
    memory: u64,
    /// Those that processes have.
    memory_used: u64,
    /// Bytes of this machine's memory that it takes.
    memory_reserved: u64,
    processes: u64,
}

/// All of them; those that cannot be asked are warned about.
pub fn all() -> Result<Vec<SoftGpu>, CliError> {
    Ok(readable(names().map_err(live)?, |name| match look(&name) {
        Ok(usage) => Ok(usage.map(|usage| SoftGpu::of(name, usage))),
        Err(error) => Err(format!("soft GPU \"{name}\": {error}")),
    }))
}

/// A row for each.
pub fn table(gpus: &[SoftGpu]) -> Table {
    let table = Table::of("soft GPU").group("memory", &["in use", "all"]).group("copy engines", &[""]);
    gpus.iter().fold(table.group("processes", &[""]), |mut table, gpu| {
        let numbers =
            [bytes(gpu.memory_used), bytes(gpu.memory), gpu.copy_engines.to_string(), gpu.processes.to_string()];
        table.row([Cell::from(gpu.name.clone())].into_iter().chain(numbers.map(Cell::from)).collect());
        table
    })
}

impl SoftGpu {
    fn of(name: String, usage: Usage) -> Self {
        let Usage { config, used, reserved, processes, .. } = usage;
        SoftGpu {
            name,
            copy_engines: config.copy_engines,
            memory: config.memory,
            memory_used: used,
            memory_reserved: reserved,
            processes,
        }
    }
}
