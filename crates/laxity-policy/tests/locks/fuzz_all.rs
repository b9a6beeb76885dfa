//! Random jobs that nest random locks of all kinds, tokens among them: the arbiter's invariants hold, no replica has two
//! holders, a task that runs goes on, and in the end all is free and priorities are base priorities.

use laxity_model::{EngineOrder, Instant, LockId, Nanos, TaskId};
use laxity_policy::cpu::Priority;
use laxity_policy::lock::{Action, Arbiter, Config, Event, Progress};
use proptest::prelude::*;

const TASKS: usize = 8;
const LOCKS: usize = 4;

fn config() -> impl Strategy<Value = Config> {
    let order = prop_oneof![Just(EngineOrder::Fifo), Just(EngineOrder::Priority)];
    let sizes = (1..3_u16, 1..3_u16, 1..4_u16, 1..9_u16, 1..5_u16, prop::option::of(0..9_u64));
    prop_oneof![
        1 => (1..3_u16, order).prop_map(|(replicas, order)| {
            Config::Queue { replicas, order, progress: Progress::Inheritance }
        }),
        1 => (1..3_u16, any::<bool>())
            .prop_map(|(replicas, length_aware)| Config::KFmlp { replicas, length_aware }),
        2 => sizes.prop_map(|(gpus, tokens, fifo_length, fifo_requests, cpus, migration)| {
            Config::Tokens { gpus, tokens, fifo_length, fifo_requests, cpus, migration: migration.map(Nanos) }
        }),
    ]
}

/// Locks are nested in their order, so that there are no deadlocks.
struct Driver {
    arbiter: Arbiter,
    now: Instant,
    base: [Option<Priority>; TASKS],
}

impl Driver {
    fn step(&mut self, task: usize, unlocks: bool, lock: usize, length: u64) {
        let id = TaskId(task as u32);
        self.now += Nanos(1);
        let last = self.arbiter.holds(id).map(|(lock, _)| lock.index()).max();
        if self.base[task].is_none() {
            let priority = Priority::of(1 + length, id);
            self.base[task] = Some(priority);
            self.handle(Event::Pending { priority });
        } else if let Some(waits_for) = self.arbiter.waits_for(id) {
            if unlocks && lock == 0 {
                self.handle(Event::Withdraw { task: id, lock: waits_for });
            }
        } else if unlocks {
            self.give_up(task);
        } else if last.is_none_or(|last| lock > last) {
            let lock = LockId(lock as u16);
            self.handle(Event::Request { task: id, lock, length: Nanos(length), only: None });
        }
    }

    /// What it locked last, or its job.
    fn give_up(&mut self, task: usize) {
        let id = TaskId(task as u32);
        match self.arbiter.holds(id).map(|(lock, _)| lock).max() {
            Some(lock) => self.handle(Event::Unlock { task: id, lock }),
            None => {
                self.base[task] = None;
                self.handle(Event::Complete { task: id });
            }
        }
    }

    fn handle(&mut self, event: Event) {
        let before: Vec<Option<Priority>> = (0..TASKS as u32).map(|task| self.arbiter.priority(TaskId(task))).collect();
        let mut actions = Vec::new();
        self.arbiter.handle(self.now, event, &mut actions);
        self.arbiter.assert_invariants();
        for action in actions {
            match action {
                Action::Grant { task, lock, replica } => {
                    assert_eq!(
                        self.arbiter.holder(lock, replica),
                        Some(task),
                        "a task that is granted a replica holds it"
                    );
                }
                Action::Prioritize { priority } => {
                    let task = priority.task;
                    assert_eq!(self.arbiter.priority(task), Some(priority), "what is said is so");
                    assert_ne!(before[task.index()], Some(priority), "what is said is new");
                }
            }
        }
        for (task, base) in self.base.iter().enumerate() {
            let effective = self.arbiter.priority(TaskId(task as u32));
            assert!(
                effective <= *base && effective.is_some() == base.is_some(),
                "T{task} has less than its own priority"
            );
        }
        assert_eq!(self.arbiter.deadlock(), None, "locks are nested in one order");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn locks_of_all_kinds_go_together(
        locks in prop::collection::vec(config(), LOCKS),
        steps in prop::collection::vec((0..TASKS, prop::bool::weighted(0.3), 0..LOCKS, 0..9_u64), 0..150),
    ) {
        let mut driver = Driver { arbiter: Arbiter::new(TASKS, &locks), now: Instant(1), base: [None; TASKS] };
        for (task, unlocks, lock, length) in steps {
            driver.step(task, unlocks, lock, length);
        }
        // Tasks that run give up what they have, until none is left.
        for _ in 0..TASKS * LOCKS * 3 {
            let runs = |task: &usize| driver.base[*task].is_some() && driver.arbiter.waits_for(TaskId(*task as u32)).is_none();
            let Some(task) = (0..TASKS).find(runs) else { break };
            driver.give_up(task);
        }
        prop_assert_eq!(driver.base, [None; TASKS], "a task waits though none runs");
    }
}
