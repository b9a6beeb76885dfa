//! Calls of the user's own code: functions of shared libraries, and what they are given of a job.
//!
//! ```text
//!   Library::open, function   ->   Function
//!   Frame::with(head, inputs, outputs, |view| ...)     messages in place, for as long as the call lasts
//!                                        '-> Function::call(view, state)
//! ```
//!
//! The interface is that of `laxity/code.h`. The header asserts the same layout of its structs as is asserted here.

mod library;
mod parking;
mod python;

use std::ffi::{CString, c_char, c_void};
use std::marker::PhantomData;
use std::ptr;

pub use self::library::{Failure, Function, Library, LibraryError, State, own_file};
pub use self::python::{Python, PythonCode};

/// The version of the interface: that of `laxity_code_abi` in a library.
pub const ABI: u32 = 1;

/// The number of the job in a call that warms up.
pub const WARM_UP: u64 = u64::MAX;

/// What a call is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The number of the job; [`WARM_UP`] before time 0.
    pub job: u64,
    /// When it arrived, on the monotonic clock in nanoseconds.
    pub release_ns: u64,
    /// When it is due.
    pub deadline_ns: u64,
    /// Which step of the body, counted over those that call code.
    pub step: u32,
    /// What sort of step.
    pub kind: StepKind,
}

/// The sorts of steps that call code, by their numbers in C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum StepKind {
    /// CPU time.
    Cpu = 0,
    /// CPU time without preemption by other jobs.
    NonPreemptive = 1,
    /// The job suspends itself: the code waits.
    Suspend = 2,
}

/// `struct laxity_code_message`.
#[repr(C)]
#[derive(Debug)]
struct RawMessage {
    data: *mut c_void,
    length: usize,
    capacity: usize,
}

/// `struct laxity_code_edge`.
#[repr(C)]
#[derive(Debug)]
struct RawEdge {
    peer: *const c_char,
    count: u32,
    taken: u32,
    messages: *mut RawMessage,
}

/// `struct laxity_code_call`.
#[repr(C)]
#[derive(Debug)]
struct RawCall {
    size: u32,
    abi: u32,
    task: *const c_char,
    job: u64,
    release_ns: u64,
    deadline_ns: u64,
    step: u32,
    kind: u32,
    input_count: u32,
    output_count: u32,
    inputs: *const RawEdge,
    outputs: *mut RawEdge,
    state: *mut c_void,
}

// As in `laxity/code.h`.
const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<RawMessage>() == 24 && offset_of!(RawMessage, capacity) == 16);
    assert!(size_of::<RawEdge>() == 24 && offset_of!(RawEdge, messages) == 16);
    assert!(size_of::<RawCall>() == 80 && offset_of!(RawCall, job) == 16 && offset_of!(RawCall, step) == 40);
    assert!(offset_of!(RawCall, inputs) == 56 && offset_of!(RawCall, state) == 72);
};

/// An edge of a node, as the node sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The node at its other end.
    pub peer: String,
    /// Messages that a job sees, or writes; 1 of a latest-value edge.
    pub count: u32,
    /// Of an inbound edge, messages that the job takes away; of an outbound one, all.
    pub taken: u32,
}

/// Everything that calls for one task are given; its memory serves one call after the other.
#[derive(Debug)]
pub struct Frame {
    task: CString,
    inputs: Ends,
    outputs: Ends,
}

/// The inbound edges, or the outbound ones.
#[derive(Debug)]
struct Ends {
    edges: Vec<Edge>,
    peers: Vec<CString>,
    raw: Vec<RawEdge>,
    messages: Vec<RawMessage>,
}

/// Code says that a message which goes out is longer than can be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "its message {number} to {peer} has a length of {length} bytes, and {capacity} fit; it sets a smaller length, or the edge \
     carries longer messages"
)]
pub struct TooLong {
    /// The node at the other end of the edge.
    pub peer: String,
    /// Which of the messages of the edge, from 0.
    pub number: u32,
    /// What the code says.
    pub length: usize,
    /// What fits.
    pub capacity: usize,
}

/// What code is given of one step of a job. The memory of all messages is there while this is.
#[derive(Debug)]
pub struct View<'m> {
    raw: RawCall,
    _messages: PhantomData<&'m mut [u8]>,
}

