//! Throttling a CPU until a period ends.

use std::io;
use std::sync::Arc;

use laxity_model::{Factor, Instant};
use laxity_scx::{Brakes, Membership};
use laxity_sys::clock;

use crate::error::BandwidthError;

use crate::group::Group;
use crate::occupancy::Occupancy;
use crate::options::Throttle;

/// How one CPU is throttled, by its regulator's thread.
#[derive(Debug)]
pub(crate) struct Throttling {
    by: Throttle,
    group: Option<Arc<Group>>,
    occupancy: Occupancy,
    in_kernel: Option<InKernel>,
}

/// CPUs that the scheduler in the kernel throttles.
#[derive(Clone, Debug)]
pub(crate) struct InKernel {
    brakes: Brakes,
    punishment: Factor,
}

impl InKernel {
    /// What [`Throttle::Kernel`] takes: the scheduler that is loaded now, which charges `punishment` times what is lost.
    pub fn join(punishment: f64) -> Result<InKernel, BandwidthError> {
        let brakes = Membership::join().and_then(|member| member.brakes()).map_err(BandwidthError::Scheduler)?;
        // At most 100, as was checked.
        Ok(InKernel { brakes, punishment: Factor((punishment * Factor::ONE.0 as f64).round() as u64) })
    }

    /// The same without a punishment: for self-tests.
    pub fn lenient(&self) -> InKernel {
        InKernel { punishment: Factor::ZERO, ..self.clone() }
    }
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
    /// A group is needed by the freezer, `in_kernel` by the kernel.
    pub fn new(by: Throttle, group: Option<Arc<Group>>, in_kernel: Option<InKernel>) -> Self {
        Throttling { by, group, occupancy: Occupancy::new(), in_kernel }
    }

    /// Throttles the CPU `cpu` of this thread, which is under `SCHED_FIFO`, from `now` until `until`, because of `culprit`; calls
    /// `begin` when it stands still, if it does.
    ///
    /// # Errors
    /// If the group cannot be frozen any more, or the scheduler in the kernel has ended.
    pub fn throttle(
        &mut self,
        (cpu, culprit): (usize, u32),
        now: Instant,
        until: Instant,
        begin: impl FnOnce(),
    ) -> io::Result<Outcome> {
        if let Some(InKernel { brakes, punishment }) = &self.in_kernel {
            brakes.throttle(cpu, until, culprit, *punishment).map_err(io::Error::other)?;
            begin();
            sleep_until(until);
            return Ok(Outcome::Throttled);
        }
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
