//! The three ready queues against a sorted set, step by step, with the invariants of their structures.

use std::collections::BTreeSet;

use laxity_model::TaskId;
use laxity_policy::cpu::Priority;
use laxity_policy::cpu::ready::{BinomialHeap, Forest, HierarchicalQueue, HuntHeap, Nodes, ReadyQueue};
use proptest::prelude::*;

/// A queue whose structure can be checked.
trait Checked: ReadyQueue {
    fn assert_invariants(&self);
}

impl Checked for BinomialHeap {
    fn assert_invariants(&self) {
        self.assert_invariants();
    }
}

impl Checked for HuntHeap {
    fn assert_invariants(&self) {
        self.assert_invariants();
    }
}

impl Checked for HierarchicalQueue {
    fn assert_invariants(&self) {
        self.assert_invariants();
    }
}

/// What happens to a queue. Tasks are taken modulo the capacity, CPUs modulo their number.
#[derive(Clone, Debug)]
enum Operation {
    Insert { cpu: usize, task: u32, major: u64 },
    Merge { cpu: usize, jobs: Vec<(u32, u64)> },
    Pop,
    Remove { task: u32 },
}

fn major() -> impl Strategy<Value = u64> {
    // A narrow range for ties, the whole range, and its upper end, where sentinels might lurk.
    prop_oneof![4 => 0..8_u64, 2 => any::<u64>(), 1 => Just(u64::MAX)]
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        6 => (any::<usize>(), any::<u32>(), major())
            .prop_map(|(cpu, task, major)| Operation::Insert { cpu, task, major }),
        2 => (any::<usize>(), prop::collection::vec((any::<u32>(), major()), 0..20))
            .prop_map(|(cpu, jobs)| Operation::Merge { cpu, jobs }),
        4 => Just(Operation::Pop),
        4 => any::<u32>().prop_map(|task| Operation::Remove { task }),
    ]
}

/// The reference: the jobs in order, and which tasks they are of.
#[derive(Default)]
struct SortedSet {
    jobs: BTreeSet<Priority>,
}

impl SortedSet {
    fn of_task(&self, task: TaskId) -> Option<Priority> {
        self.jobs.iter().find(|job| job.task == task).copied()
    }

    /// Adds the job unless its task has one.
    fn insert(&mut self, job: Priority) -> bool {
        self.of_task(job.task).is_none() && self.jobs.insert(job)
    }

    fn remove(&mut self, task: TaskId) -> Option<Priority> {
        let job = self.of_task(task)?;
        self.jobs.take(&job)
    }
}

fn job(task: u32, major: u64, tasks: usize) -> Priority {
    Priority::of(major, TaskId(task % tasks as u32))
}

fn agrees_with_the_sorted_set<Q: Checked>(tasks: usize, cpus: usize, operations: Vec<Operation>) {
    let mut queue = Q::with_capacity(tasks, cpus);
    let mut reference = SortedSet::default();
    for operation in operations {
        match operation {
            Operation::Insert { cpu, task, major } => {
                let job = job(task, major, tasks);
                if reference.insert(job) {
                    queue.insert(cpu % cpus, job);
                }
            }
            Operation::Merge { cpu, jobs } => {
                let jobs = jobs.into_iter().map(|(task, major)| job(task, major, tasks));
                let mut batch: Vec<Priority> = jobs.filter(|&job| reference.insert(job)).collect();
                queue.merge(cpu % cpus, &mut batch);
                assert!(batch.is_empty(), "a merged batch is left empty");
            }
            Operation::Pop => assert_eq!(queue.pop(), reference.jobs.pop_first()),
            Operation::Remove { task } => {
                // One task is beyond the capacity, hence never queued.
                let task = TaskId(task % (tasks + 1) as u32);
                assert_eq!(queue.remove(task), reference.remove(task));
            }
        }
        assert_eq!(queue.peek(), reference.jobs.first().copied());
        assert_eq!(queue.len(), reference.jobs.len());
        assert_eq!(queue.is_empty(), reference.jobs.is_empty());
        queue.assert_invariants();
    }
    while let Some(expected) = reference.jobs.pop_first() {
        assert_eq!(queue.pop(), Some(expected), "what is left comes out in order");
    }
    assert_eq!(queue.pop(), None);
}

