//! The release queue against a sorted map, step by step, and its timers.

use std::collections::BTreeMap;

use laxity_model::{Instant, TaskId};
use laxity_policy::cpu::ReleaseQueue;
use proptest::prelude::*;

/// What happens to a release queue. Tasks are taken modulo the capacity.
#[derive(Clone, Debug)]
enum Operation {
    Set { task: u32, at: u64, cpu: usize },
    Cancel { task: u32 },
    Drain { now: u64 },
    FireNextTimer,
}

fn at() -> impl Strategy<Value = u64> {
    // Few instants, so that many releases share one; now and then the whole range, with "never" at its end.
    prop_oneof![8 => 0..20_u64, 1 => any::<u64>(), 1 => Just(u64::MAX)]
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        8 => (any::<u32>(), at(), 0..8_usize).prop_map(|(task, at, cpu)| Operation::Set { task, at, cpu }),
        2 => any::<u32>().prop_map(|task| Operation::Cancel { task }),
        1 => at().prop_map(|now| Operation::Drain { now }),
        3 => Just(Operation::FireNextTimer),
    ]
}

/// The reference: when and where each task's next job is released.
type SortedMap = BTreeMap<TaskId, (Instant, usize)>;

fn earliest(reference: &SortedMap) -> Option<(Instant, TaskId, usize)> {
    reference.iter().map(|(&task, &(at, cpu))| (at, task, cpu)).min()
}

fn agrees_with_the_sorted_map(tasks: usize, operations: Vec<Operation>) {
    let mut queue = ReleaseQueue::with_capacity(tasks);
    let mut reference = SortedMap::new();
    for operation in operations {
        match operation {
            Operation::Set { task, at, cpu } => {
                let (task, at) = (TaskId(task % tasks as u32), Instant(at));
                queue.set(task, at, cpu);
                if at == Instant::NEVER {
                    reference.remove(&task);
                } else {
                    reference.insert(task, (at, cpu));
                }
            }
            Operation::Cancel { task } => {
                let task = TaskId(task % (tasks + 1) as u32);
                assert_eq!(queue.cancel(task), reference.remove(&task).map(|(at, _)| at));
                assert_eq!(queue.planned(task), None);
            }
            Operation::Drain { now } => drain(&mut queue, &mut reference, Instant(now)),
            Operation::FireNextTimer => {
                if let Some(now) = queue.next() {
                    drain(&mut queue, &mut reference, now);
                }
            }
        }
        assert_eq!(queue.next(), earliest(&reference).map(|(at, ..)| at));
        assert_eq!(queue.next_cpu(), earliest(&reference).map(|(_, _, cpu)| cpu));
        queue.assert_invariants();
    }
}

fn drain(queue: &mut ReleaseQueue, reference: &mut SortedMap, now: Instant) {
    while let Some((at, task, _)) = earliest(reference).filter(|&(at, ..)| at <= now) {
        assert_eq!(queue.planned(task), Some(at));
        assert_eq!(queue.pop_due(now), Some((task, at)));
        reference.remove(&task);
    }
    assert_eq!(queue.pop_due(now), None);
}

proptest! {
    #[test]
    fn a_release_queue_agrees_with_a_sorted_map(
        tasks in 1..40_usize, operations in prop::collection::vec(operation(), 0..200),
    ) {
        agrees_with_the_sorted_map(tasks, operations);
    }

    #[test]
    fn a_release_queue_of_a_thousand_tasks_agrees_with_a_sorted_map(
        releases in prop::collection::vec(0..300_u64, 1000),
        operations in prop::collection::vec(operation(), 0..40),
    ) {
        let set = |(task, at)| Operation::Set { task: task as u32, at, cpu: task % 8 };
        agrees_with_the_sorted_map(1000, releases.into_iter().enumerate().map(set).chain(operations).collect());
    }
}

/// Paper 002, section 3: "if multiple job releases coincide [...] only one timer interrupt is required".
#[test]
fn releases_that_share_an_instant_share_a_timer() {
    let mut queue = ReleaseQueue::with_capacity(5);
    for (task, at, cpu) in [(4, 30, 0), (3, 10, 1), (1, 10, 2), (0, 20, 3), (2, 10, 4)] {
        queue.set(TaskId(task), Instant(at), cpu);
    }
    let mut timers = Vec::new();
    while let Some(now) = queue.next() {
        let cpu = queue.next_cpu();
        let released: Vec<u32> = std::iter::from_fn(|| queue.pop_due(now)).map(|(task, _)| task.0).collect();
        timers.push((now.0, cpu, released));
    }
    assert_eq!(timers, [(10, Some(2), vec![1, 2, 3]), (20, Some(3), vec![0]), (30, Some(0), vec![4])]);
}

#[test]
fn a_release_is_not_due_before_its_instant() {
    let mut queue = ReleaseQueue::with_capacity(1);
    queue.set(TaskId(0), Instant(10), 0);
    assert_eq!(queue.pop_due(Instant(9)), None);
    assert_eq!(queue.pop_due(Instant(10)), Some((TaskId(0), Instant(10))));
    assert_eq!(queue.pop_due(Instant::NEVER), None);
}

#[test]
fn a_release_queue_for_no_tasks_is_empty() {
    let mut queue = ReleaseQueue::with_capacity(0);
    assert_eq!((queue.next(), queue.next_cpu()), (None, None));
    assert_eq!((queue.pop_due(Instant::NEVER), queue.cancel(TaskId(0))), (None, None));
    queue.assert_invariants();
}
