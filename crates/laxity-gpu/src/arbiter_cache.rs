//! The state, which shared memory keeps twice, and this process's arbiter that works on it.
//!
//! ```text
//!   version v:   copy v % 2 counts          copy (v + 1) % 2
//!                     | load                     ^ save
//!                     v                          |            then: version v + 1, in one store
//!                  arbiter  ------- events ------+
//! ```
//!
//! A thread that changes the state holds the state lock. Killed at any instruction, it leaves the old state or the new
//! one. The next thread loads the state, unless its process made the last change: then its arbiter is up to date.

use std::sync::atomic::{Ordering, fence};

use laxity_model::{Instant, LockId, TaskId};
use laxity_policy::lock::{Action, Arbiter, Damaged, Event};
use smallvec::SmallVec;

use crate::layout::bit_words;
use crate::memory::{Lock, Memory};
use crate::owner_word::{self, Owners};
use crate::step;

/// The state as a process knows it, and room to work.
#[derive(Debug)]
pub(crate) struct ArbiterCache {
    /// The version whose state `arbiter` and `open` are; `None`: none that was published.
    pub version: Option<u64>,
    pub arbiter: Arbiter,
    /// For each lock whether its owner words count; the arbiter knows none of its owners then.
    pub open: Vec<bool>,
    /// The registered tasks, a bit each. The arbiter knows only tasks that hold or wait, so that a state is as long as
    /// these are many: most tasks do neither.
    registered: Vec<u64>,
    /// The bits of the last word that stand for no task.
    unused: u64,
    /// What the arbiter wants done, once the state is published.
    pub actions: Vec<Action>,
    /// The tasks that events happened to since the state was locked.
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
            registered: vec![0; bit_words(clients.into())],
            unused: if clients.is_multiple_of(64) { 0 } else { u64::MAX << (clients % 64) },
            actions: Vec::new(),
            touched: Vec::new(),
            reopened: Vec::new(),
            numbers: Vec::new(),
        }
    }

    /// Writes the first state: no task is registered and every lock is open that may be.
    pub fn write_first(&mut self, memory: &Memory) {
        self.open = memory.locks.iter().map(|lock| lock.may_open).collect();
        for lock in memory.lock_ids().filter(|&lock| !self.is_open(lock)) {
            for word in memory.owner_words(lock) {
                owner_word::freeze(word);
            }
        }
        self.write(memory, 0);
    }

    /// Makes the state the one that counts, in place of that of `version`. The caller holds the state lock.
    pub fn publish(&mut self, memory: &Memory, version: u64) {
        let next = version.wrapping_add(1);
        self.write(memory, next);
        // Before this store nothing has happened; after it everything has.
        step::point();
        memory.version().store(next, Ordering::Release);
        self.version = Some(next);
    }

    /// Writes the state that is to count at `version`.
    pub fn write(&mut self, memory: &Memory, version: u64) {
        self.numbers.clear();
        for locks in self.open.chunks(64) {
            self.numbers.push(locks.iter().rev().fold(0, |bits, &open| bits << 1 | u64::from(open)));
        }
        self.numbers.extend(&self.registered);
        self.arbiter.save(&mut self.numbers);
        let capacity = memory.layout.copy_length - 1;
        assert!(self.numbers.len() <= capacity, "{} numbers exceed {capacity}", self.numbers.len());
        let copy = memory.layout.copy(version);
        // A reader without the state lock that sees one of these numbers also sees that the version before counts.
        fence(Ordering::Release);
        memory.segment.u64(copy).store(self.numbers.len() as u64, Ordering::Relaxed);
        step::point();
        for (word, &number) in memory.segment.u64s(copy + 8, self.numbers.len()).iter().zip(&self.numbers) {
            word.store(number, Ordering::Relaxed);
        }
    }

    /// Loads the state of `version`. The caller holds the state lock.
    ///
    /// # Errors
    /// [`Damaged`].
    pub fn load(&mut self, memory: &Memory, version: u64) -> Result<(), Damaged> {
        self.version = None;
        self.actions.clear();
        self.read(memory, version)?;
        self.version = Some(version);
        Ok(())
    }

    /// Loads a state that counted at one moment, without the state lock, and answers with what `look` sees then.
    ///
    /// # Errors
    /// [`Damaged`].
    pub fn peek<T>(&mut self, memory: &Memory, mut look: impl FnMut(&mut Self) -> T) -> Result<T, Damaged> {
        loop {
            let version = memory.version().load(Ordering::Acquire);
            self.actions.clear();
            let seen = self.read(memory, version).map(|()| look(self));
            // A copy is overwritten only after the other one counts.
            fence(Ordering::Acquire);
            if memory.version().load(Ordering::Relaxed) == version {
                return seen;
            }
        }
    }

    fn read(&mut self, memory: &Memory, version: u64) -> Result<(), Damaged> {
        let copy = memory.layout.copy(version);
        let length = memory.segment.u64(copy).load(Ordering::Relaxed);
        let locks = bit_words(self.open.len());
        let bits = locks + self.registered.len();
        let possible = bits as u64..memory.layout.copy_length as u64;
        if !possible.contains(&length) {
            return Err(Damaged { position: 0, expected: "a possible length" });
        }
        self.numbers.clear();
        let words = memory.segment.u64s(copy + 8, length as usize);
        self.numbers.extend(words.iter().map(|word| word.load(Ordering::Relaxed)));
        for (lock, open) in self.open.iter_mut().enumerate() {
            *open = self.numbers[lock / 64] >> (lock % 64) & 1 == 1 && memory.locks[lock].may_open;
        }
        self.registered.copy_from_slice(&self.numbers[locks..bits]);
        if self.registered.last().is_some_and(|&bits| bits & self.unused != 0) {
            return Err(Damaged { position: bits - 1, expected: "threads that there may be" });
        }
        self.arbiter.load(&self.numbers[bits..])?;
        if memory.lock_ids().any(|lock| self.is_open(lock) && self.arbiter.users(lock) > 0) {
            return Err(Damaged { position: 0, expected: "a state in which the arbiter has no users of open locks" });
        }
        Ok(())
    }

    /// The arbiter handles `event`. Before a request it learns the base priority that the task published, which stays
    /// the same from the first request to the last unlock.
    pub fn handle(&mut self, memory: &Memory, now: Instant, event: Event) {
        self.version = None;
        if let Event::Request { task, .. } | Event::Adopt { task, .. } = event {
            let priority = memory.published_base(task);
            let rebased = match self.arbiter.base(task) {
                None => Some(Event::Pending { priority }),
                Some(base) if base != priority => Some(Event::Rebase { priority }),
                Some(_) => None,
            };
            rebased.into_iter().for_each(|event| self.arbiter.handle(now, event, &mut self.actions));
        }
        self.arbiter.handle(now, event, &mut self.actions);
        self.touched.push(event.task());
    }

    /// The arbiter forgets the job of `task` if that neither holds nor waits any more.
    pub fn complete_if_idle(&mut self, memory: &Memory, now: Instant, task: TaskId) {
        let arbiter = &self.arbiter;
        let is_idle = arbiter.waits_for(task).is_none() && arbiter.holds(task).next().is_none();
        if is_idle && arbiter.base(task).is_some() {
            self.handle(memory, now, Event::Complete { task });
        }
    }

    /// The arbiter takes over the owners and the waiter in the words of `lock`, which is open no longer.
    pub fn adopt(&mut self, memory: &Memory, now: Instant, lock: LockId) {
        self.version = None;
        self.open[usize::from(lock.0)] = false;
        let Lock { has_waiter_slot, .. } = memory.lock(lock);
        for replica in memory.replicas(lock) {
            if let Some(task) = memory.owner(lock, replica).filter(|&task| self.may_hold(task, lock)) {
                let (length, only) = memory.published_request(task, lock);
                self.handle(memory, now, Event::Adopt { task, lock, replica, length, only });
            }
        }
        let waiter = if has_waiter_slot { Owners::of(memory.slot_word(lock)).waiter() } else { None };
        let may_wait = |&task: &TaskId| self.may_hold(task, lock) && self.arbiter.waits_for(task).is_none();
        if let Some(task) = waiter.filter(may_wait) {
            let (length, only) = memory.published_request(task, lock);
            self.handle(memory, now, Event::Request { task, lock, length, only });
        }
    }

    /// The arbiter gives the owners and the waiter of `lock` up to the lock's words, which already name them.
    pub fn disown(&mut self, memory: &Memory, now: Instant, lock: LockId) {
        self.version = None;
        let mut users: SmallVec<[TaskId; 8]> = SmallVec::new();
        self.arbiter.standings(lock, |task, _| users.push(task));
        users.extend(memory.replicas(lock).filter_map(|replica| self.arbiter.holder(lock, replica)));
        self.arbiter.disown(now, lock, &mut self.actions);
        for &task in &users {
            self.complete_if_idle(memory, now, task);
        }
        self.touched.extend(users);
        self.open[usize::from(lock.0)] = true;
        self.reopened.push(lock);
    }

    /// Whether `task`, which a word of `lock` names, may be an owner of it: other processes write to that word.
    fn may_hold(&self, task: TaskId, lock: LockId) -> bool {
        self.is_registered(task) && self.arbiter.holds(task).all(|(held, _)| held != lock)
    }

    /// Whether `task`, any number, is a registered thread.
    pub fn is_registered(&self, task: TaskId) -> bool {
        self.registered.get(task.index() / 64).is_some_and(|bits| bits >> (task.index() % 64) & 1 == 1)
    }

    /// `task` is a registered thread from now on, or is none any more.
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
