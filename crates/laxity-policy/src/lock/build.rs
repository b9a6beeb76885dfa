//! From a lock's configuration to what carries it out.

use super::discipline::{Config, Discipline, Progress};
use super::kfmlp::KFmlp;
use super::queue::Queue;
use super::tokens::Tokens;

/// The waiting discipline of a lock, nobody holding it.
pub(super) fn build(config: &Config) -> Box<dyn Discipline> {
    match *config {
        Config::Queue { replicas, order, progress } => {
            Box::new(Queue::new(replicas, order, progress == Progress::Inheritance))
        }
        Config::KFmlp { replicas, length_aware } => Box::new(KFmlp::new(replicas, length_aware)),
        Config::Tokens { gpus, tokens, fifo_length, fifo_requests, cpus, migration } => {
            Box::new(Tokens::new(gpus, tokens, fifo_length, fifo_requests, cpus, migration))
        }
    }
}

impl Config {
    /// How many jobs may hold the lock at once.
    pub(super) fn replicas(&self) -> u16 {
        match *self {
            Config::Queue { replicas, .. } | Config::KFmlp { replicas, .. } => replicas,
            Config::Tokens { gpus, tokens, .. } => {
                gpus.checked_mul(tokens).expect("a replica's number fits its identifier")
            }
        }
    }

    /// How many GPUs the replicas belong to: replica `r` to GPU `r % gpus`.
    pub(super) fn gpus(&self) -> u16 {
        match *self {
            Config::Queue { replicas, .. } | Config::KFmlp { replicas, .. } => replicas,
            Config::Tokens { gpus, .. } => gpus,
        }
    }

    /// What keeps a holder from being preempted. Protocols with a queue for each replica inherit by their own rules.
    pub(super) fn progress(&self) -> Progress {
        match *self {
            Config::Queue { progress, .. } => progress,
            Config::KFmlp { .. } | Config::Tokens { .. } => Progress::Inheritance,
        }
    }
}