impl Frame {
    /// For calls of the task called `task`, whose edges with messages are these. NULs in names become spaces.
    pub fn new(task: &str, inputs: Vec<Edge>, outputs: Vec<Edge>) -> Frame {
        Frame { task: text(task), inputs: Ends::new(inputs), outputs: Ends::new(outputs) }
    }

    /// Calls `call` with a view of a step. `inputs` and `outputs` are the messages of all edges, those of the first edge
    /// first; a call that warms up may come with none. `None` is a value of a latest-value edge that is not there yet. A message that goes out is as long as can be until the code says
    /// otherwise, and has one of `lengths` before, if there are any.
    ///
    /// # Panics
    /// If there are some messages, but not as many as the edges say.
    pub fn with<'m, R>(
        &mut self,
        head: Head,
        inputs: impl Iterator<Item = Option<&'m [u8]>>,
        outputs: impl Iterator<Item = &'m mut [u8]>,
        lengths: &[usize],
        call: impl FnOnce(&mut View<'m>) -> R,
    ) -> R {
        let input = |bytes: Option<&[u8]>| RawMessage {
            data: bytes.map_or(ptr::null_mut(), |bytes| bytes.as_ptr().cast_mut().cast()),
            length: bytes.map_or(0, <[u8]>::len),
            capacity: bytes.map_or(0, <[u8]>::len),
        };
        let output = |(number, bytes): (usize, &mut [u8])| RawMessage {
            length: lengths.get(number).copied().unwrap_or(bytes.len()),
            capacity: bytes.len(),
            data: bytes.as_mut_ptr().cast(),
        };
        self.inputs.fill(inputs.map(input));
        self.outputs.fill(outputs.enumerate().map(output));
        let raw = RawCall {
            size: size_of::<RawCall>() as u32,
            abi: ABI,
            task: self.task.as_ptr(),
            job: head.job,
            release_ns: head.release_ns,
            deadline_ns: head.deadline_ns,
            step: head.step,
            kind: head.kind as u32,
            input_count: self.inputs.raw.len() as u32,
            output_count: self.outputs.raw.len() as u32,
            inputs: self.inputs.raw.as_ptr(),
            outputs: self.outputs.raw.as_mut_ptr(),
            state: ptr::null_mut(),
        };
        call(&mut View { raw, _messages: PhantomData })
    }

    /// How long the messages are that went out with the last call, at most as long as can be.
    pub fn lengths(&self) -> impl Iterator<Item = usize> {
        self.outputs.messages.iter().map(|message| message.length.min(message.capacity))
    }

    /// The first message that the last call made longer than can be.
    pub fn too_long(&self) -> Option<TooLong> {
        let numbers = self.outputs.edges.iter().flat_map(|edge| (0..edge.count).map(move |number| (edge, number)));
        let mut messages = numbers.zip(&self.outputs.messages);
        messages.find(|(_, message)| message.length > message.capacity).map(|((edge, number), message)| TooLong {
            peer: edge.peer.clone(),
            number,
            length: message.length,
            capacity: message.capacity,
        })
    }

    /// The inbound edges.
    pub fn inputs(&self) -> &[Edge] {
        &self.inputs.edges
    }

    /// The outbound edges.
    pub fn outputs(&self) -> &[Edge] {
        &self.outputs.edges
    }
}

impl Ends {
    fn new(edges: Vec<Edge>) -> Ends {
        let peers = edges.iter().map(|edge| text(&edge.peer)).collect();
        let (raw, messages) = (Vec::with_capacity(edges.len()), Vec::new());
        Ends { edges, peers, raw, messages }
    }

    fn fill(&mut self, messages: impl Iterator<Item = RawMessage>) {
        self.messages.clear();
        self.messages.extend(messages);
        self.raw.clear();
        let expected: usize = self.edges.iter().map(|edge| edge.count as usize).sum();
        assert!(self.messages.is_empty() || self.messages.len() == expected, "each edge has its messages");
        let is_empty = self.messages.is_empty();
        let (mut first, mut next) = (self.messages.as_mut_ptr(), 0);
        for (edge, peer) in self.edges.iter().zip(&self.peers) {
            let there = if is_empty { 0 } else { edge.count };
            // Only a latest-value edge has none, and then it has no other message.
            let is_missing = self.messages.get(next).is_some_and(|message| message.data.is_null());
            let count = if is_missing { 0 } else { there };
            let taken = edge.taken.min(count);
            self.raw.push(RawEdge { peer: peer.as_ptr(), count, taken, messages: first });
            // Stays within the messages, or is just behind the last: their number was checked.
            first = first.wrapping_add(there as usize);
            next += there as usize;
        }
    }
}

