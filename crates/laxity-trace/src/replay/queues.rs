//! Which jobs are ready, which CPUs they are linked to, and how urgent they are.

use laxity_model::{CpuId, Instant, JobId, TaskId};

use super::task::Task;
use crate::TraceHeader;

/// An effective priority: an absolute deadline or a rank plus 1 (0 is above all), then the task that it belongs to. The
/// smaller is the more urgent.
pub(crate) type Level = (u64, TaskId);

/// The ready and linked jobs.
#[derive(Clone, Debug)]
pub(crate) struct Queues {
    by_deadline: bool,
    tasks: Vec<Queued>,
    cpus: Vec<Linked>,
}

/// A task's part. A task has at most one ready job, for its jobs are sequential.
#[derive(Clone, Copy, Debug)]
struct Queued {
    cluster: usize,
    rank: u32,
    /// The job that is ready, running or not.
    ready: Option<JobId>,
    link: Option<CpuId>,
    /// The job that suspended itself last and did not resume, and since when.
    suspended: Option<(JobId, Instant)>,
    section: Option<Section>,
    /// The last effective priority that a record named.
    named: Option<Named>,
    /// The last completed job's own priority.
    completed: Option<Level>,
    /// The last job of an interrupt thread that serves an owner, and that owner.
    serves: Option<(JobId, JobId)>,
}

/// A non-preemptive section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub job: JobId,
    pub cpu: CpuId,
    pub since: Instant,
}

/// An effective priority that a record named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub job: JobId,
    pub level: Level,
    /// Since when it is the same.
    pub since: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
struct Linked {
    cluster: Option<usize>,
    job: Option<JobId>,
}

impl Queues {
    pub fn new(header: &TraceHeader) -> Self {
        let mut cpus = vec![Linked::default(); header.cpus];
        for (cpu, cluster) in header.clusters_of_cpus() {
            cpus[cpu.index()].cluster = Some(cluster);
        }
        let task = |cluster, rank| Queued {
            cluster,
            rank,
            ready: None,
            link: None,
            suspended: None,
            section: None,
            named: None,
            completed: None,
            serves: None,
        };
        let tasks = header.tasks.iter().map(|info| task(info.cluster, info.rank)).collect();
        Queues { by_deadline: header.scheduler.rule.goes_by_deadline(), tasks, cpus }
    }

    /// The cluster of `cpu`.
    pub fn cluster_of(&self, cpu: CpuId) -> Option<usize> {
        self.cpus.get(cpu.index())?.cluster
    }

    /// The ready job of a task, running or not.
    pub fn ready(&self, task: TaskId) -> Option<JobId> {
        self.tasks.get(task.index())?.ready
    }

    /// Whether `job` is ready, running or not.
    pub fn is_ready(&self, job: JobId) -> bool {
        self.ready(job.task) == Some(job)
    }

    /// The job linked to `cpu`; it is ready.
    pub fn linked(&self, cpu: CpuId) -> Option<JobId> {
        self.cpus.get(cpu.index())?.job
    }

    /// The CPU that the ready job of a task is linked to.
    pub fn link_of(&self, task: TaskId) -> Option<CpuId> {
        self.tasks.get(task.index())?.link
    }

    /// Since when `job` is suspended.
    pub fn suspended(&self, job: JobId) -> Option<Instant> {
        self.tasks.get(job.task.index())?.suspended.filter(|&(of, _)| of == job).map(|(_, since)| since)
    }

    /// The non-preemptive section that `job` is in.
    pub fn section(&self, job: JobId) -> Option<Section> {
        self.tasks.get(job.task.index())?.section.filter(|section| section.job == job)
    }

    /// The effective priority that a record last named for `job`.
    pub fn named(&self, job: JobId) -> Option<Named> {
        self.tasks.get(job.task.index())?.named.filter(|named| named.job == job)
    }

