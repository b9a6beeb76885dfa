//! Jobs and blame in words.

use laxity_model::{EdgeId, JobId, LockId, TaskId};
use thiserror::Error;

use super::{Blame, Standing};
use crate::{LockKind, Origin, Outsider, OutsiderKind, TraceHeader};

/// `camera#17`: the task and which of its jobs; the first is 0.
pub fn job_name(header: &TraceHeader, job: JobId) -> String {
    format!("{}#{}", task_name(header, job.task), job.index)
}

/// What a user asks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// One job: `camera#17`, or `T0.17`.
    Job(JobId),
    /// Jobs of one task: `camera`.
    Task(TaskId),
}

/// No such job can be in the trace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnknownJob {
    /// No task is called so.
    #[error("no task is called `{task}`; the trace has {}", listed(.tasks))]
    Task {
        /// The name that was asked for.
        task: String,
        /// The names that there are.
        tasks: Vec<String>,
    },
    /// No task has so many jobs.
    #[error("`{job}`: the number of a job is at most {}", u32::MAX)]
    Index {
        /// What was asked for.
        job: String,
    },
}

/// The job or task that `text` names: a name of the header, with `#` and a number behind it for one job.
///
/// Errors: [`UnknownJob`], if the header has no such task, or no task such a job.
pub fn wanted(header: &TraceHeader, text: &str) -> Result<Wanted, UnknownJob> {
    let task = |name: &str| header.tasks.iter().position(|task| task.name == name).map(|index| TaskId(index as u32));
    // A task may have a # in its name.
    if let Some(task) = task(text) {
        return Ok(Wanted::Task(task));
    }
    let numbered = text.rsplit_once('#').and_then(|(name, index)| Some((name, index.parse::<u32>().ok()?)));
    if let Some((task, index)) = numbered.and_then(|(name, index)| Some((task(name)?, index))) {
        return Ok(Wanted::Job(JobId { task, index }));
    }
    let by_number = text.strip_prefix('T').and_then(|text| text.split_once('.'));
    let by_number = by_number.and_then(|(task, index)| Some((task.parse::<u32>().ok()?, index.parse::<u32>().ok()?)));
    match by_number.filter(|&(task, _)| (task as usize) < header.tasks.len()) {
        Some((task, index)) => Ok(Wanted::Job(JobId { task: TaskId(task), index })),
        None if is_beyond(text, task) => Err(UnknownJob::Index { job: text.to_owned() }),
        None => {
            let name = numbered.map_or(text, |(name, _)| name).to_owned();
            Err(UnknownJob::Task { task: name, tasks: header.tasks.iter().map(|task| task.name.clone()).collect() })
        }
    }
}

/// Whether `text` names a task, and behind it a number that is none of a job.
fn is_beyond(text: &str, task: impl Fn(&str) -> Option<TaskId>) -> bool {
    let is_number = |index: &str| !index.is_empty() && index.bytes().all(|digit| digit.is_ascii_digit());
    text.rsplit_once('#').is_some_and(|(name, index)| task(name).is_some() && is_number(index))
}

