//! The processes that are attached to a memory, each at a slot of its own.
//!
//! ```text
//! header of the segment
//! epoch        how often a process came or wants the others to look
//! slots         one cache line each: the word that its process holds, how often it was taken, who took it last
//! contents       of the memory's kind
//! ```

use std::sync::atomic::{AtomicU32, Ordering};

use laxity_sys::futex;
use laxity_sys::process::{self, Process, Standing};
use laxity_sys::robust::Holder;
use laxity_sys::segment::{HEADER, Segment};

/// The most members: their guardians wait on the words of all of them, and on one more.
pub const MEMBERS_MAX: usize = futex::WORDS_MAX - 1;

/// Where what a kind of memory keeps begins, in bytes from the start of the segment: at a pair of cache lines.
pub const CONTENTS: usize = SLOTS + (MEMBERS_MAX + 1) * LINE;

const EPOCH: usize = HEADER;
// One more than there can be, so that any seven bits name a slot.
const SLOTS: usize = HEADER + LINE;
const LINE: usize = 64;
const _: () = assert!(CONTENTS.is_multiple_of(2 * LINE));

/// Where in a slot the number of times it was taken is (32 bits), and who took it (four times 64 bits).
const GENERATION: usize = 4;
const PROCESS: usize = 8;

/// The members of the memory in a segment.
#[derive(Clone, Copy, Debug)]
pub struct Members<'a> {
    segment: &'a Segment,
}

/// A process at a memory: a slot, and how often it had been taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberId {
    /// Below [`MEMBERS_MAX`].
    pub slot: usize,
    /// Wraps after 2^32 attachments at one slot, far beyond what anything could still refer to.
    pub generation: u32,
}

/// A member that died and has not been reaped.
#[derive(Clone, Copy, Debug)]
pub struct Dead<'a> {
    /// Who it was.
    pub id: MemberId,
    members: Members<'a>,
    /// What its word says.
    value: u32,
}

impl<'a> Members<'a> {
    /// Of the memory in `segment`. Panics later if that is shorter than [`CONTENTS`].
    pub fn of(segment: &'a Segment) -> Self {
        Members { segment }
    }

    /// What the process at `slot` holds while it lives: a word of [`laxity_sys::robust`].
    pub fn word(&self, slot: usize) -> &'a AtomicU32 {
        self.segment.u32(start(slot))
    }

    /// What the word at `slot` says.
    pub fn holder(&self, slot: usize) -> Holder {
        Holder::of(self.word(slot).load(Ordering::SeqCst))
    }

    /// Who took `slot` last.
    pub fn id(&self, slot: usize) -> MemberId {
        MemberId { slot, generation: self.generation(slot).load(Ordering::SeqCst) }
    }

    /// Which process took `slot` last.
    pub fn process(&self, slot: usize) -> Process {
        let words = start(slot) + PROCESS;
        let [pid, started, namespace, boot] =
            [0, 8, 16, 24].map(|offset| self.segment.u64(words + offset).load(Ordering::Relaxed));
        Process { pid: pid as u32, started, namespace, boot }
    }

    /// Whether a process other than at `ourselves` lives that is attached. Two witnesses: the word, and, as Linux could
    /// not mark it if the machine lost power, who the process was.
    pub fn any_lives(&self, ourselves: Option<usize>) -> bool {
        let lives = |slot: usize| self.holder(slot) == Holder::Alive && self.process(slot).standing() != Standing::Gone;
        (0..MEMBERS_MAX).any(|slot| Some(slot) != ourselves && lives(slot))
    }

    /// The members that died, one after the other as they are asked for; of each, all guardians are told before it is
    /// answered. Those of another boot died, too: Linux does not mark the words of a machine that loses its power.
    pub fn dead(self) -> impl Iterator<Item = Dead<'a>> {
        (0..MEMBERS_MAX).filter_map(move |slot| {
            let word = self.word(slot);
            let (id, value) = loop {
                let (id, value) = (self.id(slot), word.load(Ordering::SeqCst));
                // Whoever takes a slot counts before it holds the word: what the word says is about this one.
                if self.id(slot) == id {
                    break (id, value);
                }
            };
            match Holder::of(value) {
                Holder::Free => return None,
                Holder::Alive if self.process(slot).boot == process::boot() => return None,
                Holder::Alive | Holder::Died => {}
            }
            // Linux wakes one guardian; before anything else it sees to it that there are more.
            futex::wake_all(word);
            Some(Dead { id, members: self, value })
        })
    }

    /// Takes a free slot for this process, under the segment's lock. It counts once its word is held.
    pub(crate) fn take_slot(&self) -> Option<MemberId> {
        let slot = (0..MEMBERS_MAX).find(|&slot| self.holder(slot) == Holder::Free)?;
        self.write(slot, Process::current());
        let generation = self.generation(slot).fetch_add(1, Ordering::SeqCst).wrapping_add(1);
        Some(MemberId { slot, generation })
    }

    /// `process` is at `slot`.
    pub(crate) fn write(&self, slot: usize, process: Process) {
        let Process { pid, started, namespace, boot } = process;
        for (number, value) in [pid.into(), started, namespace, boot].into_iter().enumerate() {
            self.segment.u64(start(slot) + PROCESS + 8 * number).store(value, Ordering::Relaxed);
        }
    }

    /// What guardians wait on beside the words of the others.
    pub(crate) fn epoch(&self) -> &'a AtomicU32 {
        self.segment.u32(EPOCH)
    }

    /// Tells all guardians that a process came, or that they should look for another reason.
    pub(crate) fn announce(&self) {
        self.epoch().fetch_add(1, Ordering::SeqCst);
        futex::wake_all(self.epoch());
    }

    fn generation(&self, slot: usize) -> &'a AtomicU32 {
        self.segment.u32(start(slot) + GENERATION)
    }
}

impl Dead<'_> {
    /// What is known of its process, which may have threads that have not ended.
    pub fn standing(&self) -> Standing {
        self.members.process(self.id.slot).standing()
    }

    /// Frees its slot: all that it left was seen to. Whoever is first; all others did the same.
    pub fn forget(&self) {
        if self.members.id(self.id.slot) == self.id {
            let word = self.members.word(self.id.slot);
            let _ = word.compare_exchange(self.value, 0, Ordering::SeqCst, Ordering::SeqCst);
        }
    }
}

fn start(slot: usize) -> usize {
    SLOTS + slot * LINE
}
