//! Which ready jobs are linked to CPUs and which are not, by urgency, and since when.

use std::collections::{BTreeMap, BTreeSet};

use laxity_model::{CpuId, Instant, InterruptHandling, JobId, TaskId};

use super::super::Urgency;
use crate::replay::Replay;
use crate::{TaskKind, TraceHeader};

/// A job's place in the order of urgency: its effective priority, then its own task. A job that inherits ranks beside the
/// job that it inherits from.
pub(super) type Key = (u64, TaskId, TaskId);

/// The level below all jobs, of threads.
pub(super) const BELOW_ALL: u64 = u64::MAX - 1;

/// The ready jobs of all clusters. Kept up to date with the replay by [`Links::update`].
#[derive(Clone, Debug)]
pub(super) struct Links {
    by_deadline: bool,
    tasks: Vec<TaskState>,
    cpus: Vec<CpuState>,
    clusters: Vec<Cluster>,
    /// The interrupt threads.
    threads: Vec<TaskId>,
    /// When a job was last dispatched anywhere.
    dispatched_at: Option<Instant>,
}

/// A ready job, as it was last seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    pub job: JobId,
    pub key: Key,
    /// When it became ready.
    pub since: Instant,
    /// Whether a job had been dispatched at that same instant already: the decisions of quanta that begin there were over.
    /// It may have been a job of another cluster, which unlocked what this one waited for.
    pub is_late: bool,
    /// When it became ready or was displaced, whichever is later.
    pub unlinked_since: Instant,
    pub key_change: Change,
    link: Option<CpuId>,
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

#[derive(Clone, Debug)]
struct TaskState {
    cluster: usize,
    /// Whether the policy says nothing about its jobs.
    is_outside: bool,
    ready: Option<Ready>,
    /// The end of its last non-preemptive section; never, while it is in one.
    non_preemptive_until: Instant,
}

/// A CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CpuState {
    cluster: Option<usize>,
    linked: Option<TaskId>,
    /// Since when it is without a link, if it is.
    pub free_since: Instant,
    /// Whether the job it lost then had been dispatched at that very instant.
    pub free_late: bool,
    /// When a job was last dispatched on it, or went on there after a handler.
    dispatched_at: Option<Instant>,
}

#[derive(Clone, Debug, Default)]
struct Cluster {
    /// The ready jobs without a link, the most urgent first.
    unlinked: BTreeMap<Key, TaskId>,
    linked: BTreeSet<(Key, CpuId)>,
    /// The CPUs without a link.
    free: BTreeSet<CpuId>,
}

/// What an effective priority says to people.
pub(super) fn urgency(level: u64, by_deadline: bool) -> Urgency {
    match (level, by_deadline) {
        (0, _) => Urgency::Boosted,
        (BELOW_ALL, _) => Urgency::Below,
        (deadline, true) => Urgency::Deadline(Instant(deadline)),
        (level, false) => Urgency::Rank((level - 1).try_into().unwrap_or(u32::MAX)),
    }
}

impl Links {
    pub fn new(header: &TraceHeader) -> Self {
        let mut cpus = vec![CpuState::default(); header.cpus];
        let mut clusters = vec![Cluster::default(); header.clusters.len()];
        for (cpu, cluster) in header.clusters_of_cpus() {
            cpus[cpu.index()].cluster = Some(cluster);
        }
        for (index, cpu) in cpus.iter().enumerate() {
            if let Some(cluster) = cpu.cluster {
                clusters[cluster].free.insert(CpuId(index as u16));
            }
        }
        let task = |info: &crate::TaskInfo| TaskState {
            cluster: info.cluster,
            // Standard Linux runs what is left over in a daemon of the CPU without real-time priority.
            is_outside: info.kind == TaskKind::Thread && header.handling == InterruptHandling::Linux,
            ready: None,
            non_preemptive_until: Instant::ZERO,
        };
        Links {
            by_deadline: header.scheduler.rule.goes_by_deadline(),
            tasks: header.tasks.iter().map(task).collect(),
            cpus,
            clusters,
            threads: (0..header.tasks.len() as u32).map(TaskId).filter(|&task| header.is_thread(task)).collect(),
            dispatched_at: None,
        }
    }

    pub fn cpu(&self, cpu: CpuId) -> &CpuState {
        &self.cpus[cpu.index()]
    }

    /// The cluster of the task, if the header knows it.
    pub fn cluster_of(&self, task: TaskId) -> Option<usize> {
        self.tasks.get(task.index()).map(|task| task.cluster)
    }

    /// The job that is linked to `cpu`.
    pub fn linked(&self, cpu: CpuId) -> Option<Ready> {
        self.tasks[self.cpus[cpu.index()].linked?.index()].ready
    }

    /// The ready jobs without a link that `cpu` could take, the most urgent first; `None` if it is of no cluster.
    pub fn unlinked_of(&self, cpu: CpuId) -> Option<impl Iterator<Item = &Ready>> {
        let tasks = self.clusters[self.cpus[cpu.index()].cluster?].unlinked.values();
        Some(tasks.filter_map(|task| self.tasks[task.index()].ready.as_ref()))
    }

