//! Who holds which lock, and who is next.
//!
//! A thread notes that it has a lock when it is on a CPU again. It had the lock before: Linux hands it over when it is
//! unlocked, or at once if it is free. So a lock that is free and wanted is granted there and then, to whoever notes
//! next that it has it; the collector reads on until it knows who that is.

use laxity_model::LockId;

/// The state of all locks, as far as the trace has come.
#[derive(Debug)]
pub(super) struct Locks {
    /// For each lock the task that holds it.
    holders: Vec<Option<usize>>,
    /// For each task the lock that it asked for and has not noted to have.
    wanted: Vec<Option<Wanted>>,
}

/// A request whose end was not noted yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub lock: LockId,
    /// The job suspended itself to wait.
    pub suspended: bool,
    /// It has the lock.
    pub granted: bool,
}

impl Locks {
    pub fn new(locks: usize, tasks: usize) -> Locks {
        Locks { holders: vec![None; locks], wanted: vec![None; tasks] }
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

    pub fn grant(&mut self, task: usize, lock: LockId) {
        self.holders[lock.index()] = Some(task);
        if let Some(wanted) = &mut self.wanted[task] {
            wanted.granted = true;
        }
    }

    pub fn unlock(&mut self, lock: LockId) {
        self.holders[lock.index()] = None;
    }

    /// A lock that is free and wanted.
    pub fn undecided(&self) -> Option<LockId> {
        let waits =
            |lock: usize| self.wanted.iter().flatten().any(|wanted| wanted.lock.index() == lock && !wanted.granted);
        (0..self.holders.len())
            .find(|&lock| self.holders[lock].is_none() && waits(lock))
            .map(|lock| LockId(lock as u16))
    }

    /// Whether `task` waits for `lock`.
    pub fn waits(&self, task: usize, lock: LockId) -> bool {
        self.wanted[task].is_some_and(|wanted| wanted.lock == lock && !wanted.granted)
    }
}
