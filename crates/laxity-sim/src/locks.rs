//! Locks and effective priorities: the arbiter, and what every task holds.

use laxity_model::{CopyDirection, GpuId, Instant, LockId, ReplicaId, TaskId};
use laxity_plan::{EngineKind, EngineTarget, Plan};
use laxity_policy::cpu::Priority;
use laxity_policy::lock::{Action, Arbiter, Event};
use laxity_trace::{DeviceId, LockKind};

/// All locks. The arbiter decides; the event loop carries out its actions.
pub(crate) struct Locks {
    arbiter: Arbiter,
    /// What each task holds.
    holdings: Vec<Holding>,
    /// The GPUs of a pool lock; empty for others.
    gpus: Vec<Vec<GpuId>>,
    /// How many replicas each lock has.
    replicas: Vec<u16>,
    /// The token lock of each GPU, under GPUSync.
    tokens: Vec<Option<LockId>>,
    actions: Vec<Action>,
}

/// What a task holds.
#[derive(Clone, Debug, Default)]
struct Holding {
    /// The GPU that it was granted last.
    gpu: Option<GpuId>,
    /// The one that it was granted the time before, if that is another.
    left: Option<GpuId>,
    /// The locks that it holds.
    locks: Vec<(LockId, ReplicaId)>,
}

impl Locks {
    /// `None` where no job can ever have another than its base priority and nothing is locked.
    pub fn new(plan: &Plan) -> Option<Locks> {
        if plan.locks.configs.is_empty() && plan.devices.is_empty() {
            return None;
        }
        let infos = &plan.locks.infos;
        let mut tokens = vec![None; plan.gpus.len()];
        let mut gpus = Vec::with_capacity(infos.len());
        for (index, info) in infos.iter().enumerate() {
            gpus.push(match &info.kind {
                LockKind::Semaphore { gpus } | LockKind::KFmlp { gpus } => gpus.clone(),
                LockKind::Tokens { gpus } => {
                    for gpu in gpus {
                        tokens[gpu.index()] = Some(LockId(index as u16));
                    }
                    gpus.clone()
                }
                LockKind::Resource { .. } | LockKind::Engine { .. } | LockKind::Bandwidth => Vec::new(),
            });
        }
        let replicas = infos.iter().map(|info| info.replicas).collect();
        let arbiter = Arbiter::new(plan.tasks.len(), &plan.locks.configs);
        let holdings = vec![Holding::default(); plan.tasks.len()];
        Some(Locks { arbiter, holdings, gpus, replicas, tokens, actions: Vec::new() })
    }

    /// Tells the arbiter of the arrival or the end of a job, to which it has no answer.
    pub fn notify(&mut self, now: Instant, event: Event) {
        self.arbiter.handle(now, event, &mut self.actions);
    }

    /// Has the arbiter decide. The actions are to be given back, empty, with [`Locks::reuse`].
    pub fn decide(&mut self, now: Instant, event: Event) -> Vec<Action> {
        let mut actions = std::mem::take(&mut self.actions);
        self.arbiter.handle(now, event, &mut actions);
        actions
    }

    /// Takes the space of `actions` back.
    pub fn reuse(&mut self, actions: Vec<Action>) {
        self.actions = actions;
    }

    /// `task` holds `replica` of `lock` from now on.
    pub fn hold(&mut self, task: TaskId, lock: LockId, replica: ReplicaId) {
        let gpus = &self.gpus[lock.index()];
        let holding = &mut self.holdings[task.index()];
        holding.locks.push((lock, replica));
        if !gpus.is_empty() {
            let gpu = gpus[replica.index() % gpus.len()];
            holding.left = holding.gpu.filter(|&before| before != gpu);
            holding.gpu = Some(gpu);
        }
    }

    /// `task` holds `lock` no longer; answers which replica it held.
    pub fn give_up(&mut self, task: TaskId, lock: LockId) -> ReplicaId {
        let locks = &mut self.holdings[task.index()].locks;
        let at = locks.iter().rposition(|&(held, _)| held == lock).expect("only a holder unlocks");
        locks.remove(at).1
    }

    /// Whether `task` holds `lock`.
    pub fn holds(&self, task: TaskId, lock: LockId) -> bool {
        self.holdings[task.index()].locks.iter().any(|&(held, _)| held == lock)
    }

    /// Whether `task` holds no lock.
    pub fn holds_none(&self, task: TaskId) -> bool {
        self.holdings[task.index()].locks.is_empty()
    }

    /// The GPU that `task` was granted last.
    pub fn granted(&self, task: TaskId) -> GpuId {
        self.holdings[task.index()].gpu.expect("a GPU is granted before it is used")
    }

    /// The GPU that `task` was granted the time before, if that is another.
    pub fn left(&self, task: TaskId) -> Option<GpuId> {
        self.holdings[task.index()].left
    }

    /// The lock of the engine that the job of `task` means by `target`.
    pub fn engine(&self, plan: &Plan, task: TaskId, target: EngineTarget) -> LockId {
        let granted = self.granted(task);
        let peers = || {
            let left = self.left(task).expect("only a task that moved copies its state");
            let mut ends =
                [(left, EngineKind::Copy(CopyDirection::Out)), (granted, EngineKind::Copy(CopyDirection::In))];
            ends.sort_unstable_by_key(|&(gpu, _)| gpu);
            ends
        };
        let (gpu, kind) = match target {
            EngineTarget::Own(kind) => (granted, kind),
            EngineTarget::LowerPeer => peers()[0],
            EngineTarget::UpperPeer => peers()[1],
        };
        let engine = kind.on(plan.gpus[gpu.index()].copy_engines);
        plan.locks.engines[gpu.index()][engine.index()].expect("an engine that exists has a lock")
    }

    /// The effective level of the pending job of `task`.
    pub fn level(&self, task: TaskId) -> Option<(u64, u32)> {
        self.arbiter.priority(task).map(Priority::level)
    }

    /// Under GPUSync, the highest effective level among the holders of a token of that GPU.
    pub fn most_urgent_holder(&self, device: DeviceId) -> Option<(u64, u32)> {
        let lock = (*self.tokens.get(device.index())?)?;
        let gpus = &self.gpus[lock.index()];
        (0..self.replicas[lock.index()])
            .filter(|&replica| gpus[usize::from(replica) % gpus.len()].index() == device.index())
            .filter_map(|replica| self.arbiter.holder(lock, ReplicaId(replica)))
            .filter_map(|task| self.level(task))
            .min()
    }
}
