//! The regulated threads.

use std::sync::Arc;

use crate::group::Group;

/// A thread whose CPUs are regulated, as the Throttle Fair Scheduler sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regulated {
    /// Its number in Linux.
    pub thread: u32,
    /// Its weight in the fair class; 1,024 is that of niceness 0.
    pub weight: u32,
    /// The CPUs that it keeps to. Threads without a CPU in common do not compete.
    pub cpus: Vec<usize>,
}

/// The weight of niceness 0.
pub(crate) const WEIGHT: u32 = 1_024;

/// The regulated threads.
#[derive(Clone, Debug)]
pub(crate) enum Members {
    /// Those of a control group.
    Group(Arc<Group>),
    /// These.
    Threads(Vec<Regulated>),
}

impl Members {
    /// The threads now. Those of a group are alike and may be on every CPU of it.
    pub fn threads(&self) -> Vec<Regulated> {
        match self {
            // A group that is gone has no threads.
            Members::Group(group) => {
                let threads = group.threads().unwrap_or_default();
                threads.into_iter().map(|thread| Regulated { thread, weight: WEIGHT, cpus: vec![0] }).collect()
            }
            Members::Threads(threads) => threads.clone(),
        }
    }

    /// The group that can be frozen.
    pub fn group(&self) -> Option<Arc<Group>> {
        match self {
            Members::Group(group) => Some(group.clone()),
            Members::Threads(_) => None,
        }
    }
}

impl Regulated {
    /// Whether it and `other` may want the same CPU.
    pub(crate) fn competes_with(&self, other: &Regulated) -> bool {
        self.cpus.iter().any(|cpu| other.cpus.contains(cpu))
    }
}
