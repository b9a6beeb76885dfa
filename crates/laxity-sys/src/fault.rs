//! System calls that fail on command, for tests. Without debug assertions nothing of this is compiled in.
//!
//! Each wrapper of this crate asks `point` before it calls Linux. A test first [records](record) which calls a
//! scenario makes, and then repeats the scenario, once for each occurrence of each call and each error that Linux
//! documents for it ([`errors_of`]), with that one call [failing](fail).
//!
//! A scenario counts the calls of all threads of its process: a test that injects faults runs alone in its process.

use rustix::io::Errno;

/// Returns the error that a test wants the next call named `call` to fail with.
#[inline(always)]
pub(crate) fn point(call: &'static str) -> Result<(), Errno> {
    #[cfg(debug_assertions)]
    return injection::point(call);
    #[cfg(not(debug_assertions))]
    {
        let _ = call;
        Ok(())
    }
}

/// Whether a test records calls or has one fail: what was remembered of earlier calls does not count then.
#[inline(always)]
pub(crate) fn is_active() -> bool {
    #[cfg(debug_assertions)]
    return injection::is_active();
    #[cfg(not(debug_assertions))]
    false
}

#[cfg(debug_assertions)]
pub use injection::{Call, errors_of, fail, fork_idle, record};

/// Ends the calling thread at once, as a kill does: nothing is dropped and no destructor runs. Linux marks its robust
/// mutexes.
#[cfg(debug_assertions)]
pub fn end_thread() -> ! {
    // SAFETY: takes a number and touches no memory of ours; what the thread owns is leaked.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
    unreachable!("Linux ended the thread");
}

#[cfg(debug_assertions)]
mod injection {
    use std::collections::BTreeMap;
    use std::io;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use rustix::io::Errno;

