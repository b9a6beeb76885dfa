//! The log of a worker: it tells the collector what a thread did, without a lock, an allocation or a system call but for
//! the time.
//!
//! ```text
//!        Writer::note                        Reader::take
//! thread ------------> [ ring of entries ] --------------> collector
//! ```
//!
//! When the ring is full the writer stops for good: what was taken is then a beginning without gaps. The ring of a worker
//! that is a process is in memory that both processes share; what a killed process wrote is there.

mod step;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use laxity_model::{Instant, Nanos};
use laxity_sched::{Change, Decision, Grant, Watch};
use laxity_sys::segment::{Format, HEADER, Segment, SegmentError};
use laxity_sys::{clock, scheduling};

use self::step::Encoded;
pub(crate) use self::step::JobStep;

/// Entries of a ring: a second of a task that leaves one every 30 us, which is far longer than collectors are away.
const CAPACITY: u64 = 1 << 15;

/// Words of an entry: time; step, first number and job; second number and CPU; level.
const WORDS: usize = 4;

/// The words in front of the ring, a cache line for each side.
const WRITTEN: usize = 0;
/// The time of the last entry.
const LAST: usize = 1;
/// An entry is being written: its time may be earlier than now, but not earlier than `LAST`.
const IS_WRITING: usize = 2;
const IS_FULL: usize = 3;
const TAKEN: usize = 8;
const RING: usize = 16;

const LENGTH: usize = RING + WORDS * CAPACITY as usize;

/// Of the memory that processes share.
const FORMAT: Format = Format { magic: *b"laxitylg", version: 2 };

/// A step of a job, and where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub at: Instant,
    /// The number of the CPU in Linux.
    pub cpu: usize,
    /// Which job.
    pub index: u32,
    pub step: JobStep,
}

/// The memory of a log.
#[derive(Debug)]
enum Log {
    OfProcess(Box<[AtomicU64]>),
    Shared(Segment),
}

/// The end of the thread.
#[derive(Debug)]
pub(crate) struct Writer(Arc<Log>);

/// The end of the collector.
#[derive(Debug)]
pub(crate) struct Reader(Arc<Log>);

/// Both ends of an empty log between threads.
pub(crate) fn log() -> (Writer, Reader) {
    let log = Arc::new(Log::OfProcess((0..LENGTH).map(|_| AtomicU64::new(0)).collect()));
    (Writer(Arc::clone(&log)), Reader(log))
}

/// The end of the collector of an empty log, and the file by which another process gets the other end: see
/// [`Writer::on_standard_output`]. The name is that of a file in memory that never gets it.
pub(crate) fn shared_log(folder: &Path) -> Result<(OwnedFd, Reader), String> {
    let segment = Segment::draft(&folder.join("laxity-log"), FORMAT, LENGTH * size_of::<u64>());
    let segment = segment.map_err(|error| error.to_string())?;
    let file = segment.as_fd().try_clone_to_owned().map_err(|error| error.to_string())?;
    Ok((file, Reader(Arc::new(Log::Shared(segment)))))
}

impl Log {
    fn words(&self) -> &[AtomicU64] {
        match self {
            Log::OfProcess(words) => words,
            Log::Shared(segment) => segment.u64s(HEADER, LENGTH),
        }
    }
}

impl Writer {
    /// The end of the thread of a log that the parent process made this one's standard output.
    ///
    /// # Errors
    /// That standard output is something else.
    pub fn on_standard_output() -> Result<Writer, String> {
        let file = io::stdout().as_fd().try_clone_to_owned().map_err(|error| error.to_string())?;
        let adopted: Result<Segment, SegmentError> = Segment::adopt(file, Path::new("standard output"), FORMAT);
        let segment = adopted.map_err(|error| error.to_string())?;
        if segment.len() != HEADER + LENGTH * size_of::<u64>() {
            return Err("standard output is the log of another version of this program".to_owned());
        }
        Ok(Writer(Arc::new(Log::Shared(segment))))
    }

    /// The same end for another thread: the two take turns.
    pub fn in_turns(&self) -> Writer {
        Writer(Arc::clone(&self.0))
    }

    /// Notes that job `index` does `step` now.
    pub fn note(&mut self, index: u32, step: JobStep) {
        self.open();
        self.put(clock::now(), index, step);
        self.close();
    }

    /// Notes that job `index` did `work` from its beginning on, as the step that `of` makes of its length.
    pub fn note_span(&mut self, index: u32, of: impl FnOnce(Nanos) -> JobStep, work: impl FnOnce()) {
        self.open();
        let begin = clock::now();
        work();
        self.put(begin, index, of(clock::now().saturating_since(begin)));
        self.close();
    }

