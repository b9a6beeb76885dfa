//! Threads that work on behalf of tasks: klmirqd's.
//!
//! ```text
//!                  serve                      the owner's or a holder's priority changes
//! (waits for work) -----> (work, as a job) <---------------------------------------------.
//!        ^                     |    '-----------------------------------------------------'
//!        '------ complete -----'
//! ```
//!
//! Such a thread is a task of the system whose jobs are pieces of work. It and the owner of its work are one entity in the
//! policy: it goes before the owner, takes over the owner's CPU, and the two never run side by side (paper 000, section
//! III). Which threads serve is part of the state of the locks, as their priorities follow from those of holders.

use laxity_model::{Instant, LockId, ReplicaId, TaskId};
use laxity_policy::lock::Damaged;

use crate::decision::Watch;
use crate::locks::LocksGuard;
use crate::task::{Phase, Task, TaskError};

/// A level above that of all jobs.
pub const ABOVE_ALL: u64 = 0;
/// A level below that of all jobs that have a deadline.
pub const BELOW_ALL: u64 = u64::MAX - 1;

/// A piece of work of a thread: on whose behalf it works, and how urgent that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// The task whose job it works for; `None`: none's. It is one entity with the thread if it is of the same cluster and
    /// works for no task itself.
    pub owner: Option<TaskId>,
    /// How urgent it is.
    pub urgency: Urgency,
}

/// How urgent the work of a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// Above all jobs.
    Fixed,
    /// As its owner's job is, whatever that inherits; below all jobs if it has no owner.
    Owner,
    /// As the most urgent of its owner's job and of the jobs that hold a token of a GPU (GPUSync).
    Holders {
        /// The lock of the tokens.
        lock: LockId,
        /// The GPU, by its position in the lock's pool.
        gpu: u16,
        /// How many GPUs the pool has: replica `r` is a token of GPU `r % gpus`.
        gpus: u16,
    },
}

/// What a thread serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Serving {
    pub thread: TaskId,
    pub service: Service,
}

/// Numbers of each thread that is saved.
pub(crate) const SAVED: usize = 2;

const FIXED: u64 = 0;
const OWNER: u64 = 1;
const HOLDERS: u64 = 2;

impl Serving {
    pub fn save(&self) -> [u64; SAVED] {
        let Service { owner, urgency } = self.service;
        let owner = owner.map_or(0, |owner| u64::from(owner.0) + 1);
        let urgency = match urgency {
            Urgency::Fixed => FIXED,
            Urgency::Owner => OWNER,
            Urgency::Holders { lock, gpu, gpus } => {
                HOLDERS | u64::from(lock.0) << 16 | u64::from(gpu) << 32 | u64::from(gpus) << 48
            }
        };
        [u64::from(self.thread.0) | owner << 32, urgency]
    }

    /// What was saved at `position`, in a system of so many tasks and locks.
    ///
    /// # Errors
    /// [`Damaged`] if that cannot be.
    pub fn load(words: [u64; SAVED], position: usize, tasks: u16, locks: usize) -> Result<Serving, Damaged> {
        let damaged = |expected| Damaged { position, expected };
        let task = |number: u64| (number < tasks.into()).then_some(TaskId(number as u32));
        let thread = task(words[0] & u64::from(u32::MAX)).ok_or(damaged("a thread"))?;
        let owner = match words[0] >> 32 {
            0 => None,
            owner => Some(task(owner - 1).ok_or(damaged("an owner"))?),
        };
        let [kind, lock, gpu, gpus] = [0, 16, 32, 48].map(|shift| (words[1] >> shift) as u16);
        let urgency = match u64::from(kind) {
            FIXED => Urgency::Fixed,
            OWNER => Urgency::Owner,
            HOLDERS if usize::from(lock) < locks && gpu < gpus => Urgency::Holders { lock: LockId(lock), gpu, gpus },
            _ => return Err(damaged("an urgency")),
        };
        Ok(Serving { thread, service: Service { owner, urgency } })
    }
}

impl LocksGuard<'_> {
    /// A thread has work from now on.
    pub fn begin_service(&mut self, serving: Serving) {
        self.cache.begin_service(serving);
        self.touch(serving.thread);
    }

    /// `thread` has none any more. Its cluster hears of it by the completion of its job.
    pub fn end_service(&mut self, thread: TaskId) {
        self.cache.end_service(thread);
    }

    /// The level of the work of `thread`.
    pub fn level_of_service(&self, thread: TaskId, service: Service) -> (u64, u32) {
        let own = service.owner.map(|owner| self.level_of_job(owner));
        let (arbiter, locks) = (&self.cache.arbiter, &self.shared().config.locks);
        let holders = match service.urgency {
            Urgency::Fixed => return (ABOVE_ALL, thread.0),
            Urgency::Owner => None,
            Urgency::Holders { lock, gpu, gpus } => {
                let replicas = (gpu..locks[lock.index()].replicas()).step_by(gpus.max(1).into());
                let holders = replicas.filter_map(|replica| arbiter.holder(lock, ReplicaId(replica)));
                holders.filter_map(|holder| Some(arbiter.priority(holder)?.level())).min()
            }
        };
        own.into_iter().chain(holders).min().unwrap_or((BELOW_ALL, thread.0))
    }
}

impl Task {
    /// The thread has work: job `index`, for as long as it takes until [`Task::complete`], on behalf of the owner of
    /// `service` and as urgent as that says at any time. `watch` hears of the decision before the thread may have to wait.
    ///
    /// # Errors
    /// [`TaskError`]; there must be no job.
    pub fn serve(&self, index: u64, service: Service, watch: &mut impl Watch) -> Result<(), TaskError> {
        self.charged(|| self.serve_now(index, service, watch))
    }

    fn serve_now(&self, index: u64, service: Service, watch: &mut impl Watch) -> Result<(), TaskError> {
        self.expect(Phase::Idle, "work for another task", "the job before to be complete", "complete it first")?;
        let (shared, thread) = (self.shared(), self.id());
        self.change_locks(watch, |locks| {
            if service.owner.is_some_and(|owner| owner == thread || owner.0 >= shared.config.tasks.into()) {
                return Err(self.out_of_order("work for another task", "one of the system's", "name another"));
            }
            let owners = service.owner.map(|owner| Instant(shared.long(shared.task(owner).deadline)));
            shared.begin_job(thread, index, locks.now, owners.unwrap_or(Instant::NEVER));
            locks.begin_service(Serving { thread, service });
            Ok(())
        })?;
        self.phase.set(Phase::Serves);
        Ok(())
    }

    /// The work is done, as far as the locks are concerned.
    pub(crate) fn end_service(&self) -> Result<(), TaskError> {
        let shared = self.shared();
        shared.rise(self.id(), &mut self.placed.borrow_mut());
        let mut locks = shared.lock_locks()?;
        locks.end_service(self.id());
        locks.publish(None)?;
        Ok(())
    }
}
