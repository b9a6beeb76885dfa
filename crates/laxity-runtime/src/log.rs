//! What a thread did, told to whoever collects it, without a lock, an allocation or a call of Linux but for the time.
//!
//! ```text
//!        Writer::note                        Reader::take
//! thread ------------> [ ring of entries ] --------------> collector
//! ```
//!
//! When the ring is full the writer stops for good: what was taken is then a beginning without gaps.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use laxity_model::{Instant, LockId, ReplicaId};
use laxity_sys::{clock, scheduling};

/// Entries of a ring: a second of a task that leaves one every 30 us, which is far longer than collectors are away.
const CAPACITY: u64 = 1 << 15;

/// What a job did, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub at: Instant,
    /// The number of the CPU in Linux.
    pub cpu: usize,
    /// Which job.
    pub index: u32,
    pub deed: Deed,
}

/// What a job did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// It has its CPU for the first time.
    Begin,
    NonPreemptiveBegin,
    NonPreemptiveEnd,
    /// It goes to sleep for a time.
    Suspend,
    /// It slept long enough, and has a CPU.
    Resume,
    /// It asks for a lock, and may have it at once.
    Request(LockId),
    /// It did not get it at once, and waits. Noted of resources only.
    Wait(LockId),
    /// It has a replica of the lock, and a CPU.
    Grant(LockId, ReplicaId),
    /// It is about to give it up.
    Unlock(LockId, ReplicaId),
    /// It waits from here on without giving up its CPU.
    SpinBegin,
    SpinEnd,
    Complete,
}

#[derive(Debug)]
struct Log {
    /// Time; deed, lock and job; replica and CPU.
    ring: Box<[[AtomicU64; 3]]>,
    /// How many entries were written, and taken.
    written: AtomicU64,
    taken: AtomicU64,
    /// The time of the last entry.
    last: AtomicU64,
    /// An entry is being written: its time may be earlier than now, but not earlier than `last`.
    is_writing: AtomicBool,
    is_full: AtomicBool,
}

/// The end of the thread.
#[derive(Debug)]
pub(crate) struct Writer(Arc<Log>);

/// The end of the collector.
#[derive(Debug)]
pub(crate) struct Reader(Arc<Log>);

/// Both ends of a log that is empty.
pub(crate) fn log() -> (Writer, Reader) {
    let log = Arc::new(Log {
        ring: (0..CAPACITY).map(|_| Default::default()).collect(),
        written: AtomicU64::new(0),
        taken: AtomicU64::new(0),
        last: AtomicU64::new(0),
        is_writing: AtomicBool::new(false),
        is_full: AtomicBool::new(false),
    });
    (Writer(Arc::clone(&log)), Reader(log))
}

impl Writer {
    /// Notes that job `index` does `deed` now.
    pub fn note(&mut self, index: u32, deed: Deed) {
        let log = &*self.0;
        let written = log.written.load(Ordering::Relaxed);
        if log.is_full.load(Ordering::Relaxed) || written - log.taken.load(Ordering::Acquire) == CAPACITY {
            return log.is_full.store(true, Ordering::Release);
        }
        // Sequentially consistent, so that the clock is not read before others can see this: see `Reader::take`.
        log.is_writing.store(true, Ordering::SeqCst);
        let at = clock::now().0;
        let entry = &log.ring[(written % CAPACITY) as usize];
        let (number, lock, replica) = deed.encode();
        let cpu = scheduling::current_cpu() as u64 & u64::from(u32::MAX);
        let words = [at, number << 48 | u64::from(lock) << 32 | u64::from(index), u64::from(replica) << 32 | cpu];
        for (word, value) in entry.iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
        log.last.store(at, Ordering::Relaxed);
        log.written.store(written + 1, Ordering::Release);
        log.is_writing.store(false, Ordering::SeqCst);
    }
}

