//! What the interfaces to other languages tell of an error.

use std::error::Error;
use std::sync::Arc;

/// An error of the live side. Bindings turn the code into a result number or an exception class and pass on the
/// details; the text is the error's own.
pub trait ErrorDetails: Error {
    /// The kind of error.
    fn code(&self) -> ErrorCode;

    /// The values in the error that a program may want.
    fn details(&self) -> Details<'_> {
        Details::default()
    }
}

/// An error that several threads keep.
impl<E: ErrorDetails + ?Sized> ErrorDetails for Arc<E> {
    fn code(&self) -> ErrorCode {
        self.as_ref().code()
    }

    fn details(&self) -> Details<'_> {
        self.as_ref().details()
    }
}

/// The kinds of errors that programs may want to tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorCode {
    /// A wait timed out. It may be repeated.
    TimedOut,
    /// A node has ended, and nothing is left of its output.
    Terminated,
    /// A node was lost with its process.
    Lost,
    /// An argument is outside its range.
    Value,
    /// A graph or pipeline cannot be carried out.
    Spec,
    /// A name is too long, empty, or has characters that names cannot have.
    Name,
    /// The name is in use.
    Exists,
    /// No graph has the name.
    NoGraph,
    /// The name belongs to something that is configured otherwise.
    Different,
    /// The name belongs to something else, or to another version of Laxity.
    Foreign,
    /// No room is left for another process, client or follower.
    Full,
    /// Not enough shared memory or device memory.
    Memory,
    /// Linux refuses a call.
    System,
    /// An edge cannot have its channel.
    Channel,
    /// The graph has no such node.
    NoNode,
    /// The node belongs to another owner.
    Claimed,
    /// The node's killed owner has not ended yet.
    Ending,
    /// The process was forked from the one that attached.
    Forked,
    /// The graph has no such data object.
    NoObject,
    /// A node cannot listen at the address of an edge.
    Listen,
    /// A node that listens cannot be connected to.
    Unreachable,
    /// Linux does not schedule a thread as asked.
    Schedule,
    /// The edge carries no messages at this node.
    NoRing,
    /// The job has fewer messages.
    NoMessage,
    /// The message is longer than the edge's longest.
    TooLong,
    /// The node did not declare this use of a data object.
    Access,
    /// A former owner of a node took the message along.
    MessageLost,
    /// The graph has no recorder.
    NoRecorder,
    /// The messages cannot be swapped.
    Swap,
    /// GPUs cannot be configured like this.
    Config,
    /// No arbitration has the name.
    NoArbitration,
    /// No system of scheduled tasks has the name.
    NoSystem,
    /// A client's name or priority is invalid.
    Client,
    /// There is no such GPU.
    NoGpu,
    /// A lock request out of order.
    Order,
    /// A soft GPU cannot be opened.
    NoSoftGpu,
    /// The server of a soft GPU has ended.
    Gone,
    /// Bytes outside a buffer.
    Range,
    /// Two operations use the same bytes at the same time, and one writes.
    Race,
    /// A buffer of another device or GPU.
    Buffer,
    /// A GPU kernel failed.
    Kernel,
    /// A GPU kernel or callback issued a call that would wait for itself.
    Inside,
    /// The job's budget is exhausted.
    Exhausted,
    /// A vision graph cannot be executed.
    Verify,
    /// A node of a vision graph failed.
    Failed,
    /// A fault in Laxity.
    Internal,
}

/// The values in an error, each where it has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Details<'a> {
    /// The graph's name.
    pub graph: Option<&'a str>,
    /// The node's name.
    pub node: Option<&'a str>,
    /// Producer and consumer of the edge.
    pub edge: Option<(&'a str, &'a str)>,
    /// The process.
    pub pid: Option<u32>,
    /// Linux's number of the error.
    pub errno: Option<i32>,
    /// The number of the token, counted from the first that was ever on the edge.
    pub token: Option<u64>,
}

impl<'a> Details<'a> {
    /// An error about a node.
    pub fn node(node: &'a str) -> Self {
        Details { node: Some(node), ..Details::default() }
    }

    /// An error about the edge between two nodes.
    pub fn edge(from: &'a str, to: &'a str) -> Self {
        Details { edge: Some((from, to)), ..Details::default() }
    }

    /// The same, about the edge between `ends`, too, if there is one.
    pub fn on(self, ends: Option<&'a (String, String)>) -> Self {
        Details { edge: ends.map(|(from, to)| (from.as_str(), to.as_str())).or(self.edge), ..self }
    }

    /// The same, about a process, too.
    pub fn of(self, pid: u32) -> Self {
        Details { pid: Some(pid), ..self }
    }

    /// The same, with Linux's reason.
    pub fn because(self, errno: impl Into<Option<i32>>) -> Self {
        Details { errno: errno.into(), ..self }
    }
}
