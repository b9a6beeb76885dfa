//! Results and their details.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::ptr;

use ::laxity_graph::hooks::{FifoError, HookError};
use ::laxity_graph::{
    ClaimError, MessageError, NoChannel, NoRecorder, ObjectError, PipelineError, RegistryError, SpecError,
    UserDataError, WaitError,
};
use laxity_analysis::pgm::ReplicasError;
use laxity_policy::graph::PlanError;
use laxity_sys::segment::SegmentError;

pub use crate::result::laxity_result;
use laxity_result::*;

/// What went wrong, with names. It and its texts belong to the library; they are there until another call of the same
/// thread does not return LAXITY_OK, or the thread ends.
#[repr(C)]
pub struct laxity_error {
    /// The result that the call returned.
    result: laxity_result,
    /// What went wrong, with the way out; never NULL.
    message: *const c_char,
    /// The node in question, or NULL.
    node: *const c_char,
    /// The producer of the edge in question, or NULL.
    from: *const c_char,
    /// The consumer of the edge in question, or NULL.
    to: *const c_char,
    /// The process in question, or 0.
    pid: u32,
}

/// Why the last call of this thread failed that did not return LAXITY_OK; never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn laxity_last_error() -> *const laxity_error {
    let found = catch_unwind(|| {
        LAST.try_with(|last| {
            let mut last = last.borrow_mut();
            let Last { error, rendered } = &mut *last;
            &raw const rendered.get_or_insert_with(|| Rendered::of(error)).public
        })
    });
    // A thread that is ending has no details any more.
    found.ok().and_then(Result::ok).unwrap_or(&raw const NO_DETAILS.0)
}

/// Does what `call` does and says how it went. Nothing unwinds into C.
pub(crate) fn answer(call: impl FnOnce() -> Result<(), Error>) -> laxity_result {
    // What a panic leaves half-done is dropped or behind a mutex.
    let error = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => return LAXITY_OK,
        Ok(Err(error)) => error,
        Err(payload) => {
            let text = payload.downcast_ref::<String>().cloned();
            let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            // Whatever else it is, dropping it might panic.
            std::mem::forget(payload);
            Error::Internal { text: text.unwrap_or_default() }
        }
    };
    let result = error.result();
    // A thread that is ending keeps no details.
    let _ = LAST.try_with(|last| *last.borrow_mut() = Last { error: Some(error), rendered: None });
    result
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Error {
    Null {
        argument: &'static str,
    },
    Handle {
        expected: &'static str,
    },
    Text {
        argument: &'static str,
    },
    Busy,
    NoNode {
        name: String,
    },
    NoEdge {
        from: String,
        to: String,
    },
    NoPosition {
        edge: usize,
        edges: usize,
    },
    NoJob {
        node: String,
    },
    Incomplete {
        node: String,
        job: u64,
    },
    NoChannel {
        channel: u32,
    },
    Address {
        address: String,
    },
    /// None of the values of `of`.
    Value {
        argument: &'static str,
        value: u32,
        of: &'static str,
    },
    Fifo(FifoError),
    Hook(HookError),
    NoRecorder(NoRecorder),
    File {
        path: PathBuf,
        error: std::io::Error,
    },
    Descriptor(std::io::Error),
    Spec(SpecError),
    Pipeline(PipelineError),
    /// A parameter that neither reads nor writes, or writes into the past.
    Parameter {
        node: String,
        object: String,
    },
    /// Something added to what a pipeline derived.
    Derived {
        name: String,
    },
    Object(ObjectError),
    Registry(RegistryError),
    Claim(ClaimError),
    Wait(WaitError),
    UserData(UserDataError),
    /// A conditional write that came too late.
    Changed {
        expected: u64,
        found: u64,
    },
    /// The edge of a pipeline asks for more than one token a job.
    Tokens {
        from: String,
        to: String,
    },
    Replicas(ReplicasError),
    Gpu(crate::gpu::Fault),
    Device(::laxity_device::DeviceError),
    Vx(Box<crate::vx::Fault>),
    View(laxity_softgpu::GpuError),
    Message {
        node: String,
        edge: Option<(String, String)>,
        error: MessageError,
    },
    Internal {
        text: String,
    },
}

/// The names in an error.
#[derive(Default)]
struct Names<'a> {
    node: Option<&'a str>,
    edge: Option<(&'a str, &'a str)>,
    pid: u32,
}

