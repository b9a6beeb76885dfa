//! Tokens, engines, and operations of GPUs.

use laxity_gpu::{EngineLock, TokenRequest};
use laxity_model::{CopyDirection, Engine, Gpu, GpuId, Instant, LockId, ReplicaId};
use laxity_plan::{EngineKind, EngineTarget, GpuChoice, Op, Operation, OperationTime};
use laxity_sched::LockRequest;
use laxity_softgpu::{Event, Stream, Wait};
use laxity_trace::{LockInfo, LockKind};

use super::kernel::KernelTask;
use super::state::State;
use super::{Cut, Held, Holding, JobError, Jobs};
use crate::gpus::Share;
use crate::log::JobStep;
use crate::plan::{LivePlan, TaskPlan};

/// The GPUs that a task uses.
pub(super) struct Gpus {
    models: Vec<Gpu>,
    streams: Vec<Stream>,
    /// Its pool and the GPUs there, if they are locked.
    pool: Option<(LockId, Vec<GpuId>)>,
    /// For each GPU the locks of its engines, if they are locked.
    engines: Vec<Vec<(Engine, LockId)>>,
    /// Those whose interrupts are handled for the job in the kernel, under klmirqd.
    expected: Vec<GpuId>,
    /// Operations that the job issued and did not wait for.
    outstanding: Vec<Event>,
    /// The GPU that was granted last.
    last: Option<GpuId>,
    /// The one that was granted the time before, if that is another.
    left: Option<GpuId>,
    /// What moves with the task from GPU to GPU.
    state: Option<State>,
}

impl Jobs {
    pub(super) fn is_pool(&self, lock: LockId) -> bool {
        self.gpus().is_some_and(|gpus| gpus.pool.as_ref().is_some_and(|&(pool, _)| pool == lock))
    }

    fn gpus(&self) -> Option<&Gpus> {
        self.gpus.as_ref()
    }

    /// Whether the job was granted another GPU than the task had before.
    pub(super) fn has_moved(&self) -> bool {
        self.gpus().is_some_and(|gpus| gpus.left.is_some())
    }

    /// The job holds `token` from now on.
    fn hold(&mut self, token: Held<'_>) {
        let gpus = self.gpus.as_mut().expect("a task that takes tokens uses GPUs");
        let granted = gpus.granted(token);
        gpus.left = gpus.last.filter(|&before| before != granted);
        gpus.last = Some(granted);
    }

    /// Executes the steps during which the job holds a token; answers which step gives it up.
    pub(super) fn with_token(&mut self, at: usize, request: TokenRequest, holding: Holding<'_>) -> Result<usize, Cut> {
        let Op::Lock { lock, .. } = self.plan.ops[at] else { unreachable!("it is about a token") };
        let TokenRequest { gpu, length, .. } = request;
        if self.has_arbiter() {
            let replica = self.lock_arbitrated(LockRequest { lock, length, only: gpu })?;
            self.sections += 1;
            self.hold(Held::Ours(replica));
            self.expect_interrupts(self.gpus().expect("it has a token").granted(Held::Ours(replica)));
            let outcome = self.steps(at + 1, Holding { token: Some(Held::Ours(replica)), ..holding });
            self.sections -= 1;
            self.expect_no_interrupts();
            // A job that is cut, at no step, is not complete.
            self.unlock_arbitrated_at(*outcome.as_ref().unwrap_or(&0), lock, replica)?;
            return outcome;
        }
        let client = holding.client.expect("a thread that locks GPUs is registered");
        self.note(JobStep::Request(lock));
        let token = client.request(request).map_err(JobError::from)?;
        self.note(JobStep::Grant(lock, token.replica()));
        self.sections += 1;
        self.hold(Held::Arbitrated(&token));
        let outcome =
            self.steps(at + 1, Holding { client: Some(client), token: Some(Held::Arbitrated(&token)), ..holding });
        self.sections -= 1;
        self.note(JobStep::Unlock(lock, token.replica()));
        drop(token);
        outcome
    }

    /// Executes the steps during which the job holds an engine; answers which step gives it up.
    pub(super) fn with_engine(&mut self, at: usize, target: EngineTarget, holding: Holding<'_>) -> Result<usize, Cut> {
        let token = holding.token.expect("engines are locked by holders of a token");
        let gpus = self.gpus().expect("a task that locks engines uses GPUs");
        let (gpu, engine) = gpus.engine(target, token);
        let lock = gpus.engine_lock(gpu, engine);
        let token = match token {
            Held::Arbitrated(token) => token,
            Held::Ours(_) => {
                let replica = self.lock_arbitrated(LockRequest::of(lock))?;
                let outcome = self.steps(at + 1, holding);
                self.unlock_arbitrated(lock, replica)?;
                return outcome;
            }
        };
        assert_eq!(gpu, gpus.granted(holding.token.expect("just seen")), "a plan refuses peers of a token's GPU");
        self.note(JobStep::Request(lock));
        let locked: EngineLock<'_> = token.engine(engine, Instant::NEVER).map_err(JobError::from)?;
        self.note(JobStep::Grant(lock, ReplicaId(0)));
        let outcome = self.steps(at + 1, holding);
        self.note(JobStep::Unlock(lock, ReplicaId(0)));
        drop(locked);
        outcome
    }

