//! The counter of one CPU's traffic, as its regulator uses it.

use std::io;

use laxity_gpu::{Arbitration, Exceeded, Traffic};
use laxity_model::Instant;
use laxity_sys::clock;
use laxity_sys::counter::{HardwareCounter, Overflow};

use crate::error::BandwidthError;
use crate::options::Counter;

/// Bytes that a cache line has: what a miss of the last-level cache moves.
const LINE: u64 = 64;

/// A counter that tells when a limit is exceeded.
#[derive(Debug)]
pub(crate) enum Counting {
    /// Programs count.
    Software,
    /// The CPU counts.
    Hardware(HardwareCounter),
}

impl Counting {
    /// That of `cpu`.
    pub fn open(counter: Counter, cpu: usize) -> Result<Counting, BandwidthError> {
        match counter {
            Counter::Software => Ok(Counting::Software),
            Counter::Hardware | Counter::Auto => HardwareCounter::cache_misses(cpu)
                .map(Counting::Hardware)
                .map_err(|error| BandwidthError::NoCounter { cpu, reason: reason(&error) }),
        }
    }

    /// Its name in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Counting::Software => "the software counter",
            Counting::Hardware(_) => "the hardware counter",
        }
    }

    /// Bytes until now; only differences mean something.
    pub fn counted(&mut self, traffic: Traffic<'_>) -> io::Result<u64> {
        match self {
            Counting::Software => Ok(traffic.counted()),
            Counting::Hardware(counter) => Ok(counter.count()?.saturating_mul(LINE)),
        }
    }

    /// A limit of `bytes` from now on. Answers with what [`Counting::wait`] wants to know.
    pub fn allow(&mut self, traffic: Traffic<'_>, bytes: u64) -> io::Result<u32> {
        match self {
            Counting::Software => {
                let seen = traffic.exceeded();
                traffic.allow(bytes);
                Ok(seen)
            }
            Counting::Hardware(counter) => counter.limit((bytes / LINE).max(1)).map(|()| 0),
        }
    }

    /// No limit.
    pub fn lift(&mut self, traffic: Traffic<'_>) {
        match self {
            Counting::Software => traffic.lift(),
            Counting::Hardware(counter) => {
                let _ = counter.lift();
            }
        }
    }

    /// Suspends this thread until the limit is exceeded or `until`.
    pub fn wait(&mut self, traffic: Traffic<'_>, seen: u32, until: Instant) -> io::Result<Option<Exceeded>> {
        match self {
            Counting::Software => Ok(traffic.wait_exceeded(seen, until)),
            Counting::Hardware(counter) => Ok(counter.wait(until)?.map(|Overflow { thread }| {
                // When Linux saw it is not told; what came before this thread ran is part of the latency.
                Exceeded { thread: Some(thread), at: clock::now() }
            })),
        }
    }
}

/// What is missing, in words: Linux says of a machine without counters that the file does not exist.
pub(crate) fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::Unsupported => "the machine shows no performance counters".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "performance counters of a whole CPU are not permitted (CAP_PERFMON, or kernel.perf_event_paranoid <= 0)"
                .to_owned()
        }
        _ => error.to_string(),
    }
}

/// The traffic words of a CPU.
pub(crate) fn traffic(arbitration: &Arbitration, cpu: usize) -> Result<Traffic<'_>, BandwidthError> {
    arbitration.traffic(cpu).ok_or_else(|| BandwidthError::no_such(cpu))
}
