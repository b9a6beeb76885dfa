//! The locks of a segment, which Linux releases when their holder's process ends, whatever ends it.
//!
//! | | Linux | Held by | Released by Linux |
//! | --- | --- | --- | --- |
//! | the lock of the segment | `flock` | one thread of all processes, for a moment | when the process ends |
//! | presence, one byte each | `F_OFD_SETLK` | a process, for as long as it takes part | when the process ends, or executes another program |
//!
//! Linux releases both when it closes the descriptor, which happens after *all* threads of the process have carried out
//! their last instruction. So a free byte is proof that no instruction of its former holder follows. The proof holds
//! across PID, time and user namespaces, needs no `/proc` and no further descriptor, and does not confuse a process with
//! a later one of the same number. A forked child does not inherit the locks ([`crate::fork`]).

use std::fs;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use laxity_model::Nanos;
use rustix::fs::{AtFlags, CWD, FlockOperation};
use rustix::io::Errno;

use super::{Segment, SegmentError, system};
use crate::backoff::Backoff;
use crate::{clock, fault};

/// How long to wait for the lock. Its holders do a few system calls under it.
const PATIENCE: Nanos = Nanos::from_secs(10);
/// Pauses between attempts, the first and the longest.
const PAUSES: [Nanos; 2] = [Nanos::from_micros(20), Nanos::from_millis(1)];

/// What [`Segment::presence`] is while the process holds no presence byte.
pub(super) const NO_PRESENCE: usize = usize::MAX;

/// The lock of a segment: one holder in all processes. Released when dropped, and by Linux if the process dies.
#[derive(Debug)]
pub struct Locked<'a> {
    segment: &'a Segment,
    _threads: MutexGuard<'a, ()>,
}

