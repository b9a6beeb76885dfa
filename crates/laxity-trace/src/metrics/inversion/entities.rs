//! Which entities are ready, by cluster.

use std::collections::BTreeSet;

use laxity_model::{CpuId, JobId, TaskId};

use crate::replay::{Level, Replay, Source};
use crate::{DeviceId, TaskKind, TraceHeader};

/// Below every job.
const LOWEST: Level = (u64::MAX, TaskId(u32::MAX));

/// The entities, as they were when the `update_` functions last looked at the replay.
#[derive(Clone, Debug)]
pub(super) struct Entities {
    tasks: Vec<Entity>,
    cpus: Vec<Cpu>,
    clusters: Vec<Cluster>,
    /// The clusters about which something changed.
    changed: Vec<usize>,
}

/// The part of an entity that a CPU runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Runner {
    /// `None`: a bottom half without owner on a stack.
    pub entity: Option<usize>,
    pub level: Level,
    pub is_bottom_half: bool,
}

/// A task and the bottom halves of its jobs. An interrupt thread's task is an entity only while it serves no owner.
#[derive(Clone, Debug)]
struct Entity {
    cluster: usize,
    is_thread: bool,
    /// The CPU that its ready job was last seen linked to.
    link: Option<CpuId>,
    bottom_halves: Vec<BottomHalf>,
    /// Its level in its cluster's ready list.
    listed: Option<Level>,
}

/// A bottom half from the end of its top half to its own.
#[derive(Clone, Copy, Debug)]
struct BottomHalf {
    device: DeviceId,
    owner: JobId,
    state: BottomHalfState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BottomHalfState {
    Queued,
    InThread(JobId),
    OnStack(CpuId),
}

/// A CPU as it was last seen.
#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    cluster: Option<usize>,
    job: Option<JobId>,
    linked: Option<JobId>,
    bottom_half: Option<Source>,
}

#[derive(Clone, Debug, Default)]
struct Cluster {
    cpus: usize,
    ready: BTreeSet<(Level, usize)>,
    /// The bottom halves of its entities, those on its stacks, and the threads that run or serve no owner.
    bottom_halves: usize,
    is_changed: bool,
}

impl Entities {
    pub fn new(header: &TraceHeader) -> Self {
        let mut cpus = vec![Cpu::default(); header.cpus];
        for (cpu, cluster) in header.clusters_of_cpus() {
            cpus[cpu.index()].cluster = Some(cluster);
        }
        let tasks = header.tasks.iter().map(|info| Entity {
            // Best-effort jobs are no part of the system that is judged.
            cluster: if info.kind == TaskKind::BestEffort { usize::MAX } else { info.cluster },
            is_thread: info.kind.is_thread(),
            link: None,
            bottom_halves: Vec::new(),
            listed: None,
        });
        let cluster = |cpus: &Vec<CpuId>| Cluster { cpus: cpus.len(), ..Cluster::default() };
        Entities {
            tasks: tasks.collect(),
            cpus,
            clusters: header.clusters.iter().map(cluster).collect(),
            changed: Vec::new(),
        }
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

    /// Every CPU and its cluster.
    pub fn cpus(&self) -> impl Iterator<Item = (CpuId, Option<usize>)> + '_ {
        self.cpus.iter().enumerate().map(|(index, cpu)| (CpuId(index as u16), cpu.cluster))
    }