impl<'a> Names<'a> {
    fn node(node: &'a str) -> Self {
        Names { node: Some(node), ..Names::default() }
    }

    fn edge(from: &'a str, to: &'a str) -> Self {
        Names { edge: Some((from, to)), ..Names::default() }
    }
}

impl Error {
    fn result(&self) -> laxity_result {
        match self {
            Error::Null { .. } => LAXITY_ERROR_NULL,
            Error::Handle { .. } => LAXITY_ERROR_HANDLE,
            Error::Text { .. } => LAXITY_ERROR_TEXT,
            Error::Busy => LAXITY_ERROR_BUSY,
            Error::NoNode { .. } | Error::Claim(ClaimError::NoSuchNode { .. }) => LAXITY_ERROR_NO_NODE,
            Error::NoEdge { .. } | Error::NoPosition { .. } => LAXITY_ERROR_NO_EDGE,
            Error::NoJob { .. } => LAXITY_ERROR_NO_JOB,
            Error::Incomplete { .. } => LAXITY_ERROR_INCOMPLETE,
            Error::Spec(_)
            | Error::Pipeline(_)
            | Error::Parameter { .. }
            | Error::Derived { .. }
            | Error::Tokens { .. }
            | Error::NoChannel { .. }
            | Error::Address { .. } => LAXITY_ERROR_SPEC,
            Error::Value { .. }
            | Error::Fifo(_)
            | Error::Replicas(ReplicasError::Lengths { .. })
            | Error::UserData(UserDataError::Length { .. }) => LAXITY_ERROR_VALUE,
            Error::Replicas(_) => LAXITY_ERROR_SPEC,
            Error::UserData(UserDataError::Lock(_)) => LAXITY_ERROR_SYSTEM,
            Error::Changed { .. } => LAXITY_CHANGED,
            Error::Hook(_) => LAXITY_ERROR_SCHEDULE,
            Error::NoRecorder(_) => LAXITY_ERROR_NO_RECORDER,
            Error::File { .. } => LAXITY_ERROR_FILE,
            Error::Descriptor(_) => LAXITY_ERROR_SYSTEM,
            Error::Object(ObjectError::NoSuchObject { .. }) => LAXITY_ERROR_NO_OBJECT,
            Error::Object(_) => LAXITY_ERROR_ACCESS,
            Error::Registry(error) => of_registry(error),
            Error::Claim(ClaimError::Claimed { .. } | ClaimError::NoneFree) => LAXITY_ERROR_CLAIMED,
            Error::Claim(ClaimError::Ending { .. }) => LAXITY_ERROR_ENDING,
            Error::Claim(ClaimError::Forked) | Error::UserData(UserDataError::Forked) => LAXITY_ERROR_FORKED,
            Error::Claim(ClaimError::Listen { .. }) => LAXITY_ERROR_LISTEN,
            Error::Wait(WaitError::Unreachable { .. }) => LAXITY_ERROR_UNREACHABLE,
            Error::Wait(WaitError::TimedOut { .. }) => LAXITY_TIMED_OUT,
            Error::Wait(WaitError::Lost { .. }) => LAXITY_LOST,
            Error::Wait(WaitError::Terminated { .. }) => LAXITY_TERMINATED,
            Error::Message { error: MessageError::NoRing { .. }, .. } => LAXITY_ERROR_NO_RING,
            Error::Message { error: MessageError::NoMessage { .. }, .. } => LAXITY_ERROR_NO_MESSAGE,
            Error::Message { error: MessageError::TooLong { .. }, .. } => LAXITY_ERROR_TOO_LONG,
            Error::Message { error: MessageError::Lost { .. }, .. } => LAXITY_ERROR_MESSAGE_LOST,
            Error::Message { error: MessageError::NotSwapping { .. } | MessageError::Kept { .. }, .. } => {
                LAXITY_ERROR_SWAP
            }
            Error::Gpu(fault) => fault.result(),
            Error::Device(error) => crate::device::result(error),
            Error::Vx(fault) => fault.result(),
            Error::View(error) => crate::device::of_gpu(error),
            Error::Internal { .. } => LAXITY_ERROR_INTERNAL,
        }
    }