    /// From now on until [`Writer::close`], entries may come that happened after this.
    fn open(&mut self) {
        // Sequentially consistent, so that the clock is not read before others can see this: see `Reader::take`.
        self.0.words()[IS_WRITING].store(1, Ordering::SeqCst);
    }

    fn close(&mut self) {
        self.0.words()[IS_WRITING].store(0, Ordering::SeqCst);
    }

    /// Writes an entry of the time `at`, which is not before the last one nor before [`Writer::open`].
    fn put(&mut self, Instant(at): Instant, index: u32, step: JobStep) {
        let words = self.0.words();
        let written = words[WRITTEN].load(Ordering::Relaxed);
        let is_full = words[IS_FULL].load(Ordering::Relaxed) != 0;
        if is_full || written - words[TAKEN].load(Ordering::Acquire) == CAPACITY {
            return words[IS_FULL].store(1, Ordering::Release);
        }
        let Encoded { number, first, second, level } = step.encode();
        let cpu = scheduling::current_cpu() as u64 & u64::from(u32::MAX);
        let values = [
            at,
            u64::from(number) << 48 | u64::from(first) << 32 | u64::from(index),
            u64::from(second) << 32 | cpu,
            level,
        ];
        for (word, value) in entry(words, written).iter().zip(values) {
            word.store(value, Ordering::Relaxed);
        }
        words[LAST].store(at, Ordering::Relaxed);
        words[WRITTEN].store(written + 1, Ordering::Release);
    }

    /// What hears of the decisions of Laxity's scheduler about job `index`, and notes them; `step` happens to the job when
    /// the decision is taken, if any does.
    pub fn decisions(&mut self, index: u32, step: Option<JobStep>) -> Decisions<'_> {
        Decisions { log: self, index, step }
    }
}

/// Notes decisions of Laxity's scheduler.
pub(crate) struct Decisions<'a> {
    log: &'a mut Writer,
    index: u32,
    step: Option<JobStep>,
}

impl Watch for Decisions<'_> {
    fn begin(&mut self) {
        self.log.open();
    }

    fn arbitrated(&mut self, at: Instant, grants: &[Grant]) {
        self.put_step(at);
        for &Grant { task, lock, replica } in grants {
            self.log.put(at, self.index, JobStep::Granted(task, lock, replica));
        }
    }

    fn decided(&mut self, decision: &Decision) {
        let (at, index) = (decision.at, self.index);
        self.put_step(at);
        for change in &decision.changes {
            let step = match *change {
                Change::Woken { task, level, .. } => {
                    self.log.put(at, index, JobStep::Prioritized(task, level));
                    // Only a thread itself says that it has work.
                    JobStep::Ready
                }
                Change::Prioritized { task, level } => JobStep::Prioritized(task, level),
                Change::Suspended { task } => JobStep::Waits(task),
                Change::Resumed { task } => JobStep::GoesOn(task),
                // Only a job itself says that it is.
                Change::Completed { .. } => JobStep::Complete,
            };
            self.log.put(at, index, step);
        }
        for link in &decision.links {
            self.log.put(at, index, JobStep::Linked(decision.cluster as u16, link.cpu, link.task));
        }
        for carried in &decision.carried {
            self.log.put(carried.at, index, JobStep::Carried(carried.task, carried.cpu));
        }
    }

    fn end(&mut self) {
        self.log.close();
    }
}

impl Decisions<'_> {
    /// What happened to the job itself, once.
    fn put_step(&mut self, at: Instant) {
        if let Some(step) = self.step.take() {
            self.log.put(at, self.index, step);
        }
    }
}

impl Reader {
    /// Moves what was written to `entries`. Answers until when that is all, given that it is `now` or later: nothing
    /// that comes happened at that time or before.
    ///
    /// A thread may be preempted between reading the clock and writing down what it read. It sets a flag before it reads;
    /// so if the flag is not set after `now`, the thread will read the clock after `now`.
    pub fn take(&mut self, now: Instant, entries: &mut VecDeque<Entry>) -> Instant {
        let words = self.0.words();
        let is_behind = words[IS_WRITING].load(Ordering::SeqCst) != 0 || self.is_full();
        let last = Instant(words[LAST].load(Ordering::SeqCst));
        let taken = words[TAKEN].load(Ordering::Relaxed);
        // A process that shares the memory can write anything; no more than the ring has is read.
        let written = words[WRITTEN].load(Ordering::Acquire).clamp(taken, taken + CAPACITY);
        entries.extend((taken..written).filter_map(|position| Entry::decode(entry(words, position))));
        words[TAKEN].store(written, Ordering::Release);
        // The next entry may have the time of the last one.
        if is_behind { Instant(last.0.saturating_sub(1)).min(now) } else { now }
    }

