//! The priorities of threads that work for others.

use std::collections::BTreeSet;

use laxity_model::{GpuId, InterruptHandling, JobId, LockId, ReplicaId, TaskId, ThreadPriority};

use super::super::links::BELOW_ALL;
use crate::replay::{Level, Replay};
use crate::{DeviceId, LockKind, TaskKind, TraceHeader};

/// Knows which priorities threads have:
///
/// - under `PREEMPT_RT` those of interrupts are above all jobs, or below all;
/// - under klmirqd a thread has the priority of the owner that it serves, or that of the most urgent holder of a token of
///   the GPU, if that is higher; one that serves none has its server's, or is below all jobs (paper 000, section III);
/// - threads that call back are below all jobs but under klmirqd.
///
/// They follow as soon as a job asks for a lock or gives one up. That an owner completes, or the next job of its task
/// begins, they notice then.
#[derive(Clone, Debug)]
pub(super) struct Threads {
    handling: InterruptHandling,
    /// By task; `None`: it is no thread.
    threads: Vec<Option<Thread>>,
    /// The locks that have tokens, and the GPUs that these are of.
    pools: Vec<(LockId, Vec<GpuId>)>,
    /// Of each GPU, the place of its lock there.
    tokens: Vec<Option<usize>>,
    /// By task.
    has_server: Vec<bool>,
    /// The tasks whose jobs began or ended since threads last followed.
    changed: BTreeSet<TaskId>,
    /// Whether threads follow within this instant.
    follows: bool,
}

#[derive(Clone, Copy, Debug)]
struct Thread {
    is_callback: bool,
    /// Its last job, the device, and the owner.
    serves: Option<(JobId, DeviceId, Option<JobId>)>,
}

impl Threads {
    pub fn new(header: &TraceHeader) -> Threads {
        let thread = |kind: TaskKind| Thread { is_callback: kind == TaskKind::Callback, serves: None };
        let threads = header.tasks.iter().map(|info| info.kind.is_thread().then(|| thread(info.kind))).collect();
        let mut has_server = vec![false; header.tasks.len()];
        for server in &header.servers {
            has_server.get_mut(server.task.index()).into_iter().for_each(|has| *has = true);
        }
        let mut pools = Vec::new();
        let mut tokens = vec![None; header.gpus.len()];
        for (lock, info) in header.locks.iter().enumerate() {
            let LockKind::Tokens { gpus } = &info.kind else { continue };
            for gpu in gpus {
                if let Some(place) = tokens.get_mut(gpu.index()) {
                    *place = Some(pools.len());
                }
            }
            pools.push((LockId(lock as u16), gpus.clone()));
        }
        Threads {
            handling: header.handling,
            threads,
            pools,
            tokens,
            has_server,
            changed: BTreeSet::new(),
            follows: false,
        }
    }

    /// Whether jobs of `task` work for others.
    pub fn has(&self, task: TaskId) -> bool {
        self.threads.get(task.index()).is_some_and(Option::is_some)
    }

    /// The job of a thread works for `owner`.
    pub fn serve(&mut self, job: JobId, device: DeviceId, owner: Option<JobId>) {
        if let Some(Some(thread)) = self.threads.get_mut(job.task.index()) {
            thread.serves = Some((job, device, owner));
        }
    }

    /// A job of `task` begins or is complete, which threads notice later.
    pub fn owner_changed(&mut self, task: TaskId) {
        self.changed.insert(task);
    }

    /// A job asks for a lock or gives one up: threads notice now.
    pub fn follow(&mut self) {
        self.changed.clear();
        self.follows = true;
    }

    /// The threads that must have followed by the end of this instant.
    pub fn take_followers(&mut self) -> Vec<TaskId> {
        if !std::mem::take(&mut self.follows) || !matches!(self.handling, InterruptHandling::Klmirqd { .. }) {
            return Vec::new();
        }
        let has_noticed = |thread: &Thread| {
            let owner = thread.serves.and_then(|(_, _, owner)| owner);
            owner.is_some_and(|owner| !self.changed.contains(&owner.task))
        };
        let threads = self.threads.iter().enumerate();
        let noticed = threads.filter(|(_, thread)| thread.as_ref().is_some_and(has_noticed));
        noticed.map(|(task, _)| TaskId(task as u32)).collect()
    }

    /// The priority that `job`, of a thread, has by those of others, which `level_of` knows, and by its `own` if it has a
    /// server. `None`: nothing says.
    pub fn expected(
        &self,
        job: JobId,
        level_of: impl Fn(TaskId) -> Option<Level>,
        own: impl Fn() -> Option<Level>,
        replay: &Replay,
    ) -> Option<Level> {
        let thread = self.threads.get(job.task.index())?.as_ref()?;
        match self.handling {
            InterruptHandling::Klmirqd { .. } => {}
            _ if thread.is_callback => return Some((BELOW_ALL, job.task)),
            InterruptHandling::PreemptRt(ThreadPriority::High) => return Some((0, job.task)),
            InterruptHandling::PreemptRt(ThreadPriority::Low) => return Some((BELOW_ALL, job.task)),
            // No bottom half has a thread.
            InterruptHandling::Linux | InterruptHandling::ProcessAware => return None,
        }
        let (_, device, owner) = thread.serves.filter(|&(served, _, _)| served == job)?;
        let Some(owner) = owner else {
            return if self.has_server[job.task.index()] { own() } else { Some((BELOW_ALL, job.task)) };
        };
        let owner = level_of(owner.task);
        let pool = self.tokens.get(device.index()).and_then(|&pool| self.pools.get(pool?));
        let holders = pool.into_iter().flat_map(|(lock, gpus)| {
            let of_gpu = move |replica: &ReplicaId| gpus[replica.index() % gpus.len()].index() == device.index();
            let held = replay.details().locks.held();
            held.filter(move |(of, replica, _)| of == lock && of_gpu(replica)).map(|(_, _, holder)| holder.job.task)
        });
        owner.into_iter().chain(holders.filter_map(&level_of)).min().or(Some((BELOW_ALL, job.task)))
    }
}