    fn names(&self) -> Names<'_> {
        match self {
            Error::NoNode { name } | Error::Claim(ClaimError::NoSuchNode { name }) => Names::node(name),
            Error::NoEdge { from, to } | Error::Tokens { from, to } => Names::edge(from, to),
            Error::NoJob { node } | Error::Incomplete { node, .. } => Names::node(node),
            Error::Spec(error) | Error::Pipeline(PipelineError::Spec(error)) => of_spec(error),
            Error::Pipeline(error) => of_pipeline(error),
            Error::Parameter { node, .. } => Names::node(node),
            Error::Vx(fault) => Names { node: fault.node(), ..Names::default() },
            Error::Hook(HookError { node, .. }) => Names::node(node),
            Error::Object(
                ObjectError::NoSuchObject { node, .. }
                | ObjectError::NotDeclared { node, .. }
                | ObjectError::Changed { node, .. }
                | ObjectError::Twice { node, .. },
            ) => Names::node(node),
            Error::Registry(RegistryError::Other(NoChannel { from, to, .. })) => Names::edge(from, to),
            Error::Claim(ClaimError::Listen { edge: (from, to), .. }) => Names::edge(from, to),
            Error::Wait(WaitError::Unreachable { node, edge: (from, to), .. }) => {
                Names { node: Some(node), edge: Some((from, to)), pid: 0 }
            }
            Error::Claim(ClaimError::Claimed { node, pid } | ClaimError::Ending { node, pid }) => {
                Names { node: Some(node), edge: None, pid: *pid }
            }
            Error::Wait(WaitError::TimedOut { node, in_flight }) => {
                Names { node: Some(node), edge: in_flight.as_ref().map(|(from, to)| (&**from, &**to)), pid: 0 }
            }
            Error::Wait(WaitError::Lost { node, edge: (from, to), pid }) => {
                Names { node: Some(node), edge: Some((from, to)), pid: *pid }
            }
            Error::Wait(WaitError::Terminated { node, edge }) | Error::Message { node, edge, .. } => {
                let edge = edge.as_ref().map(|(from, to)| (from.as_str(), to.as_str()));
                Names { node: Some(node), edge, pid: 0 }
            }
            _ => Names::default(),
        }
    }
}

fn of_spec(error: &SpecError) -> Names<'_> {
    match error {
        SpecError::NodeName { name } | SpecError::Duplicate { name } | SpecError::NoNode { name } => Names::node(name),
        SpecError::Span { node, .. } => Names::node(node),
        SpecError::Capacity { from, to, .. }
        | SpecError::Address { from, to, .. }
        | SpecError::Swapping { from, to, .. } => Names::edge(from, to),
        SpecError::Plan(
            PlanError::NoPeriod { node }
            | PlanError::Mismatch { node, .. }
            | PlanError::Overflow { node }
            | PlanError::TooFast { node, .. },
        ) => Names::node(node),
        SpecError::Plan(
            PlanError::Tokens { from, to, .. }
            | PlanError::Deadlock { from, to, .. }
            | PlanError::Cycle { from, to }
            | PlanError::Unbalanced { from, to, .. }
            | PlanError::NotOneToOne { from, to, .. }
            | PlanError::Unwritten { from, to, .. },
        ) => Names::edge(from, to),
        _ => Names::default(),
    }
}

fn of_pipeline(error: &PipelineError) -> Names<'_> {
    match error {
        PipelineError::UnknownObject { node, .. }
        | PipelineError::TooLongAgo { node, .. }
        | PipelineError::DelayChanged { node, .. }
        | PipelineError::UsedTwice { node, .. }
        | PipelineError::NoWriter { node, .. } => Names::node(node),
        PipelineError::UnknownNode { from, to, node } => Names { node: Some(node), ..Names::edge(from, to) },
        PipelineError::Cycle { links } => {
            links.first().map_or_else(Names::default, |link| Names::edge(&link.from, &link.to))
        }
        _ => Names::default(),
    }
}

