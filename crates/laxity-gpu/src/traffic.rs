//! Memory traffic that programs count themselves, for each CPU, and where a regulator says how much of it there may be.
//!
//! ```text
//! program on CPU c                                     regulator of CPU c (laxity-bandwidth)
//! counted += bytes                                     limit = counted + budget of a period
//! counted crosses limit: its thread and the time,  --> sleeps on `exceeded` until the period ends
//! exceeded += 1, wake
//! ```
//!
//! `counted` never goes back, so that a period begins with one store, whatever programs count meanwhile.

use std::sync::atomic::Ordering;

use laxity_model::{Instant, Nanos};
use laxity_sys::futex::Ended;
use laxity_sys::{clock, futex, scheduling};

use crate::arbitration::Arbitration;
use crate::layout::{TRAFFIC_CPUS, TrafficWords};
use crate::memory::Memory;

/// The traffic of one CPU.
#[derive(Clone, Copy, Debug)]
pub struct Traffic<'a> {
    memory: &'a Memory,
    words: TrafficWords,
}

/// That the limit of a CPU was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded {
    /// The thread whose traffic crossed the limit; `None`: all had been counted when the limit was set.
    pub thread: Option<u32>,
    /// When it did; otherwise when that was seen.
    pub at: Instant,
}

/// What the regulator of a CPU says of its work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Regulation {
    /// The process of the regulator; 0: there is none.
    pub pid: u32,
    /// Its thread.
    pub thread: u32,
    /// The length of a period.
    pub period: Nanos,
    /// The budget in force, bytes a second; 0: the CPU is not regulated now.
    pub budget: u64,
    /// Regulated periods, and those of them in which the CPU was throttled.
    pub periods: u64,
    /// See `periods`.
    pub throttled_periods: u64,
    /// For how long it was throttled.
    pub throttled: Nanos,
    /// Bytes counted in regulated periods.
    pub bytes: u64,
    /// Bytes that the budgets of these periods allowed.
    pub allowed: u64,
}

impl Arbitration {
    /// Counts `bytes` of memory traffic of the calling thread, on the CPU where it runs. A program that is regulated by
    /// what it counts calls this every few KiB: what it has between two calls may exceed its budget.
    #[inline]
    pub fn count_traffic(&self, bytes: u64) {
        if let Some(traffic) = self.traffic(scheduling::current_cpu()) {
            traffic.count(bytes);
        }
    }

    /// The traffic of `cpu`; `None` for CPUs from [`TRAFFIC_CPUS`] on, for which nothing is counted.
    #[inline]
    pub fn traffic(&self, cpu: usize) -> Option<Traffic<'_>> {
        let memory: &Memory = &self.membership().shared;
        (cpu < TRAFFIC_CPUS).then(|| Traffic { memory, words: memory.layout.traffic(cpu) })
    }
}

