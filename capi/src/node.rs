//! A claimed node and its job.
//!
//! ```text
//!                 laxity_node_wait
//!      waiting ----------------------> begun: laxity_job_input, _output, _truncate
//!         ^                              |
//!         +------ laxity_job_complete ---+
//! ```

use std::ffi::{CString, c_char, c_int, c_void};
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use ::laxity_graph::{Graph, Job, MessageError, NoRecorder, Node};
use laxity_model::Nanos;

use crate::error::{CallError, Error, answer, c_string, laxity_result};
use crate::handle::{self, Handle, out};

/// A claimed node. One thread uses it at a time; it need not be the one that claimed it.
pub struct laxity_node {
    _opaque: (),
}

/// The job of a node that was begun and is not complete. It belongs to its node, which has one handle for all its jobs:
/// it is neither released nor used after the node is.
pub struct laxity_job {
    _opaque: (),
}

impl Handle for laxity_node {
    type Value = ClaimedNode;
    const TAG: u64 = u64::from_le_bytes(*b"lax-node");
    const NAME: &'static str = "node";
}

impl Handle for laxity_job {
    type Value = Arc<Mutex<State>>;
    const TAG: u64 = u64::from_le_bytes(*b"lax-jobs");
    const NAME: &'static str = "job";
}

/// The value of a node's handle.
pub(crate) struct ClaimedNode {
    state: Arc<Mutex<State>>,
    name: CString,
    job: JobHandle,
}

/// The handle of a node's jobs, which goes with the node.
struct JobHandle(*mut laxity_job);

// SAFETY: it points to an `Arc<Mutex<State>>`, which threads may share, and is changed only where it is dropped.
unsafe impl Send for JobHandle {}
// SAFETY: as above.
unsafe impl Sync for JobHandle {}

impl Drop for JobHandle {
    fn drop(&mut self) {
        // SAFETY: made in `ClaimedNode::new`, and C is told not to use it any more. It is a valid handle, so there is
        // no error to report.
        drop(unsafe { handle::take(&raw mut self.0) });
    }
}

/// A node and the job that it has begun.
pub(crate) struct State {
    /// Borrows what `node` points to, exclusively.
    job: Option<Job<'static>>,
    /// Whether a former owner had begun the job.
    is_resumed: bool,
    node: OwnedNode,
    /// Names for messages.
    graph: Graph,
    name: String,
}

/// A node in a place of its own, which a job can borrow while this moves.
struct OwnedNode(NonNull<Node>);

// SAFETY: it owns the node, and a node may be sent.
unsafe impl Send for OwnedNode {}

impl Drop for OwnedNode {
    fn drop(&mut self) {
        // SAFETY: from `Box::leak` in `ClaimedNode::new`, and dropped once. `State::job`, which may borrow it, is
        // declared first and so dropped before.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl ClaimedNode {
    pub fn state(&self) -> &Mutex<State> {
        &self.state
    }

    pub fn new(graph: Graph, node: Node) -> Self {
        let name = graph.spec().graph().nodes[node.position()].name.clone();
        let c_name = c_string(&name);
        let node = OwnedNode(NonNull::from(Box::leak(Box::new(node))));
        let state = Arc::new(Mutex::new(State { job: None, is_resumed: false, node, graph, name }));
        ClaimedNode { job: JobHandle(handle::make(state.clone())), state, name: c_name }
    }
}

impl State {
    /// The node, for `'a`; only while there is no job, which would borrow it.
    pub fn node<'a>(&mut self) -> Result<&'a mut Node, Error> {
        if let Some(job) = &self.job {
            return Err(CallError::Incomplete { node: self.name.clone(), job: job.index() }.into());
        }
        // SAFETY: `OwnedNode` keeps it alive for as long as `self.job` exists. No other reference exists: there is no
        // job (checked above), all others come from here, and no caller keeps one beyond its hold on the mutex, except
        // for the job in `self.job`.
        Ok(unsafe { &mut *self.node.0.as_ptr() })
    }

    fn wait(&mut self, timeout_ns: u64) -> Result<(), Error> {
        let node = self.node()?;
        let interrupted = node.interrupted();
        let job = match timeout_ns {
            0 => node.try_wait(),
            u64::MAX => node.wait(),
            _ => node.wait_for(Nanos::from_nanos(timeout_ns)),
        };
        let job = job?;
        self.is_resumed = interrupted == Some(job.index());
        self.job = Some(job);
        Ok(())
    }

    pub fn job(&mut self) -> Result<&mut Job<'static>, Error> {
        self.job.as_mut().ok_or_else(|| CallError::NoJob { node: self.name.clone() }.into())
    }

    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn no_recorder(&self) -> Error {
        NoRecorder { graph: self.graph.spec().graph().name.clone() }.into()
    }