fn of_registry(error: &RegistryError) -> laxity_result {
    match error {
        RegistryError::Name { .. } => LAXITY_ERROR_NAME,
        RegistryError::Exists { .. } | RegistryError::Segment(SegmentError::Exists { .. }) => LAXITY_ERROR_EXISTS,
        RegistryError::NotFound { .. } | RegistryError::Segment(SegmentError::NotFound { .. }) => LAXITY_ERROR_NO_GRAPH,
        RegistryError::Different { .. } => LAXITY_ERROR_DIFFERENT,
        RegistryError::Damaged { .. }
        | RegistryError::Segment(SegmentError::Foreign { .. } | SegmentError::Version { .. }) => LAXITY_ERROR_FOREIGN,
        RegistryError::Full { .. } => LAXITY_ERROR_FULL,
        RegistryError::Other(NoChannel { .. }) => LAXITY_ERROR_CHANNEL,
        RegistryError::Segment(SegmentError::Memory { .. }) => LAXITY_ERROR_MEMORY,
        RegistryError::Segment(SegmentError::System { .. }) | RegistryError::System { .. } => LAXITY_ERROR_SYSTEM,
    }
}

thread_local! {
    static LAST: RefCell<Last> = const { RefCell::new(Last { error: None, rendered: None }) };
}

/// The last error; its texts are made when they are asked for, as time-outs are many and read by few.
struct Last {
    error: Option<Error>,
    rendered: Option<Box<Rendered>>,
}

/// An error as C sees it.
struct Rendered {
    public: laxity_error,
    /// What `public` points into.
    _texts: Vec<CString>,
}

impl Rendered {
    fn of(error: &Option<Error>) -> Box<Rendered> {
        let message = error.as_ref().map_or_else(|| "no call has failed".to_owned(), ToString::to_string);
        let Names { node, edge, pid } = error.as_ref().map(Error::names).unwrap_or_default();
        let mut texts = Vec::new();
        let mut pointer = |text: Option<&str>| {
            let Some(text) = text else { return ptr::null() };
            texts.push(c_string(text));
            // It points to the heap, and stays where it is when `texts` moves.
            texts.last().map_or(ptr::null(), |text| text.as_ptr())
        };
        let public = laxity_error {
            result: error.as_ref().map_or(LAXITY_OK, Error::result),
            message: pointer(Some(&message)),
            node: pointer(node),
            from: pointer(edge.map(|edge| edge.0)),
            to: pointer(edge.map(|edge| edge.1)),
            pid,
        };
        Box::new(Rendered { public, _texts: texts })
    }
}

/// What is said where there can be no details.
struct Constant(laxity_error);

// SAFETY: it points to constants only, which nobody writes.
unsafe impl Sync for Constant {}

static NO_DETAILS: Constant = Constant(laxity_error {
    result: LAXITY_ERROR_INTERNAL,
    message: c"no details are known".as_ptr(),
    node: ptr::null(),
    from: ptr::null(),
    to: ptr::null(),
    pid: 0,
});

/// `text` for C, where a NUL would end it.
pub(crate) fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "?")).unwrap_or_default()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Null { argument } => write!(f, "{argument} is NULL; pass one"),
            Error::Handle { expected } => {
                write!(f, "the pointer is no {expected}, or one that was released; check which handle is passed")
            }
            Error::Text { argument } => write!(f, "{argument} is not UTF-8; encode it so"),
            Error::Busy => write!(f, "another thread is using the node; give each node to one thread"),
            Error::NoNode { name } => write!(f, "the graph has no node {name}; names match exactly"),
            Error::NoEdge { from, to } => write!(f, "the graph has no edge {from} -> {to}; names match exactly"),
            Error::NoPosition { edge, edges } => {
                write!(f, "the graph has {edges} edges, numbered from 0; there is no edge {edge}")
            }
            Error::NoChannel { channel } => {
                write!(f, "an edge's channel is {channel}; use one of enum laxity_channel")
            }
            Error::Address { address } => {
                write!(f, "{address:?} is no address; write one like 127.0.0.1:4000 or [::1]:4000, with port 0 for any")
            }
            Error::Value { argument, value, of } => write!(f, "{argument} is {value}; use one of {of}"),
            Error::Fifo(error) => write!(f, "{error}"),
            Error::Hook(error) => write!(f, "{error}"),
            Error::NoRecorder(error) => write!(f, "{error}"),
            Error::File { path, error } => write!(f, "cannot write {}: {error}", path.display()),
            Error::Descriptor(error) => write!(f, "cannot make a descriptor to poll: {error}"),
            Error::NoJob { node } => write!(f, "node {node}: no job is begun, or it is complete; wait for the next"),
            Error::Incomplete { node, job } => {
                write!(f, "node {node}: job {job} is begun and not complete; complete it before the next wait")
            }
            Error::Spec(error) => write!(f, "{error}"),
            Error::Pipeline(error) => write!(f, "{error}"),
            Error::Parameter { node, object } => write!(
                f,
                "node {node}: its parameter for object {object} neither reads nor writes, or writes into the past; set \
                 reads or writes, and ago for an input only"
            ),
            Error::Derived { name } => write!(
                f,
                "the description of graph {name} was built by laxity_pipeline_build; add nodes and edges to the pipeline"
            ),
            Error::Object(error) => write!(f, "{error}"),
            Error::Registry(error) => write!(f, "{error}"),
            Error::Claim(error) => write!(f, "{error}"),
            Error::Wait(error) => write!(f, "{error}"),
            Error::UserData(error) => write!(f, "{error}"),
            Error::Changed { expected, found } => {
                write!(f, "user data has version {found} and not {expected}; read it again, and write then")
            }
            Error::Tokens { from, to } => write!(
                f,
                "edge {from} -> {to}: edges of a pipeline hand over one token a job, and start with none; leave the \
                 numbers of tokens 0"
            ),
            Error::Replicas(error) => write!(f, "{error}"),
            Error::Gpu(fault) => write!(f, "{fault}"),
            Error::Device(error) => write!(f, "{error}"),
            Error::Vx(fault) => write!(f, "{fault}"),
            Error::View(error) => write!(f, "{error}"),
            Error::Message { node, edge: Some((from, to)), error } => {
                write!(f, "node {node}, edge {from} -> {to}: {error}")
            }
            Error::Message { node, edge: None, error } => write!(f, "node {node}: {error}"),
            Error::Internal { text } => write!(f, "a fault in Laxity: {text}; please report it"),
        }
    }
}