    /// Whether the writer had to stop.
    pub fn is_full(&self) -> bool {
        self.0.words()[IS_FULL].load(Ordering::Acquire) != 0
    }

    /// The process of the writer was killed, perhaps while it wrote: that entry never comes.
    pub fn writer_has_died(&self) {
        self.0.words()[IS_WRITING].store(0, Ordering::SeqCst);
    }
}

fn entry(words: &[AtomicU64], position: u64) -> &[AtomicU64] {
    let first = RING + WORDS * (position % CAPACITY) as usize;
    &words[first..first + WORDS]
}

impl Entry {
    /// Nothing if no writer of this version wrote it.
    fn decode(words: &[AtomicU64]) -> Option<Entry> {
        let word = |at: usize| words[at].load(Ordering::Relaxed);
        let step = JobStep::decode(Encoded {
            number: (word(1) >> 48) as u16,
            first: (word(1) >> 32) as u16,
            second: (word(2) >> 32) as u32,
            level: word(3),
        })?;
        Some(Entry { at: Instant(word(0)), cpu: word(2) as u32 as usize, index: word(1) as u32, step })
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::{CpuId, LockId, ReplicaId, TaskId};

    use super::*;

    #[test]
    fn entries_are_taken_once_in_order_and_no_later_one_is_as_early_as_the_answer() {
        let (mut writer, mut reader) = log();
        let mut entries = VecDeque::new();
        let (lock, replica) = (LockId(7), ReplicaId(u16::MAX));
        let steps = [
            JobStep::Begin,
            JobStep::Request(lock),
            JobStep::Grant(lock, replica),
            JobStep::SpinBegin,
            JobStep::SpinEnd,
            JobStep::Unlock(lock, replica),
            JobStep::Linked(255, CpuId(1023), None),
            JobStep::Linked(0, CpuId(0), Some(TaskId(1023))),
            JobStep::Carried(TaskId(1023), None),
            JobStep::Granted(TaskId(1023), lock, replica),
            JobStep::Prioritized(TaskId(1023), (u64::MAX - 1, u32::MAX)),
            JobStep::Waits(TaskId(1023)),
            JobStep::GoesOn(TaskId(0)),
            JobStep::Serves,
            JobStep::Stolen(u64::MAX),
            JobStep::Throttled,
            JobStep::Ended,
            JobStep::Released(u64::MAX),
            JobStep::TopHalf(u16::MAX, u64::MAX),
            JobStep::Complete,
        ];
        for step in steps {
            writer.note(u32::MAX, step);
        }
        let now = clock::now();
        assert_eq!(reader.take(now, &mut entries), now);
        assert!(entries.iter().map(|entry| entry.step).eq(steps));
        assert!(entries.iter().all(|entry| entry.index == u32::MAX && entry.at <= now));
        writer.note(0, JobStep::Suspend);
        entries.clear();
        reader.take(now, &mut entries);
        assert!(entries.len() == 1 && entries[0].at >= now);
    }

    #[test]
    fn a_writer_whose_ring_is_full_stops_for_good() {
        let (mut writer, mut reader) = log();
        for index in 0..CAPACITY as u32 + 1 {
            writer.note(index, JobStep::Begin);
        }
        let mut entries = VecDeque::new();
        assert!(reader.take(clock::now(), &mut entries) < entries.back().expect("the last").at);
        writer.note(0, JobStep::Begin);
        reader.take(clock::now(), &mut entries);
        assert!(reader.is_full());
        assert!(entries.iter().map(|entry| entry.index).eq(0..CAPACITY as u32));
    }

    #[test]
    fn a_writer_that_was_killed_while_it_wrote_holds_the_collector_up_until_that_is_known() {
        let (mut writer, mut reader) = log();
        writer.note(0, JobStep::Begin);
        writer.0.words()[IS_WRITING].store(1, Ordering::SeqCst);
        let (now, mut entries) = (clock::now(), VecDeque::new());
        assert!(reader.take(now, &mut entries) < now);
        reader.writer_has_died();
        assert_eq!(reader.take(now, &mut entries), now);
    }

    #[test]
    fn a_shared_log_is_adopted_by_its_file() {
        let (file, mut reader) = shared_log(Path::new("/dev/shm")).expect("memory");
        let segment = Segment::adopt(file, Path::new("test"), FORMAT).expect("the same");
        Writer(Arc::new(Log::Shared(segment))).note(3, JobStep::Complete);
        let mut entries = VecDeque::new();
        reader.take(clock::now(), &mut entries);
        assert!(entries.len() == 1 && entries[0].index == 3);
    }
}
