//! The locks of a run under Laxity's scheduler in the kernel: resources, tokens and engines, all by the arbiter that
//! the simulator has.
//!
//! ```text
//!  request or unlock ---> the arbiter decides ---> which task sleeps for which, into the page ---> the next holders are woken
//!                                                                                                             |
//!                                the scheduler looks at what the page says when a thread sleeps or wakes <----'
//! ```
//!
//! The arbiter says which requests are granted, and which task inherits from which at once; the scheduler has the priorities, and
//! what follows along chains of tasks.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use laxity_model::{Instant, LockId, ReplicaId, TaskId};
use laxity_policy::cpu::Priority;
use laxity_policy::lock::{Action, Arbiter, Config, Event, Progress};
use laxity_sched::LockRequest;
use laxity_scx::{Task, Waits};
use laxity_sys::{clock, futex};

/// The locks. A thread that changes them is in a non-preemptive section: no job waits for one that was preempted here.
#[derive(Debug)]
pub(crate) struct KernelLocks {
    state: Mutex<State>,
    /// Of each task what its request has come to: [`WAITING`], or above that the replica.
    requests: Vec<AtomicU32>,
    /// Locks with smaller numbers are resources.
    resources: usize,
}

/// Of a request.
const WAITING: u32 = 1;

/// Which task each task sleeps for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sleep {
    /// It does not wait.
    Not,
    /// For that one, or for none that inherits from it.
    For(Option<TaskId>),
}

#[derive(Debug)]
struct State {
    arbiter: Arbiter,
    /// Scratch, empty between events.
    actions: Vec<Action>,
    /// Of each task, as the page has it.
    sleeps: Vec<Sleep>,
    /// Of each task what its process calls it, for the scheduler; 0: it has requested nothing yet.
    places: Vec<u32>,
}

/// What follows from an event.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    grants: Vec<(TaskId, ReplicaId)>,
    /// What tasks sleep for, but for those that are granted something.
    changes: Vec<(TaskId, Option<TaskId>)>,
}

impl KernelLocks {
    /// For so many tasks. Where jobs of the simulator have ceilings the holders inherit, as under classes of Linux.
    pub fn new(tasks: usize, locks: &[Config], resources: usize) -> KernelLocks {
        let locks: Vec<Config> = locks.iter().cloned().map(inherited).collect();
        KernelLocks {
            state: Mutex::new(State::new(tasks, &locks)),
            requests: (0..tasks).map(|_| AtomicU32::new(0)).collect(),
            resources,
        }
    }

    /// Whether jobs note themselves that they wait for it.
    pub fn is_resource(&self, lock: LockId) -> bool {
        lock.index() < self.resources
    }

    /// The job of `own`, which has that priority in its own right and whose thread is the calling one, in a non-preemptive section,
    /// requests a lock. Calls `note` before any other request is heard. `None`: it has to wait by [`KernelLocks::wait`].
    pub fn request(&self, own: &Task, base: Priority, request: LockRequest, note: impl FnOnce()) -> Option<ReplicaId> {
        let task = base.task;
        let mut state = self.state();
        note();
        state.places[task.index()] = own.place();
        self.requests[task.index()].store(WAITING, Ordering::Relaxed);
        let LockRequest { lock, length, only } = request;
        let outcome = state.handle(base, Event::Request { task, lock, length, only });
        let replica = outcome.grants.iter().find(|grant| grant.0 == task).map(|grant| grant.1);
        self.follow(state, &own.waits(), outcome, task);
        replica
    }

    /// Suspends the calling thread, that of `task`, until the request is granted that it made.
    pub fn wait(&self, task: TaskId) -> ReplicaId {
        let request = &self.requests[task.index()];
        loop {
            match request.load(Ordering::Acquire) {
                WAITING => _ = futex::wait(request, WAITING, Instant::NEVER),
                replica => return ReplicaId((replica - WAITING - 1) as u16),
            }
        }
    }

    /// As [`KernelLocks::request`], for a job that gives up a lock.
    pub fn unlock(&self, own: &Task, base: Priority, lock: LockId, note: impl FnOnce()) {
        let mut state = self.state();
        note();
        let outcome = state.handle(base, Event::Unlock { task: base.task, lock });
        self.follow(state, &own.waits(), outcome, base.task);
    }

