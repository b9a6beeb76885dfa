//! The waits of jobs, by cause.

use std::collections::BTreeMap;

use laxity_model::{Instant, JobId, LockId, Nanos, TaskId};
use serde::Serialize;

use crate::replay::Details;
use crate::{Event, LockKind, TraceHeader};

/// The cause of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitCause {
    /// A resource of the workload.
    Resource,
    /// A GPU of a counting semaphore.
    Semaphore,
    /// A GPU of a k-FMLP.
    KFmlp,
    /// A GPU token.
    Token,
    /// An engine lock.
    Engine,
    /// Suspended until an operation of its own on a GPU was complete and its bottom half done.
    GpuOperation,
    /// Suspended for another reason.
    Suspension,
    /// Of a server: suspended until there was a budget again. A job that waits for one before it begins is not counted.
    Budget,
}

impl WaitCause {
    /// The name in JSON and tables.
    pub const fn name(self) -> &'static str {
        match self {
            WaitCause::Resource => "resource",
            WaitCause::Semaphore => "semaphore",
            WaitCause::KFmlp => "k_fmlp",
            WaitCause::Token => "token",
            WaitCause::Engine => "engine",
            WaitCause::GpuOperation => "gpu_operation",
            WaitCause::Suspension => "suspension",
            WaitCause::Budget => "budget",
        }
    }
}

/// The waits of a task's jobs for one cause: for locks from request to grant or withdrawal, those granted at once
/// included; otherwise from suspension to resumption.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WaitSummary {
    /// Their cause.
    pub cause: WaitCause,
    /// Of waits for a resource its name: each has its own entry.
    #[serde(rename = "resource", skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// How often.
    pub count: u64,
    /// How long in all.
    #[serde(rename = "total_ns")]
    pub total: Nanos,
    /// The longest.
    #[serde(rename = "max_ns")]
    pub max: Nanos,
}

/// The fold over the waits of all tasks.
#[derive(Clone, Debug)]
pub(super) struct Waits {
    /// By lock; `None`: no job ever waits for it.
    locks: Vec<Option<WaitCause>>,
    names: Vec<String>,
    tasks: Vec<TaskWaits>,
}

#[derive(Clone, Debug, Default)]
struct TaskWaits {
    by_cause: [Wait; WaitCause::ALL.len()],
    /// Of `by_cause`, the waits for each resource.
    by_resource: BTreeMap<LockId, Wait>,
    suspension: Option<(JobId, Instant, Suspension)>,
}

/// The cause of a suspension, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Suspension {
    /// A lock, whose waits are counted from request to grant.
    Lock,
    /// A GPU operation of the job: something happened to it since.
    Gpu,
    /// A budget: one came since.
    Budget,
    Other,
}

#[derive(Clone, Copy, Debug, Default)]
struct Wait {
    count: u64,
    total: u64,
    max: u64,
}

impl Waits {
    pub fn new(header: &TraceHeader) -> Self {
        Waits {
            locks: header.locks.iter().map(|lock| WaitCause::of(&lock.kind)).collect(),
            names: header.locks.iter().map(|lock| lock.name.clone()).collect(),
            tasks: vec![TaskWaits::default(); header.tasks.len()],
        }
    }

    /// The causes that occurred.
    pub fn summary(&self, task: usize) -> Vec<WaitSummary> {
        let Some(waits) = self.tasks.get(task) else { return Vec::new() };
        let summary = |cause, resource, wait: Wait| WaitSummary {
            cause,
            resource,
            count: wait.count,
            total: Nanos(wait.total),
            max: Nanos(wait.max),
        };
        let name = |lock: &LockId| self.names.get(lock.index()).cloned();
        let by_resource = waits.by_resource.iter().map(|(lock, &wait)| summary(WaitCause::Resource, name(lock), wait));
        let by_cause = WaitCause::ALL.into_iter().zip(waits.by_cause);
        let others = by_cause.filter(|&(cause, wait)| cause != WaitCause::Resource && wait.count > 0);
        by_resource.chain(others.map(|(cause, wait)| summary(cause, None, wait))).collect()
    }

