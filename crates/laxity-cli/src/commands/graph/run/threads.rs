//! A graph carried out by threads of this process, one a node.

use laxity_graph::Graph;
use laxity_model::Instant;
use laxity_sys::journal::Journal;

use super::crew::Crew;
use super::orders::Orders;
use super::worker::Worker;

/// Threads of this process, one a node.
#[derive(Debug)]
pub struct Threads {
    graph: Graph,
    /// Those that are not over.
    workers: Vec<Option<Worker>>,
    losses: Vec<u64>,
}

impl Threads {
    /// Starts a thread for each node of `graph`, which waits for the begin.
    ///
    /// # Errors
    /// Which node cannot be carried out, and why.
    pub fn start(graph: &Graph, orders: &[Orders], journals: Vec<Journal>) -> Result<Threads, String> {
        let nodes = &graph.spec().graph().nodes;
        let mut threads = Threads { graph: graph.clone(), workers: Vec::new(), losses: vec![0; nodes.len()] };
        for (node, (orders, journal)) in orders.iter().zip(journals).enumerate() {
            threads.workers.push(Some(Worker::start(graph, node, orders.clone(), journal)?));
        }
        for (worker, node) in threads.workers.iter().flatten().zip(nodes) {
            worker.ready().map_err(|error| format!("node {}: {error}", node.name))?;
        }
        Ok(threads)
    }
}

impl Crew for Threads {
    fn begin(&mut self, start: Instant) {
        self.workers.iter().flatten().for_each(|worker| worker.begin(start));
    }

    fn look_after(&mut self, tell: &mut dyn FnMut(String)) -> bool {
        for (node, place) in self.workers.iter_mut().enumerate() {
            let Some(worker) = place.take_if(|worker| !worker.is_at_work()) else { continue };
            if let Err(error) = worker.join() {
                self.losses[node] += 1;
                self.graph.terminate(node);
                tell(format!("node {}: {error}; the graph ends", self.graph.spec().graph().nodes[node].name));
            }
        }
        self.workers.iter().any(Option::is_some)
    }

    fn stop(&mut self) {
        self.workers.iter().flatten().for_each(Worker::stop);
    }

    fn losses(&self) -> &[u64] {
        &self.losses
    }

    fn is_broken(&self) -> bool {
        self.losses.iter().any(|&losses| losses > 0)
    }
}

impl Drop for Threads {
    /// No thread outlives the run, also if that cannot begin: as long as one is there, the graph is.
    fn drop(&mut self) {
        self.stop();
        for worker in self.workers.iter_mut().filter_map(Option::take) {
            let _ = worker.join();
        }
    }
}
