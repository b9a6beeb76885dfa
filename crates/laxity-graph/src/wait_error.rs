//! Why there is no job.

use std::fmt;

/// Why there is no job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitError {
    /// The time is over.
    TimedOut {
        /// The node that waits.
        node: String,
        /// Producer and consumer of an edge, if all that the job waits for is a message that Linux has taken and not
        /// delivered.
        in_flight: Option<(String, String)>,
    },
    /// A node died that this one waits for, or let go in the middle of a job. Said once for each loss: whoever waits
    /// again waits for the node to be claimed again, and to go on.
    Lost {
        /// The node that was lost.
        node: String,
        /// Producer and consumer of the edge.
        edge: (String, String),
        /// Its process.
        pid: u32,
    },
    /// A node ended that this one waits for, and all it produced is used; or this one was ended from outside.
    Terminated {
        /// The node that ended.
        node: String,
        /// Producer and consumer of the edge, unless it is this very node that was ended.
        edge: Option<(String, String)>,
    },
    /// Linux does not connect this node to one that listens for its messages. One may wait again.
    Unreachable {
        /// The node that listens.
        node: String,
        /// Producer and consumer of the edge.
        edge: (String, String),
        /// Why not: Linux's number of the error.
        code: i32,
    },
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WaitError::TimedOut { node, in_flight: None } => {
                write!(f, "node {node}: no job in time; wait again, or longer")
            }
            WaitError::TimedOut { node, in_flight: Some((from, to)) } => write!(
                f,
                "node {node}: no job in time, as Linux has not delivered a message of edge {from} -> {to} that was sent; \
                 wait again, or longer"
            ),
            WaitError::Lost { node, edge: (from, to), pid } => write!(
                f,
                "node {node} of edge {from} -> {to} was lost by process {pid}; claim it again and wait again, or end"
            ),
            WaitError::Terminated { node, edge: Some((from, to)) } => {
                write!(f, "node {node} of edge {from} -> {to} has ended and nothing is left; end, too")
            }
            WaitError::Unreachable { node, edge: (from, to), code } => {
                let error = std::io::Error::from_raw_os_error(*code);
                write!(f, "edge {from} -> {to}: node {node} listens but cannot be connected to: {error}")
            }
            WaitError::Terminated { node, edge: None } => write!(f, "node {node} was ended; stop using it"),
        }
    }
}

impl std::error::Error for WaitError {}