impl Traffic<'_> {
    /// Counts `bytes`, as [`Arbitration::count_traffic`] does, by a thread that stays on this CPU.
    #[inline]
    pub fn count(&self, bytes: u64) {
        let before = self.memory.segment.u64(self.words.counted).fetch_add(bytes, Ordering::SeqCst);
        let limit = self.memory.segment.u64(self.words.limit).load(Ordering::SeqCst);
        // Only the call that crosses the limit. One that the regulator sets meanwhile, below what was counted, no call
        // crosses: the regulator looks by itself (`wait_exceeded`), and one of both sees the other.
        if before < limit && before.wrapping_add(bytes) >= limit {
            self.exceed();
        }
    }

    #[cold]
    fn exceed(&self) {
        let segment = &self.memory.segment;
        segment.u64(self.words.exceeded_at).store(clock::now().0, Ordering::Relaxed);
        segment.u32(self.words.thread).store(scheduling::current_thread(), Ordering::Relaxed);
        let exceeded = segment.u32(self.words.exceeded);
        exceeded.fetch_add(1, Ordering::SeqCst);
        futex::wake_all(exceeded);
    }

    /// Bytes that were counted since the arbitration was created.
    #[inline]
    pub fn counted(&self) -> u64 {
        self.memory.segment.u64(self.words.counted).load(Ordering::SeqCst)
    }

    /// Allows `bytes` more than were counted until now. Answers with how many were.
    pub fn allow(&self, bytes: u64) -> u64 {
        let counted = self.counted();
        self.memory.segment.u64(self.words.limit).store(counted.saturating_add(bytes), Ordering::SeqCst);
        counted
    }

    /// Allows any traffic.
    pub fn lift(&self) {
        self.memory.segment.u64(self.words.limit).store(u64::MAX, Ordering::SeqCst);
    }

    /// Suspends this thread until the limit is exceeded or `until`. `seen` is what [`Traffic::exceeded`] said before the
    /// limit was set.
    pub fn wait_exceeded(&self, seen: u32, until: Instant) -> Option<Exceeded> {
        let word = self.memory.segment.u32(self.words.exceeded);
        let is_above = || self.counted() >= self.memory.segment.u64(self.words.limit).load(Ordering::SeqCst);
        loop {
            if word.load(Ordering::SeqCst) != seen {
                let at = self.memory.segment.u64(self.words.exceeded_at).load(Ordering::Relaxed);
                let thread = self.memory.segment.u32(self.words.thread).load(Ordering::Relaxed);
                return Some(Exceeded { thread: Some(thread), at: Instant(at) });
            }
            if is_above() {
                return Some(Exceeded { thread: None, at: clock::now() });
            }
            if futex::wait(word, seen, until) == Ended::TimedOut {
                return None;
            }
        }
    }

    /// How often a limit was exceeded.
    pub fn exceeded(&self) -> u32 {
        self.memory.segment.u32(self.words.exceeded).load(Ordering::SeqCst)
    }

    /// Claims the CPU for the calling thread, its regulator. Answers with the process that regulates it already.
    ///
    /// # Errors
    /// The number of that process.
    pub fn claim(&self) -> Result<(), u32> {
        let owner = self.memory.segment.u64(self.words.owner);
        let ours = u64::from(std::process::id()) << 32 | u64::from(scheduling::current_thread());
        let mut seen = owner.load(Ordering::SeqCst);
        loop {
            let (pid, thread) = ((seen >> 32) as u32, seen as u32);
            if seen != 0 && seen != ours && scheduling::is_thread_of(thread, pid) {
                return Err(pid);
            }
            match owner.compare_exchange(seen, ours, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return Ok(()),
                Err(now) => seen = now,
            }
        }
    }

    /// Gives the CPU back.
    pub fn unclaim(&self) {
        self.lift();
        self.memory.segment.u64(self.words.owner).store(0, Ordering::SeqCst);
    }

    /// Publishes what the regulator did, for [`Traffic::regulation`]. Its process and thread are those of the claim.
    pub fn publish(&self, regulation: &Regulation) {
        for (offset, value) in self.words.regulation.iter().zip([
            regulation.period.0,
            regulation.budget,
            regulation.periods,
            regulation.throttled_periods,
            regulation.throttled.0,
            regulation.bytes,
            regulation.allowed,
        ]) {
            self.memory.segment.u64(*offset).store(value, Ordering::Relaxed);
        }
    }

    /// What the regulator says, unless it has ended. The numbers may be of different periods.
    pub fn regulation(&self) -> Option<Regulation> {
        let owner = self.memory.segment.u64(self.words.owner).load(Ordering::SeqCst);
        let (pid, thread) = ((owner >> 32) as u32, owner as u32);
        if owner == 0 || !scheduling::is_thread_of(thread, pid) {
            return None;
        }
        let [period, budget, periods, throttled_periods, throttled, bytes, allowed] =
            self.words.regulation.map(|offset| self.memory.segment.u64(offset).load(Ordering::Relaxed));
        Some(Regulation {
            pid,
            thread,
            period: Nanos(period),
            budget,
            periods,
            throttled_periods,
            throttled: Nanos(throttled),
            bytes,
            allowed,
        })
    }
}
