//! Locks and effective priorities: the arbiter's answers, carried out.

use laxity_model::{CopyDirection, CpuId, GpuId, Instant, LockId, Nanos, ReplicaId, TaskId};
use laxity_policy::cpu::{self, Priority};
use laxity_policy::lock::{Action, Arbiter, Event, budget};
use laxity_trace::{self as trace, DeviceId, LockKind, Sink};

use crate::Simulator;
use crate::halves::{ABOVE_ALL, BELOW_ALL};
use crate::interrupt::Interrupt;
use crate::simulator::{Activity, Sharing, Wait};
use laxity_plan::{EngineKind, EngineTarget, Op, Plan};

/// The arbiter and what the simulator adds to it.
pub(crate) struct Locking {
    arbiter: Arbiter,
    /// The GPUs of a pool lock; empty for others.
    gpus: Vec<Vec<GpuId>>,
    /// How many replicas each lock has.
    replicas: Vec<u16>,
    /// The token lock of each GPU, under GPUSync.
    tokens: Vec<Option<LockId>>,
    actions: Vec<Action>,
}

impl Locking {
    /// `None` where no job can ever have another than its base priority and nothing is locked.
    pub fn new(plan: &Plan) -> Option<Locking> {
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
                LockKind::Resource { .. } | LockKind::Engine { .. } => Vec::new(),
            });
        }
        let replicas = infos.iter().map(|info| info.replicas).collect();
        let arbiter = Arbiter::new(plan.tasks.len(), &plan.locks.configs);
        Some(Locking { arbiter, gpus, replicas, tokens, actions: Vec::new() })
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

impl<S: Sink> Simulator<S> {
    /// The job of `task` is pending from now on.
    pub(crate) fn enter(&mut self, task: TaskId, deadline: Instant) {
        let Some(locking) = &mut self.locking else { return };
        let plan = &self.plan.tasks[task.index()];
        let ranking = &self.plan.clusters[usize::from(plan.cluster)].ranking;
        let event = Event::Pending { priority: ranking.priority(plan.local, deadline).given_to(task) };
        locking.arbiter.handle(self.now, event, &mut locking.actions);
    }

    /// The job of `task` is complete.
    pub(crate) fn leave(&mut self, task: TaskId) {
        if let Some(locking) = &mut self.locking {
            locking.arbiter.handle(self.now, Event::Complete { task }, &mut locking.actions);
        }
    }

    /// The job of `task`, on `cpu`, asks for `lock`. Answers whether it has it at once.
    pub(crate) fn request(&mut self, cpu: CpuId, task: TaskId, lock: LockId, length: Nanos, only: Option<u16>) -> bool {
        let job = self.job_id(task);
        self.sink.record(self.now, trace::Event::Request { job, lock });
        self.enforce_request(cpu, task, lock);
        self.arbitrate(cpu, Event::Request { task, lock, length, only });
        self.tasks[task.index()].sharing.held.iter().any(|&(held, _)| held == lock)
    }

    /// The job of `task`, on `cpu`, gives `lock` up.
    pub(crate) fn unlock(&mut self, cpu: CpuId, task: TaskId, lock: LockId) {
        let job = self.job_id(task);
        let held = &mut self.tasks[task.index()].sharing.held;
        let at = held.iter().rposition(|&(held, _)| held == lock).expect("only a holder unlocks");
        let (_, replica) = held.remove(at);
        self.sink.record(self.now, trace::Event::Unlock { job, lock, replica });
        self.arbitrate(cpu, Event::Unlock { task, lock });
        self.enforce_unlock(cpu, task, lock);
    }

    #[inline(never)]
    pub(crate) fn arbitrate(&mut self, cpu: CpuId, event: Event) {
        let locking = self.locking.as_mut().expect("a workload with locks has an arbiter");
        let mut actions = std::mem::take(&mut locking.actions);
        locking.arbiter.handle(self.now, event, &mut actions);
        let mut prioritized = false;
        for action in actions.drain(..) {
            match action {
                Action::Grant { task, lock, replica } => self.granted(cpu, task, lock, replica),
                Action::Prioritize { priority } => {
                    prioritized = true;
                    self.prioritized(priority);
                }
            }
        }
        self.locking.as_mut().expect("still there").actions = actions;
        // The holders of tokens may have changed even where no priority did.
        self.follow_owners();
        if prioritized {
            for cluster in 0..self.clusters.len() {
                self.kick(cpu, cluster);
            }
        }
    }

