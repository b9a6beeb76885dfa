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

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use laxity_model::{CpuId, Instant, LockId, ReplicaId, TaskId};
use laxity_sched::{Decision, Watch};
use laxity_sys::segment::{Format, HEADER, Segment, SegmentError};
use laxity_sys::{clock, scheduling};

/// Entries of a ring: a second of a task that leaves one every 30 us, which is far longer than collectors are away.
const CAPACITY: u64 = 1 << 15;

/// Words of an entry: time; step, lock and job; replica and CPU.
const WORDS: usize = 3;

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
const FORMAT: Format = Format { magic: *b"laxitylg", version: 1 };

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

/// A step of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobStep {
    /// It has its CPU for the first time.
    Begin,
    NonPreemptiveBegin,
    NonPreemptiveEnd,
    /// It goes to sleep for a time.
    Suspend,
    /// It slept long enough, and has a CPU.
    Resume,
    /// It requests a lock, and may have it at once.
    Request(LockId),
    /// It did not get the lock at once, and waits. Noted of resources only.
    Wait(LockId),
    /// It has a replica of the lock, and a CPU.
    Grant(LockId, ReplicaId),
    /// It is about to unlock it.
    Unlock(LockId, ReplicaId),
    /// It waits from here on without giving up its CPU.
    SpinBegin,
    SpinEnd,
    Complete,
    /// Laxity's scheduler knows that it is released, or that it goes on after a suspension.
    Ready,
    Resumed,
    /// It executes, having got a CPU from Laxity's scheduler.
    Executes,
    /// Laxity's scheduler decided that a CPU of the task's cluster is to run the job of that task, or none.
    Linked(CpuId, Option<TaskId>),
    /// The thread of that task got this CPU of the cluster, or lost its CPU.
    Carried(TaskId, Option<CpuId>),
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

    /// Notes that job `index` does `step` now.
    pub fn note(&mut self, index: u32, step: JobStep) {
        self.open();
        self.put(clock::now(), index, step);
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
        let (number, lock, replica) = step.encode();
        let cpu = scheduling::current_cpu() as u64 & u64::from(u32::MAX);
        let values = [at, number << 48 | u64::from(lock) << 32 | u64::from(index), u64::from(replica) << 32 | cpu];
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

    fn decided(&mut self, decision: &Decision) {
        let (at, index) = (decision.at, self.index);
        self.step.into_iter().for_each(|step| self.log.put(at, index, step));
        for link in &decision.links {
            self.log.put(at, index, JobStep::Linked(link.cpu, link.task));
        }
        for carried in &decision.carried {
            self.log.put(carried.at, index, JobStep::Carried(carried.task, carried.cpu));
        }
        self.log.close();
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
        let step = JobStep::decode((word(1) >> 48) as u8, (word(1) >> 32) as u16, (word(2) >> 32) as u16)?;
        Some(Entry { at: Instant(word(0)), cpu: word(2) as u32 as usize, index: word(1) as u32, step })
    }
}

impl JobStep {
    /// Its number, the lock that it is about, and the replica.
    fn encode(self) -> (u64, u16, u16) {
        match self {
            JobStep::Begin => (0, 0, 0),
            JobStep::NonPreemptiveBegin => (1, 0, 0),
            JobStep::NonPreemptiveEnd => (2, 0, 0),
            JobStep::Suspend => (3, 0, 0),
            JobStep::Resume => (4, 0, 0),
            JobStep::Request(lock) => (5, lock.0, 0),
            JobStep::Wait(lock) => (6, lock.0, 0),
            JobStep::Grant(lock, replica) => (7, lock.0, replica.0),
            JobStep::Unlock(lock, replica) => (8, lock.0, replica.0),
            JobStep::Complete => (9, 0, 0),
            JobStep::SpinBegin => (10, 0, 0),
            JobStep::SpinEnd => (11, 0, 0),
            JobStep::Ready => (12, 0, 0),
            JobStep::Resumed => (13, 0, 0),
            JobStep::Executes => (14, 0, 0),
            // A system has at most 1024 tasks and as many CPUs.
            JobStep::Linked(cpu, task) => (15, cpu.0, task.map_or(0, |task| task.0 as u16 + 1)),
            JobStep::Carried(task, cpu) => (16, cpu.map_or(0, |cpu| cpu.0 + 1), task.0 as u16),
        }
    }

    fn decode(number: u8, lock: u16, replica: u16) -> Option<JobStep> {
        let (lock, replica) = (LockId(lock), ReplicaId(replica));
        Some(match number {
            0 => JobStep::Begin,
            1 => JobStep::NonPreemptiveBegin,
            2 => JobStep::NonPreemptiveEnd,
            3 => JobStep::Suspend,
            4 => JobStep::Resume,
            5 => JobStep::Request(lock),
            6 => JobStep::Wait(lock),
            7 => JobStep::Grant(lock, replica),
            8 => JobStep::Unlock(lock, replica),
            9 => JobStep::Complete,
            10 => JobStep::SpinBegin,
            11 => JobStep::SpinEnd,
            12 => JobStep::Ready,
            13 => JobStep::Resumed,
            14 => JobStep::Executes,
            15 => JobStep::Linked(CpuId(lock.0), replica.0.checked_sub(1).map(|task| TaskId(task.into()))),
            16 => JobStep::Carried(TaskId(replica.0.into()), lock.0.checked_sub(1).map(CpuId)),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
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
