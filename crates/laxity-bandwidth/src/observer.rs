//! What regulators tell of, as it happens.

use laxity_model::Nanos;

/// Hears of what the regulators of CPUs do, each on the thread of its regulator, on that CPU: a recorder.
pub trait Observer: Send + Sync {
    /// From now on `cpu` may have `budget` bytes a second on average over a period, which begins now or goes on; `None`: as
    /// much as it likes.
    fn regulate(&self, _cpu: usize, _budget: Option<u64>) {}

    /// `thread` exceeded the budget: what is regulated on `cpu` stands still from now on.
    fn throttle(&self, _cpu: usize, _thread: u32) {}

    /// It goes on, having stood still for `lost` because of `thread`.
    fn unthrottle(&self, _cpu: usize, _thread: u32, _lost: Nanos) {}
}

/// Hears nothing.
impl Observer for () {}
