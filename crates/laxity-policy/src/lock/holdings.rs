//! What every task holds and what it waits for.

use laxity_model::{LockId, ReplicaId, TaskId};

use super::saved::{Damaged, Numbers, optional};

/// A lock that a task holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) lock: LockId,
    pub(super) replica: ReplicaId,
    /// The level to which holding it raises the task.
    pub(super) level: Option<(u64, u32)>,
}

/// A request that is not granted yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) lock: LockId,
    /// The only GPU that will do.
    pub(super) only: Option<u16>,
    /// Its order among the requests for boosting locks.
    pub(super) order: u32,
}

/// A task holds any number of locks, one replica of each, and waits for at most one.
#[derive(Debug)]
pub(super) struct Holdings {
    held: Vec<Vec<Held>>,
    waits: Vec<Option<Wait>>,
}

impl Holdings {
    pub(super) fn new(tasks: usize) -> Self {
        Holdings { held: vec![Vec::new(); tasks], waits: vec![None; tasks] }
    }

    /// `task` waits from now on.
    pub(super) fn wait(&mut self, task: TaskId, wait: Wait) {
        assert!(self.waits[task.index()].is_none(), "a job that waits cannot ask for another lock");
        assert!(self.held(task).iter().all(|held| held.lock != wait.lock), "a job asks for a lock that it holds");
        self.waits[task.index()] = Some(wait);
    }

    /// `task` no longer waits for `lock`; what it asked for.
    pub(super) fn end_wait(&mut self, task: TaskId, lock: LockId) -> Wait {
        let wait = self.waits[task.index()].take().expect("the job waits for a lock");
        assert_eq!(wait.lock, lock, "a job waits for one lock at a time");
        wait
    }

    pub(super) fn hold(&mut self, task: TaskId, held: Held) {
        self.held[task.index()].push(held);
    }

    /// `task` gives `lock` up; what it held.
    pub(super) fn give_up(&mut self, task: TaskId, lock: LockId) -> Held {
        let held = &mut self.held[task.index()];
        let position = held.iter().position(|held| held.lock == lock).expect("only a holder unlocks");
        held.remove(position)
    }

    /// In the order of grant.
    pub(super) fn held(&self, task: TaskId) -> &[Held] {
        self.held.get(task.index()).map_or(&[], Vec::as_slice)
    }

    pub(super) fn wait_of(&self, task: TaskId) -> Option<Wait> {
        self.waits.get(task.index()).copied().flatten()
    }

    /// All tasks that wait, ascending.
    pub(super) fn waits(&self) -> impl Iterator<Item = (TaskId, Wait)> {
        let waits = self.waits.iter().enumerate();
        waits.filter_map(|(task, wait)| wait.map(|wait| (TaskId(task as u32), wait)))
    }

    /// Forgets what `task` holds and waits for.
    pub(super) fn forget(&mut self, task: TaskId) {
        self.held[task.index()].clear();
        self.waits[task.index()] = None;
    }

    /// What `task` holds and waits for. A level is saved as its major, one more than its tie; no level as two zeros.
    pub(super) fn save(&self, task: TaskId, numbers: &mut Vec<u64>) {
        let held = self.held(task);
        numbers.push(held.len() as u64);
        for held in held {
            let (major, tie) = held.level.map_or((0, 0), |(major, tie)| (major, 1 + u64::from(tie)));
            numbers.extend([held.lock.0.into(), held.replica.0.into(), major, tie]);
        }
        numbers.push(optional(self.wait_of(task).map(|wait| wait.lock.0)));
        if let Some(wait) = self.wait_of(task) {
            numbers.extend([optional(wait.only), wait.order.into()]);
        }
    }

    /// There are `locks` locks, and `replicas` says how many replicas each has.
    pub(super) fn load(
        &mut self,
        task: TaskId,
        numbers: &mut Numbers<'_>,
        locks: usize,
        replicas: impl Fn(LockId) -> u16,
    ) -> Result<(), Damaged> {
        for _ in 0..numbers.count(locks)? {
            let lock = numbers.lock(locks)?;
            let replica = numbers.replica(replicas(lock).into())?;
            let (major, tie) = (numbers.any()?, numbers.below(1 << 33, "a tie")?);
            let level = tie.checked_sub(1).map(|tie| (major, tie as u32));
            self.held[task.index()].push(Held { lock, replica, level });
        }
        if let Some(lock) = numbers.optional_u16()? {
            if usize::from(lock) >= locks {
                return Err(numbers.damaged("a lock"));
            }
            let wait = Wait { lock: LockId(lock), only: numbers.optional_u16()?, order: numbers.u32()? };
            self.waits[task.index()] = Some(wait);
        }
        Ok(())
    }

    /// Numbers saved at most, if there are that many replicas of locks.
    pub(super) fn saved_max(&self, replicas: usize) -> usize {
        4 * self.tasks() + 4 * replicas
    }

    /// How many tasks there are.
    pub(super) fn tasks(&self) -> usize {
        self.waits.len()
    }
}
