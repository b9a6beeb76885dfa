//! The errors that only this interface has: arguments, handles and calls that Rust's types rule out.

use std::io;
use std::path::PathBuf;

use ::laxity_graph::MessageError;
use laxity_model::{Details, ErrorDetails};
use thiserror::Error;

use crate::result::laxity_result::{self, *};

/// Why this interface refuses a call.
#[derive(Debug, Error)]
pub(crate) enum CallError {
    #[error("{argument} is NULL; pass one")]
    Null { argument: &'static str },
    #[error("the pointer is no {expected}, or one that was released; check which handle is passed")]
    Handle { expected: &'static str },
    #[error("{argument} is not UTF-8; encode it so")]
    Text { argument: &'static str },
    #[error("{what}; {way_out}")]
    Busy { what: &'static str, way_out: &'static str },
    #[error("this process was forked from the one that made the {handle}, which alone uses it; make one here")]
    Forked { handle: &'static str },
    #[error("a kernel of the run cannot {verb}: it would wait for itself; do so on another thread, or return")]
    Inside { verb: &'static str },
    #[error("{argument} has {count} values, more than fit into memory: at most {most}; check the number")]
    TooMany { argument: &'static str, count: usize, most: usize },
    #[error("{argument} is not aligned to {alignment} bytes; pass an address of its type")]
    Misaligned { argument: &'static str, alignment: usize },
    #[error("the graph has no node {name}; names match exactly")]
    NoNode { name: String },
    #[error("the graph has no edge {from} -> {to}; names match exactly")]
    NoEdge { from: String, to: String },
    #[error("the graph has {edges} edges, numbered from 0; there is no edge {edge}")]
    NoPosition { edge: usize, edges: usize },
    #[error("node {node}: no job is begun, or it is complete; wait for the next")]
    NoJob { node: String },
    #[error("node {node}: job {job} is begun and not complete; complete it before the next wait")]
    Incomplete { node: String, job: u64 },
    #[error("an edge's channel is {channel}; use one of enum laxity_channel")]
    NoChannel { channel: u32 },
    #[error("{address:?} is no address; write one like 127.0.0.1:4000 or [::1]:4000, with port 0 for any")]
    Address { address: String },
    /// Not one of the values of the enum `of`.
    #[error("{argument} is {value}; use one of {of}")]
    Value { argument: &'static str, value: u32, of: &'static str },
    #[error("there is no GPU {gpu}; number them from 0, or write -1 for any")]
    Gpu { gpu: i32 },
    #[error("cannot write {}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("cannot make a descriptor to poll: {0}")]
    Descriptor(io::Error),
    /// A parameter that neither reads nor writes, or writes into the past.
    #[error(
        "node {node}: its parameter for object {object} neither reads nor writes, or writes into the past; set reads or \
         writes, and ago for an input only"
    )]
    Parameter { node: String, object: String },
    /// An addition to a description that a pipeline derived.
    #[error("the description of graph {name} was built by laxity_pipeline_build; add nodes and edges to the pipeline")]
    Derived { name: String },
    /// A conditional write that came too late.
    #[error("user data has version {found} and not {expected}; read it again, and write then")]
    Changed { expected: u64, found: u64 },
    /// The edge of a pipeline asks for more than one token a job.
    #[error(
        "edge {from} -> {to}: edges of a pipeline hand over one token a job, and start with none; leave the numbers of \
         tokens 0"
    )]
    Tokens { from: String, to: String },
    /// `error` with the names that a C programmer knows.
    #[error("node {node}{}: {error}", on(.edge))]
    Message { node: String, edge: Option<(String, String)>, error: MessageError },
    #[error("the arbitration is {number}; use one of enum laxity_arbitration")]
    NoArbitration { number: u32 },
    #[error("the releases are {number}; use one of enum laxity_kernel_releases")]
    NoReleases { number: u32 },
    /// Not one of enum laxity_engine, or one that copies nothing.
    #[error("the engine is {number}; use one of enum laxity_engine, for chunks one that copies")]
    NoEngine { number: u32 },
    /// A handle of another thread.
    #[error("the handle belongs to another thread; each thread registers, or becomes a task, by itself")]
    Thread,
    #[error("the client holds no token; call laxity_gpu_token first")]
    NoToken,
    /// A call out of its order.
    #[error("{what}; {way_out}")]
    Order { what: &'static str, way_out: &'static str },
    /// A change that is only possible between jobs.
    #[error("the client holds a token; change its priority between jobs")]
    HasToken,
    #[error("node {node}: the graph has no object {object}; pass the number that one was given when it was added")]
    NoObject { node: String, object: u32 },
    /// The number of an object, but not of this graph's.
    #[error(
        "node {node}: object {object} is one of another graph; make it an object of this one ({})",
        ::laxity_vx::Status::InvalidScope
    )]
    Scope { node: String, object: u32 },
    #[error("the node has no parameter that is object {object}; declare that it reads or writes it")]
    Undeclared { object: u32 },
    #[error("the graph has not ended in time; wait again, or longer")]
    NotEnded,
    #[error("cannot read which CPUs this thread may use: {0}; name them")]
    Cpus(io::Error),
    /// A workload file that is wrong, or cannot be run here.
    #[error("{text}")]
    Workload { text: String },
    /// No task of this name or number.
    #[error("{text}")]
    NoTask { text: String },
    /// The user's code failed.
    #[error("{text}")]
    Code { text: String },
    /// A panic.
    #[error("a fault in Laxity: {text}; please report it")]
    Internal { text: String },
}

fn on(edge: &Option<(String, String)>) -> String {
    edge.as_ref().map_or_else(String::new, |(from, to)| format!(", edge {from} -> {to}"))
}

impl CallError {
    pub fn result(&self) -> laxity_result {
        match self {
            CallError::Null { .. } => LAXITY_ERROR_NULL,
            CallError::Handle { .. } => LAXITY_ERROR_HANDLE,
            CallError::Text { .. } => LAXITY_ERROR_TEXT,
            CallError::Busy { .. } => LAXITY_ERROR_BUSY,
            CallError::Forked { .. } => LAXITY_ERROR_FORKED,
            CallError::Inside { .. } => LAXITY_ERROR_INSIDE,
            CallError::Value { .. }
            | CallError::Gpu { .. }
            | CallError::TooMany { .. }
            | CallError::Misaligned { .. } => LAXITY_ERROR_VALUE,
            CallError::NoNode { .. } => LAXITY_ERROR_NO_NODE,
            CallError::NoEdge { .. } | CallError::NoPosition { .. } => LAXITY_ERROR_NO_EDGE,
            CallError::NoJob { .. } => LAXITY_ERROR_NO_JOB,
            CallError::Incomplete { .. } => LAXITY_ERROR_INCOMPLETE,
            CallError::NoChannel { .. }
            | CallError::Address { .. }
            | CallError::Parameter { .. }
            | CallError::Derived { .. }
            | CallError::Tokens { .. } => LAXITY_ERROR_SPEC,
            CallError::File { .. } => LAXITY_ERROR_FILE,
            CallError::Descriptor(_) | CallError::Cpus(_) => LAXITY_ERROR_SYSTEM,
            CallError::Changed { .. } => LAXITY_CHANGED,
            CallError::Message { error, .. } => error.code().into(),
            CallError::NoArbitration { .. } | CallError::NoReleases { .. } => LAXITY_ERROR_CONFIG,
            CallError::NoEngine { .. } => LAXITY_ERROR_NO_ENGINE,
            CallError::Thread => LAXITY_ERROR_THREAD,
            CallError::NoToken => LAXITY_ERROR_NO_TOKEN,
            CallError::HasToken | CallError::Order { .. } => LAXITY_ERROR_ORDER,
            CallError::NoObject { .. } | CallError::Scope { .. } => LAXITY_ERROR_NO_OBJECT,
            CallError::Undeclared { .. } => LAXITY_ERROR_ACCESS,
            CallError::Workload { .. } => LAXITY_ERROR_WORKLOAD,
            CallError::NoTask { .. } => LAXITY_ERROR_NO_TASK,
            CallError::Code { .. } => LAXITY_ERROR_CODE,
            CallError::NotEnded => LAXITY_TIMED_OUT,
            CallError::Internal { .. } => LAXITY_ERROR_INTERNAL,
        }
    }

    pub fn details(&self) -> Details<'_> {
        match self {
            CallError::NoNode { name: node }
            | CallError::NoJob { node }
            | CallError::Incomplete { node, .. }
            | CallError::Parameter { node, .. }
            | CallError::NoObject { node, .. }
            | CallError::Scope { node, .. } => Details::node(node),
            CallError::NoEdge { from, to } | CallError::Tokens { from, to } => Details::edge(from, to),
            CallError::Message { node, edge, .. } => Details::node(node).on(edge.as_ref()),
            _ => Details::default(),
        }
    }
}