impl Segment {
    /// Waits for the lock.
    ///
    /// # Errors
    /// [`SegmentError::Busy`] if another process holds it for 10 s, [`SegmentError::System`].
    pub fn lock(&self) -> Result<Locked<'_>, SegmentError> {
        self.lock_within(PATIENCE)
    }

    /// Waits for the lock, at most for `patience`.
    ///
    /// # Errors
    /// As [`Segment::lock`].
    pub fn lock_within(&self, patience: Nanos) -> Result<Locked<'_>, SegmentError> {
        // A thread that panicked left nothing half-done here: this mutex guards no data.
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let deadline = clock::now().saturating_add(patience);
        let [first, longest] = PAUSES;
        let mut backoff = Backoff::new(first, longest);
        let operation = FlockOperation::NonBlockingLockExclusive;
        loop {
            match fault::point("flock").and_then(|()| rustix::fs::flock(&self.file, operation)) {
                Ok(()) => return Ok(Locked { segment: self, _threads: threads }),
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) if clock::now() < deadline => {
                    thread::sleep(Duration::from_nanos(backoff.pause().0));
                }
                Err(Errno::WOULDBLOCK) => {
                    return Err(SegmentError::Busy { path: self.path.clone(), holder: self.lock_holder(), patience });
                }
                Err(error) => return Err(system(&self.path, "lock it", error)),
            }
        }
    }

    /// The process that took the lock, if Linux says.
    fn lock_holder(&self) -> Option<u32> {
        let status = rustix::fs::fstat(&self.file).ok()?;
        let device = (rustix::fs::major(status.st_dev), rustix::fs::minor(status.st_dev));
        let locks = fs::read(LOCKS).ok()?;
        String::from_utf8_lossy(&locks).lines().find_map(|line| holder_in(line, device, status.st_ino))
    }

    /// Takes the presence byte at `offset`, until [`Segment::leave`] or until this process ends or executes another
    /// program. Answers whether it was free.
    ///
    /// # Errors
    /// [`SegmentError::System`].
    pub fn enter(&self, offset: usize) -> Result<bool, SegmentError> {
        match self.ask_presence(libc::F_OFD_SETLK, libc::F_WRLCK, offset) {
            Ok(_) => {
                self.presence.store(offset, Ordering::SeqCst);
                Ok(true)
            }
            Err(Errno::AGAIN | Errno::ACCESS) => Ok(false),
            Err(error) => Err(system(&self.path, "take a presence lock of it", error)),
        }
    }

    /// Gives the presence byte at `offset` back.
    pub fn leave(&self, offset: usize) {
        // Cannot fail: the descriptor is open. If Linux should refuse, the byte is free when the segment is closed.
        let _ = self.ask_presence(libc::F_OFD_SETLK, libc::F_UNLCK, offset);
        let _ = self.presence.compare_exchange(offset, NO_PRESENCE, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Whether the presence byte at `offset` is held. A byte that Linux says nothing of counts as held.
    pub fn is_present(&self, offset: usize) -> bool {
        // Linux tells of the locks of other descriptors only. A thread that goes on for a moment in a process that is
        // being killed must not take that process, whose guardian has ended, for one that has ended.
        self.presence.load(Ordering::SeqCst) == offset
            || self.ask_presence(libc::F_OFD_GETLK, libc::F_WRLCK, offset) != Ok(libc::F_UNLCK)
    }

    /// Answers with the type of the lock that Linux reports.
    fn ask_presence(&self, command: libc::c_int, kind: libc::c_int, offset: usize) -> Result<libc::c_int, Errno> {
        // SAFETY: the structure consists of integers.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = kind as libc::c_short;
        lock.l_whence = libc::SEEK_SET as libc::c_short;
        lock.l_start = offset as libc::off_t;
        lock.l_len = 1;
        loop {
            fault::point("fcntl")?;
            // SAFETY: an open descriptor, and a structure that Linux reads and writes during the call.
            match unsafe { libc::fcntl(self.file.as_raw_fd(), command, &raw mut lock) } {
                -1 => match std::io::Error::last_os_error().raw_os_error() {
                    Some(libc::EINTR) => {}
                    error => return Err(Errno::from_raw_os_error(error.unwrap_or(libc::EINVAL))),
                },
                _ => return Ok(lock.l_type.into()),
            }
        }
    }
}

impl Locked<'_> {
    /// Whether the segment still has its name. If not, it was opened too late.
    pub fn is_named(&self) -> bool {
        let ours = rustix::fs::fstat(&self.segment.file);
        let named = rustix::fs::statat(CWD, &self.segment.path, AtFlags::SYMLINK_NOFOLLOW);
        match (ours, named) {
            (Ok(ours), Ok(named)) => (ours.st_dev, ours.st_ino) == (named.st_dev, named.st_ino),
            _ => false,
        }
    }

    /// Takes its name away, if it has it. Only the holder of the lock takes names away.
    ///
    /// # Errors
    /// [`SegmentError::System`].
    pub fn unlink(&self) -> Result<(), SegmentError> {
        if !self.is_named() {
            return Ok(());
        }
        let path = &self.segment.path;
        fault::point("unlink").and_then(|()| rustix::fs::unlink(path)).map_err(|error| system(path, "remove it", error))
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // Cannot fail: the descriptor is open and the lock ours.
        let _ = rustix::fs::flock(&self.segment.file, FlockOperation::Unlock);
    }
}

const LOCKS: &str = "/proc/locks";

/// The process in a line of `/proc/locks`, if it is about an `flock` of this file that is held and not awaited.
fn holder_in(line: &str, device: (u32, u32), inode: u64) -> Option<u32> {
    // Number, kind, strictness, mode, process, device and inode, range.
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [_, "FLOCK", _, _, process, file, ..] = fields[..] else { return None };
    let is_it = file == format!("{:02x}:{:02x}:{inode}", device.0, device.1);
    process.parse().ok().filter(|_| is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_lock_is_found_and_a_waiter_is_not() {
        let line = "17: FLOCK  ADVISORY  WRITE 4711 00:1a:567 0 EOF";
        assert_eq!(holder_in(line, (0, 0x1a), 567), Some(4711));
        assert_eq!(holder_in(line, (0, 0x1a), 568), None);
        assert_eq!(holder_in("17: -> FLOCK  ADVISORY  WRITE 4711 00:1a:567 0 EOF", (0, 0x1a), 567), None);
        assert_eq!(holder_in("18: POSIX  ADVISORY  WRITE 4711 00:1a:567 0 EOF", (0, 0x1a), 567), None);
    }
}
