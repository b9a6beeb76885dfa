//! R3: a queue of queues.

use laxity_model::TaskId;

use super::super::Priority;
use super::{Forest, Nodes, ReadyQueue};

/// The hierarchical queue of paper 002 (section 3, R3 and Fig. 2): a binomial heap per CPU, below a global binomial heap
/// that holds the head of each local one and nothing else.
///
/// ```text
///   heads           T3        T0                  the most urgent job of all is the first head
///                   |         |
///   local queues    cpu 0     cpu 1     cpu 2
///                   T3 T5 T1  T0 T4     (empty)
/// ```
///
/// Insertion and merge work on the local queue of the CPU they happen on, and touch the global one only if the local
/// head changes. Removal of the most urgent job works on whichever local queue it is in.
#[derive(Clone, Debug)]
pub struct HierarchicalQueue {
    /// The nodes of all local queues.
    nodes: Nodes,
    local_queues: Vec<Forest>,
    /// In which local queue a task is; stale while it is in none.
    local_queue_of: Vec<u32>,
    head_nodes: Nodes,
    heads: Forest,
    len: usize,
}

impl HierarchicalQueue {
    /// Brings the global queue up to date after the local queue of `cpu` changed, whose head was `before`.
    fn update_head(&mut self, cpu: usize, before: Option<Priority>) {
        let after = self.local_queues[cpu].peek(&self.nodes);
        if after == before {
            return;
        }
        if let Some(head) = before {
            self.heads.remove(&mut self.head_nodes, head.task);
        }
        if let Some(head) = after {
            self.heads.insert(&mut self.head_nodes, head);
        }
    }

    /// Panics if the structure is broken. For tests and fuzzers; O(n log n).
    pub fn assert_invariants(&self) {
        let mut len = 0;
        let mut expected_heads = Vec::new();
        for (cpu, queue) in self.local_queues.iter().enumerate() {
            let tasks = queue.assert_invariants(&self.nodes);
            len += tasks.len();
            for task in tasks {
                assert_eq!(self.local_queue_of[task.index()] as usize, cpu, "{task} is in the queue it is filed under");
            }
            expected_heads.extend(queue.peek(&self.nodes).map(|head| head.task));
        }
        expected_heads.sort_unstable();
        assert_eq!(self.len, len, "every job is in one local queue");
        let heads = self.heads.assert_invariants(&self.head_nodes);
        assert_eq!(heads, expected_heads, "the global queue holds exactly the heads of the local queues");
    }
}

impl ReadyQueue for HierarchicalQueue {
    fn with_capacity(tasks: usize, cpus: usize) -> Self {
        HierarchicalQueue {
            nodes: Nodes::with_capacity(tasks),
            local_queues: vec![Forest::new(); cpus],
            local_queue_of: vec![0; tasks],
            head_nodes: Nodes::with_capacity(tasks),
            heads: Forest::new(),
            len: 0,
        }
    }

    fn insert(&mut self, cpu: usize, priority: Priority) {
        let before = self.local_queues[cpu].peek(&self.nodes);
        self.local_queues[cpu].insert(&mut self.nodes, priority);
        self.local_queue_of[priority.task.index()] = cpu as u32;
        self.len += 1;
        self.update_head(cpu, before);
    }

    fn merge(&mut self, cpu: usize, batch: &mut Vec<Priority>) {
        let before = self.local_queues[cpu].peek(&self.nodes);
        for priority in batch.iter() {
            self.local_queue_of[priority.task.index()] = cpu as u32;
        }
        self.len += batch.len();
        self.local_queues[cpu].merge_batch(&mut self.nodes, batch);
        self.update_head(cpu, before);
    }

    fn peek(&self) -> Option<Priority> {
        self.heads.peek(&self.head_nodes)
    }

    fn pop(&mut self) -> Option<Priority> {
        let first = self.heads.pop(&mut self.head_nodes)?;
        let cpu = self.local_queue_of[first.task.index()] as usize;
        let popped = self.local_queues[cpu].pop(&mut self.nodes);
        assert_eq!(popped, Some(first), "the global queue holds the heads of the local queues");
        self.len -= 1;
        // The old head left the global queue above, so only its successor is missing there.
        self.update_head(cpu, None);
        Some(first)
    }

    fn remove(&mut self, task: TaskId) -> Option<Priority> {
        if !self.nodes.contains(task) {
            return None;
        }
        let cpu = self.local_queue_of[task.index()] as usize;
        let before = self.local_queues[cpu].peek(&self.nodes);
        let removed = self.local_queues[cpu].remove(&mut self.nodes, task);
        self.len -= 1;
        self.update_head(cpu, before);
        removed
    }

    fn len(&self) -> usize {
        self.len
    }
}
