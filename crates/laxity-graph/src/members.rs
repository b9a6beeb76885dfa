//! A graph is memory with members: what is done about those that died. Decision 13 has the reasons.

use std::sync::atomic::Ordering;

use laxity_membership::{Home, Kind, MemberId, Reaped};
use laxity_model::{Instant, Nanos};
use laxity_sys::backoff::Backoff;
use laxity_sys::membarrier;
use laxity_sys::robust::Holder;
use laxity_sys::segment::{Format, Segment};

use crate::layout::FORMAT;
use crate::link::{self, Channels};
use crate::owner::{Owner, State};
use crate::registry::{NoChannel, RegistryError, describe};
use crate::shared::Shared;
use crate::step;

impl Kind for Shared {
    const PREFIX: &'static str = "laxity-graph.";
    const FORMAT: Format = FORMAT;
    const REAPS_WITH_MUTEXES: bool = false;
    const HOME: Option<Home> = None;
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
            .map_err(|error| RegistryError::System { action: "make a socket to wake nodes that poll", error })?;
        // Where Linux refuses, the beginning of a job is seen some nanoseconds late, which matters if its node is ended then.
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

/// Pauses between looks whether a dead process has ended, the first and the longest.
const ENDING: [Nanos; 2] = [Nanos::from_micros(50), Nanos::from_millis(1)];

impl Shared {
    /// The number of the process that claimed a node last.
    pub fn pid(&self, owner: Owner) -> u32 {
        self.members().pid(owner.member.into())
    }

    /// Marks the nodes of processes that died, and makes all waiters look.
    pub fn reap(&self) -> Reaped {
        let mut reaped = Reaped::Done;
        for dead in self.members().dead() {
            // Asked before: until then its threads may claim a node, or complete a job and not come to wake others.
            let has_ended = dead.has_ended();
            step::point();
            self.lose_nodes(dead.id);
            self.rouse_all();
            step::point();
            if has_ended {
                dead.forget();
            } else {
                reaped = Reaped::Pending;
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
        let [first, longest] = ENDING;
        let mut backoff = Backoff::new(first, longest);
        let id = member(lost);
        loop {
            self.reap();
            // If not, it was reaped, or it lives and released the node itself.
            let has_died = self.members().id(id.slot) == id && self.members().holder(id.slot) == Holder::Died;
            if !has_died {
                return true;
            }
            if step::now() >= deadline {
                return false;
            }
            step::pause(backoff.pause());
        }
    }
}

/// The member that claimed the node.
fn member(owner: Owner) -> MemberId {
    MemberId { slot: owner.member.into(), generation: owner.generation }
}
