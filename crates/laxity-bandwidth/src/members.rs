//! The regulated threads.

use std::sync::Arc;

use crate::group::Group;

/// The regulated threads.
#[derive(Clone, Debug)]
pub(crate) enum Members {
    /// Those of a control group.
    Group(Arc<Group>),
    /// These.
    Threads(Vec<u32>),
}

impl Members {
    /// Their numbers now.
    pub fn threads(&self) -> Vec<u32> {
        match self {
            // A group that is gone has no threads.
            Members::Group(group) => group.threads().unwrap_or_default(),
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
