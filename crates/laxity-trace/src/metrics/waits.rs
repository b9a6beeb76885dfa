//! What jobs waited for.

use laxity_model::{Instant, JobId, LockId, Nanos};
use serde::Serialize;

use super::units;
use crate::{Event, LockKind, TraceHeader};

/// What a job waited for.
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
        }
    }
}

/// The waits of a task's jobs for one cause: for locks from request to grant or withdrawal, those granted at once
/// included; otherwise from suspension to resumption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WaitSummary {
    /// What for.
    pub cause: WaitCause,
    /// How often.
    pub count: u64,
    /// How long in all.
    #[serde(rename = "total_ns", serialize_with = "units::nanos")]
    pub total: Nanos,
    /// The longest.
    #[serde(rename = "max_ns", serialize_with = "units::nanos")]
    pub max: Nanos,
}

/// The fold over the waits of all tasks.
#[derive(Clone, Debug)]
pub(super) struct Waits {
    locks: Vec<WaitCause>,
    tasks: Vec<TaskWaits>,
    /// Whom the job of each interrupt thread serves.
    serves: Vec<Option<(JobId, JobId)>>,
}

#[derive(Clone, Debug, Default)]
struct TaskWaits {
    by_cause: [Wait; WaitCause::ALL.len()],
    request: Option<(JobId, LockId, Instant)>,
    suspension: Option<Suspension>,
}

#[derive(Clone, Copy, Debug)]
struct Suspension {
    job: JobId,
    since: Instant,
    /// Something happened to a GPU operation of the job since.
    is_for_gpu: bool,
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
            tasks: vec![TaskWaits::default(); header.tasks.len()],
            serves: vec![None; header.tasks.len()],
        }
    }

    /// The causes that occurred.
    pub fn summary(&self, task: usize) -> Vec<WaitSummary> {
        let Some(waits) = self.tasks.get(task) else { return Vec::new() };
        let by_cause = WaitCause::ALL.into_iter().zip(waits.by_cause).filter(|(_, wait)| wait.count > 0);
        by_cause
            .map(|(cause, wait)| WaitSummary {
                cause,
                count: wait.count,
                total: Nanos(wait.total),
                max: Nanos(wait.max),
            })
            .collect()
    }

    pub fn record(&mut self, at: Instant, event: Event) {
        match event {
            Event::Request { job, lock } => {
                if let Some(task) = self.tasks.get_mut(job.task.index()) {
                    task.request = Some((job, lock, at));
                }
            }
            Event::Grant { job, lock, .. } | Event::Withdraw { job, lock } => self.end_request(at, job, lock),
            Event::Suspend { job, .. } => {
                if let Some(task) = self.tasks.get_mut(job.task.index()) {
                    let waits_for_lock = task.request.is_some_and(|(by, ..)| by == job);
                    task.suspension = (!waits_for_lock).then_some(Suspension { job, since: at, is_for_gpu: false });
                }
            }
            Event::Resume { job, .. } => self.resume(at, job),
            Event::EngineBegin { job, .. }
            | Event::EngineEnd { job, .. }
            | Event::Interrupt { job: Some(job), .. }
            | Event::BottomHalfEnd { job: Some(job), .. } => self.note_gpu(job),
            Event::Serve { thread, job: Some(owner), .. } => {
                if let Some(serves) = self.serves.get_mut(thread.task.index()) {
                    *serves = Some((thread, owner));
                }
            }
            Event::Complete { job, .. } => {
                let serves = self.serves.get_mut(job.task.index());
                if let Some((_, owner)) = serves.and_then(|serves| serves.take_if(|(thread, _)| *thread == job)) {
                    self.note_gpu(owner);
                }
            }
            _ => {}
        }
    }

    fn end_request(&mut self, at: Instant, job: JobId, lock: LockId) {
        let Some(&cause) = self.locks.get(lock.index()) else { return };
        let Some(task) = self.tasks.get_mut(job.task.index()) else { return };
        if let Some((.., since)) = task.request.take_if(|(by, of, _)| (*by, *of) == (job, lock)) {
            task.by_cause[cause as usize].add(at.saturating_since(since));
        }
    }

    fn resume(&mut self, at: Instant, job: JobId) {
        let Some(task) = self.tasks.get_mut(job.task.index()) else { return };
        if let Some(suspension) = task.suspension.take().filter(|suspension| suspension.job == job) {
            let cause = if suspension.is_for_gpu { WaitCause::GpuOperation } else { WaitCause::Suspension };
            task.by_cause[cause as usize].add(at.saturating_since(suspension.since));
        }
    }

    fn note_gpu(&mut self, job: JobId) {
        let suspension = self.tasks.get_mut(job.task.index()).and_then(|task| task.suspension.as_mut());
        if let Some(suspension) = suspension.filter(|suspension| suspension.job == job) {
            suspension.is_for_gpu = true;
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
    pub const ALL: [WaitCause; 7] = [
        WaitCause::Resource,
        WaitCause::Semaphore,
        WaitCause::KFmlp,
        WaitCause::Token,
        WaitCause::Engine,
        WaitCause::GpuOperation,
        WaitCause::Suspension,
    ];

    fn of(kind: &LockKind) -> Self {
        match kind {
            LockKind::Resource { .. } => WaitCause::Resource,
            LockKind::Semaphore { .. } => WaitCause::Semaphore,
            LockKind::KFmlp { .. } => WaitCause::KFmlp,
            LockKind::Tokens { .. } => WaitCause::Token,
            LockKind::Engine { .. } => WaitCause::Engine,
        }
    }
}
