//! A timer of Linux: `timerfd`, on the clock of [`now`](crate::clock::now).

use std::io;
use std::os::fd::OwnedFd;

use laxity_model::Instant;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use crate::clock::timespec;

/// A timer that was not armed yet.
#[derive(Debug)]
pub struct Timer {
    descriptor: OwnedFd,
}

impl Timer {
    /// A timer that is not armed.
    ///
    /// # Errors
    /// If this process has too many descriptors.
    pub fn new() -> io::Result<Timer> {
        let descriptor = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        Ok(Timer { descriptor })
    }

    /// Arms it for `at`, whatever it was armed for before; [`Instant::NEVER`] disarms it.
    ///
    /// # Errors
    /// None are known.
    pub fn arm(&self, at: Instant) -> io::Result<()> {
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = timespec(at).unwrap_or(none);
        let times = Itimerspec { it_interval: none, it_value: value };
        timerfd_settime(&self.descriptor, TimerfdTimerFlags::ABSTIME, &times)?;
        Ok(())
    }

    /// Suspends this thread until it expires, unless it has since it was last waited for.
    pub fn wait(&self) {
        while rustix::io::read(&self.descriptor, &mut [0; 8]) == Err(rustix::io::Errno::INTR) {}
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::Nanos;

    use super::*;
    use crate::clock::now;

    #[test]
    fn the_last_arming_counts_and_a_wait_ends_no_earlier() {
        let timer = Timer::new().expect("a descriptor");
        timer.arm(now().saturating_add(Nanos::from_secs(3_600))).expect("armed");
        timer.arm(Instant::NEVER).expect("disarmed");
        let due = now().saturating_add(Nanos::from_millis(2));
        timer.arm(due).expect("armed");
        timer.wait();
        assert!(now() >= due);
    }
}
