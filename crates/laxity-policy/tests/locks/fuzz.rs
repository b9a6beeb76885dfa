//! Random jobs that nest random locks, step by step against the model.

use laxity_model::{EngineOrder, Instant, LockId, Nanos, ReplicaId, TaskId};
use laxity_policy::cpu::Priority;
use laxity_policy::lock::{Action, Arbiter, Config, Event, Progress};
use proptest::prelude::*;

use crate::model::Model;

const TASKS: usize = 7;
const LOCKS: usize = 4;

/// What a task is to do next, if it can: numbers are taken modulo what there is.
#[derive(Clone, Copy, Debug)]
struct Step {
    task: usize,
    /// Whether it rather gives up something than asks for more.
    unlocks: bool,
    lock: usize,
    length: u64,
    only: Option<u16>,
    major: u64,
}

fn step() -> impl Strategy<Value = Step> {
    // Few lengths and few majors, so that there are ties.
    let only = prop_oneof![4 => Just(None), 1 => (0..4_u16).prop_map(Some)];
    (0..TASKS, prop::bool::weighted(0.3), 0..LOCKS, 0..4_u64, only, 1..9_u64)
        .prop_map(|(task, unlocks, lock, length, only, major)| Step { task, unlocks, lock, length, only, major })
}

fn config() -> impl Strategy<Value = Config> {
    let order = prop_oneof![Just(EngineOrder::Fifo), Just(EngineOrder::Priority)];
    let progress = prop_oneof![
        1 => Just(Progress::None),
        4 => Just(Progress::Inheritance),
        1 => (1..9_u64, 0..7_u32).prop_map(|level| Progress::Ceiling { level }),
        1 => (0..5_u64, 0..7_u32).prop_map(|(deadline, tie)| Progress::Floor { deadline: Nanos(deadline), tie }),
        1 => Just(Progress::Boosting),
    ];
    prop_oneof![
        3 => (1..4_u16, order, progress)
            .prop_map(|(replicas, order, progress)| Config::Queue { replicas, order, progress }),
        2 => (1..4_u16, any::<bool>())
            .prop_map(|(replicas, length_aware)| Config::KFmlp { replicas, length_aware }),
    ]
}

/// The arbiter and its model side by side.
struct Driver {
    arbiter: Arbiter,
    model: Model,
    now: Instant,
}

impl Driver {
    fn new(locks: &[Config]) -> Self {
        Driver { arbiter: Arbiter::new(TASKS, locks), model: Model::new(TASKS, locks), now: Instant(1) }
    }

    /// A task without a job gets one; one that waits may withdraw; one that runs unlocks, asks, or completes if it has
    /// nothing to unlock. Jobs nest locks in any order, so they deadlock every now and then.
    fn step(&mut self, step: Step) {
        let task = TaskId(step.task as u32);
        let held = self.model.holds(task);
        self.now += Nanos(1);
        if self.model.base[step.task].is_none() {
            self.begin(Priority::of(step.major, task));
        } else if let Some(lock) = self.model.wait_of(task) {
            if step.unlocks {
                self.withdraw(task, lock);
            }
        } else if step.unlocks {
            match held.get(step.lock % held.len().max(1)) {
                Some(&(lock, _)) => self.unlock(task, lock),
                None => self.complete(task),
            }
        } else if held.iter().all(|&(lock, _)| lock != step.lock) {
            self.request(task, step);
        }
        self.arbiter.assert_invariants();
        self.assert_same_holders();
        self.assert_work_conserving();
        self.assert_same_deadlocks();
    }

    fn begin(&mut self, priority: Priority) {
        self.model.base[priority.task.index()] = Some(priority);
        assert_eq!(self.handle(Event::Pending { priority }), []);
    }

    fn complete(&mut self, task: TaskId) {
        self.model.base[task.index()] = None;
        assert_eq!(self.handle(Event::Complete { task }), []);
    }

