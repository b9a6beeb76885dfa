//! Which operations take about as long as each other.

use laxity_policy::program::Work;

/// Copies within the device.
pub const COPY: u64 = 0;
/// Fills.
pub const FILL: u64 = 1;
/// Several copies by one call, whose sizes are not looked at.
pub const BATCH: u64 = 2;

/// An operation of a `kind` on so many bytes within the device: sizes within a factor of two are alike.
pub fn within_device(kind: u64, bytes: usize) -> Work {
    // 64 sizes of each kind: far below any address.
    Work::Kernel { key: kind << 6 | u64::from((bytes as u64).max(1).ilog2()) }
}

/// A kernel, or a graph.
pub fn kernel(handle: usize) -> Work {
    // The address of an object, which is aligned.
    Work::Kernel { key: handle as u64 >> 3 }
}
