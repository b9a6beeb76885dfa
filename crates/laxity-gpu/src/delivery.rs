//! What follows a publication: thawed words, delivered grants, applied priorities. All of it may be repeated.

use laxity_model::{ReplicaId, TaskId};
use laxity_policy::lock::Action;

use crate::client_word::ClientWord;
use crate::inheritance;
use crate::owner_word;
use crate::state_lock::StateGuard;
use crate::step;

impl StateGuard<'_> {
    /// The second half of [`StateGuard::publish`]. If its thread is killed in between, [`StateGuard::repair`] does it
    /// again.
    pub(crate) fn deliver_all(&mut self) {
        for &lock in &self.cache.reopened {
            self.shared().owner_words(lock).for_each(owner_word::thaw);
        }
        let mut actions = std::mem::take(&mut self.cache.actions);
        for action in actions.drain(..) {
            step::point();
            self.cache.touched.push(action.task());
            match action {
                Action::Grant { task, replica, .. } => self.deliver(task, replica),
                Action::Prioritize { priority } => self.schedule(priority.task),
            }
        }
        self.cache.actions = actions;
        self.raise_followers_for(&self.cache.touched);
        self.shared().wake_if_asleep(&self.shared().layout.holder_watch);
    }

    /// Does what follows from the state again: the thread that published it was killed, perhaps before it was done.
    pub(crate) fn repair(&mut self) {
        let shared = self.shared();
        for lock in shared.lock_ids() {
            if self.cache.is_open(lock) {
                shared.owner_words(lock).for_each(owner_word::thaw);
            }
        }
        for task in shared.tasks() {
            if !self.cache.is_registered(task) {
                continue;
            }
            self.schedule(task);
            if shared.is_waiting(task) && self.cache.arbiter.waits_for(task).is_none() {
                // A lock that is granted is not reopened in the same publication, so the arbiter knows the grant.
                let granted = shared.wanted(task).and_then(|lock| self.granted(task, lock));
                granted.into_iter().for_each(|replica| self.deliver(task, replica));
                // The task may have been handed a lock over whose word was frozen when it looked.
                shared.notify(task);
            }
        }
        self.raise_all_followers();
        self.shared().wake_if_asleep(&self.shared().layout.holder_watch);
        // The killed thread may not have woken these. A wake-up too many does no harm.
        for task in std::mem::take(&mut self.woken) {
            shared.wake(task);
        }
    }

    fn deliver(&mut self, task: TaskId, replica: ReplicaId) {
        ClientWord::Granted(replica).store(self.shared().word(task));
        self.woken.push(task);
    }

    /// Has Linux schedule the thread of `task` as its effective priority demands.
    fn schedule(&self, task: TaskId) {
        inheritance::apply(self.shared(), task, self.demand(task));
    }
}
