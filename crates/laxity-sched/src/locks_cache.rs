//! The state of the locks that the tasks of a system share, which shared memory keeps twice as it does those of clusters.

use std::sync::atomic::Ordering;

use laxity_model::TaskId;
use laxity_policy::lock::{Action, Arbiter, Damaged};

use crate::config::Config;
use crate::memory::Memory;
use crate::service::{SAVED, Service, Serving};
use crate::step;

/// The state as a process knows it, and room to work.
#[derive(Debug)]
pub(crate) struct LocksCache {
    /// The version whose state this is; `None`: none that was published.
    pub version: Option<u64>,
    /// The simulator's.
    pub arbiter: Arbiter,
    /// The threads that have work, by when they began it.
    serving: Vec<Serving>,
    /// How many tasks and locks there can be.
    limits: (u16, usize),
    pub actions: Vec<Action>,
    numbers: Vec<u64>,
}

impl LocksCache {
    /// All locks free.
    pub fn new(config: &Config) -> Self {
        let arbiter = Arbiter::new(config.tasks.into(), &config.locks);
        let limits = (config.tasks, config.locks.len());
        LocksCache { version: None, arbiter, serving: Vec::new(), limits, actions: Vec::new(), numbers: Vec::new() }
    }

    /// The most numbers that are saved.
    pub fn saved_max(&self) -> usize {
        1 + SAVED * usize::from(self.limits.0) + self.arbiter.saved_max()
    }

    /// Makes the state the one that counts, in place of that of `version`. The caller holds the state lock of the locks.
    pub fn publish(&mut self, memory: &Memory, version: u64) {
        let next = version.wrapping_add(1);
        self.write(memory, next);
        step::point();
        memory.version(memory.locks_index()).store(next, Ordering::Release);
        self.version = Some(next);
    }

    /// Writes the state that is to count at `version`.
    pub fn write(&mut self, memory: &Memory, version: u64) {
        self.numbers.clear();
        self.numbers.push(self.serving.len() as u64);
        self.numbers.extend(self.serving.iter().flat_map(Serving::save));
        self.arbiter.save(&mut self.numbers);
        memory.write_state(memory.locks_index(), version, &self.numbers);
    }

    /// Loads the state of `version`. The caller holds the state lock of the locks.
    ///
    /// # Errors
    /// [`Damaged`].
    pub fn load(&mut self, memory: &Memory, version: u64) -> Result<(), Damaged> {
        self.version = None;
        memory.read_state(memory.locks_index(), version, 1, &mut self.numbers)?;
        let (tasks, locks) = self.limits;
        let possible = self.numbers[0] <= tasks.into();
        let count = if possible { SAVED * self.numbers[0] as usize } else { usize::MAX };
        let Some((serving, arbiter)) = self.numbers[1..].split_at_checked(count) else {
            return Err(Damaged { position: 0, expected: "a possible count of threads that serve" });
        };
        self.serving.clear();
        for (at, words) in serving.chunks_exact(SAVED).enumerate() {
            self.serving.push(Serving::load([words[0], words[1]], 1 + SAVED * at, tasks, locks)?);
        }
        self.arbiter.load(arbiter)?;
        self.version = Some(version);
        Ok(())
    }

    /// What `thread` serves, if it has work.
    pub fn service(&self, thread: TaskId) -> Option<Service> {
        self.serving.iter().find(|serving| serving.thread == thread).map(|serving| serving.service)
    }

    /// The threads that have work.
    pub fn threads(&self) -> impl Iterator<Item = TaskId> {
        self.serving.iter().map(|serving| serving.thread)
    }

    /// A thread has work from now on.
    pub fn begin_service(&mut self, serving: Serving) {
        self.end_service(serving.thread);
        self.serving.push(serving);
    }

    /// `thread` has none any more.
    pub fn end_service(&mut self, thread: TaskId) {
        self.version = None;
        self.serving.retain(|serving| serving.thread != thread);
    }
}
