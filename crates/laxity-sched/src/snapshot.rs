//! A system as it is at one moment.

use laxity_model::{CpuId, Instant, Nanos, TaskId};
use laxity_policy::cpu::Standing;

use crate::cluster_cache::ClusterCache;
use crate::config::Config;
use crate::shared::Shared;
use crate::state_lock::StateError;

/// A system as it is at one moment; each cluster at a moment of its own.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// What it schedules, where, and by which policy.
    pub config: Config,
    /// Its tasks, by cluster and number.
    pub tasks: Vec<TaskSnapshot>,
}

/// A task as it is at one moment.
#[derive(Clone, Debug)]
pub struct TaskSnapshot {
    /// Its number.
    pub id: TaskId,
    /// Its name.
    pub name: String,
    /// The process, by number: that of the task, or the program that it stands for.
    pub pid: u32,
    /// The thread.
    pub thread: u32,
    /// The cluster.
    pub cluster: usize,
    /// What its thread does.
    pub state: TaskState,
    /// The CPU that its thread has, numbered as Linux does.
    pub cpu: Option<u16>,
    /// The effective level of its job: absolute deadline in nanoseconds, or level.
    pub level: u64,
    /// Of the current or last job.
    pub job: u64,
    /// When that is due, on the monotonic clock.
    pub deadline: Instant,
    /// What it was begun with.
    pub period: Nanos,
    /// Relative.
    pub relative_deadline: Nanos,
    /// Completed jobs.
    pub completed: u64,
    /// Those of them that were late.
    pub late: u64,
    /// The latest by how much.
    pub tardiness_max: Nanos,
    /// The error with which Linux last refused to place its thread.
    pub refused: Option<i32>,
}

/// What the thread of a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// It waits for its next job.
    Parked,
    /// It has a job and no CPU.
    Ready,
    /// It has a CPU.
    Linked,
    /// Its job suspended itself.
    Suspended,
    /// Its job has used up its budget in code that went on, and is suspended until it has another one.
    Throttled,
    /// An interrupt thread that works for its job goes first.
    Held,
}

impl Snapshot {
    pub(crate) fn of(shared: &Shared) -> Result<Snapshot, StateError> {
        let mut tasks = Vec::new();
        for cluster in shared.clusters() {
            let mut cache = ClusterCache::new(&shared.config, shared.config.clusters[cluster].len());
            let seen = cache.peek(shared, cluster, |cache| {
                let members = shared.tasks().filter(|&task| cache.is_member(task));
                members.map(|task| of_task(shared, cluster, cache, task)).collect::<Vec<_>>()
            });
            tasks.extend(seen.map_err(StateError::Damaged)?);
        }
        Ok(Snapshot { config: shared.config.clone(), tasks })
    }
}

fn of_task(shared: &Shared, cluster: usize, cache: &ClusterCache, task: TaskId) -> TaskSnapshot {
    let (standing, priority) = cache.policy.standing(task);
    let words = shared.task(task);
    let cpus = (0..shared.config.clusters[cluster].len() as u16).map(CpuId);
    let cpu = { cpus }.find(|&cpu| cache.policy.scheduled(cpu) == Some(task));
    let pid = shared.program(task).unwrap_or_else(|| shared.number(words.pid));
    let thread = shared.scheduled_thread(task);
    let refused = shared.number(words.refused);
    TaskSnapshot {
        id: task,
        name: shared.task_name(task),
        pid,
        thread,
        cluster,
        state: match standing {
            Standing::Inactive => TaskState::Parked,
            Standing::Ready => TaskState::Ready,
            Standing::Linked(_) => TaskState::Linked,
            Standing::Suspended if shared.is_throttled(task) => TaskState::Throttled,
            Standing::Suspended => TaskState::Suspended,
            Standing::Held => TaskState::Held,
        },
        cpu: cpu.map(|cpu| shared.config.linux(cluster, cpu)),
        level: priority.major,
        job: shared.long(words.job),
        deadline: Instant(shared.long(words.deadline)),
        period: Nanos(shared.long(words.period)),
        relative_deadline: Nanos(shared.long(words.relative)),
        completed: shared.long(words.completed),
        late: shared.long(words.late),
        tardiness_max: Nanos(shared.long(words.tardiness)),
        refused: (refused != 0).then_some(refused as i32),
    }
}
