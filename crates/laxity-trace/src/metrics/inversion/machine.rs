//! What is ready and what runs, as the records tell.

use std::collections::BTreeSet;

use laxity_model::{CpuId, Instant, JobId};

use crate::header::own_level;
use crate::metrics::pending::Pending;
use crate::{DeviceId, TraceHeader};

/// An effective priority: deadline or rank plus 1, then the task whose it is. The smaller is the higher.
pub(super) type Key = (u64, u32);

/// Below every job.
const LOWEST: Key = (u64::MAX, u32::MAX);

/// All entities and CPUs.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    edf: bool,
    tasks: Vec<Task>,
    cpus: Vec<Cpu>,
    clusters: Vec<Cluster>,
    /// The clusters about which something changed.
    changed: Vec<usize>,
}

/// A CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cpu {
    pub cluster: Option<usize>,
    pub running: Option<JobId>,
    pub linked: Option<JobId>,
    stack: Option<OnStack>,
}

/// A bottom half on a stack.
#[derive(Clone, Copy, Debug)]
struct OnStack {
    device: DeviceId,
    owner: Option<JobId>,
}

/// What a CPU runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Runner {
    /// `None`: a bottom half without owner on a stack.
    pub entity: Option<usize>,
    pub key: Key,
    pub is_bottom_half: bool,
}

/// A task: with the bottom halves of its jobs it is an entity. That of an interrupt thread is one only while it serves
/// nobody.
#[derive(Clone, Debug)]
struct Task {
    cluster: usize,
    rank: u32,
    is_thread: bool,
    /// For a thread's job, whom it serves.
    serves: Option<(JobId, JobId)>,
    pending: Pending,
    /// The last effective priority that the trace named.
    given: Option<(JobId, Key)>,
    /// The last completed job and its priority in its own right.
    completed: Option<(JobId, Key)>,
    /// The ready job, running or not.
    ready: Option<JobId>,
    bottom_halves: Vec<BottomHalf>,
    /// Under which the entity is in its cluster's ready list.
    listed: Option<Key>,
}

/// A bottom half from the end of its top half to its own.
#[derive(Clone, Copy, Debug)]
struct BottomHalf {
    device: DeviceId,
    owner: JobId,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Queued,
    Thread(JobId),
    Stack(CpuId),
}

#[derive(Clone, Debug, Default)]
struct Cluster {
    cpus: usize,
    ready: BTreeSet<(Key, usize)>,
    /// The bottom halves of its entities, those on its stacks, and the threads that run or have nobody to serve.
    bottom_halves: usize,
    is_changed: bool,
}

impl Machine {
    pub fn new(header: &TraceHeader) -> Self {
        let mut cpus = vec![Cpu::default(); header.cpus];
        let mut clusters = vec![Cluster::default(); header.clusters.len()];
        for (index, members) in header.clusters.iter().enumerate() {
            clusters[index].cpus = members.len();
            for cpu in members {
                if let Some(cpu) = cpus.get_mut(cpu.index()) {
                    cpu.cluster = Some(index);
                }
            }
        }
        let tasks = header.tasks.iter().map(|info| Task {
            cluster: info.cluster,
            rank: info.rank,
            is_thread: info.kind.is_thread(),
            serves: None,
            pending: Pending::default(),
            given: None,
            completed: None,
            ready: None,
            bottom_halves: Vec::new(),
            listed: None,
        });
        let edf = header.scheduler.rule.goes_by_deadline();
        Machine { edf, tasks: tasks.collect(), cpus, clusters, changed: Vec::new() }
    }

    /// A cluster about which something changed since it was returned last.
    pub fn next_changed(&mut self) -> Option<usize> {
        let cluster = self.changed.pop()?;
        self.clusters[cluster].is_changed = false;
        Some(cluster)
    }

    pub fn has_bottom_halves(&self, cluster: usize) -> bool {
        self.clusters[cluster].bottom_halves > 0
    }

