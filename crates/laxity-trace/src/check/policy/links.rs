//! Who is ready and who is linked where, as the records tell.

use std::collections::BTreeMap;

use laxity_model::{CpuId, Instant, InterruptHandling, JobId, TaskId};

use super::super::{Phase, Urgency};
use crate::header::own_level;
use crate::metrics::pending::Pending;
use crate::{TaskKind, TraceHeader};

/// A job's place in the order of urgency: its effective priority (deadline or rank plus 1, then the task whose that is), then
/// its own task. One that inherits ranks beside the one it inherits from.
pub(super) type Key = (u64, u32, u32);

/// The ready and linked jobs of all clusters.
#[derive(Clone, Debug)]
pub(super) struct Mapping {
    edf: bool,
    tasks: Vec<TaskState>,
    cpus: Vec<CpuState>,
    /// The ready and unlinked jobs of each cluster, the most urgent first.
    unlinked: Vec<BTreeMap<Key, Unlinked>>,
    /// When a job was last dispatched anywhere.
    dispatched_at: Option<Instant>,
}

/// A ready job that is not linked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unlinked {
    pub job: JobId,
    pub key: Key,
    /// When it became ready.
    pub ready_since: Instant,
    /// Whether a job had been dispatched at that same instant already: the decisions of quanta that begin there were over.
    /// It may have been one of another cluster, which unlocked what this one waited for.
    pub ready_late: bool,
    /// When it became ready or was displaced, whichever is later.
    pub unlinked_since: Instant,
    pub key_change: Change,
}

/// A linked job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Linked {
    pub job: JobId,
    pub key: Key,
    /// The end of its last non-preemptive section; never, while it is in one.
    pub non_preemptive_until: Instant,
    pub key_change: Change,
}

/// When an effective priority last changed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Change {
    pub at: Instant,
    /// Whether a job had been dispatched at that same instant already: the decisions of quanta that begin there were
    /// over.
    is_late: bool,
}

impl Change {
    /// Whether a quantum's decision, taken at `decided`, could not know of it.
    pub fn is_unknown_at(self, decided: Instant) -> bool {
        self.at > decided || self.at == decided && self.is_late
    }
}

/// A CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CpuState {
    cluster: Option<usize>,
    /// The task of the linked job.
    linked: Option<usize>,
    /// The job whose process is there.
    pub running: Option<JobId>,
    /// Whether a bottom half is on its stack.
    pub in_bottom_half: bool,
    /// Where its last overhead or lock wait ends.
    pub covered_until: Instant,
    /// Since when it is without a link, if it is.
    pub free_since: Instant,
    /// Whether the job it lost then had been dispatched at that very instant.
    pub free_late: bool,
    /// When a job was last dispatched on it.
    dispatched_at: Option<Instant>,
}

/// Why a link makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkError {
    /// The job is not ready.
    Phase(Phase),
    /// The CPU is outside the job's cluster.
    Cluster(usize),
    /// The header does not know the task or the CPU.
    Unknown,
}

#[derive(Clone, Debug)]
struct TaskState {
    cluster: usize,
    rank: u32,
    pending: Pending,
    /// The ready job, linked or not: a task has at most one.
    job: Option<JobId>,
    key: Key,
    /// The last effective priority that the trace named.
    given: Option<(JobId, Key)>,
    key_change: Change,
    /// For a thread's job, whom it serves.
    serves: Option<(JobId, JobId)>,
    /// Whether the policy says nothing about its jobs.
    is_outside: bool,
    ready_since: Instant,
    ready_late: bool,
    linked_to: Option<usize>,
    non_preemptive_until: Instant,
}

impl Mapping {
    pub fn new(header: &TraceHeader) -> Self {
        let mut cpus = vec![CpuState::default(); header.cpus];
        for (index, cluster) in header.clusters.iter().enumerate() {
            for cpu in cluster {
                if let Some(state) = cpus.get_mut(cpu.index()) {
                    state.cluster = Some(index);
                }
            }
        }
        let tasks = header.tasks.iter().map(|info| TaskState {
            cluster: info.cluster,
            rank: info.rank,
            pending: Pending::default(),
            job: None,
            key: (0, 0, 0),
            given: None,
            key_change: Change::default(),
            serves: None,
            // Standard Linux runs what is left over in a daemon of the CPU without real-time priority.
            is_outside: info.kind == TaskKind::Thread && header.handling == InterruptHandling::Linux,
            ready_since: Instant::ZERO,
            ready_late: false,
            linked_to: None,
            non_preemptive_until: Instant::ZERO,
        });
        Mapping {
            edf: header.scheduler.rule.goes_by_deadline(),
            tasks: tasks.collect(),
            cpus,
            unlinked: vec![BTreeMap::new(); header.clusters.len()],
            dispatched_at: None,
        }
    }