    fn granted(&mut self, cpu: CpuId, task: TaskId, lock: LockId, replica: ReplicaId) {
        let job = self.job_id(task);
        self.sink.record(self.now, trace::Event::Grant { job, lock, replica });
        self.enforce(cpu, task, budget::Event::Granted);
        let gpus = &self.locking.as_ref().expect("a grant comes from an arbiter").gpus[lock.index()];
        let run = &mut self.tasks[task.index()];
        run.sharing.held.push((lock, replica));
        if !gpus.is_empty() {
            let gpu = gpus[replica.index() % gpus.len()];
            run.sharing.left = run.sharing.gpu.filter(|&before| before != gpu);
            run.sharing.gpu = Some(gpu);
        }
        if run.wait == Wait::Lock {
            self.wake(cpu, task);
        }
    }

    fn prioritized(&mut self, priority: Priority) {
        let (task, level) = (priority.task, priority.level());
        self.record_priority(task, level);
        let (cluster, local) = self.local(task);
        self.tell(cluster, cpu::Event::Prioritized { task: local, level });
    }

    /// The job of `task` has that effective priority from now on.
    pub(crate) fn record_priority(&mut self, task: TaskId, (level, tie): (u64, u32)) {
        // A boosted job and a thread of fixed priority have nobody's priority but their own.
        let of = if level == ABOVE_ALL || level == BELOW_ALL { task } else { TaskId(tie) };
        self.sink.record(self.now, trace::Event::Priority { job: self.job_id(task), level, of });
    }

    /// What the suspended job of `task` waits for has come, as `cpu` has noticed.
    pub(crate) fn wake(&mut self, cpu: CpuId, task: TaskId) {
        self.tasks[task.index()].wait = Wait::Timer;
        self.raise(cpu, Interrupt::Resume(task));
    }

    /// The job of `task` need not spin any longer.
    #[inline(never)]
    pub(crate) fn stop_spinning(&mut self, task: TaskId) {
        let job = self.job_id(task);
        let run = &mut self.tasks[task.index()];
        run.spinning = false;
        let left = Nanos(run.remaining);
        let on = |cpu: &usize| self.cpus[*cpu].process == Some(task) && self.cpus[*cpu].dispatched;
        let Some(cpu) = (0..self.cpus.len()).find(on) else { return };
        self.sink.record(self.now, trace::Event::SpinEnd { cpu: CpuId(cpu as u16), job });
        let state = &mut self.cpus[cpu];
        if state.activity == Activity::Job {
            // Nothing, or what a preemption while it spun cost it.
            state.since = self.now;
            self.ends[cpu] = self.now + left;
        }
    }

    /// Carries out the current step of the job of `task`, which is about a lock; answers whether the job goes on.
    #[inline(never)]
    pub(crate) fn step_of_lock(&mut self, cpu: CpuId, task: TaskId) -> bool {
        let run = &self.tasks[task.index()];
        let (lock, length, only) = match self.plan.tasks[task.index()].ops[run.op as usize] {
            Op::Lock { lock, length, only } => (lock, length, only),
            Op::LockEngine(target) => (self.engine_lock(&run.sharing, target), Nanos::ZERO, None),
            Op::Unlock(lock) => {
                self.unlock(cpu, task, lock);
                return true;
            }
            Op::UnlockEngine(target) => {
                let lock = self.engine_lock(&run.sharing, target);
                self.unlock(cpu, task, lock);
                return true;
            }
            _ => unreachable!("the current step is about a lock"),
        };
        self.request(cpu, task, lock, length, only)
    }

    fn engine_lock(&self, sharing: &Sharing, target: EngineTarget) -> LockId {
        let granted = sharing.gpu.expect("engines are locked by holders of a token");
        let peers = || {
            let left = sharing.left.expect("only who moved copies its state");
            let mut ends =
                [(left, EngineKind::Copy(CopyDirection::Out)), (granted, EngineKind::Copy(CopyDirection::In))];
            ends.sort_unstable_by_key(|&(gpu, _)| gpu);
            ends
        };
        let (gpu, wanted) = match target {
            EngineTarget::Own(wanted) => (granted, wanted),
            EngineTarget::LowerPeer => peers()[0],
            EngineTarget::UpperPeer => peers()[1],
        };
        let engine = wanted.on(self.plan.gpus[gpu.index()].copy_engines);
        self.plan.locks.engines[gpu.index()][engine.index()].expect("an engine that exists has a lock")
    }
}
