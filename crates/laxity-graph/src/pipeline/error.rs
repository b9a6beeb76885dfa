//! Why a pipeline cannot be.

use std::fmt;

use crate::spec::{NAME_MAX, SpecError};

/// Why there is no graph of a [`Pipeline`](crate::Pipeline).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PipelineError {
    /// An object's name is empty or longer than [`NAME_MAX`] bytes.
    ObjectName {
        /// The name.
        name: String,
    },
    /// Two objects have one name.
    DuplicateObject {
        /// The name.
        object: String,
    },
    /// An object of 0 bytes.
    NoBytes {
        /// The object.
        object: String,
    },
    /// An initial value that is too long to describe.
    LongInitial {
        /// The delay.
        object: String,
        /// Its length.
        bytes: usize,
    },
    /// A node uses an object that is not declared.
    UnknownObject {
        /// The node.
        node: String,
        /// The object.
        object: String,
    },
    /// An edge names a node that is not declared.
    UnknownNode {
        /// The producer.
        from: String,
        /// The consumer.
        to: String,
        /// Which of them.
        node: String,
    },
    /// A node reads further back than the object, or delay, goes.
    TooLongAgo {
        /// The node.
        node: String,
        /// The object.
        object: String,
        /// How many jobs ago.
        ago: u32,
        /// The most.
        depth: u32,
    },
    /// A node changes a delay, which only its writer may.
    DelayChanged {
        /// The node.
        node: String,
        /// The delay.
        object: String,
    },
    /// A node uses an object in two ways in the same job.
    UsedTwice {
        /// The node.
        node: String,
        /// The object.
        object: String,
    },
    /// A node reads or changes what nobody writes.
    NoWriter {
        /// The node.
        node: String,
        /// The object.
        object: String,
    },
    /// Two nodes write one object.
    TwoWriters {
        /// The object.
        object: String,
        /// The nodes.
        nodes: (String, String),
    },
    /// Nobody uses an object.
    Unused {
        /// The object.
        object: String,
    },
    /// Nodes wait for each other in every job.
    Cycle {
        /// Who waits for whom, once around.
        links: Vec<Link>,
    },
    /// What was derived is no graph that can be carried out.
    Spec(SpecError),
}

/// That a job of one node waits for the job of another that has the same index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The node that is waited for.
    pub from: String,
    /// The node that waits.
    pub to: String,
    /// The object because of which it does; none for an edge that was declared.
    pub object: Option<String>,
}

impl fmt::Display for PipelineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PipelineError::ObjectName { name } => {
                write!(f, "an object's name has {} bytes; use 1 to {NAME_MAX}", name.len())
            }
            PipelineError::DuplicateObject { object } => write!(f, "two objects are called {object}; rename one"),
            PipelineError::NoBytes { object } => {
                write!(f, "object {object}: 0 bytes; say how many, or use an edge where only the order matters")
            }
            PipelineError::LongInitial { object, bytes } => {
                write!(f, "object {object}: an initial value of {bytes} bytes exceeds {}; start from zeros", u32::MAX)
            }
            PipelineError::UnknownObject { node, object } => {
                write!(f, "node {node}: there is no object {object}; declare it, names match exactly")
            }
            PipelineError::UnknownNode { from, to, node } => {
                write!(f, "edge {from} -> {to}: there is no node {node}; declare it, names match exactly")
            }
            PipelineError::TooLongAgo { node, object, ago, depth: 0 } => write!(
                f,
                "node {node}: reads object {object} of {ago} jobs ago, but it is no delay; declare it as one of depth \
                 {ago}"
            ),
            PipelineError::TooLongAgo { node, object, ago, depth } => write!(
                f,
                "node {node}: reads object {object} of {ago} jobs ago, but its depth is {depth}; declare it with \
                 {ago}, or read what is there"
            ),
            PipelineError::DelayChanged { node, object } => write!(
                f,
                "node {node}: changes object {object}, a delay, whose past others read; change an object, and copy it \
                 to the delay when it is final"
            ),
            PipelineError::UsedTwice { node, object } => write!(
                f,
                "node {node}: uses object {object} in two ways in the same job; to read and write it, use one inout"
            ),
            PipelineError::NoWriter { node, object } => write!(
                f,
                "node {node}: uses object {object}, which no node writes; make it the output of the node that goes \
                 first"
            ),
            PipelineError::TwoWriters { object, nodes: (one, other) } => write!(
                f,
                "object {object}: nodes {one} and {other} both write it, in no order; make it inout for the later \
                 one, or give each its own object"
            ),
            PipelineError::Unused { object } => write!(f, "object {object}: no node uses it; remove it"),
            PipelineError::Cycle { links } => {
                f.write_str("these nodes wait for each other in every job: ")?;
                for (index, link) in links.iter().enumerate() {
                    let separator = if index == 0 { "" } else { ", " };
                    match &link.object {
                        Some(object) => write!(f, "{separator}{} -> {} (object {object})", link.from, link.to)?,
                        None => write!(f, "{separator}{} -> {} (declared edge)", link.from, link.to)?,
                    }
                }
                f.write_str("; read one of the objects as a delay, from an earlier job, or declare in another order")
            }
            PipelineError::Spec(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for PipelineError {}
