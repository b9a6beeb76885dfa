//! The state that is kept twice in shared memory, and this process's arbiter that works on it.
//!
//! ```text
//!   version v:   copy v % 2 counts          copy (v + 1) % 2
//!                     | load                     ^ save
//!                     v                          |            then: version v + 1, in one store
//!                  arbiter  ------- events ------+
//! ```
//!
//! Whoever changes the state holds the gate. Killed at any instruction, it leaves the old state or the new one. The
//! next loads it anew; who finds that nobody changed it since goes on with the arbiter it has.

use std::sync::atomic::{Ordering, fence};

use laxity_model::{Instant, LockId, ReplicaId, TaskId};
use laxity_policy::lock::{Action, Arbiter, Damaged, Event};

use crate::owner_word::{self, Owners};
use crate::shared::{Lock, Shared};

/// What a process needs at the gate.
#[derive(Debug)]
pub(crate) struct ArbiterCache {
    /// The version whose state `arbiter` and `open` are; `None`: none that was published.
    pub version: Option<u64>,
    pub arbiter: Arbiter,
    /// For each lock whether its words say who holds it; the arbiter knows of nobody then.
    pub open: Vec<bool>,
    /// The tasks that are threads, a bit each. The arbiter knows of those that hold or wait only: a state is as long as
    /// they are many, and most do neither.
    registered: Vec<u64>,
    /// The bits of the last word that are nobody's.
    unused: u64,
    /// What the arbiter wants done, once the state is published.
    pub actions: Vec<Action>,
    /// The tasks that something happened to since somebody entered.
    pub touched: Vec<TaskId>,
    /// The locks that the last publication opened.
    pub reopened: Vec<LockId>,
    /// Scratch.
    numbers: Vec<u64>,
}

impl ArbiterCache {
    pub fn new(arbiter: Arbiter, locks: usize, clients: u16) -> Self {
        ArbiterCache {
            version: None,
            arbiter,
            open: vec![false; locks],
            registered: vec![0; words(clients)],
            unused: if clients.is_multiple_of(64) { 0 } else { u64::MAX << (clients % 64) },
            actions: Vec::new(),
            touched: Vec::new(),
            reopened: Vec::new(),
            numbers: Vec::new(),
        }
    }

    /// A state in which nobody is registered and every lock is open that may be.
    pub fn write_first(&mut self, shared: &Shared) {
        self.open = shared.locks.iter().map(|lock| lock.may_open).collect();
        for lock in shared.lock_ids().filter(|&lock| !self.is_open(lock)) {
            for word in shared.owner_words(lock) {
                owner_word::freeze(word);
            }
        }
        self.write(shared, 0);
    }

    /// Makes the state the one that counts. To be called at the gate.
    pub fn publish(&mut self, shared: &Shared, version: u64) {
        let next = version.wrapping_add(1);
        self.write(shared, next);
        // Killed before this store, nothing has happened; after it, everything.
        shared.version().store(next, Ordering::Release);
        self.version = Some(next);
    }

    /// Writes the state that is to count at `version`.
    pub fn write(&mut self, shared: &Shared, version: u64) {
        self.numbers.clear();
        for locks in self.open.chunks(64) {
            self.numbers.push(locks.iter().rev().fold(0, |bits, &open| bits << 1 | u64::from(open)));
        }
        self.numbers.extend(&self.registered);
        self.arbiter.save(&mut self.numbers);
        let capacity = shared.layout.copy_length - 1;
        assert!(self.numbers.len() <= capacity, "{} numbers exceed {capacity}", self.numbers.len());
        let copy = shared.layout.copy(version);
        // Whoever reads one of these numbers, without the gate, sees that the version before counts by now.
        fence(Ordering::Release);
        shared.segment.u64(copy).store(self.numbers.len() as u64, Ordering::Relaxed);
        for (word, &number) in shared.segment.u64s(copy + 8, self.numbers.len()).iter().zip(&self.numbers) {
            word.store(number, Ordering::Relaxed);
        }
    }

    /// Takes on the state of `version`, at the gate.
    ///
    /// # Errors
    /// [`Damaged`].
    pub fn load(&mut self, shared: &Shared, version: u64) -> Result<(), Damaged> {
        self.version = None;
        self.actions.clear();
        self.read(shared, version)?;
        self.version = Some(version);
        Ok(())
    }

    /// Takes on a state that counted at one moment, without the gate: for those who watch.
    ///
    /// # Errors
    /// [`Damaged`].
    pub fn peek<T>(&mut self, shared: &Shared, mut also: impl FnMut(&mut Self) -> T) -> Result<T, Damaged> {
        loop {
            let version = shared.version().load(Ordering::Acquire);
            self.actions.clear();
            let read = self.read(shared, version).map(|()| also(self));
            // A copy is written again once the other counts.
            fence(Ordering::Acquire);
            if shared.version().load(Ordering::Relaxed) == version {
                return read;
            }
        }
    }

