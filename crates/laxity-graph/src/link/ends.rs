//! The ends of a node's edges that go through channels of Linux.

use std::io;

use laxity_model::Instant;

use super::channels::Channels;
use super::{Inbox, Outbox};
use crate::graph::ClaimError;
use crate::owner::State;
use crate::shared::Shared;
use crate::wait_error::WaitError;

/// Those of a node that this process has claimed.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    pub inboxes: Vec<Inbox>,
    pub outboxes: Vec<Outbox>,
    /// For each outbox its consumer's owner word when its loss was reported last.
    reported: Vec<u64>,
}

impl Ends {
    /// Begins to listen where others connect to `node`.
    ///
    /// # Errors
    /// [`ClaimError::Listen`].
    pub fn open(&mut self, shared: &Shared, channels: &Channels, node: usize) -> Result<(), ClaimError> {
        for (edge, rule) in shared.spec.plan().edges().iter().enumerate().take(shared.spec.channels().len()) {
            if rule.consumer == node {
                let inbox = Inbox::open(shared, channels, edge, rule).map_err(|(address, error)| {
                    ClaimError::Listen { edge: shared.ends(edge), address, code: code(&error) }
                })?;
                self.inboxes.extend(inbox);
            }
            if rule.producer == node {
                self.outboxes.extend(Outbox::open(shared, channels, edge, rule));
            }
        }
        self.reported = vec![0; self.outboxes.len()];
        Ok(())
    }

    /// Whether the node's next job can send all that it may write; `None` if it has to wait for a consumer to listen.
    /// Nothing here goes on much beyond `deadline`.
    pub fn prepare(&mut self, shared: &Shared, deadline: Instant) -> Result<Option<()>, WaitError> {
        let mut is_ready = true;
        for (outbox, reported) in self.outboxes.iter_mut().zip(&mut self.reported) {
            let (edge, consumer) = (outbox.edge, outbox.consumer);
            // A node that ended reads no more messages. The producer goes on until there is no room, as on a ring.
            if shared.has_terminated(consumer) {
                continue;
            }
            let owner = shared.owner(consumer);
            let is_connected = outbox.prepare(shared, deadline).map_err(|error| {
                let node = shared.name(consumer);
                WaitError::Unreachable { node, edge: shared.ends(edge), code: code(&error) }
            })?;
            if !is_connected && owner.state == State::Lost && owner.word() != *reported {
                *reported = owner.word();
                let pid = shared.pid(owner);
                return Err(WaitError::Lost { node: shared.name(consumer), edge: shared.ends(edge), pid });
            }
            is_ready &= is_connected;
        }
        Ok(is_ready.then_some(()))
    }

    /// Takes the messages of job `index`, which is about to begin, out of the channels.
    ///
    /// # Errors
    /// The edge of one that Linux has not delivered by `deadline`.
    #[inline]
    pub fn fetch(&mut self, shared: &Shared, index: u64, deadline: Instant) -> Result<(), usize> {
        self.inboxes.iter_mut().try_for_each(|inbox| inbox.fetch(shared, index, deadline))
    }

    /// A job begins.
    #[inline]
    pub fn begin(&mut self) {
        self.outboxes.iter_mut().for_each(Outbox::begin);
    }

    /// Job `index` is about to be complete.
    #[inline]
    pub fn send(&mut self, shared: &Shared, index: u64) {
        self.outboxes.iter_mut().for_each(|outbox| outbox.send(shared, index));
    }

    /// The node is about to be released: its next owner may listen at the same address.
    pub fn close(&mut self, shared: &Shared) {
        self.inboxes.iter().for_each(|inbox| inbox.close(shared));
        *self = Ends::default();
    }
}

/// Linux's number of an error, as all of these are.
fn code(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(0)
}