    /// The ready entities, the most urgent first.
    pub fn ready_in(&self, cluster: usize) -> impl Iterator<Item = (Level, usize)> + '_ {
        self.clusters[cluster].ready.iter().copied()
    }

    pub fn is_thread(&self, job: JobId) -> bool {
        self.tasks[job.task.index()].is_thread
    }

    /// The owner of a bottom half of the entity, if there is one.
    pub fn bottom_half_of(&self, entity: usize, replay: &Replay) -> Option<JobId> {
        let task = &self.tasks[entity];
        let own = || replay.details().queues.ready(TaskId(entity as u32)).filter(|_| task.is_thread);
        task.bottom_halves.first().map(|bottom_half| bottom_half.owner).or_else(own)
    }

    /// The job by which the entity is known.
    pub fn representative(&self, entity: usize, replay: &Replay) -> Option<JobId> {
        let ready = replay.details().queues.ready(TaskId(entity as u32));
        ready.or_else(|| self.bottom_half_of(entity, replay))
    }

    /// The bottom half on the stack of `cpu`, else the job that has it.
    pub fn runner(&self, cpu: CpuId, replay: &Replay) -> Option<Runner> {
        let state = replay.cpu(cpu)?;
        if let Some(source) = state.bottom_half() {
            let entity = source.owner.map(|owner| owner.task.index());
            let level = source.owner.map_or(LOWEST, |owner| level(owner, replay));
            return Some(Runner { entity, level, is_bottom_half: true });
        }
        let job = state.job().filter(|job| self.tasks[job.task.index()].cluster != usize::MAX)?;
        let part_of = replay.details().queues.owner_of(job).unwrap_or(job);
        let (entity, level) = (Some(part_of.task.index()), level(part_of, replay));
        Some(Runner { entity, level, is_bottom_half: self.is_thread(job) })
    }

    /// Something changed about the job of a task: puts its entity where it belongs in its cluster's ready list.
    pub fn update_task(&mut self, task: TaskId, replay: &Replay) {
        let queues = &replay.details().queues;
        let Some(entity) = self.tasks.get_mut(task.index()) else { return };
        let link = queues.link_of(task);
        let former = std::mem::replace(&mut entity.link, link);
        if link != former {
            former.into_iter().chain(link).for_each(|cpu| self.update_cpu(cpu, replay));
        }
        self.list(task.index(), replay);
    }

    /// Looks at `cpu` again. A change concerns its cluster, and the clusters of the owners whose bottom halves it ran and
    /// runs.
    pub fn update_cpu(&mut self, cpu: CpuId, replay: &Replay) {
        let (Some(&before), Some(state)) = (self.cpus.get(cpu.index()), replay.cpu(cpu)) else { return };
        let queues = &replay.details().queues;
        let now = Cpu {
            cluster: before.cluster,
            job: state.job(),
            linked: queues.linked(cpu),
            bottom_half: state.bottom_half(),
        };
        self.cpus[cpu.index()] = now;
        for (seen, change) in [(before, -1), (now, 1)] {
            let is_thread = seen.job.is_some_and(|job| self.is_thread(job));
            self.count(seen.cluster, is_thread, change);
            self.count(seen.cluster, seen.bottom_half.is_some(), change);
            let stack = seen.bottom_half.and_then(|source| source.owner);
            let thread = seen.job.and_then(|job| queues.owner_of(job));
            for owner in [stack, thread].into_iter().flatten() {
                self.note_change(self.tasks[owner.task.index()].cluster);
            }
        }
        if let Some(cluster) = now.cluster {
            self.note_change(cluster);
        }
        if let Some(displaced) = before.linked.filter(|_| before.linked != now.linked) {
            self.tasks[displaced.task.index()].link = queues.link_of(displaced.task);
        }
    }

    /// The effective priority of a job of the task changed, so that a job that runs may now be less urgent than one that
    /// waits.
    pub fn note_priority(&mut self, task: TaskId) {
        if let Some(entity) = self.tasks.get(task.index()) {
            self.note_change(entity.cluster);
        }
    }

    pub fn has_queued(&self, device: DeviceId, owner: JobId) -> bool {
        let task = self.tasks.get(owner.task.index());
        task.is_some_and(|task| task.bottom_halves.iter().any(|bottom_half| bottom_half.is_queued(device, owner)))
    }

    /// A top half left a bottom half behind.
    pub fn queue_bottom_half(&mut self, device: DeviceId, owner: JobId, replay: &Replay) {
        let Some(task) = self.tasks.get_mut(owner.task.index()) else { return };
        task.bottom_halves.push(BottomHalf { device, owner, state: BottomHalfState::Queued });
        let cluster = task.cluster;
        self.count(Some(cluster), true, 1);
        self.note_change(cluster);
        self.list(owner.task.index(), replay);
    }

    /// `thread` will run a queued bottom half of `owner`.
    pub fn serve(&mut self, thread: JobId, device: DeviceId, owner: JobId, replay: &Replay) {
        self.update_task(thread.task, replay);
        self.take_queued(device, owner, BottomHalfState::InThread(thread));
    }

    /// A bottom half of `owner` runs on the stack of `cpu`, a queued one if there is one.
    pub fn begin_bottom_half(&mut self, cpu: CpuId, device: DeviceId, owner: JobId) {
        self.take_queued(device, owner, BottomHalfState::OnStack(cpu));
    }

    /// The bottom half on the stack of `cpu` ends, before [`Entities::update_cpu`].
    pub fn end_bottom_half(&mut self, cpu: CpuId, replay: &Replay) {
        let seen = self.cpus.get(cpu.index()).and_then(|seen| seen.bottom_half);
        if let Some(Source { device, owner: Some(owner) }) = seen {
            let ended = |half: &BottomHalf| (half.state, half.device) == (BottomHalfState::OnStack(cpu), device);
            self.remove_bottom_half(owner, ended, replay);
        }
    }

    /// A job of an interrupt thread completed, and with it the bottom half that it ran.
    pub fn end_thread(&mut self, thread: JobId, replay: &Replay) {
        if let Some(owner) = replay.details().queues.owner_of(thread) {
            self.remove_bottom_half(owner, |half| half.state == BottomHalfState::InThread(thread), replay);
        }
    }

    fn take_queued(&mut self, device: DeviceId, owner: JobId, state: BottomHalfState) {
        let Some(task) = self.tasks.get_mut(owner.task.index()) else { return };
        if let Some(half) = task.bottom_halves.iter_mut().find(|half| half.is_queued(device, owner)) {
            half.state = state;
        }
        let cluster = task.cluster;
        self.note_change(cluster);
    }

    fn remove_bottom_half(&mut self, owner: JobId, which: impl Fn(&BottomHalf) -> bool, replay: &Replay) {
        let task = &mut self.tasks[owner.task.index()];
        if let Some(index) = task.bottom_halves.iter().position(which) {
            task.bottom_halves.remove(index);
            let cluster = task.cluster;
            self.count(Some(cluster), true, -1);
            self.note_change(cluster);
            self.list(owner.task.index(), replay);
        }
    }

    /// Puts the entity where it belongs in its cluster's ready list.
    fn list(&mut self, entity: usize, replay: &Replay) {
        let queues = &replay.details().queues;
        let task = &self.tasks[entity];
        let own = queues.ready(TaskId(entity as u32)).filter(|&job| queues.owner_of(job).is_none());
        let owners = task.bottom_halves.iter().map(|bottom_half| bottom_half.owner);
        let now = own.into_iter().chain(owners).map(|job| level(job, replay)).min();
        let (cluster, is_lone_thread) = (task.cluster, task.is_thread);
        let before = std::mem::replace(&mut self.tasks[entity].listed, now);
        if before == now || cluster >= self.clusters.len() {
            return;
        }
        if let Some(before) = before {
            self.clusters[cluster].ready.remove(&(before, entity));
            self.count(Some(cluster), is_lone_thread, -1);
        }
        if let Some(now) = now {
            self.clusters[cluster].ready.insert((now, entity));
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

    fn note_change(&mut self, cluster: usize) {
        if let Some(state) = self.clusters.get_mut(cluster).filter(|state| !state.is_changed) {
            state.is_changed = true;
            self.changed.push(cluster);
        }
    }
}

impl BottomHalf {
    fn is_queued(&self, device: DeviceId, owner: JobId) -> bool {
        (self.state, self.device, self.owner) == (BottomHalfState::Queued, device, owner)
    }
}

/// The effective priority of `job`. A completed job keeps the priority that its task's last completed job had in its own
/// right; jobs that completed longer ago rank no lower.
fn level(job: JobId, replay: &Replay) -> Level {
    replay.level(job).or_else(|| replay.details().queues.completed_level(job.task)).unwrap_or(LOWEST)
}
