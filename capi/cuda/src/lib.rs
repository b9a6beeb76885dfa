//! A library that stands between CUDA programs, which know nothing of Laxity, and their driver: it puts their launches and
//! copies under Laxity's GPU arbitration.
//!
//! ```text
//!   LD_AUDIT:   ld.so asks this library, in a namespace of its own, what a program's cu* symbols are bound to
//!                  |  the address of a wrapper in ...
//!   LD_PRELOAD: ... the same library, in the program's namespace
//!
//!   program --> wrapper --> laxity-interpose --> laxity-gpu: tokens and engine locks, shared with other processes
//!                  |
//!                  '------> libcuda.so.1: NVIDIA's, or the soft driver
//! ```
//!
//! It sees calls however a program reaches the driver: linked to it, by `dlsym`, or, as CUDA's static runtime does it, by
//! `cuGetProcAddress`. `laxity gpu exec` starts programs with it. `laxity_policy::program` decides about each operation;
//! this crate translates. Decisions 51, 53, 65 and 66 have the reasons.
//!
//! Files: `audit` (what ld.so calls) and `symbols`, `names` (entry points by name and version), `layer` (what is known of
//! streams and events), `issue` (how an operation gets to the driver), `operation` and `watch` (when it is complete), `wrap`
//! (the entry points that are ours).

mod audit;
mod issue;
mod keys;
mod layer;
mod names;
mod operation;
mod real;
mod stream;
mod symbols;
mod types;
mod watch;
mod wrap;
