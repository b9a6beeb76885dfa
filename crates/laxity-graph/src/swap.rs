//! Rings that exchange buffers, so that a job can hand a message on without a copy.
//!
//! Buffers travel with tokens, filled ones to the consumer and free ones back with the room that it makes:
//!
//! ```text
//!                  filled[t mod capacity], written by the producer's job that adds token t
//!  producer  ------------------------------------------------------------------------------>  consumer
//!            <------------------------------------------------------------------------------
//!                  free[t mod capacity], written by the consumer's job that takes token t, for token t + capacity
//! ```
//!
//! A job gets the buffers of the tokens that it takes and of those that it adds, exchanges them as it likes, and writes
//! down which slot has which before it completes. So each buffer of a group is at any time in one place: in a slot that is
//! filled, or in one that is free. The buffers that a job finds are not written before it is complete: `filled` is
//! written again for a token that needs the room which this job makes, and `free` by the job that takes a token that
//! this one adds. A job that is killed has exchanged nothing, and when it is done again it finds the same buffers.
#![allow(unsafe_code, reason = "messages are slices of shared memory; the two blocks argue their case")]

use std::sync::atomic::Ordering;

use laxity_sys::segment::Segment;

use crate::layout::{PoolLayout, SwapLayout};
use crate::node::Job;
use crate::ring::{MessageError, check_length, check_number};
use crate::shared::Shared;
use crate::spec::Channel;

/// The rings at a node that exchange buffers.
#[derive(Debug)]
pub(crate) struct Swaps {
    pub inputs: Vec<SwapPort>,
    pub outputs: Vec<SwapPort>,
}

/// One end of such a ring.
#[derive(Debug)]
pub(crate) struct SwapPort {
    pub edge: usize,
    layout: SwapLayout,
    capacity: u64,
    longest: u32,
    /// The first token of the node's job i is `first + i * advance`; that many are added, or taken away.
    first: u64,
    advance: u32,
    /// The slot of the first token of the job that began last.
    slot: u64,
    /// For each message of that job what it is in.
    held: Vec<Held>,
}

/// A buffer, and how much of it is a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Held {
    buffer: u32,
    length: u32,
}

impl Job<'_> {
    /// Swaps message `input.1` of those that came over the edge `input.0` with message `output.1` of those that go over the
    /// edge `output.0`, each with its length, in a step that does not depend on how long they are: as from here, what came
    /// is what goes. Both edges are rings of one group of [`Spec::with_swapping`](crate::Spec::with_swapping), or one ring.
    ///
    /// [`Job::output`] then is the message that came, to be changed in place, as long as can be; asking for it sets its
    /// length again. If the job is killed before it completes it is begun again with the message where it came from,
    /// and what was changed in it may be half changed: see [`Job::is_resumed`].
    ///
    /// ```
    /// # use laxity_graph::{Job, MessageError};
    /// fn pass_on(mut job: Job<'_>) -> Result<(), MessageError> {
    ///     job.swap((0, 0), (1, 0))?;
    ///     job.complete();
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// [`MessageError`]; [`MessageError::Kept`] for a message that the job leaves for the next.
    pub fn swap(&mut self, input: (usize, u32), output: (usize, u32)) -> Result<(), MessageError> {
        self.ports().swap(input, output)
    }
}

/// Writes down where the buffers of a ring are at first: its initial tokens have the first of them.
pub(crate) fn initialize(segment: &Segment, layout: SwapLayout, capacity: u32, initial: u32, message: u32) {
    for slot in 0..capacity {
        let held = Held { buffer: layout.first + slot, length: message };
        segment.u32(layout.free_of(slot.into())).store(held.buffer, Ordering::Relaxed);
        if slot < initial {
            segment.u64(layout.filled_of(slot.into())).store(held.word(), Ordering::Relaxed);
        }
    }
}

impl Swaps {
    pub fn new(shared: &Shared, node: usize) -> Swaps {
        let mut swaps = Swaps { inputs: Vec::new(), outputs: Vec::new() };
        for (edge, (rule, channel)) in shared.spec.plan().edges().iter().zip(shared.spec.channels()).enumerate() {
            let (Channel::Ring { message, capacity }, Some(layout)) = (*channel, shared.layout.swap(edge)) else {
                continue;
            };
            let port = |first: u32, advance: u32, count: u32| SwapPort {
                edge,
                layout,
                capacity: capacity.into(),
                longest: message,
                first: first.into(),
                advance,
                slot: 0,
                held: vec![Held::default(); count as usize],
            };
            if rule.consumer == node {
                swaps.inputs.push(port(0, rule.consume, rule.threshold));
            }
            if rule.producer == node {
                swaps.outputs.push(port(rule.initial, rule.produce, rule.produce));
            }
        }
        swaps
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty() && self.outputs.is_empty()
    }

