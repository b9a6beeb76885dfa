//! From a lock's configuration to what carries it out.

use laxity_model::{EngineOrder, GpuSync};

use super::discipline::{Config, Discipline, Progress};
use super::kfmlp::KFmlp;
use super::queue::Queue;
use super::tokens::Tokens;

/// The waiting discipline of a lock that is free.
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
    /// GPUSync's tokens for `gpus` GPUs that are shared by `cpus` CPUs. By default as many requests as there are CPUs
    /// are in FIFO queues, which are as short as that allows.
    pub fn tokens(sync: &GpuSync, gpus: u16, cpus: u32) -> Config {
        let tokens = sync.tokens.clamp(1, u32::from(u16::MAX / gpus.max(1))) as u16;
        let shortest = cpus.div_ceil((u32::from(tokens) * u32::from(gpus)).max(1)).max(1);
        let narrow = |number: u32| number.clamp(1, u32::from(u16::MAX)) as u16;
        Config::Tokens {
            gpus,
            tokens,
            fifo_length: narrow(sync.fifo_length.unwrap_or(shortest)),
            fifo_requests: narrow(sync.fifo_requests.unwrap_or(cpus)),
            cpus: narrow(cpus),
            migration: sync.migration,
        }
    }

    /// The lock of an engine, whose holder inherits.
    pub const fn engine(order: EngineOrder) -> Config {
        Config::Queue { replicas: 1, order, progress: Progress::Inheritance }
    }

    /// Whether what the lock does depends on tasks that neither hold it nor wait for it: on their holds in the past.
    pub(super) fn remembers(&self) -> bool {
        matches!(self, Config::Tokens { migration: Some(_), .. })
    }

    /// How many jobs may hold the lock at once.
    pub fn replicas(&self) -> u16 {
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
