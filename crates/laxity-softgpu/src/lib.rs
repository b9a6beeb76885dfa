//! The soft GPU: a stand-in for tests and for machines without a GPU that behaves as the sources say real ones do.
//!
//! ```text
//! process A: kernels, copies, handling thread --+
//!                                               +-- server: engines (EE, CE0, CE1), streams, time, device memory
//! process B: kernels, copies, handling thread --+
//! ```
//!
//! One execution engine and one or two copy engines, each first come, first served and never preempted; streams, in
//! order inside and overlapping among each other; asynchronous copies and launches; interrupts at completion, which a
//! handling thread serves; synchronization by suspending or by spinning; callbacks. [`laxity_policy::gpu::Engines`],
//! the state machine of the simulator, decides what runs when. Kernels are host functions: they really run, in the
//! process that launched them, while the server holds the engine for it; or an operation only takes time, by a model.
//! Measured times are those of a soft GPU and say nothing of a real one.
//!
//! ```no_run
//! use laxity_softgpu::{Config, SoftGpu, Wait};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let gpu = SoftGpu::open("example", Config::default())?; // starts the server if there is none
//! let buffer = gpu.alloc(4)?;
//! let stream = gpu.stream("detector")?;
//! stream.copy_in(&buffer, 0, vec![1, 2, 3, 4])?;
//! let kernel_buffer = buffer.clone();
//! stream.launch(move |device| {
//!     device.write(&kernel_buffer, 0..4)?.reverse();
//!     Ok(())
//! })?;
//! let result = stream.copy_out(&buffer, 0..4)?;
//! assert_eq!(result.wait(Wait::Blocking)?, [4, 3, 2, 1]);
//! # Ok(())
//! # }
//! ```
//!
//! A process may be killed at any instruction: its operations are dropped and the engines go on with the next. If the
//! server is killed, all calls fail with [`GpuError::Gone`], and opening the soft GPU again starts another server.
//! Neither leaves anything behind. Only allocated device memory takes memory of this machine. A child made by `fork` has
//! no part in its parent's soft GPU: its calls fail with [`GpuError::Forked`], and it opens the soft GPU by itself. Decision
//! 21 has the reasons.
//!
//! Processes of one user trust each other; a client refuses the server of another user, and a server such a client. The
//! server keeps no descriptor of the process that started it. It stays in that process's control group: decision 36.
#![deny(unsafe_code)]

mod client;
mod config;
mod details;
mod error;
mod message;
pub mod server;
mod trace;
mod usage;

pub use client::{
    Buffer, CopyOut, DeviceView, Event, Handling, HandlingThread, KernelResult, Options, Reading, SERVER_VARIABLE,
    SoftGpu, Stream, Unmanaged, Wait, Writing,
};
pub use config::{Config, ConfigError, MEMORY_MAX, NAME_MAX};
pub use error::{GpuError, OpenError, Panicked};
pub use server::history::{Entry, What};
pub use trace::Trace;
pub use usage::{Usage, look, names};
