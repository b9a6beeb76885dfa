//! A fence that one thread carries out on behalf of all others, so that what they do often needs none.

use std::sync::atomic::{Ordering, fence};

/// Takes part, with all threads of this process, in what [`everywhere`] of any process does. Answers whether Linux offers
/// that (4.16, unless a filter of system calls refuses).
pub fn register() -> bool {
    call(libc::MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED)
}

/// When this returns, every thread of every process that is [registered](register) has passed a sequentially consistent
/// fence since it was called: what such a thread stored before is seen here from now on, and what it loads afterwards is
/// not older than what was seen here before.
///
/// Some microseconds; milliseconds on an older Linux. Where Linux offers neither this is a fence of this thread alone.
pub fn everywhere() {
    if !call(libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED) && !call(libc::MEMBARRIER_CMD_GLOBAL) {
        fence(Ordering::SeqCst);
    }
}

fn call(command: libc::c_int) -> bool {
    // SAFETY: the call takes numbers only, and touches no memory.
    (unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }) == 0
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, compiler_fence};
    use std::thread;

    use super::*;

    /// Dekker's two threads, of which the one that does it often has no fence. Without the other's at least one of some
    /// thousand rounds ends with both not seeing each other, on machines that have several CPUs.
    #[test]
    fn one_of_two_threads_sees_the_other() {
        if !register() {
            return;
        }
        let [ours, theirs] = [AtomicU32::new(0), AtomicU32::new(0)];
        for round in 1..2000 {
            let (here, there) = thread::scope(|scope| {
                let there = scope.spawn(|| {
                    theirs.store(round, Ordering::Relaxed);
                    compiler_fence(Ordering::SeqCst);
                    ours.load(Ordering::Relaxed)
                });
                ours.store(round, Ordering::Relaxed);
                everywhere();
                (theirs.load(Ordering::Relaxed), there.join().expect("no panic"))
            });
            assert!(here == round || there == round, "neither saw the other in round {round}");
        }
    }
}