    /// Of every task, the job that is suspended, the non-preemptive section, and the priority that a record named.
    pub fn lasting(&self) -> impl Iterator<Item = (Option<(JobId, Instant)>, Option<Section>, Option<Named>)> + '_ {
        self.tasks.iter().map(|task| (task.suspended, task.section, task.named))
    }

    /// The job that `thread`, of an interrupt thread, serves.
    pub fn owner_of(&self, thread: JobId) -> Option<JobId> {
        let serves = self.tasks.get(thread.task.index())?.serves;
        serves.filter(|&(job, _)| job == thread).map(|(_, owner)| owner)
    }

    /// The priority of the task's last completed job in its own right.
    pub fn completed_level(&self, task: TaskId) -> Option<Level> {
        self.tasks.get(task.index())?.completed
    }

    /// The effective priority of a pending job.
    pub fn level(&self, job: JobId, tasks: &[Task]) -> Option<Level> {
        self.named(job).map(|named| named.level).or_else(|| self.own_level(job, tasks))
    }

    /// Its deadline under EDF, else its task's rank plus 1; 0 is above all.
    pub fn own_level(&self, job: JobId, tasks: &[Task]) -> Option<Level> {
        let deadline = tasks.get(job.task.index())?.pending().deadline(job.index)?;
        let rank = self.tasks[job.task.index()].rank;
        Some((if self.by_deadline { deadline.0 } else { u64::from(rank) + 1 }, job.task))
    }

    /// `job` can run. A job whose release is not known cannot: its priority is not known either.
    pub(super) fn make_ready(&mut self, job: JobId, tasks: &[Task]) {
        let is_pending = tasks.get(job.task.index()).is_some_and(|task| task.pending().deadline(job.index).is_some());
        if let Some(task) = self.tasks.get_mut(job.task.index()).filter(|task| is_pending && task.ready.is_none()) {
            task.ready = Some(job);
        }
    }

    pub(super) fn suspend(&mut self, at: Instant, job: JobId) {
        self.leave(job);
        if let Some(task) = self.tasks.get_mut(job.task.index()) {
            task.suspended = Some((job, at));
        }
    }

    pub(super) fn resume(&mut self, job: JobId, tasks: &[Task]) {
        if let Some(task) = self.tasks.get_mut(job.task.index()) {
            task.suspended.take_if(|&mut (of, _)| of == job);
        }
        self.make_ready(job, tasks);
    }

    /// `tasks`: before the completion.
    pub(super) fn complete(&mut self, job: JobId, tasks: &[Task]) {
        self.leave(job);
        let is_oldest = tasks.get(job.task.index()).is_some_and(|task| task.pending().oldest() == job.index);
        let own = self.own_level(job, tasks).filter(|_| is_oldest);
        if let Some(task) = self.tasks.get_mut(job.task.index()) {
            task.suspended.take_if(|&mut (of, _)| of == job);
            task.section.take_if(|section| section.job == job);
            task.named.take_if(|named| named.job == job);
            task.completed = own.or(task.completed);
        }
    }

    /// Links `job` to `cpu`, if it is ready and of the CPU's cluster.
    pub(super) fn link(&mut self, cpu: CpuId, job: Option<JobId>) {
        let Some(job) = job else { return self.unlink(cpu) };
        if self.is_ready(job) && self.cluster_of(cpu) == Some(self.tasks[job.task.index()].cluster) {
            self.unlink(cpu);
            // A job that moves leaves its former CPU without a link.
            if let Some(former) = self.tasks[job.task.index()].link.replace(cpu) {
                self.cpus[former.index()].job = None;
            }
            self.cpus[cpu.index()].job = Some(job);
        }
    }

    pub(super) fn begin_section(&mut self, at: Instant, cpu: CpuId, job: JobId) {
        if let Some(task) = self.tasks.get_mut(job.task.index()) {
            task.section = Some(Section { job, cpu, since: at });
        }
    }

    pub(super) fn end_section(&mut self, job: JobId) {
        if let Some(task) = self.tasks.get_mut(job.task.index()) {
            task.section.take_if(|section| section.job == job);
        }
    }

    pub(super) fn prioritize(&mut self, at: Instant, job: JobId, level: Level) {
        if let Some(task) = self.tasks.get_mut(job.task.index()) {
            let same = task.named.filter(|named| (named.job, named.level) == (job, level));
            task.named = Some(same.unwrap_or(Named { job, level, since: at }));
        }
    }

    pub(super) fn serve(&mut self, thread: JobId, owner: Option<JobId>) {
        let owner = owner.filter(|owner| owner.task.index() < self.tasks.len());
        if let Some(task) = self.tasks.get_mut(thread.task.index()) {
            task.serves = owner.map(|owner| (thread, owner));
        }
    }

    fn unlink(&mut self, cpu: CpuId) {
        if let Some(job) = self.cpus.get_mut(cpu.index()).and_then(|linked| linked.job.take()) {
            self.tasks[job.task.index()].link = None;
        }
    }

    /// `job` is no longer ready, and loses its link.
    fn leave(&mut self, job: JobId) {
        if self.is_ready(job) {
            let task = &mut self.tasks[job.task.index()];
            task.ready = None;
            if let Some(cpu) = task.link.take() {
                self.cpus[cpu.index()].job = None;
            }
        }
    }
}
