//! The state of locks that was saved and loaded, and holders that were disowned and adopted again: no answer differs.

use laxity_model::{EngineOrder, Instant, LockId, Nanos, ReplicaId, TaskId};
use laxity_policy::cpu::Priority;
use laxity_policy::lock::{Action, Arbiter, Config, Event, Progress};
use proptest::prelude::*;

const TASKS: usize = 9;
const LOCKS: usize = 4;

fn order() -> impl Strategy<Value = EngineOrder> {
    prop_oneof![Just(EngineOrder::Fifo), Just(EngineOrder::Priority)]
}

/// A lock that inherits; with `migration`, tokens may predict.
fn inheriting(migration: bool) -> impl Strategy<Value = Config> {
    let sizes = (1..3_u16, 1..3_u16, 1..4_u16, 0..5_u16, 1..5_u16, prop::option::of(0..9_u64));
    prop_oneof![
        1 => (1..4_u16, order()).prop_map(|(replicas, order)| {
            Config::Queue { replicas, order, progress: Progress::Inheritance }
        }),
        1 => (1..4_u16, any::<bool>())
            .prop_map(|(replicas, length_aware)| Config::KFmlp { replicas, length_aware }),
        2 => sizes.prop_map(move |(gpus, tokens, fifo_length, more, cpus, cost)| Config::Tokens {
            gpus,
            tokens,
            fifo_length,
            fifo_requests: if migration { 1 + more } else { gpus * tokens + more },
            cpus,
            migration: cost.filter(|_| migration).map(Nanos),
        }),
    ]
}

fn any_lock() -> impl Strategy<Value = Config> {
    let progress = prop_oneof![
        Just(Progress::None),
        (1..9_u64, 0..7_u32).prop_map(|level| Progress::Ceiling { level }),
        (0..5_u64, 0..7_u32).prop_map(|(deadline, tie)| Progress::Floor { deadline: Nanos(deadline), tie }),
        Just(Progress::Boosting),
    ];
    let raising = (1..4_u16, order(), progress).prop_map(|(replicas, order, progress)| Config::Queue {
        replicas,
        order,
        progress,
    });
    prop_oneof![3 => inheriting(true), 1 => raising]
}

/// What a task is to do next, if it can.
#[derive(Clone, Copy, Debug)]
struct Step {
    task: usize,
    gives_up: bool,
    overruns: bool,
    lock: usize,
    length: u64,
    only: Option<u16>,
    /// Whether the state is saved and loaded, or holders are forgotten and adopted, before.
    disturbs: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let only = prop_oneof![4 => Just(None), 1 => (0..4_u16).prop_map(Some)];
    let step = (
        0..TASKS,
        prop::bool::weighted(0.35),
        prop::bool::weighted(0.1),
        0..LOCKS,
        0..9_u64,
        only,
        prop::bool::weighted(0.4),
    );
    let step = step.prop_map(|(task, gives_up, overruns, lock, length, only, disturbs)| Step {
        task,
        gives_up,
        overruns,
        lock,
        length,
        only,
        disturbs,
    });
    prop::collection::vec(step, 0..150)
}

/// The event that `step` stands for, if any; locks are nested in any order.
fn event(arbiter: &Arbiter, step: Step, configs: &[Config]) -> Option<Event> {
    let task = TaskId(step.task as u32);
    let lock = LockId(step.lock as u16);
    let last = arbiter.holds(task).last().map(|(lock, _)| lock);
    if arbiter.priority(task).is_none() {
        return Some(Event::Pending { priority: Priority::of(1 + step.length, task) });
    }
    if let Some(lock) = arbiter.waits_for(task) {
        return step.gives_up.then_some(Event::Withdraw { task, lock });
    }
    match (step.gives_up, last) {
        (true, Some(lock)) if step.overruns => Some(Event::Overrun { task, lock }),
        (true, Some(lock)) => Some(Event::Unlock { task, lock }),
        (true, None) => Some(Event::Complete { task }),
        (false, _) if arbiter.holds(task).any(|(held, _)| held == lock) => {
            Some(Event::Rebase { priority: Priority::of(1 + step.length, task) })
        }
        (false, _) => {
            let gpus = gpus(&configs[step.lock]);
            Some(Event::Request { task, lock, length: Nanos(step.length), only: step.only.map(|only| only % gpus) })
        }
    }
}

fn gpus(config: &Config) -> u16 {
    match *config {
        Config::Queue { replicas, .. } | Config::KFmlp { replicas, .. } => replicas,
        Config::Tokens { gpus, .. } => gpus,
    }
}

fn handle(arbiter: &mut Arbiter, now: Instant, event: Event) -> Vec<Action> {
    let mut actions = Vec::new();
    arbiter.handle(now, event, &mut actions);
    arbiter.assert_invariants();
    actions
}

