//! How much of the last second the occupier took of its CPU.

use laxity_model::{Instant, Nanos};

/// The window in which Linux looks.
const WINDOW: Nanos = Nanos::from_secs(1);
/// A part of the window.
const SLICE: Nanos = Nanos::from_millis(20);
const SLICES: usize = (WINDOW.0 / SLICE.0) as usize + 1;

/// What the occupier takes of a second at most. Linux leaves 950 ms of it to real-time threads: by its fair server, which
/// runs other threads for 50 ms (6.12 and later), or by throttling real-time threads (before). At a share of 0.96 hogs were
/// measured to run anyway; the rest is for other real-time threads of the CPU.
pub(crate) const OCCUPIED_MAX: Nanos = Nanos::from_millis(930);

/// What the occupier took in each slice of the last second.
#[derive(Clone, Debug)]
pub(crate) struct Occupancy {
    slices: [(u64, Nanos); SLICES],
}

impl Occupancy {
    /// Nothing yet.
    pub fn new() -> Self {
        Occupancy { slices: [(0, Nanos::ZERO); SLICES] }
    }

    /// It occupied the CPU from `from` to `to`.
    pub fn add(&mut self, from: Instant, to: Instant) {
        let mut begin = from;
        while begin < to {
            let number = begin.0 / SLICE.0;
            let end = to.min(Instant((number + 1) * SLICE.0));
            let slice = &mut self.slices[(number % SLICES as u64) as usize];
            if slice.0 != number {
                *slice = (number, Nanos::ZERO);
            }
            slice.1 = Nanos(slice.1.0 + (end - begin).0);
            begin = end;
        }
    }

    /// What it took of the second before `now`; a slice that began within it counts wholly.
    pub fn taken(&self, now: Instant) -> Nanos {
        let first = now.0.saturating_sub(WINDOW.0) / SLICE.0;
        Nanos(self.slices.iter().filter(|(number, _)| *number >= first).map(|(_, taken)| taken.0).sum())
    }

    /// Whether it may occupy the CPU from `now` until `until`.
    pub fn may_occupy(&self, now: Instant, until: Instant) -> bool {
        self.taken(now).0 + until.saturating_since(now).0 <= OCCUPIED_MAX.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Periods of 1 ms from `start` on of which the occupier wants `share` thousandths, for `ms` of them.
    fn occupied(share: u64, ms: u64) -> u64 {
        let mut occupancy = Occupancy::new();
        let mut taken = Vec::new();
        for period in 5_000..5_000 + ms {
            let end = Instant((period + 1) * MS);
            let begin = Instant(end.0 - share * MS / 1_000);
            if occupancy.may_occupy(begin, end) {
                occupancy.add(begin, end);
                taken.push(end.0 - begin.0);
            } else {
                taken.push(0);
            }
        }
        // The most of any second.
        taken.windows(1_000).map(|second| second.iter().sum()).max().unwrap_or(0)
    }

    #[test]
    fn a_share_below_the_bound_is_never_cut() {
        assert_eq!(occupied(900, 3_000), 900 * MS);
    }

    #[test]
    fn no_second_has_more_than_the_bound() {
        for share in [940, 960, 990, 1_000] {
            let most = occupied(share, 3_000);
            assert!(most <= OCCUPIED_MAX.0, "{most} ns of a second at a share of {share}");
            assert!(most >= 880 * MS, "{most} ns of a second at a share of {share}: more could be taken");
        }
    }

    #[test]
    fn what_was_taken_is_forgotten_after_a_second() {
        let mut occupancy = Occupancy::new();
        occupancy.add(Instant(100 * MS), Instant(190 * MS));
        assert_eq!(occupancy.taken(Instant(200 * MS)), Nanos(90 * MS));
        assert_eq!(occupancy.taken(Instant(1_150 * MS)), Nanos(50 * MS), "slices from 140 ms on");
        assert_eq!(occupancy.taken(Instant(1_300 * MS)), Nanos::ZERO);
    }
}