    /// Adds the names that a C programmer knows.
    fn named(&self, edge: usize, error: MessageError) -> Error {
        let graph = self.graph.spec().graph();
        let name = |node: usize| graph.nodes[node].name.clone();
        let ends = graph.edges.get(edge).map(|edge| (name(edge.producer), name(edge.consumer)));
        CallError::Message { node: self.name.clone(), edge: ends, error }.into()
    }
}

/// The state, unless another thread is using it: that is a mistake of the program, so this thread does not wait.
pub(crate) fn lock(state: &Mutex<State>) -> Result<MutexGuard<'_, State>, Error> {
    match state.try_lock() {
        Ok(state) => Ok(state),
        // A panic leaves no job half-stored: that is the last thing a wait does, and the first that a completion
        // undoes.
        Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => {
            let (what, way_out) = ("another thread is using the node", "give each node to one thread");
            Err(CallError::Busy { what, way_out }.into())
        }
    }
}

/// Releases a node, so that another owner can claim it. In the middle of a job that counts as a loss. Sets `*node` to
/// NULL; does nothing if it is NULL already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_node_release(node: *mut *mut laxity_node) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `node` can be written and that the handle is not used any more.
        unsafe { let_go(node) }.map(drop)
    })
}

/// Ends a node and releases it: its consumers end when they have used its output. Sets `*node` to NULL; does nothing if
/// it is NULL already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_node_terminate(node: *mut *mut laxity_node) -> laxity_result {
    answer(|| {
        // SAFETY: as above.
        let place = unsafe { out(node, "node") }?;
        if !place.is_null() {
            // A forked child releases its copy, and ends no node.
            // SAFETY: as above.
            unsafe { handle::get(*place) }?;
        }
        // SAFETY: as above.
        let Some(claimed) = (unsafe { let_go(node) })? else { return Ok(()) };
        let state = lock(&claimed.state)?;
        if let Some(position) = state.graph.node(&state.name) {
            state.graph.terminate(position);
        }
        Ok(())
    })
}

/// Takes the node behind the handle at `place`, unless a thread is using it.
///
/// # Safety
/// As for [`handle::take`].
unsafe fn let_go(place: *mut *mut laxity_node) -> Result<Option<ClaimedNode>, Error> {
    // SAFETY: as the caller promises.
    unsafe { handle::take_if(place, |node| lock(&node.state).map(drop)) }
}

/// The name of a node; the text is there as long as the node.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_node_name(node: *const laxity_node, name: *mut *const c_char) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `name` can be written.
        let (node, name) = unsafe { (handle::get(node)?, out(name, "name")?) };
        *name = node.name.as_ptr();
        Ok(())
    })
}

/// Waits spin for `span_ns` from now on before they suspend, if all awaited nodes last ran on other CPUs: for threads
/// that have CPUs of their own. 0 at first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_node_spin_for(node: *mut laxity_node, span_ns: u64) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        let mut state = lock(&unsafe { handle::get(node) }?.state)?;
        state.node()?.spin_for(Nanos::from_nanos(span_ns));
        Ok(())
    })
}

/// Waits for the next job: for tokens on all edges to the node and room on all rings from it, with one suspension. For
/// `timeout_ns`, not at all if that is 0, or for ever with LAXITY_FOREVER.
///
/// LAXITY_TIMED_OUT, LAXITY_TERMINATED and LAXITY_LOST tell why there is no job; no token is lost.
/// LAXITY_ERROR_INCOMPLETE if the job before is not complete.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_node_wait(
    node: *mut laxity_node,
    timeout_ns: u64,
    job: *mut *mut laxity_job,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `job` can be written.
        let job = unsafe { out(job, "job") }?;
        *job = std::ptr::null_mut();
        // SAFETY: the caller promises that the handle is not released meanwhile.
        let node = unsafe { handle::get(node) }?;
        lock(&node.state)?.wait(timeout_ns)?;
        *job = node.job.0;
        Ok(())
    })
}

/// A descriptor for poll() and event loops: readable unless the last wait timed out and the next one would, too. When
/// it is readable, call laxity_node_wait with a time-out of 0, any number of times; the descriptor stays readable until
/// that returns LAXITY_TIMED_OUT. It may be readable although there is no job. It belongs to the node, is closed with
/// it, and must not be read from.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_node_poll_fd(node: *mut laxity_node, descriptor: *mut c_int) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `descriptor` can be written.
        let (node, descriptor) = unsafe { (handle::get(node.cast_const())?, out(descriptor, "descriptor")?) };
        *descriptor = -1;
        let mut state = lock(&node.state)?;
        *descriptor = state.node()?.poll_fd().map_err(CallError::Descriptor)?.as_raw_fd();
        Ok(())
    })
}