    /// Job `index` begins.
    #[inline(never)]
    pub fn begin(&mut self, shared: &Shared, index: u64) {
        for port in &mut self.inputs {
            port.move_to(index);
            port.take(|layout, slot| Held::of(shared.segment.u64(layout.filled_of(slot)).load(Ordering::Relaxed)));
        }
        for port in &mut self.outputs {
            port.move_to(index);
            // A message that it does not write is empty.
            port.take(|layout, slot| Held {
                buffer: shared.segment.u32(layout.free_of(slot)).load(Ordering::Relaxed),
                length: 0,
            });
        }
    }

    /// The job that began last is about to be complete, which makes what this writes visible.
    #[inline(never)]
    pub fn complete(&self, shared: &Shared) {
        for port in &self.inputs {
            port.give(|layout, slot, held| {
                shared.segment.u32(layout.free_of(slot)).store(held.buffer, Ordering::Relaxed);
            });
        }
        for port in &self.outputs {
            port.give(|layout, slot, held| {
                shared.segment.u64(layout.filled_of(slot)).store(held.word(), Ordering::Relaxed);
            });
        }
    }

    /// See [`Job::swap`].
    pub fn swap(&mut self, input: (usize, u32), output: (usize, u32)) -> Result<(), MessageError> {
        let error = || MessageError::NotSwapping { from: input.0, to: output.0 };
        let from = self.inputs.iter_mut().find(|port| port.edge == input.0).ok_or_else(error)?;
        let to = self.outputs.iter_mut().find(|port| port.edge == output.0).ok_or_else(error)?;
        if from.layout.pool != to.layout.pool {
            return Err(error());
        }
        from.check(input.1)?;
        to.check(output.1)?;
        if input.1 >= from.advance {
            return Err(MessageError::Kept { edge: input.0, number: input.1, consume: from.advance });
        }
        std::mem::swap(&mut from.held[input.1 as usize], &mut to.held[output.1 as usize]);
        Ok(())
    }
}

impl SwapPort {
    fn move_to(&mut self, job: u64) {
        // Tokens are numbered in 64 bits: one a nanosecond for 584 years.
        self.slot = (self.first + job * u64::from(self.advance)) % self.capacity;
    }

    /// Sets what the job holds to what is in the slots.
    fn take(&mut self, in_slot: impl Fn(&SwapLayout, u64) -> Held) {
        for (number, held) in (0..).zip(&mut self.held) {
            let found = in_slot(&self.layout, (self.slot + number) % self.capacity);
            // Written by another process, which may be wrong about it but shall not lead us beyond the buffers.
            held.buffer = found.buffer.min(self.layout.pool.buffers - 1);
            held.length = found.length.min(self.longest);
        }
    }

    /// The job's buffers go back to the slots, but for messages that the next job reads.
    fn give(&self, to_slot: impl Fn(&SwapLayout, u64, Held)) {
        for (number, &held) in (0..u64::from(self.advance)).zip(&self.held) {
            to_slot(&self.layout, (self.slot + number) % self.capacity, held);
        }
    }

    fn check(&self, number: u32) -> Result<(), MessageError> {
        check_number(self.edge, number, self.held.len() as u32)
    }

    /// Message `number` of those that came.
    pub fn message<'a>(&'a self, shared: &'a Shared, number: u32) -> Result<&'a [u8], MessageError> {
        self.check(number)?;
        let Held { buffer, length } = self.held[number as usize];
        // SAFETY: no thread writes the buffer while the job lasts, which the result does not outlive, as `Inputs::get`
        // lends it. A buffer is in one slot, filled or free, at any time (see above), and the slots of a job that is
        // begun are its own, as for `Inputs::get`: this holds for messages that the next job reads, too, which are
        // not swapped. In this process a swap borrows the job exclusively, so that no message of it is borrowed.
        Ok(unsafe { shared.segment.bytes(self.layout.pool.place(buffer), length as usize) })
    }

    /// Message `number` of those that go, as long as can be.
    pub fn message_mut<'a>(&'a mut self, shared: &'a Shared, number: u32) -> Result<&'a mut [u8], MessageError> {
        self.check(number)?;
        let held = &mut self.held[number as usize];
        held.length = self.longest;
        // SAFETY: as above, and as for `Outputs::into_message`: `Outputs` is the one way to what a job writes, and lends
        // it exclusively.
        Ok(unsafe { shared.segment.bytes_mut(self.layout.pool.place(held.buffer), self.longest as usize) })
    }

    /// Sets the length of message `number` of those that go.
    pub fn truncate(&mut self, number: u32, length: usize) -> Result<(), MessageError> {
        self.check(number)?;
        self.held[number as usize].length = check_length(self.edge, length, self.longest)?;
        Ok(())
    }
}

impl Held {
    fn of(word: u64) -> Held {
        Held { buffer: (word >> 32) as u32, length: word as u32 }
    }

    fn word(self) -> u64 {
        u64::from(self.buffer) << 32 | u64::from(self.length)
    }
}

impl SwapLayout {
    fn filled_of(&self, slot: u64) -> usize {
        self.filled + 8 * slot as usize
    }

    fn free_of(&self, slot: u64) -> usize {
        self.free + 4 * slot as usize
    }
}

impl PoolLayout {
    fn place(&self, buffer: u32) -> usize {
        self.start + self.stride * buffer as usize
    }
}
