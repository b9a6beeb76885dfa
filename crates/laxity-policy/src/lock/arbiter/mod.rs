//! All locks of a workload, and the effective priorities that follow from which job waits for which.
//!
//! | File | What |
//! | --- | --- |
//! | `mod.rs` | events become calls of the waiting disciplines, and their grants become actions |
//! | `fixpoint.rs` | effective priorities |
//! | `contention.rs` | how many jobs hold a lock and wait for it |

mod contention;
mod fixpoint;

use laxity_model::{Instant, LockId, ReplicaId, TaskId};

use crate::cpu::Priority;

use super::build::build;
use super::deadlock::circle;
use super::discipline::{Config, Discipline, Grant, Progress, Request, Standing};
use super::event::{Action, Event};
use super::holdings::{Held, Holdings, Wait};
use super::priorities::Priorities;
use super::raised_levels::BoostOrder;

/// A lock and how contended it is.
#[derive(Debug)]
pub(in crate::lock) struct Lock {
    pub(in crate::lock) discipline: Box<dyn Discipline>,
    progress: Progress,
    pub(in crate::lock) replicas: u16,
    gpus: u16,
    /// Whether the discipline keeps something about tasks that neither hold it nor wait for it.
    remembers: bool,
    /// How many jobs hold it or wait for it.
    pub(in crate::lock) users: u32,
    /// How many jobs wait for it.
    pub(in crate::lock) waiting: u32,
    /// Scratch: whether it was idle before a state was loaded.
    pub(in crate::lock) was_idle: bool,
}

impl Lock {
    /// Whether the discipline is as if new, so that there is nothing to save.
    pub(in crate::lock) fn is_idle(&self) -> bool {
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
/// Inheritance is computed from scratch, over the locks that jobs wait for: what is no longer given is lost at that
/// very instant, and a cycle of give-edges (a deadlock) ends like any other graph, as priorities only rise while
/// relaxing.
///
/// Events that make no sense (an unlock by a job that does not hold the lock, a request by a job that waits) are errors of
/// the driver and panic.
#[derive(Debug)]
pub struct Arbiter {
    pub(super) locks: Vec<Lock>,
    /// The locks that jobs wait for, in no order that matters.
    pub(super) contended: Vec<LockId>,
    pub(super) holdings: Holdings,
    pub(super) priorities: Priorities,
    pub(super) boosts: BoostOrder,
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
            boosts: BoostOrder::default(),
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

    /// Whether a holder of `lock` overran ([`Event::Overrun`]): another job may have its place in the queue.
    pub fn overran(&self, lock: LockId) -> bool {
        self.locks[lock.index()].discipline.overran()
    }

    /// Calls `stands` for every task that waits for `lock`, those of a queue in its order.
    pub fn standings(&self, lock: LockId, mut stands: impl FnMut(TaskId, Standing)) {
        self.locks[lock.index()].discipline.standings(&mut stands);
    }

    /// The task that holds `replica` of `lock`.
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

    /// Calls `gives` for each task that waits and each task that inherits from it at once, rather than through another one: the
    /// holder of what it waits for, or the one that it is a donor of.
    pub fn heirs(&self, mut gives: impl FnMut(TaskId, TaskId)) {
        for lock in &self.contended {
            self.locks[lock.index()].discipline.inheritance(&mut gives);
        }
    }

    /// The tasks that wait for a lock.
    pub fn waiters(&self) -> impl Iterator<Item = TaskId> {
        self.holdings.waits().map(|(task, _)| task)
    }

    /// Tasks that wait for each other in a circle and for ever, each for a lock that the next holds. Looks at all
    /// tasks, so call it when nothing else can happen.
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

    /// Takes over `request`, granted by the driver, as [`Event::Adopt`] says.
    fn adopt(&mut self, now: Instant, lock: LockId, request: Request, replica: ReplicaId) {
        let task = request.task;
        assert!(self.priority(task).is_some(), "only a pending job holds a lock");
        assert_eq!(self.locks[lock.index()].waiting, 0, "no job waits for a lock that the driver grants");
        assert_eq!(self.holder(lock, replica), None, "a replica has one holder");
        assert!(self.holds(task).all(|(held, _)| held != lock), "a job is granted a lock that it holds");
        let order = if self.boosts(lock) { self.boosts.request() } else { 0 };
        let Lock { discipline, progress, users, .. } = &mut self.locks[lock.index()];
        discipline.adopt(now, request, replica, self.priorities.levels());
        let level = progress.level_from_grant(now, order);
        *users += 1;
        self.holdings.hold(task, Held { lock, replica, level });
        if level.is_some() {
            self.raise(task);
        }
    }

    /// Forgets the holders of `lock` and the tasks that wait for it, without granting anything: the driver keeps them
    /// from now on, as before [`Event::Adopt`]. Appends the priorities that change.
    ///
    /// # Panics
    /// If the discipline keeps more than the driver can: a holder that overran, or past holds for a prediction.
    pub fn disown(&mut self, now: Instant, lock: LockId, actions: &mut Vec<Action>) {
        assert!(!self.overran(lock), "a holder that overran has no place that the driver could keep");
        assert!(!self.locks[lock.index()].remembers, "past holds are the arbiter's to keep");
        let mut waiters = Vec::new();
        self.standings(lock, |task, _| waiters.push(task));
        for task in waiters {
            self.holdings.end_wait(task, lock);
            self.forget_user(lock);
            self.count_waiting(lock, -1);
        }
        for replica in (0..self.locks[lock.index()].replicas).map(ReplicaId) {
            let Some(task) = self.holder(lock, replica) else { continue };
            let held = self.holdings.give_up(task, lock);
            self.forget_user(lock);
            if held.level.is_some() {
                self.raise(task);
            }
        }
        self.locks[lock.index()].discipline.clear();
        self.settle(now, actions);
    }

    /// A job neither holds `lock` nor waits for it any more.
    fn forget_user(&mut self, lock: LockId) {
        self.locks[lock.index()].users -= 1;
        if self.boosts(lock) {
            self.boosts.finish();
        }
    }

    fn unlock(&mut self, now: Instant, task: TaskId, lock: LockId, actions: &mut Vec<Action>) {
        let held = self.holdings.give_up(task, lock);
        self.forget_user(lock);
        if held.level.is_some() {
            self.raise(task);
        }
        self.locks[lock.index()].discipline.unlock(now, task, self.priorities.levels(), &mut self.grants);
        self.hand_out(now, lock, actions);
    }

    fn withdraw(&mut self, now: Instant, task: TaskId, lock: LockId, actions: &mut Vec<Action>) {
        self.holdings.end_wait(task, lock);
        self.forget_user(lock);
        self.count_waiting(lock, -1);
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

    fn boosts(&self, lock: LockId) -> bool {
        self.locks[lock.index()].progress == Progress::Boosting
    }
}
