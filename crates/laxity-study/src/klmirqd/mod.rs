//! GPU interrupt handling on two clusters of six CPUs and four GPUs. Elliott & Anderson 2012 (paper 000), section VII
//! and appendix D (Table IV).
//!
//! Soft real-time under clustered EDF with average overheads. Six distributions of utilizations and ten bands of the
//! share of GPU-using tasks make 60 scenarios; in each, three ways to handle interrupts are judged for 1, 3 and 6
//! interrupts a job. A GPU R times as fast as a CPU changes nothing but the x-axis, so each of the paper's four values
//! of R is a graph of the same verdicts over the effective utilization of each task set.

mod evaluate;
mod options;

pub use evaluate::KlmirqdStudy;
pub use options::{CriticalSection, Options, ParseOptionsError, Tardiness};

/// CPUs of a cluster.
pub const CLUSTER_CPUS: u32 = 6;
/// GPUs of a cluster.
pub const CLUSTER_GPUS: u32 = 4;
/// Clusters, split along the NUMA nodes.
pub const CLUSTERS: usize = 2;
/// GPU interrupts a job: the paper's i.
pub const INTERRUPTS: [u32; 3] = [1, 3, 6];
/// How many times as fast as a CPU a GPU is: the paper's R.
pub const SPEEDUPS: [u32; 4] = [1, 4, 8, 16];
