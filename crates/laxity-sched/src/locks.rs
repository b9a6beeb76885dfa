//! Changing the state of the locks: one thread of all processes at a time, under a state lock of their own.
//!
//! ```text
//!  lock ---> the arbiter decides ---> publish ---> for each cluster: lock, bring its tasks in line, publish ---> unlock
//! ```
//!
//! What the arbiter decided is the state; what clusters do is brought in line with it, for each task by itself: its
//! effective priority, and whether it waits. That may be repeated: the next thread does it again, for all tasks, if the
//! state lock's last holder was killed. The state lock of the locks is taken before that of a cluster, never after.

use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

use laxity_model::{Instant, LockId, ReplicaId, TaskId};
use laxity_policy::cpu::{Priority, Standing};
use laxity_policy::lock::{Action, Event};
use laxity_sys::{clock, mutex};
use smallvec::SmallVec;

use crate::cluster_cache::ClusterCache;
use crate::config::Rule;
use crate::decision::{Change, Decision, Grant};
use crate::locks_cache::LocksCache;
use crate::shared::Shared;
use crate::state_lock::{ClusterGuard, StateError};
use crate::step::{self, Sleep};

/// Of the word of a request: its thread waits, or may have to. Without a request the word is 0; with a replica, more.
pub(crate) const WAITING: u32 = 1;

/// The replica that the word of a request says was granted.
pub(crate) fn granted(word: u32) -> Option<ReplicaId> {
    word.checked_sub(WAITING + 1).map(|replica| ReplicaId(replica as u16))
}

/// The level above all jobs.
fn top(task: TaskId) -> (u64, u32) {
    (0, task.0)
}

/// The state lock of the locks, held. Unpublished changes did not happen.
#[derive(Debug)]
pub(crate) struct LocksGuard<'a> {
    shared: &'a Shared,
    pub cache: MutexGuard<'a, LocksCache>,
    version: u64,
    pub now: Instant,
    touched: SmallVec<[TaskId; 4]>,
    grants: SmallVec<[Grant; 2]>,
    /// The task whose job completes with this.
    completes: Option<TaskId>,
    _mutex: mutex::Guard<'a>,
}

/// What followed from what happened to locks.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// When the arbiter decided.
    pub at: Instant,
    pub grants: SmallVec<[Grant; 2]>,
    /// Those of the clusters, in the order in which they were taken.
    pub decisions: SmallVec<[Decision; 1]>,
}

impl Shared {
    /// Waits for the state lock of the locks. The caller holds that of no cluster.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn lock_locks(&self) -> Result<LocksGuard<'_>, StateError> {
        let index = self.locks_index();
        step::point();
        let mutex = self.spin_then_lock(index).map_err(StateError::System)?;
        let cache = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        let version = self.version(index).load(Ordering::Acquire);
        let is_inherited = mutex.is_inherited;
        let (touched, grants) = (SmallVec::new(), SmallVec::new());
        let now = clock::now();
        let mut locks =
            LocksGuard { shared: self, cache, version, now, touched, grants, completes: None, _mutex: mutex };
        locks.cache.actions.clear();
        if is_inherited || locks.cache.version != Some(version) {
            locks.cache.load(self, version).map_err(StateError::Damaged)?;
        }
        if is_inherited {
            locks.touched.extend(self.tasks());
            locks.deliver(None)?;
        }
        Ok(locks)
    }

    /// Takes back what `task`, whose thread leaves or has ended, holds and requests.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn unlock_all_of(&self, task: TaskId) -> Result<(), StateError> {
        self.unlock_all_if(task, || true)
    }

    /// The same if that `is_so`, asked when no lock can change hands. Another thread may have got the number of one that has
    /// ended since that was last looked at.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn unlock_all_if(&self, task: TaskId, is_so: impl Fn() -> bool) -> Result<(), StateError> {
        let mut locks = self.lock_locks()?;
        if !is_so() {
            return Ok(());
        }
        let serves = locks.cache.service(task).is_some();
        if locks.cache.arbiter.base(task).is_none() && !serves {
            return Ok(());
        }
        if serves {
            locks.end_service(task);
        }
        if let Some(lock) = locks.cache.arbiter.waits_for(task) {
            locks.handle(Event::Withdraw { task, lock });
        }
        let held: Vec<LockId> = locks.cache.arbiter.holds(task).map(|(lock, _)| lock).collect();
        held.into_iter().rev().for_each(|lock| locks.handle(Event::Unlock { task, lock }));
        self.request(task).store(0, Ordering::SeqCst);
        locks.publish(None).map(drop)
    }

    /// The level that the present job of `task` gave itself, or that of its own right.
    pub fn own_level(&self, task: TaskId) -> (u64, u32) {
        if self.is_above(task) { top(task) } else { self.base(task).level() }
    }

    /// The priority of the present job of `task` in its own right.
    pub fn base(&self, task: TaskId) -> Priority {
        let words = self.task(task);
        let word = if self.config.rule == Rule::Edf { words.deadline } else { words.level };
        Priority::of(self.long(word), task)
    }
}

