//! The workload model of Laxity: time, tasks and their bodies, graphs, the platform, and the scheduler's
//! configuration. Everything else (policies, analysis, simulation, the live side) reads these types.
//!
//! The crate is pure: no clock, no thread, no environment, no file access. Text goes in, a validated
//! [`Workload`] or an error that names the line comes out.
#![forbid(unsafe_code)]

mod body;
mod chain;
mod device;
mod error;
mod error_details;
mod execution;
mod factor;
mod file;
mod graph;
mod ids;
mod limits;
mod management;
mod measurement;
mod memory;
mod overheads;
mod own_code;
mod platform;
mod published;
mod rates;
pub mod rng;
mod scheduler;
mod suggest;
mod task;
pub mod text;
mod time;
mod validate;
mod workload;

pub use body::{CopyDirection, GpuOperation, GpuWork, Step, Waiting};
pub use chain::Chain;
pub use device::{Device, Server, ServerKind};
pub use error::{ErrorKind, FieldPath, PathSegment, Position, WorkloadError, WorkloadErrors};
pub use error_details::{Details, ErrorCode, ErrorDetails};
pub use execution::{Bin, Distribution, ExecutionTime};
pub use factor::Factor;
pub use file::{ParseDistributionError, ParseNanosError, parse_cpus, parse_rate, parse_size, write_rate};
pub use graph::{DataObject, Edge, EdgeKind, Graph, LatestEdge, Node, Replicas};
pub use ids::{CpuId, EdgeId, Engine, GpuId, JobId, LockId, ReplicaId, TaskId};
pub use management::{
    EngineOrder, GpuArbitration, GpuManagement, GpuSync, InterruptHandling, MigrationPath, ThreadPriority, TokenHold,
};
pub use measurement::{MeasuredMachine, MeasuredQuantity, Measurement};
pub use memory::{
    BandwidthLock, BestEffortRule, BestEffortScheduler, Contention, ContentionPoint, LockHeed, Memory, MemoryRegulator,
    ONE_Q32, RegulatorPhase,
};
pub use overheads::{OverheadCosts, OverheadKind, OverheadProfile, OverheadTable};
pub use own_code::{CodeSource, OwnCode};
pub use platform::{Gpu, Platform};
pub use published::{Statistic, UnknownProfile};
pub use rates::{Rate, RateError, TokenRate};
pub use scheduler::{
    Invocation, ParseSchedulerError, PriorityRule, Quanta, ReadyQueueKind, ReleaseInterrupts, Scheduler, Scope,
};
pub use task::{Arrival, BestEffortTask, Task, TaskServer};
pub use time::{Instant, Nanos, SignedNanos};
pub use validate::Warning;
pub use workload::{Resource, ResourceProtocol, Workload};
