//! A descriptor to poll instead of waiting: for event loops that serve several nodes, or nodes and other things.
//!
//! Nobody pays for it who does not use it: wakers look at the very word that they look at anyway, and only if that says
//! so they make a system call, to ring the bell of the node's owner.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;

use laxity_sys::bell::{Bell, Ringer};

use crate::node::Node;
use crate::owner::State;
use crate::parking;
use crate::shared::Shared;

/// What a node's owner polls.
#[derive(Debug)]
pub(crate) struct PollBell {
    bell: Bell,
    /// Whether it was rung by its owner since it was silenced.
    is_rung: bool,
}

impl Node {
    /// A descriptor that is readable unless the last wait timed out and the next one would, too: for poll(2), epoll(7) or
    /// an event loop. When it is readable call [`Node::try_wait`], as often as you like: the descriptor stays readable
    /// until that times out. It is the same for as long as this value lives, and is not to be read from.
    ///
    /// At times it is readable for nothing.
    ///
    /// # Errors
    /// If this process has too many descriptors.
    pub fn poll_fd(&mut self) -> io::Result<BorrowedFd<'_>> {
        if self.bell.is_none() {
            let bell = PollBell { bell: Bell::new(&self.shared().bell_name(self.position()))?, is_rung: false };
            self.note_bell(true);
            let bell = self.bell.insert(bell);
            bell.is_rung = true;
            self.look_each_time();
            self.shared().ring(self.position());
        }
        let bell = self.bell.as_ref().expect("made above");
        Ok(bell.bell.as_fd())
    }

    pub(crate) fn note_bell(&self, has_one: bool) {
        let word = self.shared().words(self.position()).bell;
        self.shared().segment.u32(word).store(has_one.into(), Ordering::SeqCst);
    }
}

impl PollBell {
    /// After a wait that `found` something, or nothing: then whoever makes `look` find something rings.
    pub fn after_wait<T>(
        &mut self,
        shared: &Shared,
        node: usize,
        found: &mut Option<T>,
        look: impl FnOnce() -> Option<T>,
    ) {
        if found.is_none() {
            self.bell.silence();
            self.is_rung = false;
            *found = parking::arm(shared.parked(node), look);
        }
        // There may be more.
        if found.is_some() && !self.is_rung {
            self.is_rung = true;
            shared.ring(node);
        }
    }
}

impl Shared {
    /// Makes sure that [`Shared::ring`] can.
    pub fn prepare_to_ring(&self) -> io::Result<()> {
        let ringer = Ringer::new()?;
        // If there is one already, it does.
        let _ = self.ringer.set(ringer);
        Ok(())
    }

    /// Makes the descriptor readable that the owner of `node` polls.
    #[cold]
    pub fn ring(&self, node: usize) {
        if let Some(ringer) = self.ringer.get() {
            ringer.ring(&self.bell_name(node));
        }
    }

    pub fn has_bell(&self, node: usize) -> bool {
        self.segment.u32(self.words(node).bell).load(Ordering::SeqCst) != 0
    }

    /// Each claim has a bell of its own.
    fn bell_name(&self, node: usize) -> String {
        let identity = self.segment.u64(self.layout.identity).load(Ordering::Relaxed);
        format!("laxity-{identity:016x}-{node}-{:x}", self.owner(node).now(State::Claimed).word())
    }
}
