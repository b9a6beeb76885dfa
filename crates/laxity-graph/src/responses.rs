//! How long the last jobs of a node took.

use laxity_model::Nanos;

use crate::graph::Graph;
use crate::recorder::Found;

impl Graph {
    /// From the release to the completion of the last `jobs` jobs of the node at `node` that it remembers, oldest first; from
    /// the beginning if that was before the release. Nothing if the graph has no recorder. Panics if there is no such
    /// node.
    pub fn response_times(&self, node: usize, jobs: u64) -> Vec<Nanos> {
        let shared = self.shared();
        let completed = shared.completed(node);
        let oldest = completed.saturating_sub(shared.recorded().min(jobs));
        let response = |index| match shared.recorded_job(node, index) {
            Found::Entry(entry) => {
                entry.completed.map(|(completion, _)| completion.saturating_since(entry.release.at.min(entry.began)))
            }
            // It goes on meanwhile.
            Found::NotYet | Found::Overwritten => None,
        };
        (oldest..completed).filter_map(response).collect()
    }
}
