//! What this machine offers for regulation.

use laxity_sys::counter::HardwareCounter;
use laxity_sys::scheduling;

use crate::error::BandwidthError;
use crate::group;

/// What this machine offers, and why it does not offer the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The CPUs that this process may use.
    pub cpus: Vec<usize>,
    /// Whether regulators may be real-time threads, else why not.
    pub real_time: Result<(), String>,
    /// Whether groups can be frozen, else why not.
    pub freezer: Result<(), String>,
    /// Whether a CPU shows a counter of last-level cache misses, else why not. That it counts is said by the self-test.
    pub hardware_counter: Result<(), String>,
}

impl Machine {
    /// Looks, without changing anything that stays.
    pub fn look() -> Machine {
        let cpus = scheduling::usable_cpus().unwrap_or_default();
        let first = cpus.first().copied().unwrap_or(0);
        let text = |error: BandwidthError| error.to_string();
        // A thread of its own, so that this one stays as it is.
        let real_time = std::thread::spawn(|| scheduling::set_fifo(1)).join();
        let real_time = real_time.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let counter = HardwareCounter::cache_misses(first).map(drop);
        Machine {
            real_time: real_time.map_err(|error| text(BandwidthError::RealTime { priority: 1, error })),
            freezer: group::Group::create("look").map(drop).map_err(text),
            hardware_counter: counter.map_err(|error| {
                text(BandwidthError::NoCounter { cpu: first, reason: crate::counting::reason(&error) })
            }),
            cpus,
        }
    }
}
