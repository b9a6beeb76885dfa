//! The C interface of live graphs and of GPUs that processes share. What a C programmer is told is in the documentation of the items here, of which
//! `include/laxity.h` is made.
//!
//! ```text
//! C  ->  functions (registry, spec, graph, node, job, recording)  ->  laxity-graph
//!        gpu (gpus, client)                         ->  laxity-gpu
//!        device, kernel                             ->  laxity-device
//!        vx, vx_job, vx_run                         ->  laxity-vx
//!        error::answer    a panic or an error becomes a number, the details wait in the thread
//!        handle::get      a pointer becomes a reference, if it is one of ours
//! ```
#![allow(non_camel_case_types, reason = "types have the names that they have in C")]
#![allow(clippy::missing_safety_doc, reason = "what callers must keep to is said once, at the head of laxity.h")]

mod budget;
mod call_error;
mod device;
mod error;
mod gpu;
mod graph;
mod handle;
mod kernel;
mod node;
mod object;
mod pipeline;
mod recording;
mod registry;
mod result;
mod schedule;
mod spec;
mod user_data;
mod vx;
mod vx_job;
mod vx_run;
