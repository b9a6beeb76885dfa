//! Where the budget of the moment comes from.

use laxity_gpu::Arbitration;
use laxity_model::Instant;

/// What says how much traffic a CPU may have now.
pub(crate) trait Source: Send + Sync {
    /// Bytes a second; `None`: as much as it wants.
    fn budget(&self) -> Option<u64>;

    /// Suspends this thread until there may be a budget, or `until`.
    fn wait(&self, until: Instant);
}

/// The bandwidth lock of an arbitration.
impl Source for Arbitration {
    fn budget(&self) -> Option<u64> {
        self.bandwidth_budget()
    }

    fn wait(&self, until: Instant) {
        self.wait_for_bandwidth_lock(until);
    }
}

/// The same budget always: for self-tests.
pub(crate) struct Always(pub u64);

impl Source for Always {
    fn budget(&self) -> Option<u64> {
        Some(self.0)
    }

    fn wait(&self, _until: Instant) {}
}
