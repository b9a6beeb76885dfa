//! The state of a cluster, which shared memory keeps twice, and this process's policy that works on it.
//!
//! As with arbitrations of GPUs (decision 20): a thread that changes the state holds the state lock, and writes the copy
//! that does not count. Killed at any instruction, it leaves the old state or the new one.

use std::sync::atomic::{Ordering, fence};

use laxity_model::{Instant, TaskId};
use laxity_policy::cpu::ready::BinomialHeap;
use laxity_policy::cpu::{Action, EventDriven, Ranking};
use laxity_policy::lock::Damaged;

use crate::config::Config;
use crate::memory::Memory;
use crate::step;

/// The policy of a cluster: the simulator's.
pub(crate) type Policy = EventDriven<BinomialHeap>;

/// The state as a process knows it, and room to work.
#[derive(Debug)]
pub(crate) struct ClusterCache {
    /// The version whose state this is; `None`: none that was published.
    pub version: Option<u64>,
    pub policy: Policy,
    /// When the last event was: times of a cluster's events rise.
    pub last: Instant,
    /// The tasks of the cluster, a bit each.
    members: Vec<u64>,
    pub actions: Vec<Action>,
    numbers: Vec<u64>,
}

impl ClusterCache {
    /// Without tasks, for a cluster of that many CPUs.
    pub fn new(config: &Config, cpus: usize) -> Self {
        let tasks = usize::from(config.tasks);
        ClusterCache {
            version: None,
            policy: EventDriven::new(Ranking::of_unknown(config.rule.model(), tasks), tasks, cpus.max(1)),
            last: Instant::ZERO,
            members: vec![0; tasks.div_ceil(64)],
            actions: Vec::new(),
            numbers: Vec::new(),
        }
    }

    /// The most numbers that are saved.
    pub fn saved_max(&self) -> usize {
        1 + self.members.len() + self.policy.saved_max()
    }

    /// Makes the state the one that counts, in place of that of `version`. The caller holds the state lock.
    pub fn publish(&mut self, memory: &Memory, cluster: usize, version: u64) {
        let next = version.wrapping_add(1);
        self.write(memory, cluster, next);
        step::point();
        // Before this store nothing has happened; after it everything has.
        memory.version(cluster).store(next, Ordering::Release);
        self.version = Some(next);
    }

    /// Writes the state that is to count at `version`.
    pub fn write(&mut self, memory: &Memory, cluster: usize, version: u64) {
        self.numbers.clear();
        self.numbers.push(self.last.0);
        self.numbers.extend(&self.members);
        self.policy.save(&mut self.numbers);
        memory.write_state(cluster, version, &self.numbers);
    }

    /// Loads the state of `version`. The caller holds the state lock.
    ///
    /// # Errors
    /// [`Damaged`].
    pub fn load(&mut self, memory: &Memory, cluster: usize, version: u64) -> Result<(), Damaged> {
        self.version = None;
        self.read(memory, cluster, version)?;
        self.version = Some(version);
        Ok(())
    }

    /// Loads a state that counted at one moment, without the state lock, and answers with what `look` sees then.
    ///
    /// # Errors
    /// [`Damaged`].
    pub fn peek<T>(
        &mut self,
        memory: &Memory,
        cluster: usize,
        mut look: impl FnMut(&mut Self) -> T,
    ) -> Result<T, Damaged> {
        loop {
            let version = memory.version(cluster).load(Ordering::Acquire);
            let seen = self.read(memory, cluster, version).map(|()| look(self));
            // A copy is overwritten only after the other one counts.
            fence(Ordering::Acquire);
            if memory.version(cluster).load(Ordering::Relaxed) == version {
                return seen;
            }
        }
    }

    fn read(&mut self, memory: &Memory, cluster: usize, version: u64) -> Result<(), Damaged> {
        let fixed = 1 + self.members.len();
        memory.read_state(cluster, version, fixed, &mut self.numbers)?;
        self.last = Instant(self.numbers[0]);
        self.members.copy_from_slice(&self.numbers[1..fixed]);
        self.policy.load(&self.numbers[fixed..])
    }

    /// Whether `task` is one of the cluster.
    pub fn is_member(&self, task: TaskId) -> bool {
        self.members.get(task.index() / 64).is_some_and(|bits| bits >> (task.index() % 64) & 1 == 1)
    }

    /// `task` is one of the cluster from now on, or is none any more.
    pub fn set_member(&mut self, task: TaskId, is_member: bool) {
        let (word, bit) = (&mut self.members[task.index() / 64], 1 << (task.index() % 64));
        if is_member {
            *word |= bit
        } else {
            *word &= !bit
        }
        self.version = None;
    }
}