    fn read(&mut self, shared: &Shared, version: u64) -> Result<(), Damaged> {
        let copy = shared.layout.copy(version);
        let length = shared.segment.u64(copy).load(Ordering::Relaxed);
        let locks = self.open.len().div_ceil(64);
        let bits = locks + self.registered.len();
        let possible = bits as u64..shared.layout.copy_length as u64;
        if !possible.contains(&length) {
            return Err(Damaged { position: 0, expected: "a possible length" });
        }
        self.numbers.clear();
        let words = shared.segment.u64s(copy + 8, length as usize);
        self.numbers.extend(words.iter().map(|word| word.load(Ordering::Relaxed)));
        for (lock, open) in self.open.iter_mut().enumerate() {
            *open = self.numbers[lock / 64] >> (lock % 64) & 1 == 1 && shared.locks[lock].may_open;
        }
        self.registered.copy_from_slice(&self.numbers[locks..bits]);
        if self.registered.last().is_some_and(|&bits| bits & self.unused != 0) {
            return Err(Damaged { position: bits - 1, expected: "threads that there may be" });
        }
        self.arbiter.load(&self.numbers[bits..])?;
        if shared.lock_ids().any(|lock| self.is_open(lock) && self.arbiter.users(lock) > 0) {
            return Err(Damaged { position: 0, expected: "of open locks that nobody holds or waits for" });
        }
        Ok(())
    }

    /// The arbiter takes note of `event`. If `task` asks for something, before that goes the base priority that `task` says
    /// it has, which stays the same from its first request to its last unlock.
    pub fn tell(&mut self, shared: &Shared, now: Instant, event: Event) {
        self.version = None;
        if let Event::Request { task, .. } | Event::Adopt { task, .. } = event {
            let priority = shared.published_base(task);
            let rebased = match self.arbiter.base(task) {
                None => Some(Event::Pending { priority }),
                Some(base) if base != priority => Some(Event::Rebase { priority }),
                Some(_) => None,
            };
            rebased.into_iter().for_each(|event| self.arbiter.handle(now, event, &mut self.actions));
        }
        self.arbiter.handle(now, event, &mut self.actions);
    }

    /// The arbiter takes over what the words of an open lock say, which is open no longer.
    pub fn adopt(&mut self, shared: &Shared, now: Instant, lock: LockId) {
        self.version = None;
        self.open[usize::from(lock.0)] = false;
        let Lock { replicas, has_waiter_slot, .. } = shared.locks[usize::from(lock.0)];
        for replica in (0..replicas).map(ReplicaId) {
            if let Some(task) = shared.owner(lock, replica).filter(|&task| self.may_hold(task, lock)) {
                let (length, only) = shared.published_request(task, lock);
                self.tell(shared, now, Event::Adopt { task, lock, replica, length, only });
                self.touched.push(task);
            }
        }
        let waiter = if has_waiter_slot { Owners::of(shared.slot_word(lock)).waiter() } else { None };
        let may_wait = |&task: &TaskId| self.may_hold(task, lock) && self.arbiter.waits_for(task).is_none();
        if let Some(task) = waiter.filter(may_wait) {
            let (length, only) = shared.published_request(task, lock);
            self.tell(shared, now, Event::Request { task, lock, length, only });
            self.touched.push(task);
        }
    }

    /// Words come from memory that others can write to: whether `task` may be one that holds `lock` by its words.
    fn may_hold(&self, task: TaskId, lock: LockId) -> bool {
        self.is_registered(task) && self.arbiter.holds(task).all(|(held, _)| held != lock)
    }

    /// Whether `task`, whatever number that is, is a thread.
    pub fn is_registered(&self, task: TaskId) -> bool {
        self.registered.get(task.index() / 64).is_some_and(|bits| bits >> (task.index() % 64) & 1 == 1)
    }

    /// `task` is a thread from now on, or none any more.
    pub fn set_registered(&mut self, task: TaskId, is_registered: bool) {
        let (word, bit) = (&mut self.registered[task.index() / 64], 1 << (task.index() % 64));
        if is_registered {
            *word |= bit
        } else {
            *word &= !bit
        }
        self.version = None;
    }

    pub fn is_open(&self, lock: LockId) -> bool {
        self.open[usize::from(lock.0)]
    }
}

/// How many words have a bit for each of `clients`.
pub(crate) fn words(clients: u16) -> usize {
    usize::from(clients).div_ceil(64)
}