proptest! {
    #[test]
    fn a_binomial_heap_agrees_with_a_sorted_set(
        tasks in 1..40_usize, operations in prop::collection::vec(operation(), 0..150),
    ) {
        agrees_with_the_sorted_set::<BinomialHeap>(tasks, 4, operations);
    }

    #[test]
    fn hunts_heap_agrees_with_a_sorted_set(
        tasks in 1..40_usize, operations in prop::collection::vec(operation(), 0..150),
    ) {
        agrees_with_the_sorted_set::<HuntHeap>(tasks, 4, operations);
    }

    #[test]
    fn a_hierarchical_queue_agrees_with_a_sorted_set(
        tasks in 1..40_usize, cpus in 1..9_usize, operations in prop::collection::vec(operation(), 0..150),
    ) {
        agrees_with_the_sorted_set::<HierarchicalQueue>(tasks, cpus, operations);
    }

    /// The same over many tasks, where trees have several levels below the root.
    #[test]
    fn all_three_queues_agree_with_a_sorted_set_at_a_thousand_tasks(
        fill in prop::collection::vec((any::<u32>(), any::<u64>()), 1000),
        operations in prop::collection::vec(operation(), 0..30),
    ) {
        let filled = std::iter::once(Operation::Merge { cpu: 0, jobs: fill }).chain(operations).collect::<Vec<_>>();
        agrees_with_the_sorted_set::<BinomialHeap>(1000, 8, filled.clone());
        agrees_with_the_sorted_set::<HuntHeap>(1000, 8, filled.clone());
        agrees_with_the_sorted_set::<HierarchicalQueue>(1000, 8, filled);
    }

    /// Heaps of any two sizes merge, whichever carries that takes.
    #[test]
    fn a_batch_heap_merges_into_the_queue(
        queued in prop::collection::vec(major(), 0..130), batch in prop::collection::vec(major(), 0..130),
    ) {
        let mut queue = BinomialHeap::with_capacity(queued.len() + batch.len(), 1);
        let mut together = Forest::new();
        let jobs = (0..).map(TaskId).zip(queued.iter().chain(&batch)).map(|(task, &major)| Priority::of(major, task));
        let (first, second): (Vec<Priority>, Vec<Priority>) = jobs.partition(|job| job.task.index() < queued.len());
        // Interleaved in time: the batch is built while the queue is in use.
        for index in 0..first.len().max(second.len()) {
            if let Some(&job) = first.get(index) {
                queue.insert(0, job);
            }
            if let Some(&job) = second.get(index) {
                queue.insert_into_batch(&mut together, job);
            }
        }
        queue.assert_invariants();
        queue.merge_heap(&mut together);
        queue.assert_invariants();
        prop_assert!(together.is_empty());
        prop_assert_eq!(queue.len(), first.len() + second.len());
        let mut expected: Vec<Priority> = first.into_iter().chain(second).collect();
        expected.sort_unstable();
        let popped: Vec<Priority> = std::iter::from_fn(|| queue.pop()).collect();
        prop_assert_eq!(popped, expected);
    }

    /// Removal takes the tree apart around a job; where in the tree the job is must not matter.
    #[test]
    fn any_job_can_be_removed_from_a_binomial_heap(majors in prop::collection::vec(major(), 1..65)) {
        let filled = || {
            let mut queue = BinomialHeap::with_capacity(majors.len(), 1);
            for (task, &major) in (0..).map(TaskId).zip(&majors) {
                queue.insert(0, Priority::of(major, task));
            }
            queue
        };
        for (task, &major) in (0..).map(TaskId).zip(&majors) {
            let mut queue = filled();
            let removed = Priority::of(major, task);
            prop_assert_eq!(queue.remove(removed.task), Some(removed));
            prop_assert_eq!(queue.remove(removed.task), None);
            queue.assert_invariants();
            prop_assert_eq!(queue.len(), majors.len() - 1);
        }
    }
}

