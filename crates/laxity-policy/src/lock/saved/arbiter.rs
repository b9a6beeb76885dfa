//! The state of all locks together.

use laxity_model::{LockId, ReplicaId, TaskId};

use super::{Codec, Damaged};
use crate::cpu::Priority;
use crate::lock::arbiter::{Arbiter, Lock};
use crate::lock::holdings::Held;

impl Arbiter {
    /// Appends its state to `numbers`, at most [`Arbiter::saved_max`] of them. To be called between events.
    ///
    /// Saved are pending jobs with their base priorities, what they hold and wait for, and the state of the waiting
    /// discipline of every lock that one of them holds or waits for, or that predicts. All else follows: a job's own
    /// priority from what it holds, effective priorities from which job waits for which, as they are computed from
    /// scratch at every event and never depend on how they came about.
    ///
    /// It changes nothing; `&mut` because one description of the state serves for saving and loading.
    pub fn save(&mut self, numbers: &mut Vec<u64>) {
        let codec = &mut Codec::save(numbers, self.holdings.tasks());
        let mut save = || {
            self.boosts.code(codec)?;
            codec.count(self.priorities.pending().count(), usize::MAX)?;
            for task in self.priorities.pending() {
                let mut priority = self.priorities.base(task).expect("it is pending");
                codec.priority(&mut priority)?;
                self.holdings.code(task, codec, self.locks.len(), |lock| self.locks[lock.index()].replicas)?;
            }
            let busy = self.locks.iter_mut().filter(|lock| !lock.is_idle());
            { busy }.try_for_each(|lock| lock.discipline.code(codec))
        };
        save().expect("what is saved is not checked");
    }

    /// Takes on the state that an arbiter of as many tasks and the same locks saved.
    ///
    /// # Errors
    /// [`Damaged`] if `numbers` are not such a state; it is as if new then. Whether they also obey every rule of the
    /// protocols is for [`Arbiter::assert_invariants`] to say.
    pub fn load(&mut self, numbers: &[u64]) -> Result<(), Damaged> {
        let loaded = self.try_load(numbers);
        if loaded.is_err() {
            self.clear();
        }
        loaded
    }

    /// The most numbers that it saves.
    pub fn saved_max(&self) -> usize {
        let tasks = self.holdings.tasks();
        let replicas = self.locks.iter().map(|lock| usize::from(lock.replicas)).sum();
        let disciplines: usize = self.locks.iter().map(|lock| lock.discipline.numbers_max(tasks)).sum();
        3 + 3 * tasks + self.holdings.numbers_max(replicas) + disciplines
    }

    fn try_load(&mut self, numbers: &[u64]) -> Result<(), Damaged> {
        let codec = &mut Codec::load(numbers, self.holdings.tasks());
        self.forget_all();
        self.boosts.code(codec)?;
        for _ in 0..codec.count(0, codec.tasks())? {
            let mut priority = Priority::of(0, TaskId(0));
            codec.priority(&mut priority)?;
            codec.expect(self.priority(priority.task).is_none(), "a task that is saved once")?;
            self.priorities.begin(priority);
            let Arbiter { holdings, locks, .. } = self;
            holdings.code(priority.task, codec, locks.len(), |lock| locks[lock.index()].replicas)?;
        }
        self.load_locks(codec)?;
        self.check(codec)?;
        self.derive();
        Ok(())
    }

    /// The locks, once it is known what tasks hold and wait for.
    fn load_locks(&mut self, codec: &mut Codec<'_>) -> Result<(), Damaged> {
        let Arbiter { locks, holdings, priorities, .. } = self;
        for lock in locks.iter_mut() {
            lock.was_idle = lock.is_idle();
            (lock.users, lock.waiting) = (0, 0);
        }
        for task in priorities.pending() {
            holdings.held(task).iter().for_each(|held| locks[held.lock.index()].users += 1);
            let Some(wait) = holdings.wait_of(task) else { continue };
            let Lock { users, waiting, .. } = &mut locks[wait.lock.index()];
            (*users, *waiting) = (*users + 1, *waiting + 1);
        }
        for lock in locks {
            match (lock.is_idle(), lock.was_idle) {
                (false, _) => lock.discipline.code(codec)?,
                // Nothing was saved of a lock that became idle.
                (true, false) => lock.discipline.clear(),
                (true, true) => {}
            }
        }
        Ok(())
    }

    /// Effective priorities and contended locks from the rest.
    fn derive(&mut self) {
        let Arbiter { holdings, priorities, .. } = self;
        let has_level = |task: &TaskId| holdings.held(*task).iter().any(|held| held.level.is_some());
        let raised: Vec<TaskId> = priorities.pending().filter(has_level).collect();
        raised.into_iter().for_each(|task| self.raise(task));
        self.contended.clear();
        let contended = |&lock: &LockId| self.locks[lock.index()].waiting > 0;
        self.contended.extend((0..self.locks.len() as u16).map(LockId).filter(contended));
        self.relax();
        // The driver knows them already.
        self.priorities.report(|_| {});
    }

    /// Disciplines and tasks must know of the same holders and waiters.
    fn check(&self, codec: &Codec<'_>) -> Result<(), Damaged> {
        let Arbiter { locks, holdings, priorities, .. } = self;
        for (index, lock) in locks.iter().enumerate().filter(|(_, lock)| !lock.is_idle()) {
            let id = LockId(index as u16);
            // As many as the tasks know of, each of which is among them: the same.
            let (mut waiting, mut held, mut agree) = (0, 0, true);
            lock.discipline.standings(&mut |task, _| {
                waiting += 1;
                agree &= priorities.base(task).is_some() && holdings.wait_of(task).is_some_and(|wait| wait.lock == id);
            });
            let waiters_agree = agree && lock.waiting == waiting;
            codec.expect(waiters_agree, "the end of a state in which all agree on the waiters")?;
            for replica in (0..lock.replicas).map(ReplicaId) {
                let Some(holder) = lock.discipline.holder(replica) else { continue };
                let is_it = |held: &Held| (held.lock, held.replica) == (id, replica);
                agree &= priorities.base(holder).is_some() && holdings.held(holder).iter().any(is_it);
                held += 1;
            }
            let holders_agree = agree && lock.users - lock.waiting == held;
            codec.expect(holders_agree, "the end of a state in which all agree on the holders")?;
        }
        Ok(())
    }

    /// As if new.
    fn clear(&mut self) {
        self.forget_all();
        self.contended.clear();
        self.boosts = Default::default();
        for Lock { discipline, users, waiting, .. } in &mut self.locks {
            (*users, *waiting) = (0, 0);
            discipline.clear();
        }
    }

    /// No job is pending any more. Only those that were hold anything and wait.
    fn forget_all(&mut self) {
        let Arbiter { holdings, priorities, .. } = self;
        priorities.pending().for_each(|task| holdings.forget(task));
        priorities.clear();
    }
}
