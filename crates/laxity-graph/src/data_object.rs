//! Memory that the nodes of a graph share, and what they do with it.

use serde::{Deserialize, Serialize};

/// A data object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// Its name, unique among the objects of the graph.
    pub name: String,
    /// Size of one replica.
    pub bytes: usize,
    /// M, for a delay: how many jobs ago can be read. 0 for other objects.
    pub depth: u32,
    /// What a delay contains for the jobs before the first; zeros if empty.
    pub initial: Vec<u8>,
    /// Its uses: by node, then by access.
    pub uses: Vec<Use>,
}

/// That a node uses an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Use {
    /// Position of the node.
    pub node: usize,
    /// What it does.
    pub access: Access,
}

/// How a node uses an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Access {
    /// Reads it.
    Read {
        /// What the job of so many jobs ago left there; 0: of this one.
        ago: u32,
    },
    /// Writes all of it: what is in it before is undetermined.
    Write,
    /// Changes what other nodes left there in the same job.
    Change,
}

impl Object {
    /// Places in memory, of which job j uses place `j mod copies`: N, and for a delay M + N.
    pub fn copies(&self, replicas: u32) -> u64 {
        u64::from(self.depth) + u64::from(replicas)
    }
}