impl LocksGuard<'_> {
    /// The arbiter handles `event`. It knows a job from its first request to its last unlock.
    pub fn handle(&mut self, event: Event) {
        let task = event.task();
        let LocksCache { version, arbiter, actions, .. } = &mut *self.cache;
        *version = None;
        if arbiter.base(task).is_none() {
            arbiter.handle(self.now, Event::Pending { priority: self.shared.base(task) }, actions);
        }
        arbiter.handle(self.now, event, actions);
        if arbiter.holds(task).next().is_none() && arbiter.waits_for(task).is_none() {
            arbiter.handle(self.now, Event::Complete { task }, actions);
        }
        let acted: SmallVec<[Action; 4]> = actions.drain(..).collect();
        self.touch(task);
        for action in acted {
            self.touch(action.task());
            if let Action::Grant { task, lock, replica } = action {
                self.grants.push(Grant { task, lock, replica });
            }
        }
    }

    pub fn shared(&self) -> &Shared {
        self.shared
    }

    /// The job of `task`, which holds no lock any more, is complete by the decision that follows from this.
    pub fn complete(&mut self, task: TaskId) {
        self.touch(task);
        self.completes = Some(task);
    }

    /// The present job of `task` has another priority in its own right.
    pub fn rebase(&mut self, task: TaskId) {
        if self.cache.arbiter.base(task).is_none() {
            // The arbiter knows no job that neither holds nor requests.
            return self.touch(task);
        }
        self.handle(Event::Rebase { priority: self.shared.base(task) });
    }

    /// `task` is to be brought in line.
    pub fn touch(&mut self, task: TaskId) {
        if !self.touched.contains(&task) {
            self.touched.push(task);
        }
    }

    /// The effective level of the job of `task`: a job that gave itself the top priority keeps it, whatever locks say.
    pub fn level_of_job(&self, task: TaskId) -> (u64, u32) {
        if self.shared.is_above(task) {
            return top(task);
        }
        self.cache.arbiter.priority(task).unwrap_or_else(|| self.shared.base(task)).level()
    }

    /// Publishes what happened, has the clusters follow, and unlocks the state. The thread of `caller` is the calling one,
    /// which places itself after this.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn publish(mut self, caller: Option<TaskId>) -> Result<Outcome, StateError> {
        let version = self.version;
        step::point();
        self.cache.publish(self.shared, version);
        step::point();
        let decisions = self.deliver(caller)?;
        Ok(Outcome { at: self.now, grants: std::mem::take(&mut self.grants), decisions })
    }

    /// Brings the tasks that were touched in line with the state.
    fn deliver(&mut self, caller: Option<TaskId>) -> Result<SmallVec<[Decision; 1]>, StateError> {
        let mut decisions = SmallVec::new();
        if !self.touched.is_empty() {
            // They follow owners and holders, whose priorities or holds may have changed.
            let threads: SmallVec<[TaskId; 4]> = self.cache.threads().collect();
            threads.into_iter().for_each(|thread| self.touch(thread));
        }
        let touched = std::mem::take(&mut self.touched);
        for cluster in self.shared.clusters() {
            if !touched.iter().any(|&task| self.is_of(task, cluster)) {
                continue;
            }
            let mut state = self.shared.lock(cluster)?;
            for &task in touched.iter().filter(|&&task| self.is_of(task, cluster)) {
                if state.cache.is_member(task) {
                    self.bring_in_line(&mut state, task);
                }
            }
            if let Some(task) = self.completes.filter(|&task| self.is_of(task, cluster)) {
                state.change(Change::Completed { task });
            }
            decisions.push(state.publish(caller.filter(|&task| self.is_of(task, cluster))));
        }
        // Once they have the priority with which they go on.
        touched.iter().for_each(|&task| self.answer(task));
        Ok(decisions)
    }

    fn is_of(&self, task: TaskId, cluster: usize) -> bool {
        self.shared.number(self.shared.task(task).cluster) as usize == cluster
    }

    /// The job of `task` has its effective priority, and is suspended while it waits.
    fn bring_in_line(&self, state: &mut ClusterGuard<'_>, task: TaskId) {
        let arbiter = &self.cache.arbiter;
        let (standing, priority) = state.cache.policy.standing(task);
        let service = self.cache.service(task);
        let level = service.map_or_else(|| self.level_of_job(task), |service| self.level_of_service(task, service));
        match (standing, service) {
            (Standing::Inactive, None) => return,
            (Standing::Inactive, Some(service)) => {
                let owner = service.owner.filter(|&owner| self.are_one_entity(state, task, owner));
                return state.change(Change::Woken { task, owner, level });
            }
            _ => {}
        }
        if priority.level() != level {
            state.change(Change::Prioritized { task, level });
        }
        let waits = arbiter.waits_for(task).is_some();
        let has_asked = self.shared.request(task).load(Ordering::SeqCst) == WAITING;
        if waits && standing != Standing::Suspended {
            state.change(Change::Suspended { task });
        } else if !waits && has_asked && standing == Standing::Suspended {
            state.change(Change::Resumed { task });
        }
    }

    /// Whether `thread` goes before the job of `owner`. Only a thread of the owner's own cluster can be kept from running
    /// beside it, and an entity has two levels: a task that works for another one is no owner, and an owner works for none.
    fn are_one_entity(&self, state: &ClusterGuard<'_>, thread: TaskId, owner: TaskId) -> bool {
        let ClusterCache { policy, .. } = &*state.cache;
        let is_here = self.is_of(owner, state.cluster()) && state.cache.is_member(owner);
        is_here && policy.owner(owner).is_none() && policy.occupant(thread).is_none()
    }

    /// Tells the thread of `task` which replica it has, if it asked and does not wait any more.
    fn answer(&self, task: TaskId) {
        let (arbiter, request) = (&self.cache.arbiter, self.shared.request(task));
        if request.load(Ordering::SeqCst) != WAITING || arbiter.waits_for(task).is_some() {
            return;
        }
        // The lock that was granted last.
        if let Some((_, replica)) = arbiter.holds(task).last() {
            step::point();
            request.store(WAITING + 1 + u32::from(replica.0), Ordering::SeqCst);
            step::point();
            step::wake(task, Sleep::Request, request);
        }
    }
}