    /// `before`: what was true before the event.
    pub fn record(&mut self, at: Instant, event: Event, before: &Details) {
        match event {
            Event::Grant { job, lock, .. } | Event::Withdraw { job, lock } => {
                let cause = self.locks.get(lock.index()).copied().flatten();
                if let (Some(since), Some(cause)) = (before.locks.requested(job, lock), cause) {
                    let span = at.saturating_since(since);
                    self.add(job, cause, span);
                    let task = self.tasks.get_mut(job.task.index()).filter(|_| cause == WaitCause::Resource);
                    if let Some(task) = task {
                        task.by_resource.entry(lock).or_default().add(span);
                    }
                }
            }
            Event::Suspend { job, .. } => {
                let waits_for_lock = before.locks.request(job).is_some();
                self.suspend(at, job, if waits_for_lock { Suspension::Lock } else { Suspension::Other });
            }
            Event::Resume { job, .. } if before.queues.suspended(job).is_some() => self.resume(at, job),
            Event::EngineBegin { job, .. }
            | Event::EngineEnd { job, .. }
            | Event::Interrupt { job: Some(job), .. }
            | Event::BottomHalfEnd { job: Some(job), .. } => self.note_gpu(job),
            Event::Complete { job, .. } => {
                if let Some(owner) = before.queues.owner_of(job) {
                    self.note_gpu(owner);
                }
            }
            _ => {}
        }
    }

    /// The same where no job waits for locks, devices or tokens.
    #[inline(never)]
    pub fn record_suspension(&mut self, at: Instant, event: Event) {
        match event {
            Event::Suspend { job, .. } => self.suspend(at, job, Suspension::Other),
            Event::Resume { job, .. } => self.resume(at, job),
            _ => {}
        }
    }

    /// The server that is `task` has a budget, and its job, which holds no lock, may have waited for that. Answers whether it
    /// seemed to have suspended itself until now.
    pub fn budget_comes(&mut self, task: TaskId) -> bool {
        let suspension = self.tasks.get_mut(task.index()).and_then(|task| task.suspension.as_mut());
        let other = suspension.filter(|(.., kind)| *kind == Suspension::Other);
        other.map(|(.., kind)| *kind = Suspension::Budget).is_some()
    }

    /// The job of `task` that is suspended, if one is.
    pub fn suspended(&self, task: TaskId) -> Option<JobId> {
        self.tasks.get(task.index())?.suspension.map(|(job, ..)| job)
    }

    fn suspend(&mut self, at: Instant, job: JobId, suspension: Suspension) {
        if let Some(task) = self.tasks.get_mut(job.task.index()) {
            task.suspension = Some((job, at, suspension));
        }
    }

    fn resume(&mut self, at: Instant, job: JobId) {
        let suspension = self.tasks.get_mut(job.task.index()).and_then(|task| task.suspension.take());
        let Some((_, since, suspension)) = suspension.filter(|&(of, ..)| of == job) else { return };
        let cause = match suspension {
            Suspension::Gpu => WaitCause::GpuOperation,
            Suspension::Other => WaitCause::Suspension,
            Suspension::Budget => WaitCause::Budget,
            Suspension::Lock => return,
        };
        self.add(job, cause, at.saturating_since(since));
    }

    fn note_gpu(&mut self, job: JobId) {
        let suspension = self.tasks.get_mut(job.task.index()).and_then(|task| task.suspension.as_mut());
        if let Some((.., suspension)) = suspension.filter(|(of, _, kind)| (*of, *kind) == (job, Suspension::Other)) {
            *suspension = Suspension::Gpu;
        }
    }

    fn add(&mut self, job: JobId, cause: WaitCause, span: Nanos) {
        if let Some(task) = self.tasks.get_mut(job.task.index()) {
            task.by_cause[cause as usize].add(span);
        }
    }
}

impl Wait {
    fn add(&mut self, span: Nanos) {
        self.count += 1;
        self.total = self.total.saturating_add(span.0);
        self.max = self.max.max(span.0);
    }
}

impl WaitCause {
    /// All causes.
    pub const ALL: [WaitCause; 8] = [
        WaitCause::Resource,
        WaitCause::Semaphore,
        WaitCause::KFmlp,
        WaitCause::Token,
        WaitCause::Engine,
        WaitCause::GpuOperation,
        WaitCause::Suspension,
        WaitCause::Budget,
    ];

    fn of(kind: &LockKind) -> Option<Self> {
        Some(match kind {
            LockKind::Bandwidth => return None,
            LockKind::Resource { .. } => WaitCause::Resource,
            LockKind::Semaphore { .. } => WaitCause::Semaphore,
            LockKind::KFmlp { .. } => WaitCause::KFmlp,
            LockKind::Tokens { .. } => WaitCause::Token,
            LockKind::Engine { .. } => WaitCause::Engine,
        })
    }
}