impl From<SpecError> for Error {
    fn from(error: SpecError) -> Self {
        Error::Spec(error)
    }
}

impl From<PipelineError> for Error {
    fn from(error: PipelineError) -> Self {
        Error::Pipeline(error)
    }
}

impl From<UserDataError> for Error {
    fn from(error: UserDataError) -> Self {
        Error::UserData(error)
    }
}

impl From<FifoError> for Error {
    fn from(error: FifoError) -> Self {
        Error::Fifo(error)
    }
}

impl From<HookError> for Error {
    fn from(error: HookError) -> Self {
        Error::Hook(error)
    }
}

impl From<NoRecorder> for Error {
    fn from(error: NoRecorder) -> Self {
        Error::NoRecorder(error)
    }
}

impl From<RegistryError> for Error {
    fn from(error: RegistryError) -> Self {
        Error::Registry(error)
    }
}

impl From<ClaimError> for Error {
    fn from(error: ClaimError) -> Self {
        Error::Claim(error)
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn text(pointer: *const c_char) -> String {
        // SAFETY: the texts of the last error, which this thread asked for last.
        unsafe { CStr::from_ptr(pointer) }.to_str().expect("UTF-8").to_owned()
    }

    #[test]
    fn a_panic_ends_at_the_boundary() {
        let result = answer(|| panic!("one job too many"));
        assert_eq!(result, LAXITY_ERROR_INTERNAL);
        // SAFETY: never null, and of this thread.
        let error = unsafe { &*laxity_last_error() };
        assert_eq!((error.result, error.pid), (LAXITY_ERROR_INTERNAL, 0));
        assert_eq!(text(error.message), "a fault in Laxity: one job too many; please report it");
    }

    #[test]
    fn an_error_names_node_edge_and_process() {
        let edge = ("camera".to_owned(), "det\0ector".to_owned());
        let lost = WaitError::Lost { node: "camera".to_owned(), edge, pid: 7 };
        assert_eq!(answer(|| Err(Error::Wait(lost))), LAXITY_LOST);
        // SAFETY: as above.
        let error = unsafe { &*laxity_last_error() };
        assert_eq!([error.node, error.from, error.to].map(text), ["camera", "camera", "det?ector"]);
        assert_eq!(error.pid, 7);
        assert!(text(error.message).starts_with("node camera of edge camera -> "));
        assert_eq!(answer(|| Ok(())), LAXITY_OK);
        // SAFETY: as above.
        assert_eq!(unsafe { &*laxity_last_error() }.result, LAXITY_LOST, "success takes nothing away");
    }
}