impl View<'_> {
    /// The number of the job.
    pub fn job(&self) -> u64 {
        self.raw.job
    }

    /// Which of the steps that call code.
    pub fn step(&self) -> u32 {
        self.raw.step
    }

    /// What sort of step.
    pub fn kind(&self) -> StepKind {
        match self.raw.kind {
            kind if kind == StepKind::Cpu as u32 => StepKind::Cpu,
            kind if kind == StepKind::NonPreemptive as u32 => StepKind::NonPreemptive,
            _ => StepKind::Suspend,
        }
    }
}

fn text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).expect("NULs were replaced")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: Head = Head { job: 7, release_ns: 1, deadline_ns: 2, step: 0, kind: StepKind::Cpu };

    fn edge(peer: &str, count: u32) -> Edge {
        Edge { peer: peer.to_owned(), count, taken: count }
    }

    /// Of three messages that go out the code shortens the second and claims too much of the third.
    #[test]
    fn code_sees_all_messages_in_place_and_says_how_long_they_are() {
        let mut frame = Frame::new("a\0b", vec![edge("x", 1)], vec![edge("y", 1), edge("z", 2)]);
        let (input, mut output) = ([1u8, 2], [[0u8; 4]; 3]);
        let places: Vec<*mut u8> = output.iter_mut().map(|message| message.as_mut_ptr()).collect();
        let outputs = output.iter_mut().map(|message| &mut message[..]);
        frame.with(HEAD, std::iter::once(Some(&input[..])), outputs, &[], |view| {
            assert_eq!((view.job(), view.raw.input_count, view.raw.output_count), (7, 1, 2));
            // SAFETY: the frame filled them in, and the messages are there.
            unsafe {
                assert_eq!(std::ffi::CStr::from_ptr(view.raw.task).to_bytes(), b"a b");
                let message = &*(*view.raw.inputs).messages;
                assert_eq!((message.data.cast_const().cast(), message.length), (input.as_ptr(), 2));
                let last = &mut *view.raw.outputs.add(1);
                assert_eq!((last.count, (*last.messages.add(1)).data.cast()), (2, places[2]));
                (*last.messages).length = 3;
                (*last.messages.add(1)).length = 5;
            }
        });
        assert_eq!(frame.lengths().collect::<Vec<_>>(), [4, 3, 4]);
        let too_long = frame.too_long().expect("the third is");
        assert_eq!(too_long, TooLong { peer: "z".to_owned(), number: 1, length: 5, capacity: 4 });
    }

    /// Of three latest-value edges the second has no value yet.
    #[test]
    fn an_edge_without_a_value_yet_has_no_message_and_the_others_have_theirs() {
        let latest = |peer: &str| Edge { taken: 0, ..edge(peer, 1) };
        let mut frame = Frame::new("t", vec![latest("x"), latest("y"), latest("z")], Vec::new());
        let values = [Some(&b"first"[..]), None, Some(&b"third!"[..])];
        frame.with(HEAD, values.into_iter(), std::iter::empty(), &[], |view| {
            // SAFETY: there are three edges, and the messages are there that the counts say.
            let seen = unsafe { std::slice::from_raw_parts(view.raw.inputs, 3) };
            let counts: Vec<u32> = seen.iter().map(|edge| edge.count).collect();
            assert_eq!(counts, [1, 0, 1]);
            // SAFETY: as above.
            let lengths = [&seen[0], &seen[2]].map(|edge| unsafe { (*edge.messages).length });
            assert_eq!(lengths, [5, 6]);
        });
    }

    #[test]
    fn a_call_that_warms_up_has_edges_without_messages() {
        let mut frame = Frame::new("t", vec![edge("x", 3)], Vec::new());
        let head = Head { job: WARM_UP, ..HEAD };
        let count = frame.with(head, std::iter::empty(), std::iter::empty(), &[], |view| {
            // SAFETY: there is one edge.
            unsafe { (*view.raw.inputs).count }
        });
        assert_eq!(count, 0);
    }
}
