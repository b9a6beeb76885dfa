//! Latest-value edges in shared memory: a register of four slots for each, written and read in place, without waiting.
//!
//! ```text
//! words     reading  latest          the pair that the reader uses; the pair that was written last
//!           slot[0]  slot[1]         of each pair the slot that was written last
//! slots     [0][0]  [0][1]           in each: the number of the job that wrote it plus 1, the length, the bytes
//!           [1][0]  [1][1]
//!
//! writer    pair = not reading; index = not slot[pair]; ... the job writes ...; slot[pair] = index; latest = pair
//! reader    pair = latest; reading = pair; index = slot[pair]; ... the job reads ...
//! ```
//!
//! This is Simpson's four-slot mechanism (Simpson, "Four-slot fully asynchronous communication mechanism", IEE Proceedings
//! 137 (E), 1990). Neither side waits or tries again, each for as long as its job takes, and the value is whole and the
//! newest. All of its state is in these words: a process that is killed at any instruction leaves them as they are, and
//! the next owner of its node begins with them.
//!
//! A job's value is written when the job completes, just before the job counts as complete. If its process is killed in
//! between, readers may see the value of a job that the next owner of the node does again.
#![allow(unsafe_code, reason = "values are slices of shared memory; the two blocks argue their case")]

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use crate::layout::RegisterLayout;
use crate::node::Job;
use crate::ring::{Inputs, MessageError, Outputs, check_length};
use crate::shared::Shared;

/// What a job reads over a latest-value edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatestValue<'a> {
    /// The job of the producer that wrote it.
    pub job: u64,
    /// The value; empty if that job wrote none.
    pub bytes: &'a [u8],
}

/// The latest-value edges at a node.
#[derive(Debug)]
pub(crate) struct Registers {
    inputs: Vec<Port>,
    outputs: Vec<Port>,
}

/// One end of a register.
#[derive(Debug)]
struct Port {
    /// A position in the graph's latest-value edges.
    edge: usize,
    layout: RegisterLayout,
    /// The longest value.
    longest: u32,
    /// Where the job that began last reads or writes: the pair, and the slot in it.
    place: (u32, u32),
    /// How long the value is that it writes.
    length: u32,
}

impl Registers {
    pub fn new(shared: &Shared, node: usize) -> Self {
        let mut registers = Registers { inputs: Vec::new(), outputs: Vec::new() };
        let edges = shared.spec.graph().latest.iter().zip(shared.spec.latest_bytes());
        for (edge, (ends, &longest)) in edges.enumerate() {
            let port = || Port { edge, layout: shared.layout.register(edge), longest, place: (0, 0), length: 0 };
            if ends.consumer == node {
                registers.inputs.push(port());
            }
            if ends.producer == node {
                registers.outputs.push(port());
            }
        }
        registers
    }

    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty() && self.outputs.is_empty()
    }

    /// A job begins: it reads the newest values, for as long as it lasts, and writes to slots that no reader uses.
    pub fn begin(&mut self, shared: &Shared) {
        for port in &mut self.inputs {
            let pair = port.word(shared, RegisterLayout::LATEST);
            shared.segment.u32(port.layout.words + RegisterLayout::READING).store(pair, SeqCst);
            port.place = (pair, port.word(shared, RegisterLayout::SLOTS + 4 * pair as usize));
        }
        for port in &mut self.outputs {
            let pair = 1 - port.word(shared, RegisterLayout::READING);
            port.place = (pair, 1 - port.word(shared, RegisterLayout::SLOTS + 4 * pair as usize));
            port.length = 0;
        }
    }

    /// Job `index` is about to be complete: its values are the newest.
    pub fn complete(&self, shared: &Shared, index: u64) {
        for port in &self.outputs {
            let (pair, slot) = port.place;
            let at = port.layout.slot(pair, slot);
            shared.segment.u64(at).store(index + 1, Relaxed);
            shared.segment.u32(at + 8).store(port.length, Relaxed);
            shared.segment.u32(port.layout.words + RegisterLayout::SLOTS + 4 * pair as usize).store(slot, SeqCst);
            shared.segment.u32(port.layout.words + RegisterLayout::LATEST).store(pair, SeqCst);
        }
    }

    /// What the job that began last reads over `edge`; nothing if no job of the producer had completed.
    pub fn read<'a>(&'a self, shared: &'a Shared, edge: usize) -> Result<Option<LatestValue<'a>>, MessageError> {
        let port = self.inputs.iter().find(|port| port.edge == edge).ok_or(MessageError::NoRing { edge })?;
        Ok(port.read(shared))
    }

    /// All that the job that began last reads and writes, each with its position: what it writes is as long as can be.
    pub fn all<'a>(&'a mut self, shared: &'a Shared) -> (LatestInputs<'a>, LatestOutputs<'a>) {
        (LatestInputs { ports: self.inputs.iter(), shared }, LatestOutputs { ports: self.outputs.iter_mut(), shared })
    }

    /// What the job that began last writes over `edge`, as long as can be; what is in it is undetermined.
    pub fn write<'a>(&'a mut self, shared: &'a Shared, edge: usize) -> Result<&'a mut [u8], MessageError> {
        let port = self.outputs.iter_mut().find(|port| port.edge == edge).ok_or(MessageError::NoRing { edge })?;
        Ok(port.write(shared))
    }

    /// Sets the length of what the job writes over `edge`.
    pub fn truncate(&mut self, edge: usize, length: usize) -> Result<(), MessageError> {
        let port = self.outputs.iter_mut().find(|port| port.edge == edge).ok_or(MessageError::NoRing { edge })?;
        port.length = check_length(edge, length, port.longest)?;
        Ok(())
    }
}

