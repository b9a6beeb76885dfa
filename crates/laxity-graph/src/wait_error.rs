//! Why there is no job.

use std::io;

/// Why there is no job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// The time is over.
    #[error("node {node}: no job in time{}; wait again, or longer", undelivered(in_flight.as_ref()))]
    TimedOut {
        /// The node that waits.
        node: String,
        /// Producer and consumer of an edge, if all that the job waits for is a message that Linux has taken and not
        /// delivered.
        in_flight: Option<(String, String)>,
    },
    /// A node died that this one waits for, or was released in the middle of a job. Said once for each loss: the next
    /// wait is for the node to be claimed again, and to go on.
    #[error("node {node} of edge {} -> {} was lost by process {pid}; claim it again and wait again, or end", edge.0, edge.1)]
    Lost {
        /// The node that was lost.
        node: String,
        /// Producer and consumer of the edge.
        edge: (String, String),
        /// Its process.
        pid: u32,
    },
    /// A node ended that this one waits for, and all it produced is used; or this one was ended from outside.
    #[error("node {node} {}", end(edge.as_ref()))]
    Terminated {
        /// The node that ended.
        node: String,
        /// Producer and consumer of the edge, unless it is this very node that was ended.
        edge: Option<(String, String)>,
    },
    /// Linux does not connect this node to one that listens for its messages. One may wait again.
    #[error("edge {} -> {}: node {node} listens but cannot be connected to: {}",
        edge.0, edge.1, io::Error::from_raw_os_error(*code)
    )]
    Unreachable {
        /// The node that listens.
        node: String,
        /// Producer and consumer of the edge.
        edge: (String, String),
        /// Why not: Linux's number of the error.
        code: i32,
    },
}

fn undelivered(edge: Option<&(String, String)>) -> String {
    let because = |(from, to): &(String, String)| {
        format!(", as Linux has not delivered a message of edge {from} -> {to} that was sent")
    };
    edge.map(because).unwrap_or_default()
}

fn end(edge: Option<&(String, String)>) -> String {
    match edge {
        Some((from, to)) => format!("of edge {from} -> {to} has ended and nothing is left; end, too"),
        None => "was ended; stop using it".to_owned(),
    }
}