    pub(super) fn issue(&mut self, operation: &Operation, at: usize, holding: Holding<'_>) -> Result<(), Cut> {
        let gpus = self.gpus().expect("a task that issues operations uses GPUs");
        let gpu = match operation.gpu {
            GpuChoice::Gpu(gpu) => gpu,
            GpuChoice::Granted => gpus.granted(holding.token.expect("the lock's grant comes first")),
            GpuChoice::Left => gpus.left.expect("only a job that moved copies its state"),
        };
        let span = match &operation.time {
            OperationTime::Given(time) => self.draw(time, at),
            OperationTime::Bytes(bytes) => gpus.models[gpu.index()].copy_time(*bytes),
        };
        self.expect_interrupts(gpu);
        let gpus = self.gpus.as_mut().expect("still there");
        let stream = &gpus.streams[gpu.index()];
        stream.set_job(Some(self.index));
        let issued = match (&mut gpus.state, operation.engine) {
            (Some(state), EngineKind::Execution) => state.compute(stream, gpu, span),
            (Some(state), EngineKind::Copy(direction)) if operation.is_state && operation.gpu == GpuChoice::Granted => {
                state.move_with(stream, gpu, (gpus.left, direction), span)
            }
            (None, EngineKind::Execution) => stream.launch_timed(span),
            (_, EngineKind::Copy(direction)) => stream.copy_timed_for(direction, span),
        };
        gpus.outstanding.push(issued.map_err(JobError::from)?);
        Ok(())
    }

    /// The thread that handles the interrupts of `gpu` works for this job from now on, or for another one that holds a token of it and is more
    /// urgent, if the scheduler in the kernel schedules that thread.
    fn expect_interrupts(&mut self, gpu: GpuId) {
        let Jobs { kernel, shared, gpus, .. } = self;
        let Some(task) = kernel.as_ref().and_then(KernelTask::task) else { return };
        let thread = shared.kernel.as_ref().and_then(|kernel| kernel.interrupt_thread(gpu.index()));
        let (Some(thread), Some(gpus)) = (thread, gpus) else { return };
        if !gpus.expected.contains(&gpu) && task.begin_expecting(thread) {
            gpus.expected.push(gpu);
        }
    }

    /// No such thread does any more.
    fn expect_no_interrupts(&mut self) {
        let Jobs { kernel, shared, gpus, .. } = self;
        let (Some(task), Some(gpus)) = (kernel.as_ref().and_then(KernelTask::task), gpus) else { return };
        for gpu in gpus.expected.drain(..) {
            let thread = shared.kernel.as_ref().and_then(|kernel| kernel.interrupt_thread(gpu.index()));
            thread.into_iter().for_each(|thread| _ = task.end_expecting(thread));
        }
    }

    /// Until all operations that the job issued are complete.
    pub(super) fn wait(&mut self) -> Result<(), Cut> {
        let gpus = self.gpus.as_mut().expect("a task that waits for operations uses GPUs");
        let outstanding = std::mem::take(&mut gpus.outstanding);
        if outstanding.iter().all(Event::is_complete) {
            return Ok(());
        }
        let wait = |how| outstanding.iter().try_for_each(|operation| operation.wait(how)).map_err(JobError::from);
        if self.plan.spins {
            self.note(JobStep::SpinBegin);
            wait(Wait::Spinning)?;
            self.note(JobStep::SpinEnd);
        } else {
            self.suspended(|_| wait(Wait::Blocking))??;
        }
        if self.stop.is_stopped() { Err(Cut::Stopped) } else { Ok(()) }
    }
}

impl Gpus {
    pub(super) fn new(plan: &LivePlan, task: &TaskPlan, share: &Share) -> Gpus {
        let engines = |gpu: usize| {
            let locks = plan.header().locks.iter().enumerate();
            let engine = |(lock, info): (usize, &LockInfo)| match info.kind {
                LockKind::Engine { gpu: GpuId(of), engine, .. } if usize::from(of) == gpu => {
                    Some((engine, LockId(lock as u16)))
                }
                _ => None,
            };
            locks.filter_map(engine).collect()
        };
        let pool = task.pool(plan).map(|pool| &plan.pools[pool]);
        Gpus {
            models: plan.gpus.clone(),
            streams: share.streams.clone(),
            pool: pool.map(|pool| (pool.lock, pool.gpus.clone())),
            engines: (0..plan.gpus.len()).map(engines).collect(),
            expected: Vec::new(),
            outstanding: Vec::new(),
            last: None,
            left: None,
            state: plan.state.filter(|_| !share.state.is_empty()).map(|state| State::new(state.path, &share.state)),
        }
    }

    /// The engine that the holder of `token` means by `target`.
    fn engine(&self, target: EngineTarget, token: Held<'_>) -> (GpuId, Engine) {
        let granted = self.granted(token);
        let peers = || {
            let left = self.left.expect("only a job that moved copies its state");
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
        (gpu, kind.on(self.models[gpu.index()].copy_engines))
    }

    /// The GPU that `token` is one of.
    fn granted(&self, token: Held<'_>) -> GpuId {
        let (_, gpus) = self.pool.as_ref().expect("a token is one of a pool");
        match token {
            Held::Arbitrated(token) => gpus[usize::from(token.gpu())],
            Held::Ours(replica) => gpus[replica.index() % gpus.len()],
        }
    }

    fn engine_lock(&self, gpu: GpuId, engine: Engine) -> LockId {
        let found = self.engines[gpu.index()].iter().find(|(of, _)| *of == engine);
        found.map(|&(_, lock)| lock).expect("an engine that exists has a lock")
    }
}
