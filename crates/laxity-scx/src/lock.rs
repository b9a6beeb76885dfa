//! Locks between tasks of a process: whose holder inherits the priorities of those that wait.

use std::sync::atomic::{AtomicU32, Ordering};

use laxity_model::Instant;
use laxity_sys::futex;

use crate::client::Task;

/// A lock between tasks of one [`Membership`](crate::Membership). While tasks wait for it, the job that holds it has at least the priority of the most
/// urgent of them, and so do in turn the holders of locks that it waits for (priority inheritance: Sha, Rajkumar & Lehoczky,
/// IEEE Transactions on Computers 39(9), 1990). The waiter that gets a CPU first has it next.
///
/// Costs an atomic instruction each way where no other task wants it. After the scheduler's end it is a lock like any other.
#[derive(Debug, Default)]
pub struct Lock {
    /// 0: free; else which task of the process holds it, and whether another one sleeps.
    word: AtomicU32,
}

/// Another task sleeps until the lock is free.
const AWAITED: u32 = 1 << 31;

/// Holds a [`Lock`] until it is dropped, which must be in the job that took it.
#[derive(Debug)]
#[must_use = "the lock is free when this is dropped"]
pub struct Guard<'a> {
    lock: &'a Lock,
    /// A job does not end while it holds a lock.
    _task: &'a Task,
}

impl Lock {
    /// A free one.
    pub const fn new() -> Lock {
        Lock { word: AtomicU32::new(0) }
    }

    /// For `task`, whose thread calls this; suspends its job while another task has the lock.
    ///
    /// Panics if `task` has it already.
    pub(crate) fn take<'a>(&'a self, task: &'a Task) -> Guard<'a> {
        let own = task.word();
        loop {
            let found = match self.word.compare_exchange(0, own, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Guard { lock: self, _task: task },
                Err(found) => found,
            };
            let holder = found & !AWAITED;
            assert_ne!(holder, own, "a task that waits for itself would wait for ever");
            let awaited = holder | AWAITED;
            if found != awaited
                && self.word.compare_exchange(found, awaited, Ordering::Relaxed, Ordering::Relaxed).is_err()
            {
                continue;
            }
            task.while_waiting_for(holder, || _ = futex::wait(&self.word, awaited, Instant::NEVER));
        }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if self.lock.word.swap(0, Ordering::Release) & AWAITED != 0 {
            // All of them: which is the most urgent the scheduler knows, and the others sleep again.
            futex::wake_all(&self.lock.word);
        }
    }
}
