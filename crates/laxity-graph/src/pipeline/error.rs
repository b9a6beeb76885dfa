//! Why a pipeline cannot be.

use crate::spec::{NAME_MAX, SpecError};

/// Why there is no graph of a [`Pipeline`](crate::Pipeline).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PipelineError {
    /// An object's name is empty or longer than [`NAME_MAX`] bytes.
    #[error("an object's name has {} bytes; use 1 to {NAME_MAX}", name.len())]
    ObjectName {
        /// The name.
        name: String,
    },
    /// Two objects have one name.
    #[error("two objects are called {object}; rename one")]
    DuplicateObject {
        /// The name.
        object: String,
    },
    /// An object of 0 bytes.
    #[error("object {object}: 0 bytes; say how many, or use an edge where only the order matters")]
    NoBytes {
        /// The object.
        object: String,
    },
    /// An initial value that is too long to describe.
    #[error("object {object}: an initial value of {bytes} bytes exceeds {}; start from zeros", u32::MAX)]
    LongInitial {
        /// The delay.
        object: String,
        /// Its length.
        bytes: usize,
    },
    /// A node uses an object that is not declared.
    #[error("node {node}: there is no object {object}; declare it, names match exactly")]
    UnknownObject {
        /// The node.
        node: String,
        /// The object.
        object: String,
    },
    /// An edge names a node that is not declared.
    #[error("edge {from} -> {to}: there is no node {node}; declare it, names match exactly")]
    UnknownNode {
        /// The producer.
        from: String,
        /// The consumer.
        to: String,
        /// Which of them.
        node: String,
    },
    /// A node reads further back than the object, or delay, goes.
    #[error("node {node}: reads object {object} of {ago} jobs ago, but {}", deeper(*ago, *depth))]
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
    #[error(
        "node {node}: changes object {object}, a delay, whose past others read; change an object, and copy it to the \
         delay when it is final"
    )]
    DelayChanged {
        /// The node.
        node: String,
        /// The delay.
        object: String,
    },
    /// A node uses an object in two ways in the same job.
    #[error("node {node}: uses object {object} in two ways in the same job; to read and write it, use one inout")]
    UsedTwice {
        /// The node.
        node: String,
        /// The object.
        object: String,
    },
    /// A node reads or changes what no node writes.
    #[error("node {node}: uses object {object}, which no node writes; make it the output of the node that goes first")]
    NoWriter {
        /// The node.
        node: String,
        /// The object.
        object: String,
    },
    /// Two nodes write one object.
    #[error(
        "object {object}: nodes {} and {} both write it, in no order; make it inout for the later one, or give each its \
         own object",
        nodes.0, nodes.1
    )]
    TwoWriters {
        /// The object.
        object: String,
        /// The nodes.
        nodes: (String, String),
    },
    /// No node uses an object.
    #[error("object {object}: no node uses it; remove it")]
    Unused {
        /// The object.
        object: String,
    },
    /// Nodes wait for each other in every job.
    #[error(
        "these nodes wait for each other in every job: {}; read one of the objects as a delay, from an earlier job, or \
         declare in another order",
        around(links)
    )]
    Cycle {
        /// The waits, once around.
        links: Vec<Link>,
    },
    /// The derived graph cannot be carried out.
    #[error(transparent)]
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

fn deeper(ago: u32, depth: u32) -> String {
    match depth {
        0 => format!("it is no delay; declare it as one of depth {ago}"),
        _ => format!("its depth is {depth}; declare it with {ago}, or read what is there"),
    }
}

fn around(links: &[Link]) -> String {
    let link = |Link { from, to, object }: &Link| match object {
        Some(object) => format!("{from} -> {to} (object {object})"),
        None => format!("{from} -> {to} (declared edge)"),
    };
    links.iter().map(link).collect::<Vec<_>>().join(", ")
}
