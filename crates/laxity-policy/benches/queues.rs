//! Cost of the queues' operations in the pattern of the simulator's hot loop.
//!
//! `cargo bench -p laxity-policy`; each figure is one insertion and one removal.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use laxity_model::rng::SplitMix64;
use laxity_model::{Instant, TaskId};
use laxity_policy::cpu::ready::{BinomialHeap, HierarchicalQueue, HuntHeap, ReadyQueue};
use laxity_policy::cpu::{Priority, ReleaseQueue};

/// Pops the most urgent job and queues the task's next one, with `queued` jobs of `2 * queued` tasks in the queue.
fn ready_queue<Q: ReadyQueue>(criterion: &mut Criterion, name: &str, queued: usize) {
    const CPUS: usize = 12;
    let mut queue = Q::with_capacity(2 * queued, CPUS);
    let mut random = SplitMix64::new(1);
    let periods: Vec<u64> = (0..2 * queued).map(|_| random.between(1_000_000, 100_000_000)).collect();
    for (task, &period) in periods.iter().enumerate().take(queued) {
        queue.insert(task % CPUS, Priority::of(period, TaskId(task as u32)));
    }
    let mut idle: std::collections::VecDeque<u32> = (queued as u32..2 * queued as u32).collect();
    criterion.bench_function(&format!("{name}/{queued} queued"), |bencher| {
        bencher.iter(|| {
            let first = queue.pop().expect("the queue is never empty");
            idle.push_back(first.task.0);
            let task = idle.pop_front().expect("as many tasks wait as are queued");
            let major = first.major + periods[task as usize];
            queue.insert(task as usize % CPUS, Priority::of(major, TaskId(task)));
            black_box(first)
        });
    });
}

/// Takes the next release out and plans the task's next one.
fn release_queue(criterion: &mut Criterion, tasks: usize) {
    let mut queue = ReleaseQueue::with_capacity(tasks);
    let mut random = SplitMix64::new(1);
    let periods: Vec<u64> = (0..tasks).map(|_| random.between(1_000_000, 100_000_000)).collect();
    for (task, &period) in periods.iter().enumerate() {
        queue.set(TaskId(task as u32), Instant(period), 0);
    }
    criterion.bench_function(&format!("release queue/{tasks} tasks"), |bencher| {
        bencher.iter(|| {
            let now = queue.next().expect("every task has a release");
            while let Some((task, at)) = queue.pop_due(now) {
                queue.set(task, Instant(at.0 + periods[task.index()]), 0);
            }
            black_box(now)
        });
    });
}

fn queues(criterion: &mut Criterion) {
    for queued in [10, 30, 300] {
        ready_queue::<BinomialHeap>(criterion, "binomial heap", queued);
        ready_queue::<HuntHeap>(criterion, "Hunt's heap", queued);
        ready_queue::<HierarchicalQueue>(criterion, "hierarchical queue", queued);
    }
    for tasks in [20, 100, 400] {
        release_queue(criterion, tasks);
    }
}

criterion_group!(benches, queues);
criterion_main!(benches);
