//! How workers are told to end, whatever they are doing.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use laxity_graph::Graph;
use laxity_model::Instant;
use laxity_sys::process::forks;
use laxity_sys::{clock, futex};

/// Tells all workers of a run to end. It never takes that back.
///
/// ```text
///         drain                stop
/// running ------> draining -----------> stopped
///    '------------------ stop -------------^
/// ```
#[derive(Debug)]
pub struct StopSignal {
    /// One of the constants below. Workers sleep on it.
    state: AtomicU32,
    /// When they were first told to end where they are; [`Instant::NEVER`] until then.
    stopped_at: AtomicU64,
    /// [`forks`] of the workers' process. Nodes are in shared memory: a child made by `fork` does not end those of its parent.
    forks: u32,
    /// Nodes of graphs that end, too: a worker that waits for tokens learns it from its graph.
    nodes: Vec<(Graph, Vec<usize>)>,
}

const RUNNING: u32 = 0;
/// Sources release no more jobs.
const DRAINING: u32 = 1;
/// Workers end in the middle of their jobs.
const STOPPED: u32 = 2;

impl Default for StopSignal {
    /// For workers of tasks without a graph.
    fn default() -> StopSignal {
        StopSignal::new(Vec::new())
    }
}

impl StopSignal {
    fn new(nodes: Vec<(Graph, Vec<usize>)>) -> StopSignal {
        let stopped_at = AtomicU64::new(Instant::NEVER.0);
        StopSignal { state: AtomicU32::new(RUNNING), stopped_at, forks: forks(), nodes }
    }

    /// For the workers of all nodes of `graphs`, and of tasks without a graph.
    pub fn of_graphs(graphs: &[Graph]) -> StopSignal {
        let all = |graph: &Graph| (graph.clone(), (0..graph.spec().plan().nodes().len()).collect());
        StopSignal::new(graphs.iter().map(all).collect())
    }

    /// For the worker of one node.
    pub fn of_node(graph: &Graph, node: usize) -> StopSignal {
        StopSignal::new(vec![(graph.clone(), vec![node])])
    }

    /// Releases no more jobs of sources. Jobs that were released are executed, and all that follow from their tokens. Before
    /// the first release there are none, and all workers end. In a child made by `fork` nothing happens.
    pub fn drain(&self) {
        if forks() != self.forks {
            return;
        }
        // First, so that no source begins a job once a worker knows that it drains: see `sleep_until_start`.
        for (graph, nodes) in &self.nodes {
            let sources = nodes.iter().filter(|&&node| graph.spec().plan().nodes()[node].is_source);
            sources.for_each(|&node| graph.terminate(node));
        }
        let _ = self.state.compare_exchange(RUNNING, DRAINING, Ordering::SeqCst, Ordering::SeqCst);
        futex::wake_all(&self.state);
    }

    /// Ends all jobs where they are. Workers that wait for a lock get it, one after the other, and end then. In a child made
    /// by `fork` nothing happens.
    pub fn stop(&self) {
        if forks() != self.forks {
            return;
        }
        // Before any of them can know.
        let _ = self.stopped_at.compare_exchange(Instant::NEVER.0, clock::now().0, Ordering::SeqCst, Ordering::SeqCst);
        self.state.store(STOPPED, Ordering::SeqCst);
        futex::wake_all(&self.state);
        for (graph, nodes) in &self.nodes {
            nodes.iter().for_each(|&node| graph.terminate(node));
        }
    }

    /// Whether jobs end where they are.
    pub fn is_stopped(&self) -> bool {
        self.state.load(Ordering::Relaxed) == STOPPED
    }

    /// When jobs were told to end where they are, if they were.
    pub fn stopped_at(&self) -> Option<Instant> {
        Some(Instant(self.stopped_at.load(Ordering::SeqCst))).filter(|&at| at != Instant::NEVER)
    }

    /// Sleeps until `instant`, in a job. Answers whether that came before the worker was stopped.
    ///
    /// On a futex and not by `clock_nanosleep`: it has the same absolute timer, and another thread can end it.
    pub fn suspend_until(&self, instant: Instant) -> bool {
        self.sleep_below(STOPPED, instant)
    }

    /// Sleeps until `start`, time 0. Answers whether there may be jobs then: not if it drains before, as no source has released
    /// one. If it drains later, sources may have.
    pub fn sleep_until_start(&self, start: Instant) -> bool {
        self.sleep_below(DRAINING, start) || !self.is_stopped() && clock::now() >= start
    }

    /// Sleeps until the release of a source's job. Answers whether there is to be one.
    pub fn sleep_until_release(&self, release: Instant) -> bool {
        self.sleep_below(DRAINING, release)
    }

    /// Sleeps until `instant`, or until the state is `end` or a later one.
    fn sleep_below(&self, end: u32, instant: Instant) -> bool {
        loop {
            let state = self.state.load(Ordering::SeqCst);
            if state >= end {
                return false;
            }
            if futex::wait(&self.state, state, instant) == futex::Ended::TimedOut {
                return true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drained_run_releases_nothing_and_lets_jobs_sleep() {
        let stop = StopSignal::default();
        assert!(stop.sleep_until_release(Instant::ZERO), "a release in the past is no wait");
        stop.drain();
        assert!(!stop.sleep_until_release(Instant::ZERO));
        assert!(stop.suspend_until(Instant::ZERO) && !stop.is_stopped());
    }

    #[test]
    fn a_run_that_is_drained_before_its_start_has_no_jobs() {
        let stop = StopSignal::default();
        assert!(stop.sleep_until_start(Instant::ZERO));
        stop.drain();
        assert!(stop.sleep_until_start(Instant::ZERO), "a source may have released a job");
        assert!(!stop.sleep_until_start(Instant::NEVER));
        stop.stop();
        assert!(!stop.sleep_until_start(Instant::ZERO));
    }

    #[test]
    fn a_stopped_run_stays_stopped() {
        let stop = StopSignal::default();
        stop.stop();
        stop.drain();
        assert!(stop.is_stopped() && !stop.suspend_until(Instant::NEVER));
    }
}
