//! What every task holds and what it waits for.

use laxity_model::{LockId, ReplicaId, TaskId};

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
    pub(super) held: Vec<Vec<Held>>,
    pub(super) waits: Vec<Option<Wait>>,
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

    /// How many tasks there are.
    pub(super) fn tasks(&self) -> usize {
        self.waits.len()
    }
}