    /// Tells the scheduler, and the tasks but for `caller` that have their locks.
    fn follow(&self, state: MutexGuard<'_, State>, waits: &Waits, outcome: Outcome, caller: TaskId) {
        let place = |task: TaskId| state.places[task.index()];
        for &(task, replica) in &outcome.grants {
            waits.end(place(task));
            self.requests[task.index()].store(WAITING + 1 + u32::from(replica.0), Ordering::Release);
        }
        for &(task, holder) in &outcome.changes {
            waits.say(place(task), holder.map(place));
        }
        drop(state);
        for &(task, _) in outcome.grants.iter().filter(|grant| grant.0 != caller) {
            futex::wake_all(&self.requests[task.index()]);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn new(tasks: usize, locks: &[Config]) -> State {
        State {
            arbiter: Arbiter::new(tasks, locks),
            actions: Vec::new(),
            sleeps: vec![Sleep::Not; tasks],
            places: vec![0; tasks],
        }
    }

    /// The arbiter handles `event` of the job with the priority `base`. It knows a job from its first request to its last unlock.
    fn handle(&mut self, base: Priority, event: Event) -> Outcome {
        let State { arbiter, actions, .. } = self;
        let (now, task) = (clock::now(), base.task);
        if arbiter.base(task).is_none() {
            arbiter.handle(now, Event::Pending { priority: base }, actions);
        }
        arbiter.handle(now, event, actions);
        if arbiter.holds(task).next().is_none() && arbiter.waits_for(task).is_none() {
            arbiter.handle(now, Event::Complete { task }, actions);
        }
        let mut outcome = Outcome::default();
        for action in actions.drain(..) {
            // Priorities are the scheduler's.
            if let Action::Grant { task, replica, .. } = action {
                self.sleeps[task.index()] = Sleep::Not;
                outcome.grants.push((task, replica));
            }
        }
        self.find_changes(&mut outcome);
        outcome
    }

    fn find_changes(&mut self, outcome: &mut Outcome) {
        let State { arbiter, sleeps, .. } = self;
        let mut heirs: Vec<(TaskId, Option<TaskId>)> = arbiter.waiters().map(|task| (task, None)).collect();
        // Of all locks here each waiter has one heir: of those with several replicas each has a queue.
        arbiter.heirs(|from, to| {
            let waiter = heirs.iter_mut().find(|(task, _)| *task == from);
            waiter.expect("only a task that waits is inherited from").1 = Some(to);
        });
        for (task, heir) in heirs {
            let sleep = Sleep::For(heir);
            if sleeps[task.index()] != sleep {
                sleeps[task.index()] = sleep;
                outcome.changes.push((task, heir));
            }
        }
    }
}

/// What is granted in the same order, and whose holder inherits.
fn inherited(config: Config) -> Config {
    match config {
        Config::Queue { replicas, order, progress: Progress::Ceiling { .. } | Progress::Floor { .. } } => {
            Config::Queue { replicas, order, progress: Progress::Inheritance }
        }
        config => config,
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::{EngineOrder, Nanos};

    use super::*;

    const TOKEN: LockId = LockId(0);
    const ENGINE: LockId = LockId(1);

    /// The smaller the number the more urgent.
    fn base(task: u32) -> Priority {
        Priority::of(u64::from(task) + 1, TaskId(task))
    }

    fn request(state: &mut State, task: u32, lock: LockId) -> Outcome {
        let event = Event::Request { task: TaskId(task), lock, length: Nanos::ZERO, only: None };
        state.handle(base(task), event)
    }

    fn unlock(state: &mut State, task: u32, lock: LockId) -> Outcome {
        state.handle(base(task), Event::Unlock { task: TaskId(task), lock })
    }

    fn outcome(grants: &[(u32, u16)], changes: &[(u32, Option<u32>)]) -> Outcome {
        Outcome {
            grants: grants.iter().map(|&(task, replica)| (TaskId(task), ReplicaId(replica))).collect(),
            changes: changes.iter().map(|&(task, heir)| (TaskId(task), heir.map(TaskId))).collect(),
        }
    }

    #[test]
    fn tasks_that_go_on_waiting_sleep_for_the_next_holder_without_waking() {
        let engine = Config::engine(EngineOrder::Priority);
        let mut state = State::new(5, &[engine.clone(), engine]);
        assert_eq!(request(&mut state, 4, TOKEN), outcome(&[(4, 0)], &[]));
        assert_eq!(request(&mut state, 3, TOKEN), outcome(&[], &[(3, Some(4))]));
        assert_eq!(request(&mut state, 1, TOKEN), outcome(&[], &[(1, Some(4))]));
        // The most urgent one is next, and the other one sleeps for it.
        assert_eq!(unlock(&mut state, 4, TOKEN), outcome(&[(1, 0)], &[(3, Some(1))]));
        assert_eq!(unlock(&mut state, 1, TOKEN), outcome(&[(3, 0)], &[]));
        assert_eq!(unlock(&mut state, 3, TOKEN), outcome(&[], &[]));
        assert!(state.sleeps.iter().all(|sleep| *sleep == Sleep::Not));
    }

    #[test]
    fn tokens_are_granted_first_come_first_served_where_there_is_room_and_others_sleep_for_none_or_donate() {
        // One token, a FIFO queue of two, holder included, on one CPU.
        let tokens = Config::Tokens { gpus: 1, tokens: 1, fifo_length: 2, fifo_requests: 2, cpus: 1, migration: None };
        let mut state = State::new(5, &[tokens, Config::engine(EngineOrder::Priority)]);
        assert_eq!(request(&mut state, 4, TOKEN), outcome(&[(4, 0)], &[]));
        assert_eq!(request(&mut state, 3, TOKEN), outcome(&[], &[(3, Some(4))]));
        // There is no room: it is the most urgent one, and donates its priority to the least urgent one, the holder.
        assert_eq!(request(&mut state, 0, TOKEN), outcome(&[], &[(0, Some(4))]));
        // This one is none of the most urgent ones, as many as there are CPUs: no task inherits from it.
        assert_eq!(request(&mut state, 2, TOKEN), outcome(&[], &[(2, None)]));
        assert_eq!(request(&mut state, 4, ENGINE), outcome(&[(4, 0)], &[]));
        assert_eq!(unlock(&mut state, 4, ENGINE), outcome(&[], &[]));
        // Its donor has its place in the queue, and waits there for the new holder, as the arbitration has it.
        assert_eq!(unlock(&mut state, 4, TOKEN), outcome(&[(3, 0)], &[(0, Some(3))]));
        assert_eq!(unlock(&mut state, 3, TOKEN), outcome(&[(0, 0)], &[(2, Some(0))]));
        assert_eq!(unlock(&mut state, 0, TOKEN), outcome(&[(2, 0)], &[]));
    }

    #[test]
    fn where_the_simulator_has_ceilings_holders_inherit() {
        let config = |progress| Config::Queue { replicas: 1, order: EngineOrder::Priority, progress };
        assert_eq!(inherited(config(Progress::Ceiling { level: (1, 2) })), config(Progress::Inheritance));
        assert_eq!(inherited(config(Progress::None)), config(Progress::None));
    }
}
