//! The state of all locks as numbers, and back.

use laxity_model::{Instant, LockId, ReplicaId, TaskId};

use super::super::saved::{Damaged, Numbers};
use super::{Arbiter, Lock};
use crate::cpu::Priority;

impl Arbiter {
    /// Appends its state to `numbers`, at most [`Arbiter::saved_max`] of them. To be called between events.
    ///
    /// Saved are pending jobs with their base priorities, what they hold and wait for, and the state of the waiting
    /// discipline of every lock that one of them holds or waits for, or that predicts. All else follows: a job's own
    /// priority from what it holds, effective priorities from who waits for whom, as they are computed from scratch at
    /// every event and never depend on how they came about.
    pub fn save(&self, numbers: &mut Vec<u64>) {
        self.boosts.save(numbers);
        numbers.push(self.priorities.pending().count() as u64);
        for task in self.priorities.pending() {
            let Priority { major, tie, .. } = self.base(task).expect("it is pending");
            numbers.extend([task.0.into(), major, tie.into()]);
            self.holdings.save(task, numbers);
        }
        self.locks.iter().filter(|lock| !lock.is_idle()).for_each(|lock| lock.discipline.save(numbers));
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
        let disciplines: usize = self.locks.iter().map(|lock| lock.discipline.saved_max(tasks)).sum();
        3 + 3 * tasks + self.holdings.saved_max(replicas) + disciplines
    }

    fn try_load(&mut self, numbers: &[u64]) -> Result<(), Damaged> {
        let numbers = &mut Numbers::new(numbers, self.holdings.tasks());
        self.forget_all();
        self.boosts.load(numbers)?;
        for _ in 0..numbers.count(numbers.tasks())? {
            let (task, major, tie) = (numbers.task()?, numbers.any()?, numbers.u32()?);
            if self.priority(task).is_some() {
                return Err(numbers.damaged("a task that is saved once"));
            }
            self.priorities.begin(Priority { major, tie, task });
            let Arbiter { holdings, locks, .. } = self;
            holdings.load(task, numbers, locks.len(), |lock| locks[lock.index()].replicas)?;
        }
        self.load_locks(numbers)?;
        self.check(numbers)?;
        self.derive();
        Ok(())
    }

    /// The locks, once it is known what tasks hold and wait for.
    fn load_locks(&mut self, numbers: &mut Numbers<'_>) -> Result<(), Damaged> {
        let Arbiter { locks, holdings, priorities, .. } = self;
        for lock in locks.iter_mut() {
            // Of a lock that becomes idle nothing was saved, and its discipline has its state to lose.
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
                (false, _) => lock.discipline.load(numbers)?,
                (true, false) => lock.discipline.load(&mut Numbers::zeros(numbers.tasks()))?,
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

    /// Disciplines and tasks are to know of the same holders and waiters.
    fn check(&self, numbers: &Numbers<'_>) -> Result<(), Damaged> {
        let Arbiter { locks, holdings, priorities, .. } = self;
        for (index, lock) in locks.iter().enumerate().filter(|(_, lock)| !lock.is_idle()) {
            let id = LockId(index as u16);
            // As many as the tasks know of, each of which is among them: the same.
            let (mut waiting, mut held, mut agree) = (0, 0, true);
            lock.discipline.standings(&mut |task, _| {
                waiting += 1;
                agree &= priorities.base(task).is_some() && holdings.wait_of(task).is_some_and(|wait| wait.lock == id);
            });
            if !agree || lock.waiting != waiting {
                return Err(numbers.damaged("the end of a state in which all agree on who waits"));
            }
            for replica in (0..lock.replicas).map(ReplicaId) {
                let Some(holder) = lock.discipline.holder(replica) else { continue };
                let is_it = |held: &super::Held| (held.lock, held.replica) == (id, replica);
                agree &= priorities.base(holder).is_some() && holdings.held(holder).iter().any(is_it);
                held += 1;
            }
            if !agree || lock.users - lock.waiting != held {
                return Err(numbers.damaged("the end of a state in which all agree on who holds"));
            }
        }
        Ok(())
    }

    /// As if new.
    fn clear(&mut self) {
        self.forget_all();
        self.contended.clear();
        self.boosts = Default::default();
        let tasks = self.holdings.tasks();
        for Lock { discipline, users, waiting, .. } in &mut self.locks {
            (*users, *waiting) = (0, 0);
            discipline.load(&mut Numbers::zeros(tasks)).expect("zeros are the state in which nobody asks");
        }
    }

    /// No job is pending any more. Only those that were hold anything and wait.
    fn forget_all(&mut self) {
        let Arbiter { holdings, priorities, .. } = self;
        priorities.pending().for_each(|task| holdings.forget(task));
        priorities.clear();
    }

    /// Takes over `request`, granted outside, as [`Event::Adopt`](super::Event::Adopt) says.
    pub(super) fn adopt(&mut self, now: Instant, lock: LockId, request: super::Request, replica: ReplicaId) {
        let task = request.task;
        assert!(self.priority(task).is_some(), "only a pending job holds a lock");
        assert_eq!(self.locks[lock.index()].waiting, 0, "nobody waits for a lock that is granted elsewhere");
        assert_eq!(self.holder(lock, replica), None, "a replica has one holder");
        assert!(self.holds(task).all(|(held, _)| held != lock), "a job is granted a lock that it holds");
        let order = if self.boosts(lock) { self.boosts.request() } else { 0 };
        let Lock { discipline, progress, users, .. } = &mut self.locks[lock.index()];
        discipline.adopt(now, request, replica, self.priorities.levels());
        let level = progress.level_from_grant(now, order);
        *users += 1;
        self.holdings.hold(task, super::Held { lock, replica, level });
        if level.is_some() {
            self.raise(task);
        }
    }
}
