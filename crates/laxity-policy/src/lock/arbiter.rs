//! All locks of a workload, and the effective priorities that follow from who waits for whom.

use laxity_model::{Instant, LockId, Nanos, ReplicaId, TaskId};

use crate::cpu::Priority;

use super::boosts::Boosts;
use super::build::build;
use super::deadlock::circle;
use super::discipline::{Config, Discipline, Grant, Progress, Request, Standing};
use super::holdings::{Held, Holdings, Wait};
use super::priorities::Priorities;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A job of `priority.task` became pending, with that base priority. It holds nothing.
    Pending {
        /// Its base priority.
        priority: Priority,
    },
    /// The pending job of `task` is complete; it holds nothing and waits for nothing.
    Complete {
        /// The task.
        task: TaskId,
    },
    /// The pending job of `task` asks for `lock`.
    Request {
        /// The task.
        task: TaskId,
        /// The lock.
        lock: LockId,
        /// Bound on how long it will hold it.
        length: Nanos,
        /// The only GPU of the lock's pool that will do, by its position there.
        only: Option<u16>,
    },
    /// It holds `replica`, free till now, of `lock`, for which nobody waits: the driver granted it what a request would
    /// have been granted, as locks for which nobody waits need no arbiter. When that is told matters to nobody, if the
    /// base priority of a job stays the same while it holds, and nothing is predicted.
    Adopt {
        /// The task.
        task: TaskId,
        /// The lock.
        lock: LockId,
        /// The replica, the smallest that was free and would do.
        replica: ReplicaId,
        /// What its request said of the length.
        length: Nanos,
        /// And of the GPU.
        only: Option<u16>,
    },
    /// It gives `lock` up.
    Unlock {
        /// The task.
        task: TaskId,
        /// The lock.
        lock: LockId,
    },
    /// The base priority of the pending job of `priority.task` is this one from now on (its deadline was postponed).
    Rebase {
        /// Its base priority.
        priority: Priority,
    },
    /// It holds `lock` and its budget is exhausted: the next waiter is admitted as if it had unlocked, and is granted
    /// the lock when it does (GPUSync's rules; other locks take no notice).
    Overrun {
        /// The task.
        task: TaskId,
        /// The lock.
        lock: LockId,
    },
    /// It waits for `lock` no longer (its budget is exhausted).
    Withdraw {
        /// The task.
        task: TaskId,
        /// The lock.
        lock: LockId,
    },
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The request of `task` for `lock` is granted.
    Grant {
        /// The task.
        task: TaskId,
        /// The lock.
        lock: LockId,
        /// Which replica.
        replica: ReplicaId,
    },
    /// The effective priority of the job of `priority.task` is this one from now on.
    Prioritize {
        /// Its effective priority.
        priority: Priority,
    },
}

impl Event {
    /// The task that it happened to.
    pub const fn task(&self) -> TaskId {
        match *self {
            Event::Pending { priority } | Event::Rebase { priority } => priority.task,
            Event::Complete { task }
            | Event::Request { task, .. }
            | Event::Adopt { task, .. }
            | Event::Unlock { task, .. }
            | Event::Overrun { task, .. }
            | Event::Withdraw { task, .. } => task,
        }
    }
}

impl Action {
    /// The task that it is about.
    pub const fn task(&self) -> TaskId {
        match *self {
            Action::Grant { task, .. } => task,
            Action::Prioritize { priority } => priority.task,
        }
    }
}

/// A lock and how contended it is.
#[derive(Debug)]
struct Lock {
    discipline: Box<dyn Discipline>,
    progress: Progress,
    replicas: u16,
    gpus: u16,
    /// Whether the discipline keeps something about tasks that neither hold it nor wait for it.
    remembers: bool,
    /// How many jobs hold it or wait for it.
    users: u32,
    /// How many jobs wait for it.
    waiting: u32,
    /// Scratch: whether it was idle before a state was loaded.
    was_idle: bool,
}

impl Lock {
    /// Whether the discipline is as if new, so that there is nothing to save.
    fn is_idle(&self) -> bool {
        self.users == 0 && !self.remembers
    }
}

