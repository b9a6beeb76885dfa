//! The state of the locks that the tasks of a system share, which shared memory keeps twice as it does those of clusters.

use std::sync::atomic::Ordering;

use laxity_policy::lock::{Action, Arbiter, Damaged};

use crate::config::Config;
use crate::memory::Memory;

/// The state as a process knows it, and room to work.
#[derive(Debug)]
pub(crate) struct LocksCache {
    /// The version whose state this is; `None`: none that was published.
    pub version: Option<u64>,
    /// The simulator's.
    pub arbiter: Arbiter,
    pub actions: Vec<Action>,
    numbers: Vec<u64>,
}

impl LocksCache {
    /// All locks free.
    pub fn new(config: &Config) -> Self {
        let arbiter = Arbiter::new(config.tasks.into(), &config.locks);
        LocksCache { version: None, arbiter, actions: Vec::new(), numbers: Vec::new() }
    }

    /// The most numbers that are saved.
    pub fn saved_max(&self) -> usize {
        self.arbiter.saved_max()
    }

    /// Makes the state the one that counts, in place of that of `version`. The caller holds the state lock of the locks.
    pub fn publish(&mut self, memory: &Memory, version: u64) {
        let next = version.wrapping_add(1);
        self.write(memory, next);
        memory.version(memory.locks_index()).store(next, Ordering::Release);
        self.version = Some(next);
    }

    /// Writes the state that is to count at `version`.
    pub fn write(&mut self, memory: &Memory, version: u64) {
        self.numbers.clear();
        self.arbiter.save(&mut self.numbers);
        memory.write_state(memory.locks_index(), version, &self.numbers);
    }

    /// Loads the state of `version`. The caller holds the state lock of the locks.
    ///
    /// # Errors
    /// [`Damaged`].
    pub fn load(&mut self, memory: &Memory, version: u64) -> Result<(), Damaged> {
        self.version = None;
        memory.read_state(memory.locks_index(), version, 0, &mut self.numbers)?;
        self.arbiter.load(&self.numbers)?;
        self.version = Some(version);
        Ok(())
    }
}
