//! Where graphs have their memory.

use std::path::PathBuf;

use laxity_graph::Registry;

use crate::graph::Graph;

/// Where graphs have their memory and their names, by which `laxity graph watch` and others find them while they run.
#[derive(Clone, Debug, Default)]
pub struct Context {
    registry: Registry,
}

impl Context {
    /// Graphs in `/dev/shm`.
    pub fn new() -> Context {
        Context::default()
    }

    /// Graphs in `directory`, which exists.
    pub fn at(directory: impl Into<PathBuf>) -> Context {
        Context { registry: Registry::at(directory) }
    }

    /// An empty graph. While it runs no other one of this name can.
    pub fn graph(&self, name: &str) -> Graph {
        Graph::new(self.registry.clone(), name)
    }
}