/// The first names of many.
fn listed(names: &[String]) -> String {
    const MOST: usize = 12;
    let shown: Vec<&str> = names.iter().take(MOST).map(String::as_str).collect();
    match names.len().saturating_sub(MOST) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

impl Blame {
    /// What the job did, in a few words.
    pub const fn what(self, origin: Origin) -> &'static str {
        match self {
            Blame::Execution => "executes",
            Blame::CacheRefill(_) => "executes, cache lost",
            Blame::Task(..) => "waits for a CPU",
            Blame::Lock(..) => "waits for a lock",
            Blame::Operation(..) => "own GPU operation",
            Blame::Engine(..) => "GPU operation waits",
            Blame::WakeUp(_) => "is woken up",
            Blame::Suspension => "suspended",
            Blame::Throttled => "budget exhausted",
            Blame::Unoccupied => match origin {
                Origin::Simulated => "waits for the scheduler",
                Origin::Live => "waits for a CPU",
            },
            Blame::BottomHalf(_) | Blame::Overhead(laxity_model::OverheadKind::TopHalf) => "interrupt",
            Blame::Overhead(_) | Blame::SchedulerLock => "overhead",
            Blame::Tokens(_) => "waits for tokens",
            Blame::Predecessor => "waits for its predecessor",
            Blame::Release => "its release",
            Blame::Jitter => "release jitter",
            Blame::Stolen => "its CPU is stolen",
            Blame::Outside(Outsider { kind: OutsiderKind::Thread, .. }) => "waits for a CPU",
            Blame::Outside(_) => "interrupt",
        }
    }

    /// The thing, in a few words; empty if [`what`](Blame::what) says all.
    pub fn which(self, header: &TraceHeader) -> String {
        match self {
            Blame::CacheRefill(kind) => overhead(kind.name()),
            Blame::Task(task, standing) => format!("{} has it, {}", task_name(header, task), standing.explain(header)),
            Blame::Lock(lock, holder) => {
                let lock = lock_name(header, lock);
                match holder {
                    Some(holder) => format!("{lock}, held by {}", task_name(header, holder)),
                    None => format!("{lock}, held by no job of the trace"),
                }
            }
            Blame::Operation(gpu, engine) => format!("{} {}", gpu_name(header, gpu.index()), engine.name()),
            Blame::Engine(gpu, engine, by) => {
                let engine = format!("{} {}", gpu_name(header, gpu.index()), engine.name());
                match by {
                    Some(task) => format!("{engine}, where {} is", task_name(header, task)),
                    None => format!("{engine}, which is free: its launch"),
                }
            }
            Blame::WakeUp(Some(gpu)) => format!("its operation on {} is complete", gpu_name(header, gpu.index())),
            Blame::WakeUp(None) => "its lock is granted, or its budget is there".to_owned(),
            Blame::Unoccupied => match header.origin {
                Origin::Simulated => "a CPU is idle".to_owned(),
                Origin::Live if header.outsiders.is_empty() => {
                    "no job of the trace has it: other threads or the hypervisor".to_owned()
                }
                // Linux said what else had it.
                Origin::Live => "nothing has it: the job's thread wakes up, or the hypervisor has it".to_owned(),
            },
            Blame::BottomHalf(device) => {
                let name = header.devices.get(device.index()).map_or("a device", |device| device.name.as_str());
                format!("bottom half of {name}")
            }
            Blame::Overhead(kind) => overhead(kind.name()),
            Blame::SchedulerLock => "the scheduler's lock".to_owned(),
            Blame::Tokens(edge) => edge_name(header, edge),
            Blame::Release => "not handled yet".to_owned(),
            Blame::Stolen => "by hypervisor, firmware or interrupts".to_owned(),
            Blame::Outside(by) => match by.kind {
                OutsiderKind::Thread => format!("thread {} has it", header.outsider_name(by)),
                OutsiderKind::Interrupt => header.outsider_name(by),
                OutsiderKind::SoftInterrupt => format!("softirq {}", header.outsider_name(by)),
            },
            Blame::Execution | Blame::Suspension | Blame::Throttled | Blame::Predecessor | Blame::Jitter => {
                String::new()
            }
        }
    }

    /// `waits for a CPU: camera has it, more urgent`.
    pub fn describe(self, header: &TraceHeader) -> String {
        let which = self.which(header);
        let what = self.what(header.origin);
        if which.is_empty() { what.to_owned() } else { format!("{what}: {which}") }
    }
}

impl Standing {
    fn explain(self, header: &TraceHeader) -> String {
        match self {
            Standing::MoreUrgent => "more urgent".to_owned(),
            Standing::Inherits(of) => format!("with the priority of {}", task_name(header, of)),
            Standing::NonPreemptive => "less urgent, not preemptive".to_owned(),
            Standing::LessUrgent => "less urgent".to_owned(),
            Standing::InterruptThread => "an interrupt thread".to_owned(),
            Standing::Equal => "sharing it".to_owned(),
        }
    }
}

fn overhead(name: &str) -> String {
    name.replace('_', " ")
}

fn task_name(header: &TraceHeader, task: TaskId) -> String {
    header.tasks.get(task.index()).map_or_else(|| format!("task {}", task.0), |task| task.name.clone())
}

fn gpu_name(header: &TraceHeader, gpu: usize) -> String {
    header.gpus.get(gpu).map_or_else(|| format!("gpu{gpu}"), |gpu| gpu.name.clone())
}

fn edge_name(header: &TraceHeader, edge: EdgeId) -> String {
    match header.edges.get(edge.index()) {
        Some(edge) => format!("from {}", task_name(header, edge.producer)),
        None => format!("edge {}", edge.0),
    }
}

/// What the lock protects, and its name.
pub(super) fn lock_name(header: &TraceHeader, lock: LockId) -> String {
    let Some(info) = header.locks.get(lock.index()) else { return format!("lock {}", lock.0) };
    match &info.kind {
        LockKind::Tokens { .. } => format!("token {}", info.name),
        LockKind::Engine { .. } => format!("engine {}", info.name),
        LockKind::Semaphore { .. } | LockKind::KFmlp { .. } => format!("GPU {}", info.name),
        LockKind::Resource { .. } | LockKind::Bandwidth => info.name.clone(),
    }
}