/// The locks of a workload and the effective priorities of its jobs.
///
/// A job's effective priority is the highest of its base priority, the levels to which the locks it holds raise it
/// (ceilings, floors, boosts), and the effective priorities of those it inherits from, through any number of locks.
///
/// Every event but `Pending` and `Complete` is handled in three steps:
///
/// ```text
///   discipline of the lock ──grants──► relax along the give-edges ──► report changed priorities
///                                          │            ▲
///                                          └─reordered──┘  where a waiting job's priority changed
/// ```
///
/// Inheritance is computed from scratch, over the locks somebody waits for: what is no longer given is lost at that
/// very instant, and a cycle of give-edges (a deadlock) ends like any other graph, as priorities only rise while
/// relaxing.
///
/// Events that make no sense (an unlock by who does not hold, a request by who waits) are errors of the driver and
/// panic.
#[derive(Debug)]
pub struct Arbiter {
    locks: Vec<Lock>,
    /// The locks somebody waits for, in no order that matters.
    contended: Vec<LockId>,
    holdings: Holdings,
    priorities: Priorities,
    boosts: Boosts,
    /// Scratch, empty between events.
    grants: Vec<Grant>,
    /// Scratch, empty between events.
    unsorted: Vec<LockId>,
}

impl Arbiter {
    /// No job pending; locks as configured, `LockId` being the position.
    pub fn new(tasks: usize, locks: &[Config]) -> Self {
        let lock = |config: &Config| Lock {
            discipline: build(config),
            progress: config.progress(),
            replicas: config.replicas(),
            gpus: config.gpus(),
            remembers: config.remembers(),
            users: 0,
            waiting: 0,
            was_idle: true,
        };
        Arbiter {
            locks: locks.iter().map(lock).collect(),
            contended: Vec::new(),
            holdings: Holdings::new(tasks),
            priorities: Priorities::new(tasks),
            boosts: Boosts::default(),
            grants: Vec::new(),
            unsorted: Vec::new(),
        }
    }

