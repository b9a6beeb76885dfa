//! What a sporadic server may still use, and from when on.

use laxity_model::{Instant, Nanos};

/// The parts of a budget that are not in use, by the time from which each may be used.
///
/// The server keeps fewer parts than this and joins them at their later time (`laxity_policy::server::SporadicServer`): by any
/// time at least as much is back here as there, so that this finds nothing where that was right.
#[derive(Clone, Debug)]
pub(super) struct Supply(Vec<(Instant, Nanos)>);

/// With more parts the last two are joined, at the earlier time.
const PARTS: usize = 128;

impl Supply {
    pub fn whole(budget: Nanos) -> Supply {
        Supply(vec![(Instant::ZERO, budget)])
    }

    /// Takes `wanted` of what may be used from `at` on or earlier, the earliest parts first; answers how much of it was there.
    pub fn take(&mut self, at: Instant, wanted: Nanos) -> Nanos {
        let mut left = wanted;
        while let Some(first) = self.0.first_mut().filter(|first| first.0 <= at && !left.is_zero()) {
            let taken = left.min(first.1);
            first.1 -= taken;
            left -= taken;
            if first.1.is_zero() {
                self.0.remove(0);
            }
        }
        wanted - left
    }

    /// So much may be used from `at` on.
    pub fn put(&mut self, at: Instant, amount: Nanos) {
        if amount.is_zero() {
            return;
        }
        let position = self.0.partition_point(|part| part.0 <= at);
        self.0.insert(position, (at, amount));
        if self.0.len() > PARTS
            && let Some((_, last)) = self.0.pop()
            && let Some((_, before)) = self.0.last_mut()
        {
            *before += last;
        }
    }
}
