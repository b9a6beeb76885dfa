//! A graph that this process is attached to.

use std::ffi::c_char;

use ::laxity_graph::{Graph, Ownership};

use crate::error::{CallError, Error, answer, laxity_result};
use crate::handle::{self, Handle, out, text};
use crate::node::{ClaimedNode, laxity_node};

/// A graph that this process is attached to. Threads may share it.
pub struct laxity_graph {
    _opaque: (),
}

impl Handle for laxity_graph {
    type Value = Graph;
    const TAG: u64 = u64::from_le_bytes(*b"lax-grap");
    const NAME: &'static str = "graph";
}

/// The ownership of a node.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum laxity_ownership {
    /// No process has claimed it.
    LAXITY_FREE = 0,
    /// A process has claimed it.
    LAXITY_CLAIMED = 1,
    /// Its process died, or released it in the middle of a job.
    LAXITY_NODE_LOST = 2,
}

/// The state of a node.
#[repr(C)]
pub struct laxity_status {
    /// Its ownership.
    ownership: laxity_ownership,
    /// The process that owns it, or 0.
    pid: u32,
    /// Jobs that were begun.
    started: u64,
    /// Jobs that are complete.
    completed: u64,
    /// Whether it has ended.
    has_terminated: bool,
    /// Whether its owner is suspended until tokens, room, or its release come.
    is_waiting: bool,
    /// Whether its owner is waking two consumers or more.
    is_sending: bool,
}

/// Releases a graph. Claimed nodes stay claimed and keep this process attached. The graph ends with the last process
/// that is attached. Sets `*graph` to NULL; does nothing if it is NULL already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_graph_release(graph: *mut *mut laxity_graph) -> laxity_result {
    // SAFETY: the caller promises that the handle is not used any more.
    answer(|| unsafe { handle::take(graph) }.map(drop))
}

/// Claims the node called `name`, or any free one if that is NULL. A node has one owner at a time, of all processes.
/// After the death of an owner the node goes on with the job that was begun and not completed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_graph_claim(
    graph: *const laxity_graph,
    name: *const c_char,
    node: *mut *mut laxity_node,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `node` can be written.
        let node = unsafe { out(node, "node") }?;
        *node = std::ptr::null_mut();
        // SAFETY: the caller promises that the handle is not released meanwhile.
        let graph = unsafe { handle::get(graph) }?;
        let claimed = if name.is_null() {
            graph.claim_any()?
        } else {
            // SAFETY: the caller promises that `name` ends with NUL.
            graph.claim(unsafe { text(name, "name") }?)?
        };
        *node = handle::make(ClaimedNode::new(graph.clone(), claimed));
        Ok(())
    })
}

/// Ends the node called `name` from outside, or every node if it is NULL: the owner's next wait returns
/// LAXITY_TERMINATED, and consumers end when they have used all tokens, those of a job that is begun included.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_graph_terminate(graph: *const laxity_graph, name: *const c_char) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        let graph = unsafe { handle::get(graph) }?;
        if name.is_null() {
            (0..graph.spec().graph().nodes.len()).for_each(|node| graph.terminate(node));
        } else {
            // SAFETY: the caller promises that `name` ends with NUL.
            graph.terminate(position(graph, unsafe { text(name, "name") }?)?);
        }
        Ok(())
    })
}

/// Writes the state of the node called `name`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_graph_status(
    graph: *const laxity_graph,
    name: *const c_char,
    status: *mut laxity_status,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, that `name` ends with NUL, and that
        // `status` can be written.
        let (graph, name, status) = unsafe { (handle::get(graph)?, text(name, "name")?, out(status, "status")?) };
        let now = graph.status(position(graph, name)?);
        let (ownership, pid) = match now.ownership {
            Ownership::Free => (laxity_ownership::LAXITY_FREE, 0),
            Ownership::Claimed { pid } => (laxity_ownership::LAXITY_CLAIMED, pid),
            Ownership::Lost => (laxity_ownership::LAXITY_NODE_LOST, 0),
        };
        *status = laxity_status {
            ownership,
            pid,
            started: now.started,
            completed: now.completed,
            has_terminated: now.has_terminated,
            is_waiting: now.is_waiting,
            is_sending: now.is_sending,
        };
        Ok(())
    })
}

/// The number of the first edge from the node called `from` to that called `to`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_graph_edge(
    graph: *const laxity_graph,
    from: *const c_char,
    to: *const c_char,
    edge: *mut usize,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, that the names end with NUL, and that
        // `edge` can be written.
        let (graph, from, to, edge) =
            unsafe { (handle::get(graph)?, text(from, "from")?, text(to, "to")?, out(edge, "edge")?) };
        let missing = || CallError::NoEdge { from: from.to_owned(), to: to.to_owned() };
        *edge = graph.edge(from, to).ok_or_else(missing)?;
        Ok(())
    })
}

/// Tokens on an edge that no job has taken.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_graph_tokens(
    graph: *const laxity_graph,
    edge: usize,
    tokens: *mut u64,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `tokens` can be written.
        let (graph, tokens) = unsafe { (handle::get(graph)?, out(tokens, "tokens")?) };
        let edges = graph.spec().plan().edges().len();
        if edge >= edges {
            return Err(CallError::NoPosition { edge, edges }.into());
        }
        *tokens = graph.tokens(edge);
        Ok(())
    })
}

/// Bytes of shared memory that the graph takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_graph_memory(graph: *const laxity_graph, bytes: *mut usize) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `bytes` can be written.
        let (graph, bytes) = unsafe { (handle::get(graph)?, out(bytes, "bytes")?) };
        *bytes = graph.memory();
        Ok(())
    })
}

pub(crate) fn position(graph: &Graph, name: &str) -> Result<usize, Error> {
    graph.node(name).ok_or_else(|| CallError::NoNode { name: name.to_owned() }.into())
}