    /// The ready and unlinked jobs that `cpu` could take, the most urgent first; `None` if it is of no cluster.
    pub fn unlinked_of(&self, cpu: usize) -> Option<&BTreeMap<Key, Unlinked>> {
        self.unlinked.get(self.cpus[cpu].cluster?)
    }

    pub fn has_cpu(&self, cpu: CpuId) -> bool {
        cpu.index() < self.cpus.len()
    }

    pub fn cpu(&self, cpu: usize) -> &CpuState {
        &self.cpus[cpu]
    }

    /// What is linked to `cpu`.
    pub fn linked(&self, cpu: usize) -> Option<Linked> {
        let task = &self.tasks[self.cpus[cpu].linked?];
        task.job.map(|job| Linked {
            job,
            key: task.key,
            non_preemptive_until: task.non_preemptive_until,
            key_change: task.key_change,
        })
    }

    /// What a key says to people.
    pub fn urgency(&self, key: Key) -> Urgency {
        match (key.0, self.edf) {
            (0, _) => Urgency::Boosted,
            (deadline, true) => Urgency::Deadline(Instant(deadline)),
            (level, false) => Urgency::Rank(level as u32 - 1),
        }
    }

    pub fn is_non_preemptive(&self, job: JobId) -> bool {
        let task = self.tasks.get(job.task.index());
        task.is_some_and(|task| task.job == Some(job) && task.non_preemptive_until == Instant::NEVER)
    }

    pub fn release(&mut self, job: JobId, deadline: Instant) {
        if let Some(task) = self.tasks.get_mut(job.task.index()) {
            task.pending.release(job.index, deadline);
        }
    }

    pub fn ready(&mut self, at: Instant, job: JobId) {
        let edf = self.edf;
        let Some(task) = self.tasks.get_mut(job.task.index()) else { return };
        let Some(deadline) = task.pending.deadline(job.index) else { return };
        if task.job.is_some() {
            return;
        }
        task.job = Some(job);
        let own = (own_level(edf, task.rank, deadline), job.task.0, job.task.0);
        task.key = task.given.filter(|&(of, _)| of == job).map_or(own, |(_, key)| key);
        task.key_change = Change::default();
        task.ready_since = at;
        task.ready_late = self.dispatched_at == Some(at);
        task.linked_to = None;
        self.enqueue(job.task.index(), at);
    }

    /// The effective priority of `job` is another from now on.
    pub fn prioritize(&mut self, at: Instant, job: JobId, level: u64, of: TaskId) {
        let Some(task) = self.tasks.get_mut(job.task.index()) else { return };
        let key = (level, of.0, job.task.0);
        task.given = Some((job, key));
        if task.job != Some(job) {
            return;
        }
        let before = std::mem::replace(&mut task.key, key);
        let key_change = Change { at, is_late: self.dispatched_at == Some(at) };
        task.key_change = key_change;
        if let Some(jobs) = self.unlinked.get_mut(task.cluster)
            && let Some(entry) = jobs.remove(&before)
        {
            jobs.insert(key, Unlinked { key, key_change, ..entry });
        }
    }

    /// `thread` is a bottom half of `owner`.
    pub fn serve(&mut self, thread: JobId, owner: Option<JobId>) {
        if let Some(task) = self.tasks.get_mut(thread.task.index()) {
            task.serves = owner.map(|owner| (thread, owner));
        }
    }

    pub fn set_bottom_half(&mut self, cpu: CpuId, present: bool) {
        if let Some(state) = self.cpus.get_mut(cpu.index()) {
            state.in_bottom_half = present;
        }
    }

    /// Whether `job`, ready and unlinked, waits for something else than a CPU: for the bottom half on its stack to end,
    /// or for another part of the entity that an owner is with the threads that serve it, of which one runs at a time
    /// and the owner last.
    pub fn is_held_back(&self, job: JobId) -> bool {
        let part_of_same =
            |other: JobId| self.serves(other, job) || self.serves(job, other) || self.serve_the_same(other, job);
        let is_served = |task: &TaskState| task.job.is_some_and(|thread| self.serves(thread, job));
        self.tasks.iter().any(is_served)
            || self.cpus.iter().any(|cpu| {
                let linked = cpu.linked.and_then(|task| self.tasks[task].job);
                cpu.in_bottom_half && cpu.running == Some(job) || linked.is_some_and(part_of_same)
            })
    }

    /// Whether `thread` is a bottom half of a job of `owner`'s task.
    fn serves(&self, thread: JobId, owner: JobId) -> bool {
        let serves = self.tasks.get(thread.task.index()).and_then(|task| task.serves);
        serves.is_some_and(|(job, of)| job == thread && of.task == owner.task)
    }

