//! A task whose jobs are followed through a trace.

use laxity_model::{CpuId, Instant, Nanos};

use super::pending::Pending;

/// What the records so far say of a task's jobs. In one cache line: tasks take turns, so that each line of one must be
/// fetched anew for each job.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Task {
    pending: Pending,
    arrival: Arrival,
    /// Where the current job last executed.
    last_cpu: Option<CpuId>,
    /// Whether the current job waits by spinning whenever it has a CPU.
    spins: bool,
}

const _: () = assert!(size_of::<Task>() == 64);

/// What says when a job arrived.
#[derive(Clone, Copy, Debug)]
enum Arrival {
    /// It was so long before its deadline.
    BeforeDeadline(Nanos),
    /// Of a thread: its current job was released then. It has its owner's deadline, from which nothing follows.
    Released(Instant),
}

/// A job that completed in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Completion {
    /// Its arrival; of a thread's job, its release.
    pub arrival: Instant,
    /// Its absolute deadline.
    pub deadline: Instant,
}

impl Task {
    pub fn new(relative_deadline: Nanos, is_thread: bool) -> Self {
        Task {
            pending: Pending::default(),
            arrival: match is_thread {
                true => Arrival::Released(Instant::ZERO),
                false => Arrival::BeforeDeadline(relative_deadline),
            },
            last_cpu: None,
            spins: false,
        }
    }

    /// Its released and incomplete jobs.
    pub fn pending(&self) -> &Pending {
        &self.pending
    }

    /// Where the current job was last dispatched.
    #[inline]
    pub fn last_cpu(&self) -> Option<CpuId> {
        self.last_cpu
    }

    /// Whether the current job waits by spinning whenever it has a CPU.
    #[inline]
    pub fn spins(&self) -> bool {
        self.spins
    }

    pub(super) fn set_spins(&mut self, spins: bool) {
        self.spins = spins;
    }

    /// `false`, and nothing changes, if the job is not the next one.
    #[inline]
    pub(super) fn release(&mut self, at: Instant, index: u32, deadline: Instant) -> bool {
        let in_order = self.pending.release(index, deadline);
        // A thread has one job at a time.
        if let (true, Arrival::Released(released)) = (in_order, &mut self.arrival) {
            *released = at;
        }
        in_order
    }

    /// Returns where the job was dispatched before.
    #[inline]
    pub(super) fn dispatch(&mut self, cpu: CpuId) -> Option<CpuId> {
        self.last_cpu.replace(cpu)
    }

    /// `None` if the job is not the oldest pending one.
    #[inline]
    pub(super) fn complete(&mut self, index: u32) -> Option<Completion> {
        self.last_cpu = None;
        self.spins = false;
        let deadline = self.pending.complete(index)?;
        let arrival = match self.arrival {
            Arrival::BeforeDeadline(span) => Instant(deadline.0.saturating_sub(span.0)),
            Arrival::Released(at) => at,
        };
        Some(Completion { arrival, deadline })
    }
}
