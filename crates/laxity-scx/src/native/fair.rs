//! Virtual times of threads that are no tasks: `bpf/fair.h`, compiled for user space.

use super::ffi::{self, Memory};

/// How far behind the clock a thread may be that slept, in ns.
pub const CREDIT: u64 = 5_000_000;
/// How far ahead of it one is taken to be that had more, in ns.
pub const LEAD: u64 = 500_000_000;
/// In so many ns it advances by one at least.
pub const PACE: u64 = 32;

/// The weight of a thread of niceness -20 to 19; of another one that of niceness 0.
pub fn weight(niceness: i32) -> u64 {
    let place = u32::try_from(niceness + 20).unwrap_or(u32::MAX);
    // SAFETY: it takes a number, of which it keeps six bits.
    unsafe { (ffi::whole::FUNCTIONS.fair_weight)(place) }
}

/// The virtual time of an execution for that many ns, by a thread of that weight (paper 004, equation 1).
///
/// Panics without a weight, or for a time of 104 days and more.
pub fn virtual_span(executed: u64, weight: u64) -> u64 {
    assert!(weight > 0, "a thread without weight would never have a turn");
    assert!(executed < 1 << 53, "{executed} ns are not executed at a time");
    // SAFETY: the weight, by which C divides, is above 0.
    unsafe { (ffi::whole::FUNCTIONS.fair_span)(executed, weight) }
}

/// What a thread is charged for which a CPU was throttled for that many ns (equation 2); `millionths` of the factor.
///
/// Panics for more than two minutes, or a factor above 100.
pub fn punishment(lost: u64, millionths: u64) -> u64 {
    assert!(lost < 1 << 37, "{lost} ns are longer than any period");
    assert!(millionths <= 100_000_000, "{millionths} millionths are more than 100");
    // SAFETY: it takes numbers.
    unsafe { (ffi::whole::FUNCTIONS.fair_punishment)(lost, millionths) }
}

/// The clock of the threads that may wait for the same CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Clock {
    clock: u64,
    at: u64,
}

impl Clock {
    /// It shows `clock` at `now`.
    pub fn new(clock: u64, now: u64) -> Clock {
        Clock { clock, at: now }
    }

    /// What it shows.
    pub fn shows(&self) -> u64 {
        self.clock
    }

    /// A thread of virtual time `chosen` is chosen at `now`.
    pub fn advance(&mut self, chosen: u64, now: u64) {
        let memory: Memory = (&raw mut *self).cast();
        // SAFETY: it is the structure that C has, and ours alone.
        unsafe { (ffi::whole::FUNCTIONS.fair_advance)(memory, chosen, now) }
    }

    /// The virtual time at which a thread of that one waits from now on.
    pub fn place(&mut self, virtual_time: u64) -> u64 {
        let memory: Memory = (&raw mut *self).cast();
        // SAFETY: as above.
        unsafe { (ffi::whole::FUNCTIONS.fair_place)(memory, virtual_time) }
    }
}
