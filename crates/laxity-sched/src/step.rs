//! The points at which a simulation of whole systems interleaves threads and kills them, and the Linux that it simulates.
//! Nothing without tests.

use std::io;
use std::sync::atomic::AtomicU32;

use laxity_model::{Instant, TaskId};
use laxity_sys::cpu_mask::CpuMask;
use laxity_sys::futex::{self, Ended};
use laxity_sys::scheduling::Attributes;

#[cfg(test)]
use laxity_testing::simulation;

/// What a thread sleeps for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sleep {
    /// Its CPU.
    Gate,
    /// A lock.
    Request,
}

/// Another thread may come here, and this one may be killed.
#[inline(always)]
pub(crate) fn point() {
    #[cfg(test)]
    simulation::point();
}

/// Suspends the thread of `task` on its word while that is `seen`, until a wake-up or `until`.
#[inline(always)]
pub(crate) fn sleep(task: TaskId, what: Sleep, word: &AtomicU32, seen: u32, until: Instant) -> Ended {
    // In a simulation no look of its own hides that it was not woken.
    #[cfg(test)]
    if let Some(ended) = simulation::sleep(key(task, what), word, seen, Instant::NEVER) {
        return ended;
    }
    let _ = (task, what);
    futex::wait(word, seen, until)
}

/// Wakes the thread of `task` if it sleeps on its word.
#[inline(always)]
pub(crate) fn wake(task: TaskId, what: Sleep, word: &AtomicU32) {
    #[cfg(test)]
    simulation::wake(key(task, what), usize::MAX);
    let _ = (task, what);
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

/// Has Linux schedule `thread` (0: the calling one) by `attributes`.
#[inline(always)]
pub(crate) fn give_attributes(attributes: Attributes, thread: u32) -> io::Result<()> {
    #[cfg(test)]
    if is_simulated() {
        point();
        linux::change(thread, |placed| placed.0 = Some(attributes));
        return Ok(());
    }
    attributes.give_to(thread)
}

/// Has Linux keep `thread` on `cpus`.
#[inline(always)]
pub(crate) fn give_cpus(cpus: &CpuMask, thread: u32) -> io::Result<()> {
    #[cfg(test)]
    if is_simulated() {
        point();
        linux::change(thread, |placed| placed.1 = cpus.cpus().collect());
        return Ok(());
    }
    cpus.give_to(thread)
}

#[cfg(test)]
fn key(task: TaskId, what: Sleep) -> u64 {
    u64::from(task.0) << 1 | what as u64
}

/// How the simulated Linux schedules threads.
#[cfg(test)]
pub(crate) mod linux {
    use std::collections::BTreeMap;
    use std::sync::{Mutex, PoisonError};

    use laxity_sys::scheduling::{Attributes, current_thread};

    /// Attributes and CPUs.
    pub type Placed = (Option<Attributes>, Vec<usize>);

    /// Of each thread, what it was told, one after the other.
    static THREADS: Mutex<BTreeMap<u32, Vec<Placed>>> = Mutex::new(BTreeMap::new());

    pub fn change(thread: u32, change: impl FnOnce(&mut Placed)) {
        let thread = if thread == 0 { current_thread() } else { thread };
        let mut threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
        let told = threads.entry(thread).or_default();
        let mut placed = told.last().cloned().unwrap_or_default();
        change(&mut placed);
        told.push(placed);
    }

    /// How the calling thread is scheduled.
    pub fn placed() -> Placed {
        let threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
        threads.get(&current_thread()).and_then(|told| told.last().cloned()).unwrap_or_default()
    }

    /// How the calling thread was scheduled, one way after the other.
    pub fn placements() -> Vec<Placed> {
        THREADS.lock().unwrap_or_else(PoisonError::into_inner).get(&current_thread()).cloned().unwrap_or_default()
    }
}
