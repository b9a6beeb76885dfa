//! What a child made by `fork` must not share with its parent.
//!
//! `flock` and open-file-description locks belong to an *open file description*, and a child has a copy of each
//! descriptor, that is, of the same description. A lock that the parent holds would stay held after the parent's death,
//! for as long as the child lives, even if the child closes the descriptor, where the file was mapped through it. So locks
//! are held on descriptions that nothing is mapped through ([`reopen`]), and the child replaces its copies, before `fork` returns in it, by descriptors of
//! descriptions of its own. A child that executes another program needs none of this: the descriptors close.
//!
//! A connection is the parent's alone, too: a child that keeps it open hides the parent's death from the other end, and one
//! that ends it ends the parent's. A socket cannot be opened once more; its place in the child has `/dev/null`, on which
//! all calls for sockets fail.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize, Ordering};

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::fault;

/// Descriptors that can be replaced at one time; more are shared with children as any other descriptor is.
const COUNT: usize = 4096;
const NONE: i32 = -1;

static DESCRIPTORS: [AtomicI32; COUNT] = [const { AtomicI32::new(NONE) }; COUNT];
/// Entries from this one on were never used.
static USED: AtomicUsize = AtomicUsize::new(0);
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Lists a descriptor until dropped, which must happen before the descriptor is closed.
#[derive(Debug)]
pub(crate) struct Unshared {
    entry: Option<usize>,
}

/// How often this process was forked since its first ancestor that called this. Two different answers tell a process
/// that it is a copy, for the price of a load.
#[inline]
pub fn forks() -> u32 {
    handle_forks();
    FORKS.load(Ordering::Relaxed)
}

/// From now on a forked child has a description of its own in the place of `descriptor`, which is open for reading and
/// writing; in that of a socket, one of `/dev/null`.
pub(crate) fn unshare(descriptor: BorrowedFd<'_>) -> Unshared {
    handle_forks();
    let take = |&entry: &usize| {
        let (free, taken) = (NONE, descriptor.as_raw_fd());
        DESCRIPTORS[entry].compare_exchange(free, taken, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    };
    let entry = (0..COUNT).find(take);
    if let Some(entry) = entry {
        USED.fetch_max(entry + 1, Ordering::SeqCst);
    }
    Unshared { entry }
}

/// Opens the file of `descriptor` once more, for reading and writing: a description of its own.
pub(crate) fn reopen(descriptor: &OwnedFd) -> Result<OwnedFd, Errno> {
    let itself = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    retry_on_intr(|| fault::point("open").and_then(|()| rustix::fs::open(itself.as_str(), flags, Mode::empty())))
}

impl Drop for Unshared {
    fn drop(&mut self) {
        if let Some(entry) = self.entry {
            DESCRIPTORS[entry].store(NONE, Ordering::SeqCst);
        }
    }
}

#[inline]
fn handle_forks() {
    static HANDLING: Once = Once::new();
    HANDLING.call_once(|| {
        // SAFETY: the handler calls nothing but what may be called after a fork of a process with threads. If there is
        // no memory for its registration, forks are not noticed and children share descriptors.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    for entry in &DESCRIPTORS[..USED.load(Ordering::SeqCst)] {
        let descriptor = entry.load(Ordering::SeqCst);
        if descriptor != NONE {
            replace(descriptor);
        }
    }
}

/// Puts a new description of the same file in the place of `descriptor`, or `/dev/null` if it cannot be opened. Allocates nothing: another thread of the
/// parent may have held the allocator's lock.
fn replace(descriptor: i32) {
    let mut path = *b"/proc/self/fd/0123456789\0";
    let digits = &mut path[14..];
    let mut length = 0;
    let mut rest = descriptor.unsigned_abs();
    loop {
        digits[length] = b'0' + (rest % 10) as u8;
        length += 1;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    digits[..length].reverse();
    digits[length] = 0;
    // SAFETY: the path ends with NUL; `open`, `dup3` and `close` may be called after a fork, and concern descriptors of
    // the child alone, which owns `descriptor` as its parent does. Where opening fails the child goes on sharing it.
    unsafe {
        let mut fresh = libc::open(path.as_ptr().cast(), libc::O_RDWR | libc::O_CLOEXEC);
        if fresh < 0 {
            fresh = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        }
        if fresh >= 0 {
            libc::dup3(fresh, descriptor, libc::O_CLOEXEC);
            libc::close(fresh);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_knows_that_it_is_one() {
        let before = forks();
        // SAFETY: the child calls nothing but what may be called after a fork of a process with threads.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "another process");
        if child == 0 {
            let is_told = forks() == before + 1;
            // SAFETY: as above; it never returns.
            unsafe { libc::_exit(if is_told { 42 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: our child, and a variable.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(libc::WEXITSTATUS(status), 42);
        assert_eq!(forks(), before, "not the original");
    }
}
