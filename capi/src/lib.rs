//! The C interface of live graphs, of GPUs that processes share, and of scheduled systems. The documentation of the items here is for C
//! programmers: `include/laxity.h` is generated from it.
//!
//! ```text
//! C  ->  functions (registry, spec, graph, node, latest, recording)  ->  laxity-graph
//!        gpu, gpu_client, bandwidth, budget         ->  laxity-gpu
//!        system, task                               ->  laxity-sched
//!        device, kernel                             ->  laxity-device
//!        vx, vx_job, vx_run                         ->  laxity-vx
//!        workload                                   ->  laxity-runtime
//!        error::answer    a panic or an error becomes a number; the thread keeps the details
//!        handle::get      a pointer becomes a reference, if it is a handle
//! ```
#![allow(non_camel_case_types, reason = "types have the names that they have in C")]
#![allow(clippy::missing_safety_doc, reason = "what callers must keep to is said once, at the head of laxity.h")]

mod bandwidth;
mod budget;
mod call_error;
mod device;
mod error;
mod gpu;
mod gpu_client;
mod graph;
mod handle;
mod kernel;
mod kernel_task;
mod latest;
mod lock;
mod node;
mod object;
mod of_thread;
mod pipeline;
mod recording;
mod registry;
mod result;
mod schedule;
mod spec;
mod system;
mod task;
mod user_data;
mod vx;
mod vx_job;
mod vx_run;
mod workload;