    pub fn cpus_of(&self, cluster: usize) -> usize {
        self.clusters[cluster].cpus
    }

    pub fn cpus(&self) -> &[Cpu] {
        &self.cpus
    }

    /// The ready entities, the most urgent first.
    pub fn ready_in(&self, cluster: usize) -> impl Iterator<Item = (Key, usize)> + '_ {
        self.clusters[cluster].ready.iter().copied()
    }

    pub fn is_ready(&self, job: JobId) -> bool {
        self.tasks.get(job.task.index()).is_some_and(|task| task.ready == Some(job))
    }

    pub fn is_thread(&self, job: JobId) -> bool {
        self.tasks[job.task.index()].is_thread
    }

    /// The entity that `job`, of a task of the header, is part of.
    pub fn entity_of(&self, job: JobId) -> usize {
        self.owner_of(job).map_or(job.task, |owner| owner.task).index()
    }

    /// The owner of a bottom half of the entity, if there is one.
    pub fn bottom_half_of(&self, entity: usize) -> Option<JobId> {
        let task = &self.tasks[entity];
        let own = task.ready.filter(|_| task.is_thread);
        task.bottom_halves.first().map(|bottom_half| bottom_half.owner).or(own)
    }

    /// The job by which the entity is known.
    pub fn representative(&self, entity: usize) -> Option<JobId> {
        self.tasks[entity].ready.or_else(|| self.bottom_half_of(entity))
    }

    pub fn runner(&self, cpu: &Cpu) -> Option<Runner> {
        if let Some(stack) = cpu.stack {
            let entity = stack.owner.map(|owner| owner.task.index());
            return Some(Runner {
                entity,
                key: stack.owner.map_or(LOWEST, |owner| self.key(owner)),
                is_bottom_half: true,
            });
        }
        let job = cpu.running?;
        let key = self.key(self.owner_of(job).unwrap_or(job));
        Some(Runner { entity: Some(self.entity_of(job)), key, is_bottom_half: self.is_thread(job) })
    }

    pub fn release(&mut self, job: JobId, deadline: Instant) {
        if let Some(task) = self.tasks.get_mut(job.task.index()) {
            task.pending.release(job.index, deadline);
        }
    }

    pub fn ready(&mut self, job: JobId) {
        if let Some(task) = self.tasks.get_mut(job.task.index()).filter(|task| task.ready.is_none()) {
            task.ready = Some(job);
            self.relist(job.task.index());
        }
    }

    /// `job` waits for something else than a CPU.
    pub fn suspend(&mut self, job: JobId) {
        if self.is_ready(job) {
            self.tasks[job.task.index()].ready = None;
            self.relist(job.task.index());
        }
    }

    pub fn complete(&mut self, job: JobId) {
        self.suspend(job);
        let Some(owner) = self.tasks.get(job.task.index()).map(|_| self.owner_of(job)) else { return };
        let edf = self.edf;
        let task = &mut self.tasks[job.task.index()];
        task.serves = None;
        if let Some(deadline) = task.pending.complete(job.index) {
            let level = own_level(edf, task.rank, deadline);
            task.completed = Some((job, (level, job.task.0)));
            task.given = None;
            self.relist(job.task.index());
        }
        if let Some(owner) = owner {
            self.remove_bottom_half(owner.task.index(), |bottom_half| bottom_half.place == Place::Thread(job));
        }
    }

    pub fn prioritize(&mut self, job: JobId, key: Key) {
        if let Some(task) = self.tasks.get_mut(job.task.index()) {
            task.given = Some((job, key));
            self.relist(job.task.index());
            // What runs there may be lower than something now.
            self.note_change(self.tasks[job.task.index()].cluster);
        }
    }

    pub fn link(&mut self, cpu: CpuId, job: Option<JobId>) {
        let known = job.is_none_or(|job| job.task.index() < self.tasks.len());
        if let Some(state) = self.cpus.get_mut(cpu.index()).filter(|_| known) {
            state.linked = job;
            self.note_cpu(cpu);
        }
    }

    pub fn dispatch(&mut self, cpu: CpuId, job: JobId) {
        let Some(is_thread) = self.tasks.get(job.task.index()).map(|task| task.is_thread) else { return };
        let Some(before) = self.cpus.get(cpu.index()).map(|state| state.running) else { return };
        if let Some(before) = before {
            self.stop(cpu, before);
        }
        self.cpus[cpu.index()].running = Some(job);
        self.count(self.cpus[cpu.index()].cluster, is_thread, 1);
        self.note_cpu(cpu);
    }

    /// `job` no longer runs on `cpu`.
    pub fn stop(&mut self, cpu: CpuId, job: JobId) {
        let Some(state) = self.cpus.get(cpu.index()).filter(|state| state.running == Some(job)) else { return };
        let cluster = state.cluster;
        // Whoever's bottom half ran there is concerned, so before that is forgotten.
        self.note_cpu(cpu);
        self.cpus[cpu.index()].running = None;
        self.count(cluster, self.is_thread(job), -1);
    }

    pub fn has_queued(&self, device: DeviceId, owner: JobId) -> bool {
        let task = self.tasks.get(owner.task.index());
        task.is_some_and(|task| task.bottom_halves.iter().any(|bottom_half| bottom_half.is_queued(device, owner)))
    }

    /// A top half left a bottom half behind.
    pub fn queue_bottom_half(&mut self, device: DeviceId, owner: JobId) {
        let Some(task) = self.tasks.get_mut(owner.task.index()) else { return };
        task.bottom_halves.push(BottomHalf { device, owner, place: Place::Queued });
        let cluster = task.cluster;
        self.count(Some(cluster), true, 1);
        self.note_change(cluster);
        self.relist(owner.task.index());
    }

    /// `thread` will run a queued bottom half of `owner`.
    pub fn serve(&mut self, thread: JobId, device: DeviceId, owner: JobId) {
        if owner.task.index() >= self.tasks.len() {
            return;
        }
        let Some(task) = self.tasks.get_mut(thread.task.index()) else { return };
        task.serves = Some((thread, owner));
        self.relist(thread.task.index());
        self.place(device, owner, Place::Thread(thread));
    }

    /// A bottom half runs on the stack of `cpu`, a queued one of `owner` if it has one.
    pub fn begin_bottom_half(&mut self, cpu: CpuId, device: DeviceId, owner: Option<JobId>) {
        let owner = owner.filter(|owner| owner.task.index() < self.tasks.len());
        self.end_bottom_half(cpu);
        let Some(state) = self.cpus.get_mut(cpu.index()) else { return };
        state.stack = Some(OnStack { device, owner });
        let cluster = state.cluster;
        self.count(cluster, true, 1);
        self.note_cpu(cpu);
        if let Some(owner) = owner {
            self.place(device, owner, Place::Stack(cpu));
        }
    }

    pub fn end_bottom_half(&mut self, cpu: CpuId) {
        let Some(state) = self.cpus.get(cpu.index()) else { return };
        let Some(stack) = state.stack else { return };
        let cluster = state.cluster;
        self.note_cpu(cpu);
        self.cpus[cpu.index()].stack = None;
        self.count(cluster, true, -1);
        if let Some(owner) = stack.owner {
            let ended =
                |bottom_half: &BottomHalf| (bottom_half.place, bottom_half.device) == (Place::Stack(cpu), stack.device);
            self.remove_bottom_half(owner.task.index(), ended);
        }
    }

    fn place(&mut self, device: DeviceId, owner: JobId, place: Place) {
        let task = &mut self.tasks[owner.task.index()];
        let queued = task.bottom_halves.iter_mut().find(|bottom_half| bottom_half.is_queued(device, owner));
        if let Some(bottom_half) = queued {
            bottom_half.place = place;
        }
        self.note_change(self.tasks[owner.task.index()].cluster);
    }

    fn remove_bottom_half(&mut self, entity: usize, which: impl Fn(&BottomHalf) -> bool) {
        let task = &mut self.tasks[entity];
        if let Some(index) = task.bottom_halves.iter().position(which) {
            task.bottom_halves.remove(index);
            let cluster = task.cluster;
            self.count(Some(cluster), true, -1);
            self.note_change(cluster);
            self.relist(entity);
        }
    }

    /// Whom the thread's job serves.
    fn owner_of(&self, job: JobId) -> Option<JobId> {
        self.tasks[job.task.index()].serves.filter(|&(thread, _)| thread == job).map(|(_, owner)| owner)
    }

    /// The effective priority of `job`; after its completion that of its own right.
    fn key(&self, job: JobId) -> Key {
        let task = &self.tasks[job.task.index()];
        let given = task.given.filter(|&(of, _)| of == job).map(|(_, key)| key);
        let base = || {
            let deadline = task.pending.deadline(job.index)?;
            Some((own_level(self.edf, task.rank, deadline), job.task.0))
        };
        // A job completed longer ago ranks no lower than the last one.
        given.or_else(base).or(task.completed.map(|(_, key)| key)).unwrap_or(LOWEST)
    }

    /// Puts the entity where it belongs in its cluster's ready list.
    fn relist(&mut self, entity: usize) {
        let task = &self.tasks[entity];
        let own = task.ready.filter(|&job| self.owner_of(job).is_none());
        let owners = task.bottom_halves.iter().map(|bottom_half| bottom_half.owner);
        let key = own.into_iter().chain(owners).map(|job| self.key(job)).min();
        let cluster = task.cluster;
        let is_lone_thread = task.is_thread;
        let task = &mut self.tasks[entity];
        let listed = std::mem::replace(&mut task.listed, key);
        if listed == key || cluster >= self.clusters.len() {
            return;
        }
        if let Some(old) = listed {
            self.clusters[cluster].ready.remove(&(old, entity));
            self.count(Some(cluster), is_lone_thread, -1);
        }
        if let Some(new) = key {
            self.clusters[cluster].ready.insert((new, entity));
            self.count(Some(cluster), is_lone_thread, 1);
        }
        self.note_change(cluster);
    }

    /// Counts a bottom half, if it is one.
    fn count(&mut self, cluster: Option<usize>, is_bottom_half: bool, change: isize) {
        if let Some(cluster) = cluster.and_then(|cluster| self.clusters.get_mut(cluster)).filter(|_| is_bottom_half) {
            cluster.bottom_halves = cluster.bottom_halves.saturating_add_signed(change);
        }
    }

    /// What `cpu` runs changed, which concerns its cluster and those of the bottom half's and the thread's owners.
    fn note_cpu(&mut self, cpu: CpuId) {
        let state = self.cpus[cpu.index()];
        let stack = state.stack.and_then(|stack| stack.owner);
        let thread = state.running.and_then(|job| self.owner_of(job));
        for owner in [stack, thread].into_iter().flatten() {
            self.note_change(self.tasks[owner.task.index()].cluster);
        }
        if let Some(cluster) = state.cluster {
            self.note_change(cluster);
        }
    }

    fn note_change(&mut self, cluster: usize) {
        if let Some(state) = self.clusters.get_mut(cluster).filter(|state| !state.is_changed) {
            state.is_changed = true;
            self.changed.push(cluster);
        }
    }
}

impl Cpu {
    pub fn has_bottom_half(&self) -> bool {
        self.stack.is_some()
    }
}

impl BottomHalf {
    fn is_queued(&self, device: DeviceId, owner: JobId) -> bool {
        (self.place, self.device, self.owner) == (Place::Queued, device, owner)
    }
}
