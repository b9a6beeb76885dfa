//! Giving locks back to their owner words, before a publication.

use laxity_model::{LockId, ReplicaId, TaskId};
use laxity_policy::lock::Action;

use crate::inheritance;
use crate::owner_word::{Owners, REPLICAS};
use crate::state_lock::StateGuard;

impl StateGuard<'_> {
    /// Moves the owners of locks that need no arbiter, and the waiter that may park, to the locks' words, which stay
    /// frozen until the state is published.
    pub(crate) fn reopen(&mut self) {
        let (shared, now) = (self.shared(), self.now());
        for lock in shared.lock_ids() {
            if !self.may_reopen(lock) {
                continue;
            }
            let waiter = self.lone_waiter(lock);
            for (index, word) in shared.owner_words(lock).enumerate() {
                let here = shared.replicas(lock).skip(index * REPLICAS).take(REPLICAS).enumerate();
                let holder = |replica| self.cache.arbiter.holder(lock, replica);
                let owners = here.fold(Owners::NONE, |owners, (at, replica)| owners.with(at, holder(replica)));
                waiter.map_or(owners, |waiter| owners.with_waiter(waiter)).store_frozen(word);
            }
            self.cache.disown(shared, now, lock);
        }
    }

    fn may_reopen(&self, lock: LockId) -> bool {
        let arbiter = &self.cache.arbiter;
        self.shared().lock(lock).may_open
            && !self.cache.is_open(lock)
            && (arbiter.waiting(lock) == 0 || self.lone_waiter(lock).is_some())
            // Words cannot express that an owner overran.
            && !arbiter.overran(lock)
            && !self.is_granted(lock)
    }

    /// The only waiter of `lock`, if it may park in the waiter slot: it makes the owner no more urgent, and it holds
    /// nothing in the arbiter for which another task could wait and make it more urgent.
    fn lone_waiter(&self, lock: LockId) -> Option<TaskId> {
        let (shared, arbiter) = (self.shared(), &self.cache.arbiter);
        if !shared.lock(lock).has_waiter_slot || arbiter.waiting(lock) != 1 {
            return None;
        }
        let mut waiter = None;
        arbiter.standings(lock, |task, _| waiter = Some(task));
        let (holder, waiter) = (arbiter.holder(lock, ReplicaId(0))?, waiter?);
        let may_park = arbiter.holds(waiter).next().is_none() && !inheritance::would_raise(shared, waiter, holder);
        may_park.then_some(waiter)
    }

    /// Whether `lock` is granted in this publication. Tasks that contend come back: others are likely to want the lock
    /// while it is held, and adopting its holder costs as much as granting. So the arbiter keeps the lock until a holder
    /// releases it and no task waits.
    fn is_granted(&self, lock: LockId) -> bool {
        self.cache
            .actions
            .iter()
            .any(|action| matches!(action, Action::Grant { lock: granted, .. } if *granted == lock))
    }
}
