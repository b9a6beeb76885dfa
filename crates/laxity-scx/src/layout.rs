//! The structures of `bpf/tasks.h` and `bpf/happen.h`, as bytes: a page of a process, tasks, clusters and notes.
//! Those of `bpf/shares.h`, too.

use crate::settings::CPUS_MAX;

/// Bytes of a control page.
pub const PAGE: usize = 4096;
/// Whether the scheduler schedules.
pub const IS_ALIVE: usize = 0;
/// The entries whose [`Entry::waits_for`] another thread has changed, a bit each.
pub const CHANGED: usize = 4;
/// In place of an entry, what [`Entry::waits_for`] says where a task waits and none inherits from it.
pub const WAITS_FOR_NONE: u32 = ENTRIES as u32 + 1;
/// Before the first entry, and of each.
const ENTRY: usize = 128;
/// Tasks of a process.
pub const ENTRIES: usize = 31;
/// What a page says of the jobs of a thread: the present one is complete, it is once the thread sleeps, each is. As in
/// `bpf/arrivals.h`.
pub const COMPLETE: u32 = 1;
/// See [`COMPLETE`].
pub const COMPLETE_ASLEEP: u32 = 2;
/// See [`COMPLETE`].
pub const COMPLETE_EACH: u16 = 3;
/// Interrupt threads that work for a task at a time.
pub const SERVED: usize = 8;

/// A task's part of its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    start: usize,
}

impl Entry {
    /// Entry `number`; `None` if a page has none of that number.
    pub fn new(number: usize) -> Option<Entry> {
        (number < ENTRIES).then_some(Entry { start: ENTRY * (number + 1) })
    }

    /// The word by which the thread says that its job is complete.
    pub fn is_complete(self) -> usize {
        self.start
    }

    /// The word by which the thread says that it is a task no more.
    pub fn leaves(self) -> usize {
        self.start + 4
    }

    /// The word by which the thread says that it is in a non-preemptive section.
    pub fn is_non_preemptive(self) -> usize {
        self.start + 8
    }

    /// The word by which the thread says, before it sleeps, which entry's task has what it waits for.
    pub fn waits_for(self) -> usize {
        self.start + 12
    }

    /// The words by which the thread says, before it waits for devices, which interrupt threads work for it.
    pub fn served_by(self) -> [usize; SERVED] {
        std::array::from_fn(|at| self.start + 16 + 4 * at)
    }

    /// How [`Entry::waits_for`] names this entry.
    pub fn word(self) -> u32 {
        (self.start / ENTRY) as u32
    }

    /// Whether another job waits for the end of that section.
    pub fn is_awaited(self) -> usize {
        self.start + 68
    }

    /// The time by which the thread says when its next job is released; 0: at an event.
    pub fn next(self) -> usize {
        self.start + 48
    }

    /// The time by which it says when that one is due; 0: as all are.
    pub fn due(self) -> usize {
        self.start + 56
    }

    /// The number of the present job.
    pub fn job(self) -> usize {
        self.start + 64
    }

    /// Its release.
    pub fn release(self) -> usize {
        self.start + 72
    }

    /// Its absolute deadline.
    pub fn deadline(self) -> usize {
        self.start + 80
    }

    /// Since when its thread has a CPU, where that is measured.
    pub fn runs_since(self) -> usize {
        self.start + 88
    }

    /// How often its budget was used up.
    pub fn throttled(self) -> usize {
        self.start + 96
    }
}

/// Where a regulator throttles `cpu`, in the page of `struct laxity_brakes`; `None`: the kernel's side does not number it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brake {
    start: usize,
}

impl Brake {
    /// Of that CPU.
    pub fn of(cpu: usize) -> Option<Brake> {
        (cpu < CPUS_MAX).then_some(Brake { start: 64 + 32 * cpu })
    }

    /// Until when it is throttled, on the monotonic clock.
    pub fn until(self) -> usize {
        self.start
    }

    /// The thread that is charged.
    pub fn thread(self) -> usize {
        self.start + 8
    }

    /// With this, in millionths.
    pub fn punishment(self) -> usize {
        self.start + 12
    }
}

/// The first numbers of `struct laxity_share`: what other threads had on a CPU, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShareCounters {
    /// They executed.
    pub had: u64,
    /// The CPU was throttled for them.
    pub throttled: u64,
    /// They were charged, in virtual time.
    pub charged: u64,
    /// How often it was throttled.
    pub throttles: u64,
}

impl ShareCounters {
    /// Bytes of the structure.
    pub const SIZE: usize = 128;

    /// As the kernel wrote them; `None` if there are fewer bytes.
    pub fn read(bytes: &[u8]) -> Option<ShareCounters> {
        let mut fields = Fields::of(bytes);
        let mut next = || fields.next_u64();
        Some(ShareCounters { had: next()?, throttled: next()?, charged: next()?, throttles: next()? })
    }
}

/// Numbers of bytes, in the order in which they lie there.
pub struct Fields<'a> {
    bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    /// From the first one on.
    pub fn of(bytes: &'a [u8]) -> Fields<'a> {
        Fields { bytes }
    }

    /// The next one; `None` past the end.
    pub fn next_u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_ne_bytes)
    }

    /// As [`Fields::next_u64`].
    pub fn next_u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_ne_bytes)
    }

    /// As [`Fields::next_u64`].
    pub fn next_u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_ne_bytes)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(*first)
    }
}

/// `struct laxity_job`: what the kernel knows of a task. Times are in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobCounters {
    /// The most tardiness.
    pub tardiness_max: u64,
    /// The longest response time.
    pub response_max: u64,
    /// The thread; 0: no task has this number.
    pub thread: u32,
    /// Jobs released.
    pub released: u32,
    /// Jobs completed.
    pub completed: u32,
    /// Of these, the late ones.
    pub late: u32,
    /// Budgets that were used up.
    pub throttled: u32,
    /// Of an interrupt thread: the task that it works for, or did last.
    pub owner: Option<u32>,
    /// How often it worked for a task.
    pub owned: u32,
}

impl JobCounters {
    /// Bytes of the structure.
    pub const SIZE: usize = 192;

    /// As the kernel wrote them; `None` if there are fewer bytes.
    pub fn read(bytes: &[u8]) -> Option<JobCounters> {
        let mut fields = Fields::of(bytes);
        let [_period, _deadline, _release, tardiness_max, response_max] =
            [(); 5].map(|()| fields.next_u64()).into_iter().collect::<Option<Vec<_>>>()?.try_into().ok()?;
        let [thread, _waits, released, completed, late] =
            [(); 5].map(|()| fields.next_u32()).into_iter().collect::<Option<Vec<_>>>()?.try_into().ok()?;
        let throttled = Fields::of(bytes.get(128..)?).next_u32()?;
        let mut of_interrupts = Fields::of(bytes.get(168..)?);
        let (owner, owned) = (of_interrupts.next_u32()?.checked_sub(1), of_interrupts.next_u32()?);
        Some(JobCounters { tardiness_max, response_max, thread, released, completed, late, throttled, owner, owned })
    }
}
