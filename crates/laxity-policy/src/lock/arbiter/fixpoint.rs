//! Effective priorities: the least fixpoint of the give-edges of all locks.

use laxity_model::{Instant, TaskId};

use super::{Action, Arbiter};

impl Arbiter {
    /// Makes effective priorities what they are to be, and reports those that changed.
    pub(super) fn settle(&mut self, now: Instant, actions: &mut Vec<Action>) {
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
    pub(in crate::lock) fn relax(&mut self) {
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
    pub(in crate::lock) fn raise(&mut self, task: TaskId) {
        self.priorities.raise(task, self.holdings.held(task).iter().filter_map(|held| held.level));
    }
}
