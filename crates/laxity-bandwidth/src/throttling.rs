//! Throttling a CPU until a period ends.

use std::io;
use std::sync::Arc;

use laxity_model::Instant;
use laxity_sys::clock;

use crate::group::Group;
use crate::occupancy::Occupancy;
use crate::options::Throttle;

/// How one CPU is throttled, by its regulator's thread.
#[derive(Debug)]
pub(crate) struct Throttling {
    by: Throttle,
    group: Option<Arc<Group>>,
    occupancy: Occupancy,
}

/// How a period ended in which the budget was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The CPU stood still until the period ended.
    Throttled,
    /// It could not be: the occupier would have taken more than Linux leaves to real-time threads.
    LetRun,
}

impl Throttling {
    /// A group is needed by the freezer.
    pub fn new(by: Throttle, group: Option<Arc<Group>>) -> Self {
        Throttling { by, group, occupancy: Occupancy::new() }
    }

    /// Throttles the CPU of this thread, which is under `SCHED_FIFO`, from `now` until `until`; calls `begin` when it stands
    /// still, if it does.
    ///
    /// # Errors
    /// If the group cannot be frozen any more.
    pub fn throttle(&mut self, now: Instant, until: Instant, begin: impl FnOnce()) -> io::Result<Outcome> {
        let may_occupy = self.by != Throttle::Freezer && self.occupancy.may_occupy(now, until);
        if may_occupy {
            begin();
            while clock::now() < until {
                std::hint::spin_loop();
            }
            self.occupancy.add(now, clock::now());
            return Ok(Outcome::Throttled);
        }
        match &self.group {
            Some(group) if self.by != Throttle::Occupier => {
                group.set_frozen(true)?;
                begin();
                sleep_until(until);
                group.set_frozen(false)?;
                Ok(Outcome::Throttled)
            }
            _ => Ok(Outcome::LetRun),
        }
    }
}

/// Suspends this thread until then, whatever signals come.
pub(crate) fn sleep_until(until: Instant) {
    let word = std::sync::atomic::AtomicU32::new(0);
    while laxity_sys::futex::wait(&word, 0, until) != laxity_sys::futex::Ended::TimedOut {}
}
