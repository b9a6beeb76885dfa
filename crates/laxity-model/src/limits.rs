//! How large a workload may be.

use crate::{Factor, Nanos};

/// Most CPUs of a platform.
pub(crate) const CPUS_MAX: usize = 1_024;

/// Most tasks of a workload, nodes of graphs included.
pub(crate) const TASKS_MAX: usize = 65_535;

/// Largest sum of a histogram's weights: what TOML can write.
pub(crate) const WEIGHT_MAX: u64 = i64::MAX as u64;

/// Deepest nesting of critical sections. Keeps every walk over a body, and the text it is written as, shallow.
pub(crate) const CRITICAL_DEPTH_MAX: usize = 16;

/// Longest overhead. Extrapolated to [`TASKS_MAX`] tasks it stays below [`Nanos::LONGEST`]:
/// 1 h * 65,535 = 7.5 years.
pub(crate) const OVERHEAD_MAX: Nanos = Nanos(3_600_000_000_000);

/// Largest factor by which traffic slows GPU work down, and largest punishment. It keeps fixed-point numbers of 128 bits
/// from overflowing.
pub(crate) const FACTOR_MAX: Factor = Factor::whole(1_000);
