//! Which processes are attached, and what is done about those that died. Decision 13 has the reasons.

use std::sync::atomic::Ordering;

use laxity_model::Instant;
use laxity_sys::futex;
use laxity_sys::process::{Process, Standing};
use laxity_sys::robust::Holder;

use crate::layout::{COMINGS, MEMBERS_MAX};
use crate::owner::{Owner, State};
use crate::shared::Shared;

/// A process at a graph: a place, and how often it had been taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemberId {
    pub place: usize,
    pub generation: u32,
}

/// What is left to do about the dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Burial {
    /// Nothing.
    Done,
    /// A process was killed and still has threads that have not ended.
    Pending,
}

impl Shared {
    pub fn holder(&self, place: usize) -> Holder {
        Holder::of(self.segment.u32(self.layout.member(place).word).load(Ordering::SeqCst))
    }

    /// Takes a free place for this process, under the segment's lock. It counts once its word is held.
    pub fn take_place(&self) -> Option<MemberId> {
        let place = (0..MEMBERS_MAX).find(|&place| self.holder(place) == Holder::Nobody)?;
        let member = self.layout.member(place);
        let Process { pid, started, namespace, boot } = Process::current();
        for (number, value) in [pid.into(), started, namespace, boot].into_iter().enumerate() {
            self.segment.u64(member.process + 8 * number).store(value, Ordering::Relaxed);
        }
        // Wraps after 2^32 attachments at one place, far beyond what any word could still refer to.
        let generation = self.segment.u32(member.generation).fetch_add(1, Ordering::SeqCst).wrapping_add(1);
        Some(MemberId { place, generation })
    }

    /// Tells all guardians that a process came, or that they should look for another reason.
    pub fn announce(&self) {
        let comings = self.segment.u32(COMINGS);
        comings.fetch_add(1, Ordering::SeqCst);
        futex::wake_all(comings);
    }

    /// Who took a place last.
    pub fn process(&self, place: usize) -> Process {
        let start = self.layout.member(place).process;
        let [pid, started, namespace, boot] =
            [0, 8, 16, 24].map(|offset| self.segment.u64(start + offset).load(Ordering::Relaxed));
        Process { pid: pid as u32, started, namespace, boot }
    }

    /// Whether a process other than at `ourselves` lives that is attached. Two witnesses: the word, and, as Linux could
    /// not mark it if the machine lost power, who the process was.
    pub fn is_in_use(&self, ourselves: Option<usize>) -> bool {
        let lives =
            |place: usize| self.holder(place) == Holder::Alive && self.process(place).standing() != Standing::Gone;
        (0..MEMBERS_MAX).any(|place| Some(place) != ourselves && lives(place))
    }

    /// Marks the nodes of processes that died, and makes everyone look. Anyone may do it, several at once, and whoever
    /// dies while doing it leaves the rest to the next, as a member's word is cleared last.
    pub fn bury(&self) -> Burial {
        let mut burial = Burial::Done;
        for place in 0..MEMBERS_MAX {
            let word = self.segment.u32(self.layout.member(place).word);
            let value = word.load(Ordering::SeqCst);
            match Holder::of(value) {
                Holder::Nobody => continue,
                // Linux does not mark the words of a machine that lost its power.
                Holder::Alive if self.process(place).boot == self.boot => continue,
                Holder::Alive | Holder::Died => {}
            }
            // Linux wakes one guardian; before anything else it sees to it that there are more.
            futex::wake_all(word);
            let generation = self.segment.u32(self.layout.member(place).generation).load(Ordering::SeqCst);
            self.lose_nodes(MemberId { place, generation });
            self.rouse_all();
            match self.process(place).standing() {
                Standing::Alive => burial = Burial::Pending,
                Standing::Gone | Standing::Unknown => {
                    // Whoever is first; all others did the same.
                    let _ = word.compare_exchange(value, 0, Ordering::SeqCst, Ordering::SeqCst);
                }
            }
        }
        burial
    }

    fn lose_nodes(&self, dead: MemberId) {
        for node in 0..self.nodes() {
            let owner = self.owner(node);
            let is_theirs = (usize::from(owner.member), owner.generation) == (dead.place, dead.generation);
            if owner.state == State::Claimed && is_theirs {
                let lost = owner.now(State::Lost).word();
                let _ = self.owner_word(node).compare_exchange(owner.word(), lost, Ordering::SeqCst, Ordering::SeqCst);
            }
        }
    }

    /// Waits until no instruction of the process that lost a node can follow. Answers whether that is so.
    pub fn await_end(&self, lost: Owner, deadline: Instant) -> bool {
        let place = usize::from(lost.member);
        let has_died = || {
            let generation = self.segment.u32(self.layout.member(place).generation).load(Ordering::SeqCst);
            generation == lost.generation && self.holder(place) == Holder::Died
        };
        if !has_died() {
            // Buried already, or it lives and let go of the node itself.
            return true;
        }
        let process = self.process(place);
        let is_gone = process.wait_until_gone(deadline) != Standing::Alive;
        // The process may also have been buried, and its place taken, since.
        let ended = is_gone || !has_died();
        self.bury();
        ended
    }
}