    /// The CPUs that a ready job without a link might have to get: those without a link and those with a less urgent job.
    pub fn suspects(&self) -> impl Iterator<Item = CpuId> + '_ {
        self.clusters.iter().filter_map(|cluster| Some((cluster, *cluster.unlinked.first_key_value()?.0))).flat_map(
            |(cluster, most_urgent)| {
                let less_urgent = cluster.linked.range((most_urgent, CpuId(0))..).map(|&(_, cpu)| cpu);
                cluster.free.iter().copied().chain(less_urgent)
            },
        )
    }

    /// The end of the last non-preemptive section of the ready job of a task; never, while it is in one.
    pub fn non_preemptive_until(&self, task: TaskId) -> Instant {
        self.tasks[task.index()].non_preemptive_until
    }

    /// What a key says to people.
    pub fn urgency(&self, key: Key) -> Urgency {
        urgency(key.0, self.by_deadline)
    }

    /// Whether `job`, ready and without a link, waits for something else than a CPU: for the bottom half on its stack to
    /// end, or, where an owner and the threads that serve it are one entity, for another part of that entity, of which one
    /// runs at a time and the owner last.
    pub fn is_held_back(&self, job: JobId, is_one_entity: bool, replay: &Replay) -> bool {
        let queues = &replay.details().queues;
        let under_bottom_half =
            replay.cpu_of(job).is_some_and(|cpu| replay.cpus()[cpu.index()].bottom_half().is_some());
        if under_bottom_half || !is_one_entity {
            return under_bottom_half;
        }
        let owner = queues.owner_of(job).map(|owner| owner.task);
        let threads = self.threads.iter().filter_map(|&task| queues.ready(task));
        let mut serving = threads.filter_map(|thread| Some((thread, queues.owner_of(thread)?.task)));
        owner.is_some_and(|owner| queues.link_of(owner).is_some())
            || serving.any(|(thread, served)| {
                let is_linked = queues.link_of(thread.task).is_some();
                served == job.task || is_linked && Some(served) == owner
            })
    }

    /// Something changed about the jobs of `task`: whether one is ready, how urgent it is, where it is linked.
    pub fn update(&mut self, at: Instant, task: TaskId, replay: &Replay) {
        let queues = &replay.details().queues;
        let Some(state) = self.tasks.get_mut(task.index()) else { return };
        let before = state.ready;
        let now = queues.ready(task).and_then(|job| {
            let (level, of) = replay.level(job)?;
            let fresh = Ready {
                job,
                key: (level, of, task),
                since: at,
                is_late: self.dispatched_at == Some(at),
                unlinked_since: at,
                key_change: Change::default(),
                link: None,
            };
            let link = queues.link_of(task);
            let old = before.filter(|before| before.job == job).unwrap_or(fresh);
            let displaced = old.link.is_some() && link.is_none();
            Some(Ready { key: fresh.key, unlinked_since: if displaced { at } else { old.unlinked_since }, link, ..old })
        });
        if now.is_none() {
            state.non_preemptive_until = state.non_preemptive_until.min(at);
        }
        state.ready = now;
        let (cluster, is_outside) = (state.cluster, state.is_outside);
        if let Some(before) = before {
            self.remove(at, cluster, before, now.and_then(|now| now.link));
        }
        let Some(now) = now else { return };
        let cluster = &mut self.clusters[cluster];
        match now.link {
            Some(cpu) => {
                self.cpus[cpu.index()].linked = Some(task);
                cluster.free.remove(&cpu);
                cluster.linked.insert((now.key, cpu));
            }
            None if !is_outside => {
                cluster.unlinked.insert(now.key, task);
            }
            None => {}
        }
    }

    /// What is linked to `cpu` may have changed.
    pub fn update_cpu(&mut self, at: Instant, cpu: CpuId, replay: &Replay) {
        let before = self.cpus.get(cpu.index()).and_then(|cpu| cpu.linked);
        let now = replay.details().queues.linked(cpu).map(|job| job.task);
        for task in before.into_iter().chain(now) {
            self.update(at, task, replay);
        }
    }

    /// A record said what priority `job` has from now on.
    pub fn note_priority(&mut self, at: Instant, job: JobId, replay: &Replay) {
        self.update(at, job.task, replay);
        let key_change = Change { at, is_late: self.dispatched_at == Some(at) };
        let ready = self.tasks.get_mut(job.task.index()).and_then(|task| task.ready.as_mut());
        if let Some(ready) = ready.filter(|ready| ready.job == job) {
            ready.key_change = key_change;
        }
    }

    /// A job was dispatched on `cpu`, or goes on there after it spun.
    pub fn note_dispatch(&mut self, at: Instant, cpu: CpuId) {
        self.dispatched_at = Some(at);
        if let Some(state) = self.cpus.get_mut(cpu.index()) {
            state.dispatched_at = Some(at);
        }
    }

    /// A handler on `cpu` is done. The job there goes on after that, and after the tick of that instant, if there is one: if it has
    /// nothing left, it leaves the CPU when the tick has decided.
    pub fn note_handled(&mut self, at: Instant, cpu: CpuId) {
        if let Some(state) = self.cpus.get_mut(cpu.index()) {
            state.dispatched_at = Some(at);
        }
    }

    pub fn set_non_preemptive_until(&mut self, job: JobId, until: Instant) {
        let task = self.tasks.get_mut(job.task.index());
        if let Some(task) = task.filter(|task| task.ready.is_some_and(|ready| ready.job == job)) {
            task.non_preemptive_until = until;
        }
    }

    /// Takes a job off its cluster's lists. `next`: the CPU that it is linked to from now on.
    fn remove(&mut self, at: Instant, cluster: usize, ready: Ready, next: Option<CpuId>) {
        let cluster = &mut self.clusters[cluster];
        let Some(cpu) = ready.link else {
            cluster.unlinked.remove(&ready.key);
            return;
        };
        cluster.linked.remove(&(ready.key, cpu));
        let state = &mut self.cpus[cpu.index()];
        if next != Some(cpu) && state.linked == Some(ready.job.task) {
            state.linked = None;
            state.free_since = at;
            state.free_late = state.dispatched_at == Some(at);
            cluster.free.insert(cpu);
        }
    }
}