    /// Takes note of `event` and appends what follows: grants first, then changed priorities by task.
    pub fn handle(&mut self, now: Instant, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Pending { priority } => self.priorities.begin(priority),
            Event::Complete { task } => self.complete(task),
            Event::Request { task, lock, length, only } => {
                self.request(now, lock, Request { task, length, only }, actions);
                self.settle(now, actions);
            }
            Event::Adopt { task, lock, replica, length, only } => {
                self.adopt(now, lock, Request { task, length, only }, replica);
                self.settle(now, actions);
            }
            Event::Unlock { task, lock } => {
                self.unlock(now, task, lock, actions);
                self.settle(now, actions);
            }
            Event::Withdraw { task, lock } => {
                self.withdraw(now, task, lock, actions);
                self.settle(now, actions);
            }
            Event::Rebase { priority } => {
                self.priorities.rebase(priority);
                self.raise(priority.task);
                self.settle(now, actions);
            }
            Event::Overrun { task, lock } => {
                assert!(self.holds(task).any(|(held, _)| held == lock), "only a holder overruns");
                let levels = self.priorities.levels();
                self.locks[lock.index()].discipline.overrun(now, task, levels, &mut self.grants);
                self.hand_out(now, lock, actions);
                self.settle(now, actions);
            }
        }
    }

    /// `task`, which has no pending job, is another one from now on: nothing is predicted from what it did before.
    pub fn forget(&mut self, task: TaskId) {
        assert!(self.base(task).is_none(), "a task with a pending job is not replaced");
        self.locks.iter_mut().for_each(|lock| lock.discipline.forget(task));
    }

    /// The effective priority of the pending job of `task`.
    pub fn priority(&self, task: TaskId) -> Option<Priority> {
        self.priorities.effective(task)
    }

    /// The base priority of the pending job of `task`.
    pub fn base(&self, task: TaskId) -> Option<Priority> {
        self.priorities.base(task)
    }

    /// How many jobs hold `lock` or wait for it.
    pub fn users(&self, lock: LockId) -> usize {
        self.locks[lock.index()].users as usize
    }

    /// How many jobs wait for `lock`.
    pub fn waiting(&self, lock: LockId) -> usize {
        self.locks[lock.index()].waiting as usize
    }

    /// Whether somebody holds `lock` who overran ([`Event::Overrun`]), and whose place another may have.
    pub fn overran(&self, lock: LockId) -> bool {
        self.locks[lock.index()].discipline.overran()
    }

    /// Calls `stands` for everyone who waits for `lock`, those of a queue in its order.
    pub fn standings(&self, lock: LockId, mut stands: impl FnMut(TaskId, Standing)) {
        self.locks[lock.index()].discipline.standings(&mut stands);
    }

    /// Who holds `replica` of `lock`.
    pub fn holder(&self, lock: LockId, replica: ReplicaId) -> Option<TaskId> {
        self.locks.get(lock.index())?.discipline.holder(replica)
    }

    /// What `task` holds, in the order of grant.
    pub fn holds(&self, task: TaskId) -> impl Iterator<Item = (LockId, ReplicaId)> {
        self.holdings.held(task).iter().map(|held| (held.lock, held.replica))
    }

    /// The lock that `task` waits for.
    pub fn waits_for(&self, task: TaskId) -> Option<LockId> {
        self.holdings.wait_of(task).map(|wait| wait.lock)
    }

    /// Tasks that wait for each other in a circle and for ever, each for a lock that the next holds. Looks at all
    /// tasks: for when nothing else happens any more.
    pub fn deadlock(&self) -> Option<Vec<TaskId>> {
        let mut blockers = vec![Vec::new(); self.holdings.tasks()];
        for (task, wait) in self.holdings.waits() {
            let Lock { discipline, replicas, gpus, .. } = &self.locks[wait.lock.index()];
            let accepted = (0..*replicas).filter(|replica| wait.only.is_none_or(|only| only == replica % gpus));
            blockers[task.index()].extend(accepted.filter_map(|replica| discipline.holder(ReplicaId(replica))));
        }
        circle(&blockers)
    }

    fn complete(&mut self, task: TaskId) {
        assert!(self.holdings.held(task).is_empty(), "a job unlocks what it holds before it completes");
        assert!(self.holdings.wait_of(task).is_none(), "a job that waits cannot complete");
        self.priorities.end(task);
    }

    fn request(&mut self, now: Instant, lock: LockId, request: Request, actions: &mut Vec<Action>) {
        let Request { task, only, .. } = request;
        assert!(self.priority(task).is_some(), "only a pending job asks for a lock");
        let order = if self.boosts(lock) { self.boosts.request() } else { 0 };
        self.holdings.wait(task, Wait { lock, only, order });
        self.locks[lock.index()].users += 1;
        self.count_waiting(lock, 1);
        self.locks[lock.index()].discipline.request(now, request, self.priorities.levels(), &mut self.grants);
        self.hand_out(now, lock, actions);
    }

    fn unlock(&mut self, now: Instant, task: TaskId, lock: LockId, actions: &mut Vec<Action>) {
        let held = self.holdings.give_up(task, lock);
        self.locks[lock.index()].users -= 1;
        if held.level.is_some() {
            self.raise(task);
        }
        if self.boosts(lock) {
            self.boosts.finish();
        }
        self.locks[lock.index()].discipline.unlock(now, task, self.priorities.levels(), &mut self.grants);
        self.hand_out(now, lock, actions);
    }

    fn withdraw(&mut self, now: Instant, task: TaskId, lock: LockId, actions: &mut Vec<Action>) {
        self.holdings.end_wait(task, lock);
        self.locks[lock.index()].users -= 1;
        self.count_waiting(lock, -1);
        if self.boosts(lock) {
            self.boosts.finish();
        }
        self.locks[lock.index()].discipline.withdraw(now, task, self.priorities.levels(), &mut self.grants);
        self.hand_out(now, lock, actions);
    }

    /// Carries out what the discipline of `lock` granted.
    fn hand_out(&mut self, now: Instant, lock: LockId, actions: &mut Vec<Action>) {
        let mut grants = std::mem::take(&mut self.grants);
        for Grant { task, replica } in grants.drain(..) {
            let wait = self.holdings.end_wait(task, lock);
            self.count_waiting(lock, -1);
            let level = self.locks[lock.index()].progress.level_from_grant(now, wait.order);
            self.holdings.hold(task, Held { lock, replica, level });
            if level.is_some() {
                self.raise(task);
            }
            actions.push(Action::Grant { task, lock, replica });
        }
        self.grants = grants;
    }

    /// Makes effective priorities what they are to be, and reports those that changed.
    fn settle(&mut self, now: Instant, actions: &mut Vec<Action>) {
        self.relax();
        // Once sorted anew a discipline may give to others, which may change priorities at another lock, and so on: a
        // chain of locks, no longer than their number.
        for _ in 0..self.locks.len() {
            if !self.sort_again(now, actions) {
                break;
            }
            self.relax();
        }
        self.priorities.report(|priority| actions.push(Action::Prioritize { priority }));
    }

    /// Computes effective priorities from scratch: the least that no give-edge can raise.
    fn relax(&mut self) {
        let Arbiter { locks, contended, priorities, .. } = self;
        priorities.restart();
        loop {
            let mut raised = false;
            for lock in contended.iter() {
                let discipline = &locks[lock.index()].discipline;
                discipline.inheritance(&mut |from, to| raised |= priorities.give(from, to));
            }
            if !raised {
                return;
            }
        }
    }

    /// Lets the locks sort their queues where a waiting job's priority changed. Says whether there were any.
    fn sort_again(&mut self, now: Instant, actions: &mut Vec<Action>) -> bool {
        let Arbiter { holdings, priorities, unsorted, .. } = self;
        priorities.each_moved(|task| unsorted.extend(holdings.wait_of(task).map(|wait| wait.lock)));
        let mut unsorted = std::mem::take(&mut self.unsorted);
        unsorted.sort_unstable();
        unsorted.dedup();
        let any = !unsorted.is_empty();
        for lock in unsorted.drain(..) {
            self.locks[lock.index()].discipline.reordered(now, self.priorities.levels(), &mut self.grants);
            self.hand_out(now, lock, actions);
        }
        self.unsorted = unsorted;
        any
    }

    /// The locks that `task` holds have changed.
    fn raise(&mut self, task: TaskId) {
        self.priorities.raise(task, self.holdings.held(task).iter().filter_map(|held| held.level));
    }

    fn boosts(&self, lock: LockId) -> bool {
        self.locks[lock.index()].progress == Progress::Boosting
    }

    /// `change` more jobs wait for `lock`, which is contended while there are any.
    fn count_waiting(&mut self, lock: LockId, change: i32) {
        let waiting = &mut self.locks[lock.index()].waiting;
        let before = *waiting;
        *waiting = before.checked_add_signed(change).expect("who no longer waits was counted");
        match (before, *waiting) {
            (0, 1) => self.contended.push(lock),
            (1, 0) => self.contended.retain(|&contended| contended != lock),
            _ => {}
        }
    }

    /// Panics if an invariant does not hold.
    pub fn assert_invariants(&self) {
        self.priorities.assert_invariants();
        for (index, lock) in self.locks.iter().enumerate() {
            lock.discipline.assert_invariants();
            let id = LockId(index as u16);
            let waiting = self.holdings.waits().filter(|(_, wait)| wait.lock == id).count();
            assert_eq!(waiting, lock.waiting as usize, "who waits is miscounted");
            let contended = self.contended.iter().filter(|&&contended| contended == id).count();
            assert_eq!(contended, usize::from(waiting > 0), "a lock is contended while somebody waits for it");
            let holders = (0..lock.replicas).filter(|&replica| self.holder(id, ReplicaId(replica)).is_some()).count();
            let tasks = (0..self.holdings.tasks() as u32).map(TaskId);
            let held = tasks.filter(|&task| self.holds(task).any(|(lock, _)| lock == id)).count();
            assert_eq!(holders, held, "the discipline knows of other holders than the tasks");
            assert_eq!(held + waiting, lock.users as usize, "who holds or waits is miscounted");
            let mut numbers = Vec::new();
            lock.discipline.save(&mut numbers);
            assert!(!lock.is_idle() || numbers.iter().all(|&number| number == 0), "a lock's state is not saved");
        }
        for task in (0..self.holdings.tasks() as u32).map(TaskId) {
            for (lock, replica) in self.holds(task) {
                assert_eq!(self.holder(lock, replica), Some(task), "a replica has one holder");
            }
        }
    }
}

mod saving;

#[cfg(test)]
mod tests;