/// Paper 002, Fig. 2: local queues of several jobs, above them a global queue of their heads.
#[test]
fn the_next_head_of_a_cpu_is_promoted_when_its_head_leaves() {
    let mut queue = HierarchicalQueue::with_capacity(6, 3);
    let at = |major, task| Priority::of(major, TaskId(task));
    for (cpu, job) in [(0, at(10, 0)), (0, at(20, 1)), (1, at(15, 2)), (1, at(12, 3)), (2, at(30, 4))] {
        queue.insert(cpu, job);
        queue.assert_invariants();
    }
    assert_eq!(queue.pop(), Some(at(10, 0)), "cpu 0 has the most urgent job; its next, 20, takes its place");
    assert_eq!(queue.pop(), Some(at(12, 3)), "cpu 1 promotes 15");
    assert_eq!(queue.remove(TaskId(2)), Some(at(15, 2)), "removing a head promotes too; cpu 1 is empty now");
    queue.assert_invariants();
    queue.merge(1, &mut vec![at(20, 5), at(40, 0)]);
    queue.assert_invariants();
    assert_eq!(queue.pop(), Some(at(20, 1)), "of equal priorities on two CPUs the smaller task goes first");
    assert_eq!(queue.pop(), Some(at(20, 5)));
    assert_eq!(queue.pop(), Some(at(30, 4)));
    assert_eq!(queue.pop(), Some(at(40, 0)));
    assert_eq!(queue.pop(), None);
}

#[test]
fn equal_priorities_leave_in_task_order() {
    fn check<Q: Checked>() {
        let mut queue = Q::with_capacity(100, 3);
        let mut batch: Vec<Priority> = (0..100).rev().map(|task| job(task * 7, 5, 100)).collect();
        queue.merge(1, &mut batch);
        let tasks: Vec<u32> = std::iter::from_fn(|| queue.pop()).map(|job| job.task.0).collect();
        assert_eq!(tasks, (0..100).collect::<Vec<u32>>());
    }
    check::<BinomialHeap>();
    check::<HuntHeap>();
    check::<HierarchicalQueue>();
}

#[test]
fn a_queue_for_no_tasks_is_empty() {
    fn check<Q: Checked>() {
        let mut queue = Q::with_capacity(0, 1);
        queue.merge(0, &mut Vec::new());
        assert_eq!((queue.peek(), queue.pop(), queue.remove(TaskId(0)), queue.len()), (None, None, None, 0));
        queue.assert_invariants();
    }
    check::<BinomialHeap>();
    check::<HuntHeap>();
    check::<HierarchicalQueue>();
}

#[test]
#[should_panic(expected = "a task has at most one ready job")]
fn a_binomial_heap_refuses_a_second_job_of_a_task() {
    let mut queue = BinomialHeap::with_capacity(2, 1);
    queue.insert(0, job(1, 4, 2));
    queue.insert(0, job(1, 3, 2));
}

#[test]
#[should_panic(expected = "a task has at most one ready job")]
fn hunts_heap_refuses_a_second_job_of_a_task() {
    let mut queue = HuntHeap::with_capacity(2, 1);
    queue.insert(0, job(1, 4, 2));
    queue.insert(0, job(1, 3, 2));
}

#[test]
#[should_panic(expected = "a task has at most one ready job")]
fn a_hierarchical_queue_refuses_a_second_job_of_a_task_even_on_another_cpu() {
    let mut queue = HierarchicalQueue::with_capacity(2, 2);
    queue.insert(0, job(1, 4, 2));
    queue.insert(1, job(1, 3, 2));
}

#[test]
#[should_panic(expected = "a job is removed from the forest it is in")]
fn a_forest_refuses_to_remove_a_job_of_another_forest() {
    let mut nodes = Nodes::with_capacity(2);
    let (mut mine, mut other) = (Forest::new(), Forest::new());
    mine.insert(&mut nodes, job(0, 1, 2));
    other.insert(&mut nodes, job(1, 1, 2));
    mine.remove(&mut nodes, TaskId(1));
}