/// The number of a job, from 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_job_index(job: *const laxity_job, index: *mut u64) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the node is not released meanwhile, and that `index` can be written.
        let (state, index) = unsafe { (handle::get(job)?, out(index, "index")?) };
        *index = lock(state)?.job()?.index();
        Ok(())
    })
}

/// Whether a former owner of the node had begun the job and not completed it: its effects outside the graph may have
/// happened already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_job_is_resumed(job: *const laxity_job, is_resumed: *mut bool) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the node is not released meanwhile, and that `is_resumed` can be written.
        let (state, is_resumed) = unsafe { (handle::get(job)?, out(is_resumed, "is_resumed")?) };
        let mut state = lock(state)?;
        state.job()?;
        *is_resumed = state.is_resumed;
        Ok(())
    })
}

/// Message `number`, from 0, of those that came over `edge`: in place, valid until the job is complete. A job sees as
/// many messages as its threshold. `length` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_job_input(
    job: *const laxity_job,
    edge: usize,
    number: u32,
    message: *mut *const c_void,
    length: *mut usize,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the node is not released meanwhile, and that `message` can be written.
        let (state, message) = unsafe { (handle::get(job)?, out(message, "message")?) };
        *message = std::ptr::null();
        let mut state = lock(state)?;
        let found = state.job()?.input(edge, number).map(|bytes| (bytes.as_ptr(), bytes.len()));
        let (start, bytes) = found.map_err(|error| state.named(edge, error))?;
        *message = start.cast();
        // SAFETY: the caller promises that `length` can be written unless it is null.
        if let Some(length) = unsafe { length.as_mut() } {
            *length = bytes;
        }
        Ok(())
    })
}

/// Message `number`, from 0, of those that go over `edge`: in place, to be written until the job is complete. Its
/// content is undefined at first. It has the greatest length, written to `length` (which may be NULL), unless
/// laxity_job_truncate shortens it; a message that is never asked for is empty.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_job_output(
    job: *mut laxity_job,
    edge: usize,
    number: u32,
    message: *mut *mut c_void,
    length: *mut usize,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the node is not released meanwhile, and that `message` can be written.
        let (state, message) = unsafe { (handle::get(job.cast_const())?, out(message, "message")?) };
        *message = std::ptr::null_mut();
        let mut state = lock(state)?;
        let found = state.job()?.output(edge, number).map(|bytes| (bytes.as_mut_ptr(), bytes.len()));
        let (start, bytes) = found.map_err(|error| state.named(edge, error))?;
        *message = start.cast();
        // SAFETY: the caller promises that `length` can be written unless it is null.
        if let Some(length) = unsafe { length.as_mut() } {
            *length = bytes;
        }
        Ok(())
    })
}

/// Sets the length of a message that goes over `edge`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_job_truncate(
    job: *mut laxity_job,
    edge: usize,
    number: u32,
    length: usize,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the node is not released meanwhile.
        let mut state = lock(unsafe { handle::get(job.cast_const()) }?)?;
        let done = state.job()?.messages().1.truncate(edge, number, length);
        done.map_err(|error| state.named(edge, error))
    })
}

/// Swaps message `input_number` of those that came over the edge `input` with message `output_number` of those that go
/// over the edge `output`, each with its length, without a copy: the message that came is the one that goes. Both edges
/// are of one group of laxity_spec_swapping.
///
/// The pointers to the two messages are swapped, too: the pointer to the input now points to the output, and may be
/// written to. If the job is killed before it completes, it is begun again with the message where it came from, and a
/// change in it may be incomplete: see laxity_job_is_resumed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_job_swap(
    job: *mut laxity_job,
    input: usize,
    input_number: u32,
    output: usize,
    output_number: u32,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the node is not released meanwhile.
        let mut state = lock(unsafe { handle::get(job.cast_const()) }?)?;
        let done = state.job()?.swap((input, input_number), (output, output_number));
        done.map_err(|error| state.named(input, error))
    })
}

/// Completes a job: its inputs are consumed, and its outputs and tokens reach its consumers, all at once. Pointers to
/// its messages are invalid from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_job_complete(job: *mut laxity_job) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the node is not released meanwhile.
        let mut state = lock(unsafe { handle::get(job.cast_const()) }?)?;
        let job = state.job.take().ok_or_else(|| CallError::NoJob { node: state.name.clone() })?;
        job.complete();
        Ok(())
    })
}