/// What a job reads over the latest-value edges to its node, in their order: positions, and values where there are any.
#[derive(Debug)]
pub struct LatestInputs<'a> {
    ports: std::slice::Iter<'a, Port>,
    shared: &'a Shared,
}

/// What a job writes over the latest-value edges from its node, in their order: positions, and the memory of values.
#[derive(Debug)]
pub struct LatestOutputs<'a> {
    ports: std::slice::IterMut<'a, Port>,
    shared: &'a Shared,
}

impl<'a> Iterator for LatestInputs<'a> {
    type Item = (usize, Option<LatestValue<'a>>);

    fn next(&mut self) -> Option<Self::Item> {
        self.ports.next().map(|port| (port.edge, port.read(self.shared)))
    }
}

impl<'a> Iterator for LatestOutputs<'a> {
    type Item = (usize, &'a mut [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        self.ports.next().map(|port| (port.edge, port.write(self.shared)))
    }
}

impl Port {
    /// What the job that began last reads; nothing if no job of the producer had completed.
    fn read<'a>(&'a self, shared: &'a Shared) -> Option<LatestValue<'a>> {
        let at = self.layout.slot(self.place.0, self.place.1);
        let job = shared.segment.u64(at).load(Relaxed).checked_sub(1)?;
        // Written by another process, which may be wrong about it but shall not lead us beyond the slot.
        let length = shared.segment.u32(at + 8).load(Relaxed).min(self.longest);
        // SAFETY: no thread writes the slot while the job lasts, which the slice does not outlive. `reading` has named its
        // pair since before its slot was looked up, and the producer wrote that slot before it said so. A job of the producer
        // that began before `reading` was seen, and writes in this pair, writes the other slot; those that begin later write
        // in the other pair. Only one thread in all processes has claimed either node, and processes that attach to a graph
        // write to it through this library only.
        let bytes = unsafe { shared.segment.bytes(at + RegisterLayout::HEAD, length as usize) };
        Some(LatestValue { job, bytes })
    }

    /// What it writes, as long as can be.
    fn write<'a>(&'a mut self, shared: &'a Shared) -> &'a mut [u8] {
        self.length = self.longest;
        let at = self.layout.slot(self.place.0, self.place.1) + RegisterLayout::HEAD;
        // SAFETY: no other thread touches the slot before the job completes. When the job began, the reader's pair was
        // another, or the reader had not yet looked up its slot in this pair: it then finds the other slot of it, which was
        // written last. Claims are exclusive, as in `read`; within this process `self` is borrowed for as long as the slice.
        unsafe { shared.segment.bytes_mut(at, self.longest as usize) }
    }
}

impl Job<'_> {
    /// What the newest complete job of the producer wrote over the latest-value edge at `edge` of
    /// [`Graph::latest`](laxity_model::Graph::latest), as it was when this job began; nothing if none was complete then. In
    /// place.
    ///
    /// # Errors
    /// [`MessageError::NoRing`] if no such edge leads to the node.
    pub fn latest(&mut self, edge: usize) -> Result<Option<LatestValue<'_>>, MessageError> {
        let (registers, _, shared) = self.registers();
        registers.read(shared, edge)
    }

    /// What this job writes over the latest-value edge at `edge`, as long as can be; what is in it is undetermined. It is the
    /// newest value when the job completes. A job that does not ask for it writes an empty value.
    ///
    /// # Errors
    /// [`MessageError::NoRing`] if no such edge leads from the node.
    pub fn latest_output(&mut self, edge: usize) -> Result<&mut [u8], MessageError> {
        let (registers, _, shared) = self.registers();
        registers.write(shared, edge)
    }

    /// Sets the length of what this job writes over the latest-value edge at `edge`.
    ///
    /// # Errors
    /// [`MessageError::NoRing`], [`MessageError::TooLong`].
    pub fn truncate_latest(&mut self, edge: usize, length: usize) -> Result<(), MessageError> {
        self.registers().0.truncate(edge, length)
    }

    /// As [`Job::messages`], and all values of the latest-value edges at its node, at the same time: what goes out over them is
    /// as long as can be until [`Job::truncate_latest`] says less.
    pub fn messages_and_latest(&mut self) -> ((Inputs<'_>, Outputs<'_>), (LatestInputs<'_>, LatestOutputs<'_>)) {
        let (registers, ports, shared) = self.registers();
        (ports.messages(shared), registers.all(shared))
    }

    /// Copies `value` to the latest-value edge at `edge`.
    ///
    /// # Errors
    /// [`MessageError::NoRing`], [`MessageError::TooLong`].
    pub fn write_latest(&mut self, edge: usize, value: &[u8]) -> Result<(), MessageError> {
        self.truncate_latest(edge, value.len())?;
        self.latest_output(edge)?[..value.len()].copy_from_slice(value);
        self.truncate_latest(edge, value.len())
    }
}

impl Port {
    /// One of the words, which are bits. Another process may have written something else.
    fn word(&self, shared: &Shared, word: usize) -> u32 {
        shared.segment.u32(self.layout.words + word).load(SeqCst) & 1
    }
}
