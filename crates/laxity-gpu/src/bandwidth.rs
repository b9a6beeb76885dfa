//! The bandwidth lock (paper 004, section IV): while any thread holds it, best-effort CPUs have a budget of memory traffic.
//!
//! ```text
//!  client A                     one bit a client                       regulators (laxity-bandwidth)
//!  budget, then its bit  --->  [ 0 1 0 0 1 ... ]  --- the first bit --->  wake: the least budget counts
//! ```
//!
//! Each thread has a bit and a budget of its own, so that no thread can release what another one holds, and what a killed
//! thread held goes with its registration. The lock excludes no thread: any number may hold it. Locking is one
//! instruction on the word of bits; a system call is made by the thread that finds the word empty while a regulator
//! sleeps. Decision 48 has the reasons.

use std::sync::atomic::Ordering;

use laxity_model::{Instant, TaskId};
use laxity_policy::bandwidth::{Hold, NotHeld};

use crate::arbitration::Arbitration;
use crate::client::Client;
use crate::layout::bit_words;
use crate::memory::Memory;
use crate::request::LockError;
use crate::step;

/// A section in which the calling thread holds the bandwidth lock, which ends when this is dropped. Sections nest, and
/// the least budget counts.
#[derive(Debug)]
#[must_use = "the section ends at once"]
pub struct BandwidthLock<'a> {
    client: &'a Client,
    budget: u64,
}

impl Client {
    /// Begins a section in which every regulated CPU may have at most `budget` bytes of memory traffic a second.
    ///
    /// # Errors
    /// [`LockError::Forked`], [`LockError::State`] if the thread is ending.
    #[inline]
    pub fn lock_bandwidth(&self, budget: u64) -> Result<BandwidthLock<'_>, LockError> {
        self.begin_bandwidth(budget)?;
        Ok(BandwidthLock { client: self, budget })
    }

    /// As [`Client::lock_bandwidth`], until [`Client::end_bandwidth`]: for callers that cannot keep a value.
    ///
    /// # Errors
    /// As [`Client::lock_bandwidth`].
    #[inline]
    pub fn begin_bandwidth(&self, budget: u64) -> Result<(), LockError> {
        self.check()?;
        self.hold(Hold::Lock { budget })
    }

    /// Ends the innermost section.
    ///
    /// # Errors
    /// [`LockError::NoSection`] if there is none; [`LockError::Forked`].
    #[inline]
    pub fn end_bandwidth(&self) -> Result<(), LockError> {
        self.check()?;
        self.hold(Hold::Unlock)
    }

    /// Ends the innermost section of that budget, if there is one: for bindings whose sections end in any order.
    #[inline]
    pub fn end_section(&self, budget: u64) {
        // A forked copy holds nothing, and what an ending thread held went with its registration.
        if self.check().is_ok() {
            // One that ended before has no effect.
            let _ = self.hold(Hold::End { budget });
        }
    }

    /// An operation is about to be issued to `stream`, any number by which this thread knows it: from now until it is
    /// synchronized with, the thread holds the lock (paper 004, Table I).
    ///
    /// # Errors
    /// As [`Client::lock_bandwidth`].
    pub fn launch_bandwidth(&self, stream: u64, budget: u64) -> Result<(), LockError> {
        self.check()?;
        self.hold(Hold::Issue { stream, budget })
    }

    /// All operations of `stream`, or with `None` of all streams of this thread, are complete.
    ///
    /// # Errors
    /// As [`Client::lock_bandwidth`].
    pub fn synchronize_bandwidth(&self, stream: Option<u64>) -> Result<(), LockError> {
        self.check()?;
        self.hold(stream.map_or(Hold::AllSynchronized, |stream| Hold::Synchronized { stream }))
    }

    /// The least budget of the sections and streams for which this thread holds the lock; `None`: it does not.
    pub fn bandwidth_budget(&self) -> Option<u64> {
        self.holder.borrow().budget()
    }

    /// What happens to the thread's hold, which is published.
    #[inline]
    fn hold(&self, hold: Hold) -> Result<(), LockError> {
        let mut holder = self.holder.borrow_mut();
        holder.handle(hold).map_err(|NotHeld| LockError::NoSection)?;
        match holder.budget() {
            Some(budget) => self.shared().hold_bandwidth(self.task, budget),
            None => self.shared().release_bandwidth(self.task),
        }
        Ok(())
    }
}

impl Drop for BandwidthLock<'_> {
    #[inline]
    fn drop(&mut self) {
        self.client.end_section(self.budget);
    }
}

impl Arbitration {
    /// The least budget of all threads that hold the bandwidth lock, in bytes a second; `None` while it is free.
    #[inline]
    pub fn bandwidth_budget(&self) -> Option<u64> {
        self.membership().shared.least_budget()
    }

    /// Suspends this thread until a thread holds the bandwidth lock, [`Arbitration::wake_regulators`] is called, or
    /// `until`. May return early: callers look again.
    pub fn wait_for_bandwidth_lock(&self, until: Instant) {
        self.membership().shared.wait_for_bandwidth(until);
    }

    /// Has threads that wait for the bandwidth lock look again.
    pub fn wake_regulators(&self) {
        let shared = &self.membership().shared;
        shared.wake_sleepers(&shared.layout.bandwidth.regulators);
    }
}

impl Memory {
    /// `task` holds the lock with this budget from now on.
    #[inline]
    fn hold_bandwidth(&self, task: TaskId, budget: u64) {
        self.segment.u64(self.client(task).budget).store(budget, Ordering::Release);
        let (offset, bit) = self.layout.bandwidth_bit(task);
        let word = self.segment.u64(offset);
        if word.load(Ordering::Relaxed) & bit != 0 {
            return;
        }
        step::point();
        // Sequentially consistent with `wait_for_bandwidth`: this thread sees the sleeper, or the sleeper this bit.
        let before = word.fetch_or(bit, Ordering::SeqCst);
        if before == 0 {
            self.wake_if_asleep(&self.layout.bandwidth.regulators);
        }
    }

    /// `task` does not hold the lock any more. A CPU that is throttled because of it goes on when its period ends.
    #[inline]
    pub fn release_bandwidth(&self, task: TaskId) {
        let (offset, bit) = self.layout.bandwidth_bit(task);
        self.segment.u64(offset).fetch_and(!bit, Ordering::Release);
    }

    /// The budget with which `task` holds the lock.
    pub fn bandwidth_of(&self, task: TaskId) -> Option<u64> {
        let (offset, bit) = self.layout.bandwidth_bit(task);
        let is_held = self.segment.u64(offset).load(Ordering::Acquire) & bit != 0;
        is_held.then(|| self.segment.u64(self.client(task).budget).load(Ordering::Acquire))
    }

    fn least_budget(&self) -> Option<u64> {
        let words = bit_words(self.config.clients.into());
        let mut least = None;
        for word in 0..words {
            let mut bits = self.segment.u64(self.layout.bandwidth.holders + 8 * word).load(Ordering::SeqCst);
            while bits != 0 {
                let task = TaskId(64 * word as u32 + bits.trailing_zeros());
                bits &= bits - 1;
                // Other processes write the bits: those of no client count for nothing.
                if self.is_task(task) {
                    let budget = self.segment.u64(self.client(task).budget).load(Ordering::Acquire);
                    least = Some(least.map_or(budget, |least: u64| least.min(budget)));
                }
            }
        }
        least
    }

    fn wait_for_bandwidth(&self, until: Instant) {
        let words = &self.layout.bandwidth.regulators;
        let seen = self.expect_change(words);
        if self.least_budget().is_none() {
            self.sleep(words, seen, until);
        }
    }
}
