//! Signals that a thread takes when it wants to, rather than at any instruction.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Signals that are kept for this process to take: they interrupt nothing.
#[derive(Debug)]
pub struct Signals {
    descriptor: OwnedFd,
    set: libc::sigset_t,
}

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Its number in Linux.
    pub number: i32,
    /// Whether Linux itself sent it, as a terminal does to all processes in its foreground.
    pub is_from_linux: bool,
}

impl Signals {
    /// What asks a program to do something or to end: HUP, INT, QUIT, TERM, USR1 and USR2. They are blocked in the calling
    /// thread, and in the threads that it starts from now on, so this comes before any other thread.
    ///
    /// # Errors
    /// If this process has too many descriptors.
    pub fn requests() -> io::Result<Signals> {
        // SAFETY: all-zero is valid, and the set is made empty before it is used.
        let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: the set is ours, and so are the numbers signals.
        unsafe {
            libc::sigemptyset(&raw mut set);
            for number in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGUSR1, libc::SIGUSR2] {
                libc::sigaddset(&raw mut set, number);
            }
        }
        // SAFETY: the set is read only; a new descriptor is ours alone.
        let descriptor = unsafe {
            match libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
                -1 => return Err(io::Error::last_os_error()),
                number => OwnedFd::from_raw_fd(number),
            }
        };
        // SAFETY: the set is read only.
        match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) } {
            0 => Ok(Signals { descriptor, set }),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// The next one that came.
    pub fn take(&self) -> Option<Signal> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: as many bytes are written at most as the structure has.
        let read = unsafe { libc::read(self.descriptor.as_raw_fd(), info.as_mut_ptr().cast(), size) };
        // SAFETY: integers, all of them zeroed or written.
        let info = unsafe { info.assume_init() };
        (read == size as isize)
            .then_some(Signal { number: info.ssi_signo as i32, is_from_linux: info.ssi_code == libc::SI_KERNEL })
    }

    /// The set itself.
    pub(crate) fn set(&self) -> libc::sigset_t {
        self.set
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
