//! The flight recorder: what happened to the last jobs of each node, in shared memory. Decision 17 has the reasons.
//!
//! Job i of a node has slot i mod depth, one cache line that the node's owner alone writes, twice: when the job begins,
//! and when it completes. An owner that is killed in between leaves what it wrote, and the mark tells what that is.
//!
//! ```text
//!                 begin                          complete
//! (job i - depth) -----> (writing i) (begun i) -------------> (complete i)
//! ```

use std::sync::atomic::{AtomicU64, Ordering, fence};

use laxity_model::Instant;
use laxity_policy::graph::Arrival;

use crate::layout::RECENT;
use crate::shared::Shared;

/// Bytes of a slot.
pub(crate) const SLOT: usize = 64;

/// What a slot says of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// When the deadline is counted from, by the rule of the graph.
    pub release: Arrival,
    /// When it began; a job that was begun again, the last time.
    pub began: Instant,
    /// Where it began.
    pub cpu: u16,
    /// When and where it completed, if it did.
    pub completed: Option<(Instant, u16)>,
}

/// What is known of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It has not begun, or is beginning.
    NotYet,
    /// What the slot says.
    Entry(Entry),
    /// A later job has its slot.
    Overwritten,
}

/// Of a slot: bits 2 and up are the job's index plus 1, so that fresh memory names no job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    index: u64,
    state: u64,
}

const WRITING: u64 = 1;
const BEGUN: u64 = 2;
const COMPLETE: u64 = 3;

impl Mark {
    fn word(index: u64, state: u64) -> u64 {
        index.wrapping_add(1) << 2 | state
    }

    fn of(word: u64) -> Option<Mark> {
        Some(Mark { index: (word >> 2).checked_sub(1)?, state: word & 3 })
    }
}

/// The words of a slot.
struct Slot<'a> {
    mark: &'a AtomicU64,
    began: &'a AtomicU64,
    release: &'a AtomicU64,
    fraction: &'a AtomicU64,
    completed: &'a AtomicU64,
    /// Where it began, and above 16 bits where it completed.
    cpus: &'a AtomicU64,
}

impl Shared {
    /// How many jobs of each node are recorded; 0: none.
    pub fn recorded(&self) -> u64 {
        u64::from(self.spec.recorder())
    }

    /// Job `index` of `node` begins, there being a recorder. To be called by the node's owner.
    #[inline]
    pub fn record_begin(&self, node: usize, index: u64, release: Arrival, began: Instant, cpu: u16) {
        let slot = self.slot(node, index);
        slot.mark.store(Mark::word(index, WRITING), Ordering::Relaxed);
        // A reader of one of the following sees this mark, or a later one, when it looks again.
        fence(Ordering::Release);
        slot.began.store(began.0, Ordering::Relaxed);
        slot.release.store(release.at.0, Ordering::Relaxed);
        slot.fraction.store(release.fraction, Ordering::Relaxed);
        slot.cpus.store(cpu.into(), Ordering::Relaxed);
        slot.mark.store(Mark::word(index, BEGUN), Ordering::Release);
    }

    /// Job `index` of `node`, which was recorded when it began, completes: to be called before its tokens are there, so
    /// that a process that sees these sees when they came.
    #[inline]
    pub fn record_completion(&self, node: usize, index: u64, at: Instant, cpu: u16) {
        // A process that sees this instant instead of that of RECENT jobs ago sees that as many are complete.
        self.recent(node, index).store(at.0, Ordering::Release);
        let slot = self.slot(node, index);
        slot.completed.store(at.0, Ordering::Relaxed);
        let began_on = slot.cpus.load(Ordering::Relaxed) & 0xffff;
        slot.cpus.store(began_on | u64::from(cpu) << 16, Ordering::Relaxed);
        slot.mark.store(Mark::word(index, COMPLETE), Ordering::Release);
    }

    /// What the recorder says of job `index` of `node`. For anyone, at any time.
    pub fn recorded_job(&self, node: usize, index: u64) -> Found {
        let slot = self.slot(node, index);
        loop {
            let word = slot.mark.load(Ordering::Acquire);
            let Some(mark) = Mark::of(word).filter(|mark| mark.index >= index) else { return Found::NotYet };
            if mark.index > index {
                return Found::Overwritten;
            }
            let [began, release, fraction, completed, cpus] =
                [slot.began, slot.release, slot.fraction, slot.completed, slot.cpus]
                    .map(|word| word.load(Ordering::Relaxed));
            fence(Ordering::Acquire);
            // If the same job began again meanwhile its mark is the same; then what was read is of both times, which
            // differ in when and where it began only, and the next look has those of the last.
            if slot.mark.load(Ordering::Relaxed) != word {
                continue;
            }
            let completed = match mark.state {
                BEGUN => None,
                COMPLETE => Some((Instant(completed), (cpus >> 16) as u16)),
                _ => return Found::NotYet,
            };
            let release = Arrival { at: Instant(release), fraction };
            return Found::Entry(Entry { release, began: Instant(began), cpu: cpus as u16, completed });
        }
    }

    /// When job `index` of `node` completed, which the caller has seen; nothing if the slot was needed since.
    ///
    /// A consumer that keeps up finds it in the cache line that told that the job is complete: to fetch another from the
    /// producer's CPU would take as long as that did.
    #[inline]
    pub fn completion(&self, node: usize, index: u64) -> Option<Instant> {
        let recent = self.recent(node, index).load(Ordering::Acquire);
        // Job index + RECENT, which overwrites it, begins when as many are complete.
        if self.completed(node) < index.saturating_add(RECENT) {
            return Some(Instant(recent));
        }
        self.completion_in_slot(node, index)
    }

    #[cold]
    fn completion_in_slot(&self, node: usize, index: u64) -> Option<Instant> {
        let slot = self.slot(node, index);
        let is_it = |ordering| slot.mark.load(ordering) == Mark::word(index, COMPLETE);
        if !is_it(Ordering::Acquire) {
            return None;
        }
        let at = slot.completed.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        is_it(Ordering::Relaxed).then_some(Instant(at))
    }

    fn recent(&self, node: usize, index: u64) -> &AtomicU64 {
        self.segment.u64(self.words(node).recent + 8 * (index % RECENT) as usize)
    }

    #[inline]
    fn slot(&self, node: usize, index: u64) -> Slot<'_> {
        // In one piece, so that its place is checked once.
        match self.segment.u64s(self.layout.slot(node, index), 6) {
            [mark, began, release, fraction, completed, cpus] => {
                Slot { mark, began, release, fraction, completed, cpus }
            }
            _ => unreachable!("six words were asked for"),
        }
    }
}
