//! One verb a file.

#[cfg(target_os = "linux")]
pub mod bandwidth;
pub mod check;
pub mod completions;
#[cfg(target_os = "linux")]
pub mod exec;
pub mod generate;
#[cfg(target_os = "linux")]
pub mod gpu;
#[cfg(target_os = "linux")]
pub mod graph;
#[cfg(target_os = "linux")]
pub mod measure;
#[cfg(target_os = "linux")]
mod named;
pub mod overheads;
pub mod policies;
#[cfg(target_os = "linux")]
mod program;
pub mod report;
#[cfg(target_os = "linux")]
pub mod run;
#[cfg(target_os = "linux")]
pub mod sched;
pub mod schema;
pub mod simulate;
pub mod trace;
pub mod tune;
pub mod validate;
