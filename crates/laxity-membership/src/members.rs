//! The processes that are attached to a memory, each at a slot of its own.
//!
//! ```text
//! header of the segment
//! epoch          how often a process came or wants the others to look
//! slots          one cache line each: the liveness word, how often the slot was taken, its last process
//! contents       of the memory's kind
//! ```
//!
//! Two things say whether the process of a slot lives. Its guardian holds the *liveness word*, which Linux marks when
//! that thread ends ([`laxity_sys::robust`]): others are woken and hear of the death. The process holds the *presence
//! byte*, which Linux releases when all of its threads have ended ([`laxity_sys::segment`]): what it had may be given
//! to another.
//!
//! ```text
//! word       boot    presence
//! 0                             vacant
//! held       ours               alive: no other evidence counts
//! held       other   held       alive: a container shows a boot of its own
//! held       other   free       ended: Linux does not mark the words of a machine that loses its power
//! marked             held       ending: some of its threads still carry out instructions, or it writes a core dump
//! marked             free       ended, or executes another program now
//! ```

use std::sync::atomic::{AtomicU32, Ordering};

use laxity_sys::futex;
use laxity_sys::robust::Holder;
use laxity_sys::segment::{HEADER, Segment, SegmentError};

/// The most members: their guardians wait on the words of all of them, and on one more.
pub const MEMBERS_MAX: usize = futex::WORDS_MAX - 1;

/// Where what a kind of memory keeps begins, in bytes from the start of the segment: at a pair of cache lines.
pub const CONTENTS: usize = SLOTS + (MEMBERS_MAX + 1) * LINE;

const EPOCH: usize = HEADER;
// One more than there can be, so that any seven bits name a slot.
const SLOTS: usize = HEADER + LINE;
const LINE: usize = 64;
const _: () = assert!(CONTENTS.is_multiple_of(2 * LINE));

/// Where in a slot the number of times it was taken is (32 bits), and the process that took it last: its number and its
/// boot (64 bits each).
const GENERATION: usize = 4;
const PID: usize = 8;
const BOOT: usize = 16;

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

/// What is known of the process of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// There is none.
    Vacant,
    /// It takes part.
    Alive,
    /// It died, and may still carry out instructions.
    Ending,
    /// It carries out no instruction any more.
    Ended,
}

/// A member that died and has not been reaped.
#[derive(Clone, Copy, Debug)]
pub struct Dead<'a> {
    /// Which member it was.
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

    /// The member that took `slot` last.
    pub fn id(&self, slot: usize) -> MemberId {
        MemberId { slot, generation: self.generation(slot).load(Ordering::SeqCst) }
    }

    /// The number, in its PID namespace, of the process that took `slot` last.
    pub fn pid(&self, slot: usize) -> u32 {
        self.segment.u64(start(slot) + PID).load(Ordering::Relaxed) as u32
    }

    /// What is known of the process of `slot`.
    pub fn standing(&self, slot: usize) -> Standing {
        self.judge(slot, self.word(slot).load(Ordering::SeqCst))
    }

    /// What is known of the process of `slot`, whose word is `value`.
    fn judge(&self, slot: usize, value: u32) -> Standing {
        let is_of_this_boot = || self.segment.u64(start(slot) + BOOT).load(Ordering::Relaxed) == self.segment.boot();
        let is_present = || self.segment.is_present(start(slot));
        match Holder::of(value) {
            Holder::Free => Standing::Vacant,
            Holder::Alive if is_of_this_boot() || is_present() => Standing::Alive,
            Holder::Died if is_present() => Standing::Ending,
            Holder::Alive | Holder::Died => Standing::Ended,
        }
    }

    /// Whether a process other than the one at `ourselves` takes part or has not ended.
    pub fn any_lives(&self, ourselves: Option<usize>) -> bool {
        let lives = |slot: usize| matches!(self.standing(slot), Standing::Alive | Standing::Ending);
        (0..MEMBERS_MAX).any(|slot| Some(slot) != ourselves && lives(slot))
    }

    /// The members that died, each when it is asked for. All guardians are told of a death before it is answered.
    pub fn dead(self) -> impl Iterator<Item = Dead<'a>> {
        (0..MEMBERS_MAX).filter_map(move |slot| {
            let word = self.word(slot);
            let (id, value) = loop {
                let (id, value) = (self.id(slot), word.load(Ordering::SeqCst));
                // A slot is counted before its word is held: the word is that of this member.
                if self.id(slot) == id {
                    break (id, value);
                }
            };
            if matches!(self.judge(slot, value), Standing::Vacant | Standing::Alive) {
                return None;
            }
            // Linux wakes one guardian. It wakes the others before it does anything else.
            futex::wake_all(word);
            Some(Dead { id, members: self, value })
        })
    }

    /// Takes a free slot for this process, under the segment's lock. It counts once its word is held.
    ///
    /// # Errors
    /// [`SegmentError::System`].
    pub(crate) fn take_slot(&self, pid: u32) -> Result<Option<MemberId>, SegmentError> {
        for slot in (0..MEMBERS_MAX).filter(|&slot| self.holder(slot) == Holder::Free) {
            // A byte that is held without a word belongs to a child that was made around `fork`.
            if !self.segment.enter(start(slot))? {
                continue;
            }
            self.write(slot, pid, self.segment.boot());
            let generation = self.generation(slot).fetch_add(1, Ordering::SeqCst).wrapping_add(1);
            return Ok(Some(MemberId { slot, generation }));
        }
        Ok(None)
    }

    /// Gives a slot of this process back, whose word is not held any more.
    pub(crate) fn leave(&self, slot: usize) {
        self.segment.leave(start(slot));
    }

    /// As when all threads of the simulated member at `slot` have ended.
    #[cfg(debug_assertions)]
    pub fn simulate_end(&self, slot: usize) {
        self.leave(slot);
    }

    /// The process `pid` of `boot` is at `slot`.
    pub(crate) fn write(&self, slot: usize, pid: u32, boot: u64) {
        self.segment.u64(start(slot) + PID).store(pid.into(), Ordering::Relaxed);
        self.segment.u64(start(slot) + BOOT).store(boot, Ordering::Relaxed);
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
    /// Whether its process carries out no instruction any more. To be asked before what it left is seen to: until it has
    /// ended it may leave more.
    pub fn has_ended(&self) -> bool {
        self.members.judge(self.id.slot, self.value) == Standing::Ended
    }

    /// Frees its slot, after all that it left was seen to. Several processes may do so; all of them did the same.
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
