//! How everything is ended, wherever it waits.

use laxity_graph::Graph;

use crate::control::Control;

/// Shared by all workers and who looks after them.
#[derive(Debug, Default)]
pub(crate) struct Halt {
    /// For workers that compute, sleep, or wait for their release.
    pub control: Control,
    /// For workers that wait for tokens.
    pub graphs: Vec<Graph>,
}

impl Halt {
    /// Ends all jobs where they are. Who waits for a lock gets it, one after the other, and ends then.
    pub fn stop(&self) {
        self.control.stop();
        for graph in &self.graphs {
            (0..graph.spec().plan().nodes().len()).for_each(|node| graph.terminate(node));
        }
    }

    /// Whether everything is to end.
    pub fn is_stopped(&self) -> bool {
        self.control.is_stopped()
    }
}