fn saved(arbiter: &mut Arbiter) -> Vec<u64> {
    let mut numbers = Vec::new();
    arbiter.save(&mut numbers);
    assert!(numbers.len() <= arbiter.saved_max(), "{} numbers exceed {}", numbers.len(), arbiter.saved_max());
    numbers
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn an_arbiter_that_was_saved_and_loaded_answers_as_if_it_had_not_been(
        configs in prop::collection::vec(any_lock(), LOCKS),
        steps in steps(),
    ) {
        let mut arbiter = Arbiter::new(TASKS, &configs);
        let mut other = Arbiter::new(TASKS, &configs);
        // Another process's arbiter sees only some of the states: it has old ones to lose.
        let mut late = Arbiter::new(TASKS, &configs);
        // It has a state to lose.
        handle(&mut other, Instant(1), Event::Pending { priority: Priority::of(7, TaskId(3)) });
        prop_assert_eq!(other.load(&saved(&mut arbiter)), Ok(()));
        for (now, step) in steps.into_iter().enumerate() {
            if step.disturbs {
                let numbers = saved(&mut arbiter);
                for loaded in [&mut other, &mut late] {
                    prop_assert_eq!(loaded.load(&numbers), Ok(()));
                    loaded.assert_invariants();
                    prop_assert_eq!(&saved(loaded), &numbers);
                }
            }
            let Some(event) = event(&arbiter, step, &configs) else { continue };
            let now = Instant(1 + now as u64);
            prop_assert_eq!(handle(&mut arbiter, now, event), handle(&mut other, now, event));
            for task in (0..TASKS as u32).map(TaskId) {
                prop_assert_eq!(arbiter.priority(task), other.priority(task));
            }
        }
    }

    /// What a driver does that grants uncontended locks by itself. A holder keeps its base priority.
    #[test]
    fn holders_of_an_uncontended_lock_may_be_disowned_and_adopted(
        configs in prop::collection::vec(inheriting(false), LOCKS),
        steps in steps(),
    ) {
        let (mut arbiter, mut other) = (Arbiter::new(TASKS, &configs), Arbiter::new(TASKS, &configs));
        let mut requests = [[(Nanos::ZERO, None); LOCKS]; TASKS];
        for (now, step) in steps.into_iter().filter(|step| !step.overruns).enumerate() {
            let now = Instant(1 + now as u64);
            if step.disturbs && other.waiting(LockId(step.lock as u16)) == 0 {
                let lock = LockId(step.lock as u16);
                let replicas = (0..8).map(ReplicaId);
                let held: Vec<_> = replicas.filter_map(|replica| Some((replica, other.holder(lock, replica)?))).collect();
                let mut actions = Vec::new();
                other.disown(now, lock, &mut actions);
                other.assert_invariants();
                prop_assert_eq!((&actions, other.users(lock)), (&vec![], 0));
                // In another order.
                for &(replica, task) in held.iter().rev() {
                    let (length, only) = requests[task.index()][lock.index()];
                    let adopt = Event::Adopt { task, lock, replica, length, only };
                    prop_assert_eq!(handle(&mut other, now, adopt), []);
                }
            }
            let event = event(&arbiter, step, &configs).filter(|event| !matches!(event, Event::Rebase { .. }));
            let Some(event) = event else { continue };
            if let Event::Request { task, lock, length, only } = event {
                requests[task.index()][lock.index()] = (length, only);
            }
            prop_assert_eq!(handle(&mut arbiter, now, event), handle(&mut other, now, event));
        }
    }

    #[test]
    fn numbers_that_are_no_state_are_refused_and_leave_nothing_behind(
        configs in prop::collection::vec(any_lock(), LOCKS),
        steps in steps(),
        wrong in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![0..20_u64, any::<u64>()]), 1..4),
        length in any::<prop::sample::Index>(),
    ) {
        let mut arbiter = Arbiter::new(TASKS, &configs);
        let empty = saved(&mut arbiter);
        for (now, &step) in steps.iter().enumerate() {
            if let Some(event) = event(&arbiter, step, &configs) {
                handle(&mut arbiter, Instant(1 + now as u64), event);
            }
        }
        let mut numbers = saved(&mut arbiter);
        for (index, number) in wrong {
            let index = index.index(numbers.len());
            numbers[index] = number;
        }
        numbers.truncate(numbers.len().min(1 + length.index(2 * numbers.len())));
        let mut other = Arbiter::new(TASKS, &configs);
        if other.load(&numbers).is_err() {
            prop_assert_eq!(saved(&mut other), empty);
        }
    }
}
