//! The points at which a simulation of whole arbitrations interleaves threads and kills them. Nothing without tests.

use std::sync::atomic::AtomicU32;

use laxity_model::{Instant, TaskId};
use laxity_sys::futex::{self, Ended};

#[cfg(test)]
use laxity_testing::simulation;

/// Another thread may come here, and this one may be killed.
#[inline(always)]
pub(crate) fn point() {
    #[cfg(test)]
    simulation::point();
}

/// Sleeps on the word of `task` while it is `seen`, until a wake-up or `until`.
#[inline(always)]
pub(crate) fn sleep(task: TaskId, word: &AtomicU32, seen: u32, until: Instant) -> Ended {
    #[cfg(test)]
    if let Some(ended) = simulation::sleep(task.0.into(), word, seen, until) {
        return ended;
    }
    let _ = task;
    futex::wait(word, seen, until)
}

/// Wakes the thread of `task` if it sleeps on its word.
#[inline(always)]
pub(crate) fn wake(task: TaskId, word: &AtomicU32) {
    #[cfg(test)]
    simulation::wake(task.0.into(), usize::MAX);
    let _ = task;
    futex::wake_all(word);
}

/// Whether a simulation schedules this thread, so that it must not suspend by itself.
#[inline(always)]
pub(crate) fn is_simulated() -> bool {
    #[cfg(test)]
    return simulation::is_simulated();
    #[cfg(not(test))]
    false
}

/// Whether processes look for threads that ended unnoticed: those of a simulation end when its schedule says so, and stay as they
/// are until a step of another thread finds them.
#[inline(always)]
pub(crate) fn may_look() -> bool {
    #[cfg(test)]
    return SIMULATIONS.load(std::sync::atomic::Ordering::SeqCst) == 0;
    #[cfg(not(test))]
    true
}

#[cfg(test)]
static SIMULATIONS: AtomicU32 = AtomicU32::new(0);

/// A simulation of this process, until it is dropped.
#[cfg(test)]
pub(crate) struct Simulated(());

#[cfg(test)]
impl Simulated {
    pub fn begin() -> Simulated {
        SIMULATIONS.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Simulated(())
    }
}

#[cfg(test)]
impl Drop for Simulated {
    fn drop(&mut self) {
        SIMULATIONS.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
    }
}