    /// Whether both are threads that serve one task.
    fn serve_the_same(&self, one: JobId, other: JobId) -> bool {
        let owner = |thread: JobId| {
            let (job, of) = self.tasks.get(thread.task.index())?.serves?;
            (job == thread).then_some(of.task)
        };
        owner(one).is_some_and(|task| owner(other) == Some(task))
    }

    /// Links `job`, which is ready, to `cpu`; what was linked there is ready again. `Ok(false)`: it was linked there.
    pub fn link(&mut self, at: Instant, cpu: CpuId, job: JobId) -> Result<bool, LinkError> {
        let index = job.task.index();
        let task = self.tasks.get(index).ok_or(LinkError::Unknown)?;
        let cpu_state = self.cpus.get(cpu.index()).ok_or(LinkError::Unknown)?;
        if task.job != Some(job) {
            return Err(LinkError::Phase(self.phase(job)));
        }
        if cpu_state.cluster != Some(task.cluster) {
            return Err(LinkError::Cluster(task.cluster));
        }
        if task.linked_to == Some(cpu.index()) {
            return Ok(false);
        }
        // A job that moves leaves its former CPU without a link.
        match task.linked_to {
            Some(from) => self.free(at, from),
            None => {
                self.unlinked[task.cluster].remove(&task.key);
            }
        }
        self.unlink(at, cpu);
        self.tasks[index].linked_to = Some(cpu.index());
        self.cpus[cpu.index()].linked = Some(index);
        Ok(true)
    }

    /// Nothing is linked to `cpu` any more; what was is ready.
    pub fn unlink(&mut self, at: Instant, cpu: CpuId) {
        let Some(task) = self.cpus.get(cpu.index()).and_then(|state| state.linked) else { return };
        self.free(at, cpu.index());
        self.tasks[task].linked_to = None;
        self.enqueue(task, at);
    }

    /// `job` is no longer ready.
    pub fn leave(&mut self, at: Instant, job: JobId) {
        let Some(task) = self.tasks.get_mut(job.task.index()) else { return };
        if task.job != Some(job) {
            return;
        }
        task.job = None;
        task.non_preemptive_until = task.non_preemptive_until.min(at);
        match task.linked_to.take() {
            Some(cpu) => self.free(at, cpu),
            None => {
                let (cluster, key) = (task.cluster, task.key);
                if let Some(jobs) = self.unlinked.get_mut(cluster) {
                    jobs.remove(&key);
                }
            }
        }
    }

    pub fn complete(&mut self, at: Instant, job: JobId) {
        self.leave(at, job);
        if let Some(task) = self.tasks.get_mut(job.task.index()) {
            task.pending.complete(job.index);
        }
    }

    pub fn dispatch(&mut self, at: Instant, cpu: CpuId, job: JobId) {
        self.set_running(cpu, Some(job));
        self.dispatched_at = Some(at);
        if let Some(state) = self.cpus.get_mut(cpu.index()) {
            state.dispatched_at = Some(at);
        }
    }

    pub fn set_running(&mut self, cpu: CpuId, job: Option<JobId>) {
        if let Some(state) = self.cpus.get_mut(cpu.index()) {
            state.running = job;
        }
    }

    pub fn set_non_preemptive_until(&mut self, job: JobId, until: Instant) {
        if let Some(task) = self.tasks.get_mut(job.task.index()).filter(|task| task.job == Some(job)) {
            task.non_preemptive_until = until;
        }
    }

    pub fn cover(&mut self, cpu: CpuId, until: Instant) {
        if let Some(state) = self.cpus.get_mut(cpu.index()) {
            state.covered_until = state.covered_until.max(until);
        }
    }

    fn free(&mut self, at: Instant, cpu: usize) {
        let state = &mut self.cpus[cpu];
        state.linked = None;
        state.free_since = at;
        state.free_late = state.dispatched_at == Some(at);
    }

    fn enqueue(&mut self, task: usize, at: Instant) {
        let state = &self.tasks[task];
        let Some(job) = state.job.filter(|_| !state.is_outside) else { return };
        let entry = Unlinked {
            job,
            key: state.key,
            ready_since: state.ready_since,
            ready_late: state.ready_late,
            unlinked_since: at,
            key_change: state.key_change,
        };
        if let Some(cluster) = self.unlinked.get_mut(state.cluster) {
            cluster.insert(state.key, entry);
        }
    }

    /// The phase of a job that is not ready.
    fn phase(&self, job: JobId) -> Phase {
        let pending = &self.tasks[job.task.index()].pending;
        match pending.oldest() {
            oldest if job.index < oldest => Phase::Complete,
            _ if pending.deadline(job.index).is_none() => Phase::Unreleased,
            _ => Phase::Released,
        }
    }
}
