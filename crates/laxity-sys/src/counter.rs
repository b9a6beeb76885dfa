//! Hardware counters of a whole CPU that tell when they reach a limit: `perf_event_open(2)`.
//!
//! Needs performance counters that Linux sees, which many virtual machines do not have, and `CAP_PERFMON` or
//! `kernel.perf_event_paranoid` of at most 0.

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use laxity_model::Instant;
use perf_event::data::Record;
use perf_event::events::{Event, Hardware};
use perf_event::{Builder, SampleFlag, Sampler};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;

use crate::clock;

/// `PERF_EVENT_IOC_PERIOD` of Linux: `_IOW('$', 4, __u64)`.
const SET_PERIOD: libc::c_ulong = 0x4008_2404;
/// The ring of records: one page of them, as they are read at once.
const RING: usize = 8 << 10;

/// A counter of one CPU, whichever threads run there.
pub struct HardwareCounter {
    sampler: Sampler,
    /// The count at which the limit is reached.
    reached_at: u64,
}

/// A limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// The thread that ran then; 0 if Linux does not say.
    pub thread: u32,
}

impl fmt::Debug for HardwareCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HardwareCounter").field("descriptor", &self.sampler.as_raw_fd()).finish()
    }
}

impl HardwareCounter {
    /// Misses of the last-level cache of `cpu`, in user mode: the generic event, which Linux maps for each model of CPU.
    ///
    /// # Errors
    /// If the machine shows none (not found), or this user may not (permission denied).
    pub fn cache_misses(cpu: usize) -> io::Result<HardwareCounter> {
        HardwareCounter::open(cpu, Hardware::CACHE_MISSES)
    }

    /// Counts `event`. It has no limit yet.
    fn open<E: Event>(cpu: usize, event: E) -> io::Result<HardwareCounter> {
        let mut builder = Builder::new(event);
        builder.any_pid().one_cpu(cpu).exclude_kernel(true).exclude_hv(true);
        // As good as no limit.
        builder.sample_period(i64::MAX as u64).sample(SampleFlag::TID).wakeup_events(1);
        let mut counter = builder.build()?;
        counter.enable()?;
        Ok(HardwareCounter { sampler: counter.sampled(RING)?, reached_at: u64::MAX })
    }

    /// Events until now.
    ///
    /// # Errors
    /// If the CPU was taken from the machine.
    pub fn count(&mut self) -> io::Result<u64> {
        self.sampler.read()
    }

    /// Tells when `events` more than now have been counted; what was told before is forgotten.
    ///
    /// # Errors
    /// If Linux refuses such a limit.
    pub fn limit(&mut self, events: u64) -> io::Result<()> {
        self.reached_at = self.count()?.saturating_add(events);
        self.set_period(events)?;
        while self.sampler.next_record().is_some() {}
        Ok(())
    }

    /// Tells nothing any more.
    ///
    /// # Errors
    /// None are known.
    pub fn lift(&mut self) -> io::Result<()> {
        self.limit(i64::MAX as u64)
    }

    /// Suspends this thread until the limit is reached or `until`.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn wait(&mut self, until: Instant) -> io::Result<Option<Overflow>> {
        loop {
            let told = self.sampler.next_record().map(|record| match record.parse_record() {
                Ok(Record::Sample(sample)) => sample.tid().unwrap_or(0),
                _ => 0,
            });
            if let Some(thread) = told {
                // Linux tells of the first event after a new limit, too, where it counts itself.
                if self.count()? < self.reached_at {
                    continue;
                }
                return Ok(Some(Overflow { thread }));
            }
            let left = until.saturating_since(clock::now());
            if left.is_zero() {
                return Ok(None);
            }
            let timeout =
                Timespec { tv_sec: (left.0 / 1_000_000_000) as i64, tv_nsec: (left.0 % 1_000_000_000) as i64 };
            // SAFETY: the sampler keeps its descriptor open, and is borrowed for longer than this is used.
            let descriptor = unsafe { BorrowedFd::borrow_raw(self.sampler.as_raw_fd()) };
            match poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn set_period(&mut self, events: u64) -> io::Result<()> {
        // SAFETY: the descriptor is that of a counter, and Linux reads one number of 64 bits.
        match unsafe { libc::ioctl(self.sampler.as_raw_fd(), SET_PERIOD, &raw const events) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::Nanos;
    use perf_event::events::Software;

    use super::*;
    use crate::scheduling::{current_thread, pin};

    /// Linux counts page faults by itself, so that limits can be tested without hardware counters.
    #[test]
    fn a_limit_is_told_with_the_thread_that_reached_it_and_only_then() {
        std::thread::spawn(|| {
            pin(0).expect("CPU 0 is usable");
            let mut counter = match HardwareCounter::open(0, Software::PAGE_FAULTS) {
                Ok(counter) => counter,
                Err(error) => return laxity_testing::skip(format!("no counter of page faults: {error}")),
            };
            let before = counter.count().expect("it counts");
            counter.limit(1_000_000).expect("it is a number");
            let soon = || clock::now().saturating_add(Nanos::from_millis(5));
            assert_eq!(counter.wait(soon()).expect("it waits"), None, "no million of faults");
            // Programs beside may fault on this CPU, too.
            let is_told = (0..50).any(|_| {
                counter.limit(16).expect("it is a number");
                for _ in 0..64 {
                    // Memory that was never touched, and goes back at once: a fault at least.
                    std::hint::black_box(vec![1u8; 4 << 20]);
                }
                let overflow = counter.wait(soon()).expect("it waits").expect("64 faults at least");
                overflow.thread == current_thread()
            });
            assert!(is_told, "this thread faults more than any other");
            assert!(counter.count().expect("it counts") >= before + 64);
            counter.lift().expect("it is a number");
            assert_eq!(counter.wait(soon()).expect("it waits"), None, "what was told before is forgotten");
        })
        .join()
        .expect("no panic");
    }

    #[test]
    fn a_machine_without_hardware_counters_says_so() {
        match HardwareCounter::cache_misses(0) {
            Ok(mut counter) => assert!(counter.count().is_ok()),
            Err(error) => assert!(error.raw_os_error().is_some(), "{error} is Linux's"),
        }
    }
}