impl Reader {
    /// Moves what was written to `entries`. Answers until when that is all, given that it is `now` or later: nothing
    /// that comes happened at that time or before.
    ///
    /// A thread may be preempted between looking at the clock and writing down what it saw. It says so before it looks;
    /// so if it does not say so after `now`, it will look after `now`.
    pub fn take(&mut self, now: Instant, entries: &mut VecDeque<Entry>) -> Instant {
        let log = &*self.0;
        let is_behind = log.is_writing.load(Ordering::SeqCst) || self.is_full();
        let last = Instant(log.last.load(Ordering::SeqCst));
        let (taken, written) = (log.taken.load(Ordering::Relaxed), log.written.load(Ordering::Acquire));
        for position in taken..written {
            let words = log.ring[(position % CAPACITY) as usize].each_ref().map(|word| word.load(Ordering::Relaxed));
            let deed = Deed::decode((words[1] >> 48) as u8, (words[1] >> 32) as u16, (words[2] >> 32) as u16);
            let cpu = words[2] as u32 as usize;
            entries.push_back(Entry { at: Instant(words[0]), cpu, index: words[1] as u32, deed });
        }
        log.taken.store(written, Ordering::Release);
        // What comes next may have the time of the last.
        if is_behind { Instant(last.0.saturating_sub(1)).min(now) } else { now }
    }

    /// Whether the writer had to stop.
    pub fn is_full(&self) -> bool {
        self.0.is_full.load(Ordering::Acquire)
    }
}

impl Deed {
    /// Its number, the lock that it is about, and the replica.
    fn encode(self) -> (u64, u16, u16) {
        match self {
            Deed::Begin => (0, 0, 0),
            Deed::NonPreemptiveBegin => (1, 0, 0),
            Deed::NonPreemptiveEnd => (2, 0, 0),
            Deed::Suspend => (3, 0, 0),
            Deed::Resume => (4, 0, 0),
            Deed::Request(lock) => (5, lock.0, 0),
            Deed::Wait(lock) => (6, lock.0, 0),
            Deed::Grant(lock, replica) => (7, lock.0, replica.0),
            Deed::Unlock(lock, replica) => (8, lock.0, replica.0),
            Deed::Complete => (9, 0, 0),
            Deed::SpinBegin => (10, 0, 0),
            Deed::SpinEnd => (11, 0, 0),
        }
    }

    fn decode(number: u8, lock: u16, replica: u16) -> Deed {
        let (lock, replica) = (LockId(lock), ReplicaId(replica));
        match number {
            0 => Deed::Begin,
            1 => Deed::NonPreemptiveBegin,
            2 => Deed::NonPreemptiveEnd,
            3 => Deed::Suspend,
            4 => Deed::Resume,
            5 => Deed::Request(lock),
            6 => Deed::Wait(lock),
            7 => Deed::Grant(lock, replica),
            8 => Deed::Unlock(lock, replica),
            9 => Deed::Complete,
            10 => Deed::SpinBegin,
            11 => Deed::SpinEnd,
            other => unreachable!("entries are written by `encode` only, which knows no {other}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_is_taken_once_in_order_and_nothing_later_is_as_early_as_the_answer() {
        let (mut writer, mut reader) = log();
        let mut entries = VecDeque::new();
        let (lock, replica) = (LockId(7), ReplicaId(u16::MAX));
        let deeds = [
            Deed::Begin,
            Deed::Request(lock),
            Deed::Grant(lock, replica),
            Deed::SpinBegin,
            Deed::SpinEnd,
            Deed::Unlock(lock, replica),
            Deed::Complete,
        ];
        for deed in deeds {
            writer.note(u32::MAX, deed);
        }
        let now = clock::now();
        assert_eq!(reader.take(now, &mut entries), now);
        assert!(entries.iter().map(|entry| entry.deed).eq(deeds));
        assert!(entries.iter().all(|entry| entry.index == u32::MAX && entry.at <= now));
        writer.note(0, Deed::Suspend);
        entries.clear();
        reader.take(now, &mut entries);
        assert!(entries.len() == 1 && entries[0].at >= now);
    }

    #[test]
    fn a_writer_whose_ring_is_full_stops_for_good() {
        let (mut writer, mut reader) = log();
        for index in 0..CAPACITY as u32 + 1 {
            writer.note(index, Deed::Begin);
        }
        let mut entries = VecDeque::new();
        assert!(reader.take(clock::now(), &mut entries) < entries.back().expect("the last").at);
        writer.note(0, Deed::Begin);
        reader.take(clock::now(), &mut entries);
        assert!(reader.is_full());
        assert!(entries.iter().map(|entry| entry.index).eq(0..CAPACITY as u32));
    }
}
