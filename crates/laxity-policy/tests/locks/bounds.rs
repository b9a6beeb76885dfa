//! No job waits longer for a GPU than equations 1 and 2 of paper 000 say.
//!
//! A simulation of the lock alone: holders always run, no job holds for longer than its length, no task has more than
//! one request at a time, and none names a GPU. A job waits from its request to its grant.

use laxity_model::{Instant, LockId, Nanos, TaskId};
use laxity_policy::cpu::Priority;
use laxity_policy::lock::{Action, Arbiter, Config, Event};
use proptest::prelude::*;

const LOCK: LockId = LockId(0);

/// One critical section of a job: how long after its last one it asks, and how long it holds.
#[derive(Clone, Copy, Debug)]
struct Section {
    pause: u64,
    hold: u64,
}

/// A task that uses the lock.
#[derive(Clone, Debug)]
struct User {
    /// No section holds for longer.
    length: u64,
    sections: Vec<Section>,
}

/// Where a task is in its list of sections.
#[derive(Clone, Copy, Debug)]
enum State {
    Pauses { until: u64 },
    Waits { since: u64 },
    Holds { until: u64 },
    Done,
}

/// A run over `users`, one replica of k each.
struct Run<'a> {
    users: &'a [User],
    arbiter: Arbiter,
    states: Vec<State>,
    /// How many sections each task has behind it.
    finished: Vec<usize>,
    /// The longest wait of each task.
    waited: Vec<u64>,
}

impl<'a> Run<'a> {
    fn new(users: &'a [User], replicas: u16, length_aware: bool) -> Self {
        let mut arbiter = Arbiter::new(users.len(), &[Config::KFmlp { replicas, length_aware }]);
        for task in 0..users.len() as u32 {
            let priority = Priority::of(1 + u64::from(task), TaskId(task));
            arbiter.handle(Instant::ZERO, Event::Pending { priority }, &mut Vec::new());
        }
        let start =
            |user: &User| user.sections.first().map_or(State::Done, |first| State::Pauses { until: first.pause });
        Run {
            users,
            arbiter,
            states: users.iter().map(start).collect(),
            finished: vec![0; users.len()],
            waited: vec![0; users.len()],
        }
    }

    /// The longest wait of each task, all sections carried out. At one instant unlocks come before requests, by task.
    fn longest_waits(mut self) -> Vec<u64> {
        while let Some((now, task)) = self.next() {
            match self.states[task] {
                State::Holds { .. } => self.unlock(now, task),
                State::Pauses { .. } => self.request(now, task),
                State::Waits { .. } | State::Done => unreachable!("neither has an event of its own"),
            }
            self.arbiter.assert_invariants();
        }
        let starved = self.states.iter().find(|state| !matches!(state, State::Done));
        assert!(starved.is_none(), "all holders are gone and a job waits: {:?}", self.states);
        self.waited
    }

    fn next(&self) -> Option<(u64, usize)> {
        let event = |(task, state): (usize, &State)| match *state {
            State::Holds { until } => Some((until, 0, task)),
            State::Pauses { until } => Some((until, 1, task)),
            State::Waits { .. } | State::Done => None,
        };
        self.states.iter().enumerate().filter_map(event).min().map(|(now, _, task)| (now, task))
    }

    fn request(&mut self, now: u64, task: usize) {
        self.states[task] = State::Waits { since: now };
        let length = Nanos(self.users[task].length);
        self.handle(now, Event::Request { task: TaskId(task as u32), lock: LOCK, length, only: None });
    }

    fn unlock(&mut self, now: u64, task: usize) {
        self.finished[task] += 1;
        let next = self.users[task].sections.get(self.finished[task]);
        self.states[task] = next.map_or(State::Done, |next| State::Pauses { until: now + next.pause });
        self.handle(now, Event::Unlock { task: TaskId(task as u32), lock: LOCK });
    }

    fn handle(&mut self, now: u64, event: Event) {
        let mut actions = Vec::new();
        self.arbiter.handle(Instant(now), event, &mut actions);
        for action in actions {
            let Action::Grant { task, .. } = action else { continue };
            let task = task.index();
            let State::Waits { since } = self.states[task] else { panic!("only a waiter is granted") };
            self.waited[task] = self.waited[task].max(now - since);
            let hold = self.users[task].sections[self.finished[task]].hold;
            self.states[task] = State::Holds { until: now + hold };
        }
    }
}

fn user() -> impl Strategy<Value = User> {
    let sections = |length| {
        // Half of all sections take their full length, and many follow each other closely: else tasks hardly ever wait.
        let hold = prop_oneof![Just(length), 0..=length];
        let pause = prop_oneof![0..3_u64, 0..40_u64];
        prop::collection::vec((pause, hold).prop_map(|(pause, hold)| Section { pause, hold }), 1..6)
            .prop_map(move |sections| User { length, sections })
    };
    (0..30_u64).prop_flat_map(sections)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Equation 1: `b_i <= (sum of l_q over the other users q) / k`.
    #[test]
    fn l_aware_waits_stay_below_equation_1(users in prop::collection::vec(user(), 1..9), k in 1..5_u16) {
        let total: u64 = users.iter().map(|user| user.length).sum();
        for (task, waited) in Run::new(&users, k, true).longest_waits().into_iter().enumerate() {
            let others = total - users[task].length;
            prop_assert!(waited * u64::from(k) <= others, "T{} waited {} > {} / {}", task, waited, others, k);
        }
    }

    /// Equation 2 in integers: `b_i <= l_max * floor((n - 1) / k)`. A request joins a queue of at most that many
    /// others.
    #[test]
    fn l_oblivious_waits_stay_below_equation_2(users in prop::collection::vec(user(), 1..9), k in 1..5_u16) {
        let longest = users.iter().map(|user| user.length).max().unwrap_or(0);
        let bound = longest * ((users.len() as u64 - 1) / u64::from(k));
        for (task, waited) in Run::new(&users, k, false).longest_waits().into_iter().enumerate() {
            prop_assert!(waited <= bound, "T{} waited {} > {}", task, waited, bound);
        }
    }
}

/// Both bounds are met exactly: five users of length 3 that ask for two GPUs at once.
///
/// ```text
///   queue 0:  T0 0-3  T2 3-6  T4 6-9       T4 waits 6 = 4 * 3 / 2
///   queue 1:  T1 0-3  T3 3-6
/// ```
#[test]
fn the_bounds_are_met_when_everyone_asks_at_once() {
    let users = vec![User { length: 3, sections: vec![Section { pause: 0, hold: 3 }] }; 5];
    for length_aware in [true, false] {
        assert_eq!(Run::new(&users, 2, length_aware).longest_waits(), [0, 0, 3, 3, 6]);
    }
}
