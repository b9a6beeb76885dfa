//! An OpenCL layer: it puts programs that know nothing of Laxity under its GPU arbitration, with every driver that a
//! loader can load.
//!
//! ```text
//!   program --> loader --> this layer --> layers below --> driver (pocl, NVIDIA, AMD, Intel, Arm, Mesa)
//!                              |
//!                        laxity-interpose --> laxity-gpu: tokens and engine locks, shared with other processes
//! ```
//!
//! `laxity gpu exec` starts a program with it; `OPENCL_LAYERS` names it to the loader. `laxity_policy::program` decides
//! about each operation; this crate translates. Decisions 51 to 53 have the reasons.
//!
//! Files: `init` (what loaders call), `table` and `target` (the entry points below), `layer` (what is known of queues and
//! events), `enqueue` (how an operation gets to the driver), `operation` (its event and its gate), `wrap` (the entry points
//! that are ours).

mod enqueue;
mod init;
mod keys;
mod layer;
mod operation;
mod table;
mod target;
mod types;
mod wrap;

pub use init::{
    clDeinitLayer, clGetLayerInfo, clInitLayer, clInitLayerWithProperties, laxity_program_begin_job,
    laxity_program_end_job,
};
