//! What happened: one event vocabulary written by the simulator and the live side alike, and everything that is
//! measured, checked and drawn from it.
#![forbid(unsafe_code)]

pub mod check;
pub mod codec;
mod event;
pub mod gantt;
mod header;
pub mod intervals;
mod linux_class;
mod memory_info;
pub mod metrics;
mod occupancy;
mod outsider;
pub mod perfetto;
mod real_time;
mod replay;
mod server_info;
mod sink;
pub mod table;
pub mod why;

pub use event::{Event, Record};
pub use header::{
    ChainInfo, DeviceId, DeviceInfo, EdgeInfo, GpuInfo, GraphInfo, LatestInfo, LockInfo, LockKind, Origin, TaskInfo,
    TaskKind, TraceHeader, is_no_deadline,
};
pub use laxity_model::EdgeKind;
pub use linux_class::LinuxClass;
pub use memory_info::MemoryInfo;
pub use occupancy::CpuOccupancy;
pub use outsider::{Outsider, OutsiderInfo, OutsiderKind, ShortName};
pub use server_info::ServerInfo;
pub use sink::{NoTrace, Sink};
