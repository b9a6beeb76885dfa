//! Locks of a system: resources, and tokens of GPUs, whose holders inherit by the system's rule.

use laxity_model::{EngineOrder, GpuSync};
use laxity_policy::lock;

use crate::error::{CallError, Error};

/// What a lock is.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum laxity_lock_kind {
    /// A mutex, or a semaphore that several jobs hold at once: one queue, and its holders inherit from those that wait.
    LAXITY_LOCK_QUEUE = 0,
    /// GPUSync's tokens of GPUs: FIFO queues that are short, priority queues before them, and donors.
    LAXITY_LOCK_TOKENS = 1,
}

/// Which job that waits in a queue is granted the lock first.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum laxity_lock_order {
    /// The most urgent one.
    LAXITY_LOCK_ORDER_PRIORITY = 0,
    /// The one that waits longest.
    LAXITY_LOCK_ORDER_FIFO = 1,
}

/// A lock of a system. All zeros: a mutex, for which the most urgent job is next.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct laxity_lock_config {
    /// One of enum laxity_lock_kind.
    kind: u32,
    /// Of a queue: one of enum laxity_lock_order.
    order: u32,
    /// How many jobs hold a queue's lock, or tokens of one GPU, at once; 0 means 1.
    replicas: u16,
    /// Of tokens: how many GPUs there are; 0 means 1. Replica r is a token of GPU r % gpus.
    gpus: u16,
    /// Of tokens: the longest FIFO queue of a token, its holder included; 0: as short as the system's CPUs allow.
    fifo_length: u16,
    /// Of tokens: the most requests in all FIFO queues; 0: as many as there are CPUs.
    fifo_requests: u16,
    /// Of tokens: the CPUs whose jobs compete, m of the protocol, for a system that stands for a larger machine; 0: those of
    /// the system.
    cpus: u16,
}

impl laxity_lock_config {
    /// In a system of so many CPUs.
    pub(crate) fn config(&self, cpus: usize) -> Result<lock::Config, Error> {
        let value = |argument, value, of| Error::from(CallError::Value { argument, value, of });
        let some = |number: u16| (number != 0).then_some(u32::from(number));
        if self.kind == laxity_lock_kind::LAXITY_LOCK_TOKENS as u32 {
            let gpus = self.gpus.max(1);
            let tokens = u32::from(self.replicas.max(1));
            let (fifo_length, fifo_requests) = (some(self.fifo_length), some(self.fifo_requests));
            let cpus = if self.cpus == 0 { cpus } else { self.cpus.into() };
            let sync = GpuSync { tokens, fifo_length, fifo_requests, ..GpuSync::DEFAULT };
            return Ok(lock::Config::tokens(&sync, gpus, u32::try_from(cpus).unwrap_or(u32::MAX)));
        }
        if self.kind != laxity_lock_kind::LAXITY_LOCK_QUEUE as u32 {
            return Err(value("kind", self.kind, "enum laxity_lock_kind"));
        }
        let order = match self.order {
            order if order == laxity_lock_order::LAXITY_LOCK_ORDER_PRIORITY as u32 => EngineOrder::Priority,
            order if order == laxity_lock_order::LAXITY_LOCK_ORDER_FIFO as u32 => EngineOrder::Fifo,
            order => return Err(value("order", order, "enum laxity_lock_order")),
        };
        let progress = lock::Progress::Inheritance;
        Ok(lock::Config::Queue { replicas: self.replicas.max(1), order, progress })
    }
}
