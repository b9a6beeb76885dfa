//! R1: one binomial heap, in LITMUS^RT under a coarse lock.

use laxity_model::TaskId;

use super::super::Priority;
use super::{Forest, Nodes, ReadyQueue};

/// The sequential binomial heap of paper 002 (section 3, R1). Jobs that are released together are merged in O(log n);
/// the price of the structure is that every access needs the one lock that protects all of it.
#[derive(Clone, Debug)]
pub struct BinomialHeap {
    nodes: Nodes,
    jobs: Forest,
}

impl BinomialHeap {
    /// Adds a job to a batch that [`merge_heap`](Self::merge_heap) will add to this queue: what paper 002's release queue
    /// does ahead of time for the jobs that share a timer. The task must be neither queued nor in another batch.
    pub fn insert_into_batch(&mut self, batch: &mut Forest, priority: Priority) {
        batch.insert(&mut self.nodes, priority);
    }

    /// Moves the jobs of `batch` into the queue and leaves the batch empty; O(log n).
    pub fn merge_heap(&mut self, batch: &mut Forest) {
        self.jobs.merge(&mut self.nodes, batch);
    }

    /// Panics if the structure is broken. For tests and fuzzers; O(n log n).
    pub fn assert_invariants(&self) {
        self.jobs.assert_invariants(&self.nodes);
    }
}

impl ReadyQueue for BinomialHeap {
    fn with_capacity(tasks: usize, _cpus: usize) -> Self {
        BinomialHeap { nodes: Nodes::with_capacity(tasks), jobs: Forest::new() }
    }

    fn insert(&mut self, _cpu: usize, priority: Priority) {
        self.jobs.insert(&mut self.nodes, priority);
    }

    fn merge(&mut self, _cpu: usize, batch: &mut Vec<Priority>) {
        self.jobs.merge_batch(&mut self.nodes, batch);
    }

    fn peek(&self) -> Option<Priority> {
        self.jobs.peek(&self.nodes)
    }

    fn pop(&mut self) -> Option<Priority> {
        self.jobs.pop(&mut self.nodes)
    }

    fn remove(&mut self, task: TaskId) -> Option<Priority> {
        self.jobs.remove(&mut self.nodes, task)
    }

    fn len(&self) -> usize {
        self.jobs.len()
    }
}
