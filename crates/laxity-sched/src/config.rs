//! What a system schedules, where, and by which policy.

use std::fmt;

use laxity_model::{CpuId, PriorityRule, parse_cpus};
use laxity_policy::lock;
use laxity_sys::cpu_mask::CPUS_MAX;
use serde::{Deserialize, Serialize};

/// A system: its clusters, and the policy that schedules the tasks of each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// How jobs are ranked.
    pub rule: Rule,
    /// For each cluster its CPUs, numbered as Linux does. One cluster: global scheduling. One CPU each: partitioned.
    pub clusters: Vec<Vec<u16>>,
    /// The most tasks at a time, at most [`TASKS_MAX`].
    pub tasks: u16,
    /// The locks that the tasks of all clusters share, at most [`LOCKS_MAX`]; their numbers are their positions.
    pub locks: Vec<lock::Config>,
    /// How links are carried out.
    pub carry: Carry,
    /// The priority under `SCHED_FIFO` of ready threads that have no CPU. Running threads have one more, and threads that
    /// wait for their next job, or handle an event, two more.
    pub base_priority: u8,
}

/// How jobs are ranked: the rules of [`PriorityRule`] that a live system can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rule {
    /// The earliest deadline first.
    Edf,
    /// The shortest period first.
    RateMonotonic,
    /// The shortest relative deadline first.
    DeadlineMonotonic,
    /// The smallest given number first.
    Given,
}

/// How Linux is made to run what is linked (decision 41).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Carry {
    /// A linked thread has the running priority and its CPU.
    PriorityAndCpu,
    /// A linked thread has the running priority; Linux chooses among the cluster's CPUs. For comparisons: a thread may be
    /// late by one change of priority.
    Priority,
    /// Linux is told nothing: for tests of the decisions alone.
    Nothing,
}

/// The most tasks of a system.
pub const TASKS_MAX: u16 = 1024;
/// Where a system's threads are if nothing else is said: below the guardians (98), above what users take by habit.
pub const BASE_PRIORITY: u8 = 90;
/// The most locks of a system.
pub const LOCKS_MAX: usize = 256;
/// The most clusters of a system.
pub const CLUSTERS_MAX: usize = 256;

/// Why a configuration is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A number is outside its range.
    #[error("{what}: {value} is outside {min} to {max}; choose one within")]
    Range {
        /// Which.
        what: &'static str,
        /// The number.
        value: u64,
        /// The least that can be.
        min: u64,
        /// The most that can be.
        max: u64,
    },
    /// The CPUs of a cluster are no list.
    #[error("the cluster {list:?} is no list of CPUs: {reason}")]
    Clusters {
        /// As it is written.
        list: String,
        /// Why not.
        reason: String,
    },
    /// The machine has no such CPU, or it is switched off.
    #[error("there is no CPU {cpu} here; CPUs {there} are there")]
    Absent {
        /// The CPU, as Linux would number it.
        cpu: u16,
        /// Those that are there, as Linux lists them.
        there: String,
    },
    /// A CPU is in two clusters, or twice in one.
    #[error("CPU {cpu} is named twice; a CPU belongs to one cluster")]
    Twice {
        /// The CPU, as Linux numbers it.
        cpu: u16,
    },
}

impl Config {
    /// Global EDF on these CPUs, numbered as Linux does, of at most 64 tasks.
    pub fn global_edf(cpus: impl IntoIterator<Item = u16>) -> Config {
        Config::new(Rule::Edf, vec![cpus.into_iter().collect()])
    }

    /// `rule` on each of `clusters`, of at most 64 tasks.
    pub fn new(rule: Rule, clusters: Vec<Vec<u16>>) -> Config {
        Config {
            rule,
            clusters,
            tasks: 64,
            locks: Vec::new(),
            carry: Carry::PriorityAndCpu,
            base_priority: BASE_PRIORITY,
        }
    }

