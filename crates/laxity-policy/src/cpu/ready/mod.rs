//! Ready queues: the three data structures of paper 002 (section 3, R1-R3) behind one interface, interchangeable.

mod binomial;
mod choice;
mod forest;
mod hierarchical;
mod hunt;

pub use binomial::BinomialHeap;
pub use forest::{Forest, Nodes};
pub use hierarchical::HierarchicalQueue;
pub use hunt::HuntHeap;

use laxity_model::TaskId;

use super::Priority;

/// Ready jobs that are not linked to a CPU, at most one a task, most urgent first.
///
/// A queue of `n` tasks is created with room for all of them; no operation allocates.
pub trait ReadyQueue {
    /// An empty queue for tasks `0..tasks`, used from `cpus` CPUs.
    fn with_capacity(tasks: usize, cpus: usize) -> Self;

    /// Adds the job of `priority.task`, on behalf of `cpu` (its index within the cluster; only a hierarchical queue
    /// cares). The task must not be queued.
    fn insert(&mut self, cpu: usize, priority: Priority);

    /// Adds a batch of jobs that were released together. None of their tasks may be queued. `batch` is left empty.
    fn merge(&mut self, cpu: usize, batch: &mut Vec<Priority>);

    /// The most urgent job.
    fn peek(&self) -> Option<Priority>;

    /// Removes the most urgent job.
    fn pop(&mut self) -> Option<Priority>;

    /// Removes the job of `task`; `None` if it is not queued.
    fn remove(&mut self, task: TaskId) -> Option<Priority>;

    /// Number of queued jobs.
    fn len(&self) -> usize;

    /// Whether no job is queued.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