    fn request(&mut self, task: TaskId, Step { lock, length, only, .. }: Step) {
        let only = only.map(|only| only % self.model.replicas(lock));
        let event = Event::Request { task, lock: LockId(lock as u16), length: Nanos(length), only };
        let before = self.model.effective();
        let replica = self.model.request(self.now, task, lock, length, only);
        self.expect(event, lock, replica.map(|replica| (task, replica)), &before);
    }

    fn unlock(&mut self, task: TaskId, lock: usize) {
        let before = self.model.effective();
        let granted = self.model.unlock(self.now, task, lock);
        self.expect(Event::Unlock { task, lock: LockId(lock as u16) }, lock, granted, &before);
    }

    fn withdraw(&mut self, task: TaskId, lock: usize) {
        let before = self.model.effective();
        self.model.withdraw(task, lock);
        self.expect(Event::Withdraw { task, lock: LockId(lock as u16) }, lock, None, &before);
    }

    /// The effects of `event` are this grant of `lock`, then the priorities that are not as `before`, by task.
    fn expect(&mut self, event: Event, lock: usize, grant: Option<(TaskId, u16)>, before: &[Option<Priority>]) {
        let lock = LockId(lock as u16);
        let grant = grant.map(|(task, replica)| Action::Grant { task, lock, replica: ReplicaId(replica) });
        let after = self.model.effective();
        let changed = after.iter().zip(before).filter(|(after, before)| after != before);
        let priorities = changed.filter_map(|(after, _)| after.map(|priority| Action::Prioritize { priority }));
        let expected: Vec<Action> = grant.into_iter().chain(priorities).collect();
        assert_eq!(self.handle(event), expected, "after {event:?} in {:#?}", self.model);
        for (task, priority) in (0..).map(TaskId).zip(after) {
            assert_eq!(self.arbiter.priority(task), priority, "T{} in {:#?}", task.0, self.model);
        }
    }

    fn handle(&mut self, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        self.arbiter.handle(self.now, event, &mut actions);
        actions
    }

    /// Mutual exclusion: a replica has at most one holder, and it is the model's.
    fn assert_same_holders(&self) {
        for task in (0..TASKS as u32).map(TaskId) {
            let mut held: Vec<_> = self.arbiter.holds(task).map(|(lock, replica)| (lock.index(), replica.0)).collect();
            held.sort_unstable();
            assert_eq!(held, self.model.holds(task));
            assert_eq!(self.arbiter.waits_for(task).map(LockId::index), self.model.wait_of(task));
        }
        for lock in 0..LOCKS {
            for replica in 0..self.model.replicas(lock) {
                let holder = self.arbiter.holder(LockId(lock as u16), ReplicaId(replica));
                assert_eq!(holder, self.model.holder(lock, replica));
            }
        }
    }

    /// No replica is free while a task waits that it suits.
    fn assert_work_conserving(&self) {
        for wait in self.model.requests.iter().filter(|request| request.replica.is_none()) {
            let mut suitable =
                (0..self.model.replicas(wait.lock)).filter(|&it| wait.only.is_none_or(|only| only == it));
            let free = suitable.find(|&it| self.arbiter.holder(LockId(wait.lock as u16), ReplicaId(it)).is_none());
            assert_eq!(free, None, "{wait:?} waits for no holder");
        }
    }

    /// A deadlock is reported if and only if there is one, and each in the circle waits for the next.
    fn assert_same_deadlocks(&self) {
        let stuck = self.model.stuck();
        let Some(circle) = self.arbiter.deadlock() else {
            assert_eq!(stuck, [], "a deadlock went unnoticed");
            return;
        };
        for (task, next) in circle.iter().zip(circle.iter().cycle().skip(1)) {
            assert!(stuck.contains(task), "{task} will go on");
            assert!(self.model.blockers(task.index()).contains(&next.index()), "{task} does not wait for {next}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_arbiter_does_what_the_model_does(
        locks in prop::collection::vec(config(), LOCKS),
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let mut driver = Driver::new(&locks);
        for step in steps {
            driver.step(step);
        }
    }
}
