//! How many jobs hold each lock and wait for it, and which locks are contended.

use laxity_model::{LockId, ReplicaId, TaskId};

use super::Arbiter;

impl Arbiter {
    /// `change` more jobs wait for `lock`, which is contended while there are any.
    pub(super) fn count_waiting(&mut self, lock: LockId, change: i32) {
        let waiting = &mut self.locks[lock.index()].waiting;
        let before = *waiting;
        *waiting = before.checked_add_signed(change).expect("a job that stops waiting was counted");
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
            assert_eq!(waiting, lock.waiting as usize, "waiting jobs are miscounted");
            let contended = self.contended.iter().filter(|&&contended| contended == id).count();
            assert_eq!(contended, usize::from(waiting > 0), "a lock is contended while a job waits for it");
            let holders = (0..lock.replicas).filter(|&replica| self.holder(id, ReplicaId(replica)).is_some()).count();
            let tasks = (0..self.holdings.tasks() as u32).map(TaskId);
            let held = tasks.filter(|&task| self.holds(task).any(|(lock, _)| lock == id)).count();
            assert_eq!(holders, held, "the discipline knows of other holders than the tasks");
            assert_eq!(held + waiting, lock.users as usize, "jobs that hold or wait are miscounted");
            assert!(lock.users > 0 || !lock.discipline.overran(), "a lock that is not in use has a state to save");
        }
        for task in (0..self.holdings.tasks() as u32).map(TaskId) {
            for (lock, replica) in self.holds(task) {
                assert_eq!(self.holder(lock, replica), Some(task), "a replica has one holder");
            }
        }
    }
}
