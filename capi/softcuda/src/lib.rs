//! A driver for CUDA programs on machines without a GPU: a `libcuda.so.1` of our own, whose devices are soft GPUs.
//!
//! ```text
//!   program --> cu* --> export: an entry point each --> context, stream, memory, module, graph
//!                                                          |
//!                                    laxity-softgpu: engines in a server process, kernels and copies in this one
//! ```
//!
//! Kernels are functions of the host, by name, from a library that `LAXITY_SOFTCUDA_KERNELS` names (header
//! `laxity/softcuda.h`), or take a time that `LAXITY_SOFTCUDA_TIMES` has for their name. A kernel with neither is refused.
//! Results are those that CUDA's documentation names. An entry point that is not carried out returns
//! `CUDA_ERROR_NOT_SUPPORTED`, and is named once on standard error. Times are those of a soft GPU and say nothing of a
//! real one.
//!
//! Files: `export` (the entry points), `names` (which there are, since which version), `driver` (devices and settings),
//! `context`, `stream` and `dispatch` (commands of a stream, in order), `event`, `operation` (kernels, copies, fills),
//! `memory`, `module` and `kernels`, `graph`.

mod context;
mod dispatch;
mod driver;
mod event;
mod export;
mod graph;
mod handles;
mod kernels;
mod memory;
mod module;
mod names;
mod operation;
mod results;
mod settings;
mod stream;
mod types;
