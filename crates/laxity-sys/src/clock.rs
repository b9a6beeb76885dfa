//! The time.

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

/// `instant` as Linux takes time-outs; nothing if it never comes.
pub(crate) fn timespec(instant: Instant) -> Option<Timespec> {
    (instant != Instant::NEVER)
        .then_some(Timespec { tv_sec: (instant.0 / 1_000_000_000) as i64, tv_nsec: (instant.0 % 1_000_000_000) as i64 })
}