    /// Refuses what cannot be.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn validate(&self) -> Result<(), ConfigError> {
        let range = |what, value: u64, min: u64, max: u64| {
            if (min..=max).contains(&value) { Ok(()) } else { Err(ConfigError::Range { what, value, min, max }) }
        };
        range("clusters", self.clusters.len() as u64, 1, CLUSTERS_MAX as u64)?;
        range("tasks", self.tasks.into(), 1, TASKS_MAX.into())?;
        range("locks", self.locks.len() as u64, 0, LOCKS_MAX as u64)?;
        let most = u64::from(u16::MAX);
        for lock in &self.locks {
            match *lock {
                lock::Config::Queue { replicas, .. } | lock::Config::KFmlp { replicas, .. } => {
                    range("replicas of a lock", replicas.into(), 1, most)?;
                }
                lock::Config::Tokens { gpus, tokens, fifo_length, fifo_requests, cpus, .. } => {
                    range("GPUs of a lock", gpus.into(), 1, most)?;
                    // Replicas have numbers of 16 bits.
                    range("tokens of a GPU", tokens.into(), 1, most / u64::from(gpus))?;
                    range("longest FIFO queue", fifo_length.into(), 1, most)?;
                    range("requests in FIFO queues", fifo_requests.into(), 1, most)?;
                    range("CPUs of a lock", cpus.into(), 1, most)?;
                }
            }
        }
        // Guardians have 98 and reap what the system's threads leave.
        range("base priority", self.base_priority.into(), 1, 95)?;
        let mut all: Vec<u16> = Vec::new();
        for cluster in &self.clusters {
            range("CPUs of a cluster", cluster.len() as u64, 1, CPUS_MAX as u64)?;
            cluster.iter().try_for_each(|&cpu| range("CPU", cpu.into(), 0, CPUS_MAX as u64 - 1))?;
            all.extend(cluster);
        }
        all.sort_unstable();
        match all.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(ConfigError::Twice { cpu: pair[0] }),
            None => Ok(()),
        }
    }

    /// Refuses CPUs that the machine does not have, if threads are to be placed there. Where Linux does not list them, none
    /// is refused.
    pub(crate) fn find_cpus(&self) -> Result<(), ConfigError> {
        // The tests of this crate simulate machines with other CPUs.
        if cfg!(test) {
            return Ok(());
        }
        let there = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
        let there = there.trim();
        let Ok(online) = parse_cpus(there) else { return Ok(()) };
        let is_absent = |cpu: &&u16| self.carry != Carry::Nothing && !online.contains(&CpuId(**cpu));
        match self.clusters.iter().flatten().find(is_absent) {
            Some(&cpu) => Err(ConfigError::Absent { cpu, there: there.to_owned() }),
            None => Ok(()),
        }
    }

    /// The CPUs on which both this system and `other` place threads, ascending.
    pub(crate) fn shared_cpus(&self, other: &Config) -> Vec<u16> {
        let places = |config: &Config| config.carry != Carry::Nothing;
        if !places(self) || !places(other) {
            return Vec::new();
        }
        let theirs: Vec<u16> = other.clusters.concat();
        let mut both = self.clusters.concat();
        both.retain(|cpu| theirs.contains(cpu));
        both.sort_unstable();
        both
    }

    /// The number in Linux of a CPU of `cluster`.
    pub fn linux(&self, cluster: usize, cpu: CpuId) -> u16 {
        self.clusters[cluster][cpu.index()]
    }
}

/// The CPUs of each cluster from lists with semicolons in between: `0-3` is global, `0,1;2,3` clustered, `0;1` partitioned
/// scheduling.
///
/// # Errors
/// [`ConfigError::Clusters`].
pub fn parse_clusters(text: &str) -> Result<Vec<Vec<u16>>, ConfigError> {
    let cluster = |list: &str| -> Result<Vec<u16>, ConfigError> {
        let error = |reason| ConfigError::Clusters { list: list.to_owned(), reason };
        Ok(parse_cpus(list).map_err(error)?.into_iter().map(|cpu| cpu.0).collect())
    };
    text.split(';').map(cluster).collect()
}

impl Rule {
    /// All of them.
    pub const ALL: [Rule; 4] = [Rule::Edf, Rule::RateMonotonic, Rule::DeadlineMonotonic, Rule::Given];

    /// As files name it.
    pub fn model(self) -> PriorityRule {
        match self {
            Rule::Edf => PriorityRule::Edf,
            Rule::RateMonotonic => PriorityRule::RateMonotonic,
            Rule::DeadlineMonotonic => PriorityRule::DeadlineMonotonic,
            Rule::Given => PriorityRule::Given,
        }
    }

    /// `None` for the fair class, which is Linux's own.
    pub fn of_model(rule: PriorityRule) -> Option<Rule> {
        match rule {
            PriorityRule::Edf => Some(Rule::Edf),
            PriorityRule::RateMonotonic => Some(Rule::RateMonotonic),
            PriorityRule::DeadlineMonotonic => Some(Rule::DeadlineMonotonic),
            PriorityRule::Given => Some(Rule::Given),
            PriorityRule::Fair => None,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Rule::Edf => "EDF",
            Rule::RateMonotonic => "RM",
            Rule::DeadlineMonotonic => "DM",
            Rule::Given => "FP",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_lists_of_cpus_between_semicolons() {
        assert_eq!(parse_clusters("0-3").expect("one"), [[0, 1, 2, 3]]);
        assert_eq!(parse_clusters("0,2;1,3").expect("two"), [[0, 2], [1, 3]]);
        let text = parse_clusters("0;all").expect_err("no list").to_string();
        assert!(text.starts_with("the cluster \"all\" is no list of CPUs: "), "{text}");
    }

    #[test]
    fn what_cannot_be_is_refused_with_both_numbers() {
        let text = |config: Config| config.validate().expect_err("cannot be").to_string();
        assert_eq!(
            text(Config::new(Rule::Edf, vec![vec![]])),
            "CPUs of a cluster: 0 is outside 1 to 1024; choose one within"
        );
        let twice = Config::new(Rule::Edf, vec![vec![0, 1], vec![1]]);
        assert_eq!(text(twice), "CPU 1 is named twice; a CPU belongs to one cluster");
        let high = Config { base_priority: 97, ..Config::global_edf([0]) };
        assert_eq!(text(high), "base priority: 97 is outside 1 to 95; choose one within");
        let none = lock::Config::KFmlp { replicas: 0, length_aware: false };
        let none = Config { locks: vec![none], ..Config::global_edf([0]) };
        assert_eq!(text(none), "replicas of a lock: 0 is outside 1 to 65535; choose one within");
        let tokens = |gpus, tokens| lock::Config::Tokens {
            gpus,
            tokens,
            fifo_length: 1,
            fifo_requests: 1,
            cpus: 1,
            migration: None,
        };
        let many = Config { locks: vec![tokens(300, 300)], ..Config::global_edf([0]) };
        assert_eq!(text(many), "tokens of a GPU: 300 is outside 1 to 218; choose one within");
        assert_eq!(Config::global_edf([0, 1]).validate(), Ok(()));
    }
}
