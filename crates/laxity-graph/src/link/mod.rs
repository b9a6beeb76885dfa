//! Edges whose messages go through a channel of Linux: a named pipe, a message queue, a TCP connection.
//!
//! The channel carries the data, and nothing else: whether a message is there follows from completed jobs, as on every
//! edge, and so does whether there is room for one. So a node waits for edges of all kinds with one suspension, and what
//! a killed process left in a channel is never taken for a message. Decision 16 has the reasons.
//!
//! ```text
//! producer                        shared memory                      consumer
//! Outbox -- frames --> channel ------------------------ frames --> Assembly -> Inbox
//!    \---- Sent (length, epoch) --> slot of the token ---- which frames count ----/
//! ```
//!
//! A message is sent when its job completes, before the job counts as complete. Each frame says to which token it
//! belongs and in which *epoch* it was sent: which claim of the producer's node, or which connection. The slot of the
//! token says which epoch counts. Frames of others are what a killed producer had sent of a job that it did not
//! complete; a message whose frames are gone was taken by a consumer that was killed: that is an error for this message.

use std::sync::atomic::Ordering;

use crate::layout::LinkLayout;
use crate::shared::Shared;

mod assembly;
mod channels;
mod ends;
mod frame;
mod inbox;
mod outbox;
mod stream;

pub(crate) use channels::{Channels, remove};
pub(crate) use ends::Ends;
pub(crate) use inbox::Inbox;
pub(crate) use outbox::Outbox;

/// What the slot of a token says was sent with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sent {
    /// Bytes, or [`Sent::LOST`].
    length: u32,
    /// When; 0 is the initial state, whose messages are zero and were never sent.
    epoch: u32,
    /// To which of the consumer's sockets, if it was one.
    listener: u32,
}

impl Sent {
    /// The length of a message that could not be sent. No channel of Linux takes one as long as that.
    const LOST: u32 = u32::MAX;
}

/// The words of an edge in shared memory.
#[derive(Clone, Copy, Debug)]
struct Slots {
    layout: LinkLayout,
    capacity: u64,
}

impl Slots {
    fn of(self, token: u64) -> usize {
        self.layout.slots + LinkLayout::SLOT * (token % self.capacity) as usize
    }

    /// Of a token that exists: that was seen with acquire order, and this with it.
    fn read(self, shared: &Shared, token: u64) -> Sent {
        let slot = self.of(token);
        let [length, epoch, listener] =
            [0, 4, 8].map(|offset| shared.segment.u32(slot + offset).load(Ordering::Relaxed));
        Sent { length, epoch, listener }
    }

    fn write(self, shared: &Shared, token: u64, sent: Sent) {
        let slot = self.of(token);
        for (offset, value) in [(0, sent.length), (4, sent.epoch), (8, sent.listener)] {
            shared.segment.u32(slot + offset).store(value, Ordering::Relaxed);
        }
    }

    /// A number that no frame bears yet. Wraps after 2^32 claims or connections.
    fn new_epoch(self, shared: &Shared) -> u32 {
        shared.segment.u32(self.layout.epoch).fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }
}
