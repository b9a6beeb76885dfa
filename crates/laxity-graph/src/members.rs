//! A graph is memory with members: what is done about those that died. Decision 13 has the reasons.

use std::sync::atomic::Ordering;

use laxity_membership::{Kind, MemberId, Reaped};
use laxity_model::Instant;
use laxity_sys::membarrier;
use laxity_sys::process::{Process, Standing};
use laxity_sys::robust::Holder;
use laxity_sys::segment::{Format, Segment};

use crate::layout::FORMAT;
use crate::link::{self, Channels};
use crate::owner::{Owner, State};
use crate::registry::{NoChannel, RegistryError, describe};
use crate::shared::Shared;

impl Kind for Shared {
    const PREFIX: &'static str = "laxity-graph.";
    const FORMAT: Format = FORMAT;
    const REAPS_WITH_MUTEXES: bool = false;
    type Cause = NoChannel;
    type Tools = Channels;

    fn open(segment: Segment, name: &str) -> Result<Shared, RegistryError> {
        let (spec, layout) = describe(&segment, name)?;
        Ok(Shared::new(segment, layout, spec))
    }

    fn segment(&self) -> &Segment {
        &self.segment
    }

    fn join(&self, _slot: usize) -> Result<Channels, RegistryError> {
        let channels = Channels::open(self).map_err(RegistryError::Other)?;
        self.prepare_to_ring()
            .map_err(|error| RegistryError::System { action: "make a socket to wake those who poll", error })?;
        // Whoever cannot take part is seen to begin a job some nanoseconds late, which matters if its node is ended then.
        membarrier::register();
        Ok(channels)
    }

    fn reap(&self) -> Result<Reaped, NoChannel> {
        Ok(Shared::reap(self))
    }

    fn remove(&self) {
        link::remove(self);
    }
}

impl Shared {
    /// Which process took a place last.
    pub fn process(&self, slot: usize) -> Process {
        self.members().process(slot)
    }

    /// Marks the nodes of processes that died, and makes everyone look.
    pub fn reap(&self) -> Reaped {
        let mut reaped = Reaped::Done;
        for dead in self.members().dead() {
            self.lose_nodes(dead.id);
            self.rouse_all();
            match dead.standing() {
                Standing::Alive => reaped = Reaped::Pending,
                Standing::Gone | Standing::Unknown => dead.forget(),
            }
        }
        reaped
    }

    fn lose_nodes(&self, dead: MemberId) {
        for node in 0..self.nodes() {
            let owner = self.owner(node);
            if owner.state == State::Claimed && member(owner) == dead {
                let lost = owner.now(State::Lost).word();
                let _ = self.owner_word(node).compare_exchange(owner.word(), lost, Ordering::SeqCst, Ordering::SeqCst);
            }
        }
    }

    /// Waits until no instruction of the process that lost a node can follow. Answers whether that is so.
    pub fn await_end(&self, lost: Owner, deadline: Instant) -> bool {
        let MemberId { slot, .. } = member(lost);
        let has_died = || self.members().id(slot) == member(lost) && self.members().holder(slot) == Holder::Died;
        if !has_died() {
            // Buried already, or it lives and let go of the node itself.
            return true;
        }
        let is_gone = self.process(slot).wait_until_gone(deadline) != Standing::Alive;
        // The process may also have been reaped, and its place taken, since.
        let ended = is_gone || !has_died();
        self.reap();
        ended
    }
}

/// Who claimed the node.
fn member(owner: Owner) -> MemberId {
    MemberId { slot: owner.member.into(), generation: owner.generation }
}
