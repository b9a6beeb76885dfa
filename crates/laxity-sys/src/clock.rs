//! The time.

use std::io;

use laxity_model::{Instant, Nanos};
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Now, in nanoseconds of `CLOCK_MONOTONIC`: the same clock in all processes of the machine.
pub fn now() -> Instant {
    let time = clock_gettime(ClockId::Monotonic);
    // The monotonic clock starts near 0 at boot: neither part is negative, and 2^64 ns are 584 years.
    Instant(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Suspends this thread until `instant`, unless that is over. Signals do not end it.
pub fn sleep_until(instant: Instant) {
    let Some(until) = timespec(instant) else {
        loop {
            std::thread::park();
        }
    };
    while clock_nanosleep_absolute(ClockId::Monotonic, &until) == Err(rustix::io::Errno::INTR) {}
}

/// As [`sleep_until`], but a signal that this thread handles ends it. Answers whether `instant` has come.
pub fn sleep_until_signal(instant: Instant) -> bool {
    // What never comes is slept for by the year.
    let until = instant.min(now().saturating_add(YEAR));
    let timespec = timespec(until).expect("a year from now comes");
    clock_nanosleep_absolute(ClockId::Monotonic, &timespec) != Err(rustix::io::Errno::INTR) && until == instant
}

const YEAR: Nanos = Nanos::from_secs(365 * 24 * 3600);

/// The CPU time that this thread has used: unlike the time, it stands still while others run.
pub fn thread_cpu_time() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// The clock of a thread: the CPU time that it has used, which other threads of its process read.
#[derive(Clone, Copy, Debug)]
pub struct ThreadClock(libc::clockid_t);

impl ThreadClock {
    /// That of the calling thread.
    ///
    /// # Errors
    /// None are known.
    pub fn of_this_thread() -> io::Result<ThreadClock> {
        let mut clock: libc::clockid_t = 0;
        // SAFETY: the calling thread exists, and the clock's number is written only.
        match unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) } {
            0 => Ok(ThreadClock(clock)),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// What the thread has used until now, to the nanosecond.
    ///
    /// # Errors
    /// If it has ended, or this is another process.
    pub fn read(self) -> io::Result<Nanos> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the time is written only.
        if unsafe { libc::clock_gettime(self.0, &raw mut time) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // Neither part of a CPU time is negative.
        Ok(Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64))
    }
}

/// `instant` as Linux takes time-outs; nothing if it never comes.
pub(crate) fn timespec(instant: Instant) -> Option<Timespec> {
    (instant != Instant::NEVER)
        .then_some(Timespec { tv_sec: (instant.0 / 1_000_000_000) as i64, tv_nsec: (instant.0 % 1_000_000_000) as i64 })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn another_thread_reads_how_much_a_thread_has_used_until_that_ends() {
        let (tell, told) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            let before = thread_cpu_time();
            while thread_cpu_time() < before + Nanos::from_millis(2) {}
            tell.send((ThreadClock::of_this_thread().expect("it has one"), thread_cpu_time())).expect("heard");
            let _ = ends.recv();
        });
        let (clock, used) = told.recv().expect("told");
        assert!(clock.read().expect("it lives") >= used && used >= Nanos::from_millis(2));
        drop(end);
        thread.join().expect("no panic");
        // A thread that was joined may take a moment to be gone.
        while clock.read().is_ok() {
            thread::yield_now();
        }
    }
}
