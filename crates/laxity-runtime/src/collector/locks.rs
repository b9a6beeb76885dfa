//! Which task holds which replica of which lock, and which is next.
//!
//! A thread notes that it has a lock when it is on a CPU again. It had the lock before: a replica is handed over when it is
//! unlocked, or at once if it is free. So a free replica is granted at that instant to the waiting task that notes next
//! that it has it. The collector reads on until it knows whether there is such a task.

use laxity_model::{LockId, ReplicaId};

/// The state of all locks, as far as the trace has come.
#[derive(Debug)]
pub(super) struct Locks {
    /// For each replica of each lock the task that holds it.
    holders: Vec<Vec<Option<usize>>>,
    /// For each task the lock that it requested and has not noted to have.
    wanted: Vec<Option<Wanted>>,
}

/// A request that its task has not noted to be granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub lock: LockId,
    /// The job suspended itself to wait.
    pub suspended: bool,
    /// It has the lock.
    pub granted: bool,
}

impl Locks {
    /// Of so many `replicas` each, for that many tasks.
    pub fn new(replicas: impl Iterator<Item = u16>, tasks: usize) -> Locks {
        let holders = replicas.map(|replicas| vec![None; replicas.into()]).collect();
        Locks { holders, wanted: vec![None; tasks] }
    }

    pub fn request(&mut self, task: usize, lock: LockId) {
        self.wanted[task] = Some(Wanted { lock, suspended: false, granted: false });
    }

    /// The request of `task`, to be changed.
    pub fn wanted(&mut self, task: usize) -> Option<&mut Wanted> {
        self.wanted[task].as_mut()
    }

    /// `task` notes that it has its lock; answers what became of its request until then.
    pub fn noted(&mut self, task: usize) -> Option<Wanted> {
        self.wanted[task].take()
    }

    pub fn grant(&mut self, task: usize, lock: LockId, replica: ReplicaId) {
        self.holders[lock.index()][replica.index()] = Some(task);
        if let Some(wanted) = &mut self.wanted[task] {
            wanted.granted = true;
        }
    }

    pub fn unlock(&mut self, lock: LockId, replica: ReplicaId) {
        self.holders[lock.index()][replica.index()] = None;
    }

    /// How many replicas `lock` has.
    pub fn replicas(&self, lock: LockId) -> usize {
        self.holders[lock.index()].len()
    }

    /// The replicas of `lock` that are free.
    pub fn free(&self, lock: LockId) -> impl Iterator<Item = ReplicaId> {
        let holders = self.holders[lock.index()].iter().enumerate();
        holders.filter(|(_, holder)| holder.is_none()).map(|(at, _)| ReplicaId(at as u16))
    }

    /// The replicas that are free, of locks that are wanted.
    pub fn undecided(&self) -> impl Iterator<Item = (LockId, ReplicaId)> {
        let wanted = self.wanted.iter().flatten().filter(|wanted| !wanted.granted).map(|wanted| wanted.lock);
        wanted.flat_map(|lock| {
            let holders = self.holders[lock.index()].iter().enumerate();
            holders.filter(|(_, holder)| holder.is_none()).map(move |(at, _)| (lock, ReplicaId(at as u16)))
        })
    }

    /// Whether `task` waits for `lock`.
    pub fn waits(&self, task: usize, lock: LockId) -> bool {
        self.wanted[task].is_some_and(|wanted| wanted.lock == lock && !wanted.granted)
    }

    /// A task that waits for a lock that is none of the first `resources`, and is not suspended.
    pub fn awake(&self, resources: usize) -> Option<usize> {
        let is_awake = |wanted: &Wanted| !wanted.granted && !wanted.suspended && wanted.lock.index() >= resources;
        self.wanted.iter().position(|wanted| wanted.as_ref().is_some_and(is_awake))
    }
}
