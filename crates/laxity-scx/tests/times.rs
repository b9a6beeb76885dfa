//! The times of tasks in the kernel, a heap in C, are those of an ordered set, after each of many random changes.

use std::collections::{BTreeMap, BTreeSet};

use laxity_scx::native::{TASKS_MAX, Times};
use laxity_testing::Random;

/// What the heap is to be.
#[derive(Default)]
struct Model {
    order: BTreeSet<(u64, u32)>,
    times: BTreeMap<u32, u64>,
}

impl Model {
    fn set(&mut self, task: u32, time: Option<u64>, keeps: bool) {
        let had = self.times.get(&task).copied();
        if keeps && had.is_some_and(|had| had <= time.unwrap_or(u64::MAX)) {
            return;
        }
        if let Some(had) = self.times.remove(&task) {
            self.order.remove(&(had, task));
        }
        if let Some(time) = time {
            self.order.insert((time, task));
            self.times.insert(task, time);
        }
    }

    fn take(&mut self, now: u64) -> Option<u32> {
        let &(time, task) = self.order.first().filter(|&&(time, _)| time <= now)?;
        self.set(task, None, false);
        assert!(time <= now);
        Some(task)
    }
}

#[test]
fn tasks_come_in_the_order_of_their_times_whatever_changed_before() {
    let mut random = Random::new();
    for _ in 0..40 {
        // Few tasks that change often, and as many as there can be; few times, so that many are the same.
        let tasks = [1, 2, 5, 40, u64::from(TASKS_MAX)][random.below(5) as usize];
        let times = [3, 50, 1 << 40][random.below(3) as usize];
        let (mut model, mut c) = (Model::default(), Times::default());
        for step in 0..10_000 {
            let task = random.below(tasks) as u32;
            match random.below(4) {
                0 => {
                    let now = random.below(times);
                    assert_eq!(c.take(now), model.take(now), "step {step}");
                }
                1 if random.below(3) == 0 => {
                    c.set(task, None, false);
                    model.set(task, None, false);
                }
                _ => {
                    let (time, keeps) = (Some(random.below(times)), random.below(2) == 0);
                    c.set(task, time, keeps);
                    model.set(task, time, keeps);
                }
            }
            assert_eq!(c.first(), model.order.first().map(|&(time, _)| time), "step {step}");
        }
        let rest: Vec<u32> = std::iter::from_fn(|| c.take(u64::MAX - 1)).collect();
        assert_eq!(rest, model.order.iter().map(|&(_, task)| task).collect::<Vec<_>>());
    }
}
