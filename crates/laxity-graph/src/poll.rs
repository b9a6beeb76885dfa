//! A descriptor to poll instead of waiting: for event loops that serve several nodes, or nodes and other things.
//!
//! A graph whose nodes are not polled pays nothing for it: wakers look at the word that they look at anyway, and only if
//! that says so they make a system call, to ring the bell of the node's owner.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;

use laxity_sys::bell::{Bell, Ringer};
use laxity_sys::random;

use crate::node::Node;
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
            let (number, bell) = hang_up_bell()?;
            self.note_bell(number);
            self.bell = Some(PollBell { bell, is_rung: true });
            self.look_each_time();
            self.shared().ring(self.position());
        }
        let bell = self.bell.as_ref().expect("made above");
        Ok(bell.bell.as_fd())
    }

    /// Tells all processes the number of this node's bell, 0 for none.
    pub(crate) fn note_bell(&self, number: u64) {
        let word = self.shared().words(self.position()).bell;
        self.shared().segment.u64(word).store(number, Ordering::SeqCst);
    }
}

impl PollBell {
    /// After a wait that `found` something, or nothing: then a waker that makes `look` find something rings.
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
            *found = parking::arm(&shared.parked(node), look);
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
        let number = self.bell(node);
        if let (Some(ringer), true) = (self.ringer.get(), number != 0) {
            ringer.ring(&bell_name(number));
        }
    }

    /// Whether the owner of `node` polls.
    pub fn has_bell(&self, node: usize) -> bool {
        self.bell(node) != 0
    }

    fn bell(&self, node: usize) -> u64 {
        self.segment.u64(self.words(node).bell).load(Ordering::SeqCst)
    }
}

/// A bell and the random number in its name. Other users see the names that there are: if one followed from another,
/// they could occupy it first.
fn hang_up_bell() -> io::Result<(u64, Bell)> {
    let number = random::number()?.max(1);
    Ok((number, Bell::new(&bell_name(number))?))
}

fn bell_name(number: u64) -> String {
    format!("laxity-bell-{number:016x}")
}