    /// One system call of a scenario.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct Call {
        /// Its name, as in section 2 of the manual.
        pub name: &'static str,
        /// Which call of this name it is, counted from 0.
        pub occurrence: u32,
    }

    #[derive(Default)]
    struct Plan {
        seen: BTreeMap<&'static str, u32>,
        fault: Option<(Call, Errno)>,
        was_injected: bool,
    }

    static IS_ACTIVE: AtomicBool = AtomicBool::new(false);
    static PLAN: Mutex<Option<Plan>> = Mutex::new(None);

    fn plan() -> MutexGuard<'static, Option<Plan>> {
        PLAN.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub fn point(name: &'static str) -> Result<(), Errno> {
        if is_active() { active_point(name) } else { Ok(()) }
    }

    pub fn is_active() -> bool {
        IS_ACTIVE.load(Ordering::Relaxed)
    }

    #[cold]
    fn active_point(name: &'static str) -> Result<(), Errno> {
        let mut plan = plan();
        let Some(plan) = plan.as_mut() else { return Ok(()) };
        let seen = plan.seen.entry(name).or_default();
        let call = Call { name, occurrence: *seen };
        *seen += 1;
        match plan.fault {
            Some((target, error)) if target == call => {
                plan.was_injected = true;
                Err(error)
            }
            _ => Ok(()),
        }
    }

    fn run<R>(fault: Option<(Call, Errno)>, scenario: impl FnOnce() -> R) -> (R, Plan) {
        /// Turns injection off also if the scenario panics.
        struct Off;
        impl Drop for Off {
            fn drop(&mut self) {
                IS_ACTIVE.store(false, Ordering::Relaxed);
            }
        }
        *plan() = Some(Plan { fault, ..Plan::default() });
        IS_ACTIVE.store(true, Ordering::Relaxed);
        let off = Off;
        let result = scenario();
        drop(off);
        (result, plan().take().unwrap_or_default())
    }

    /// Carries out `scenario` and returns the calls that it made, in the order of their names.
    pub fn record<R>(scenario: impl FnOnce() -> R) -> (R, Vec<Call>) {
        let (result, plan) = run(None, scenario);
        let occurrences = |(name, count)| (0..count).map(move |occurrence| Call { name, occurrence });
        (result, plan.seen.into_iter().flat_map(occurrences).collect())
    }

    /// Carries out `scenario`, whose `call` fails with the error of this number. Also returns whether the scenario came
    /// to that call.
    pub fn fail<R>(call: Call, error: i32, scenario: impl FnOnce() -> R) -> (R, bool) {
        let (result, plan) = run(Some((call, Errno::from_raw_os_error(error))), scenario);
        (result, plan.was_injected)
    }

    /// Makes a copy of this process, by `fork`, that does nothing and ends after so many milliseconds. Answers with its
    /// number.
    ///
    /// # Errors
    /// If there can be no more processes.
    pub fn fork_idle(milliseconds: u32) -> io::Result<u32> {
        // SAFETY: the copy calls nothing but what may be called after a fork of a process with threads, and never returns.
        let copy = unsafe { libc::fork() };
        if copy == 0 {
            for _ in 0..milliseconds {
                // SAFETY: as above.
                unsafe { libc::usleep(1000) };
            }
            // SAFETY: as above.
            unsafe { libc::_exit(0) };
        }
        u32::try_from(copy).map_err(|_| io::Error::last_os_error())
    }

    /// The errors, by number, that Linux documents for the calls of this name and that a correct program can meet.
    pub fn errors_of(name: &str) -> &'static [i32] {
        use libc::*;
        match name {
            "open" => &[EACCES, EINTR, EMFILE, ENFILE, ENOMEM, ENOENT, EPERM],
            "read" => &[EINTR, EIO],
            "stat" | "fstat" | "statat" => &[EACCES, ENOENT, ENOMEM],
            "fallocate" => &[EINTR, ENOSPC, EOPNOTSUPP, EFBIG],
            "mmap" => &[ENOMEM, EAGAIN, ENFILE, EPERM],
            "linkat" => &[EACCES, EDQUOT, EEXIST, ENOENT, ENOMEM, ENOSPC, EPERM, EROFS],
            "unlink" => &[EACCES, EBUSY, EIO, ENOENT, EPERM, EROFS],
            "flock" => &[EINTR, ENOLCK, EWOULDBLOCK],
            "fcntl" => &[EACCES, EAGAIN, ENOLCK, EINTR],
            "socket" => &[EACCES, EMFILE, ENFILE, ENOBUFS, ENOMEM],
            "bind" => &[EACCES, EADDRINUSE, ENOMEM],
            "listen" => &[EADDRINUSE],
            "accept" => &[EMFILE, ENFILE, ENOMEM, EINTR, ECONNABORTED, EPERM],
            "connect" => &[ECONNREFUSED, EINTR, ETIMEDOUT, EAGAIN],
            "socketpair" | "memfd_create" => &[EMFILE, ENFILE, ENOMEM],
            "ftruncate" => &[EINTR, EFBIG, EPERM],
            "sendmsg" => &[EINTR, EAGAIN, ENOBUFS, ENOMEM, ETOOMANYREFS],
            "fork" => &[EAGAIN, ENOMEM],
            "execve" => &[EACCES, EMFILE, ENOENT, ENOEXEC, ENOMEM],
            "sendto" => &[EINTR, ENOBUFS, ENOMEM, ECONNREFUSED],
            "recvfrom" | "recvmsg" => &[EINTR, ENOMEM],
            "mknod" => &[EACCES, EDQUOT, ENOMEM, ENOSPC, EPERM, EROFS],
            "mq_open" => &[EACCES, EMFILE, ENFILE, ENOMEM, ENOSPC],
            "eventfd" => &[EMFILE, ENFILE, ENOMEM],
            "getrandom" => &[EINTR, ENOSYS],
            "inotify_init" => &[EMFILE, ENFILE, ENOMEM],
            "inotify_add_watch" => &[EACCES, ENOENT, ENOMEM, ENOSPC],
            "futex_waitv" => &[EINTR, ENOMEM, ENOSYS],
            "get_robust_list" => &[EPERM, ENOSYS],
            "set_robust_list" => &[ENOSYS],
            "sched_setscheduler" => &[EPERM],
            "clone" => &[EAGAIN, ENOMEM],
            "pidfd_open" => &[EMFILE, ENFILE, ENOMEM, ESRCH],
            "poll" => &[EINTR, ENOMEM],
            _ => &[],
        }
    }
}
