//! What a job does, carried out step by step on the thread of its task.
//!
//! A token and an engine are held by what is on the stack: [`Jobs::steps`] carries out what comes while they are, and
//! ends where they are given up.

use std::io;
use std::sync::Arc;

use laxity_gpu::{Ask, Client, EngineLock, LockError, RegisterError, Token};
use laxity_model::{ExecutionTime, Gpu, GpuId, Instant, LockId, Nanos, ReplicaId};
use laxity_sim::steps::{On, Op, Operation, OperationTime, Target, Wanted};
use laxity_softgpu::{Event, GpuError, Stream, Wait};
use laxity_sys::pi_lock::PiLock;
use laxity_sys::{clock, scheduling};

use crate::gpus::{self, Share};
use crate::halt::Halt;
use crate::log::{Deed, Writer};
use crate::plan::{Plan, Raised, TaskPlan};
use crate::work::Work;

/// The jobs of a task, one at a time.
pub(crate) struct Jobs {
    plan: TaskPlan,
    log: Writer,
    resources: Arc<[PiLock]>,
    halt: Arc<Halt>,
    work: Work,
    gpus: Option<Gpus>,
    /// The resources that the job holds, the last one last.
    held: Vec<LockId>,
    /// The priorities that it raised itself to, the last one last.
    priorities: Vec<u8>,
    /// Which job it is.
    index: u32,
}

/// The GPUs that a task uses.
struct Gpus {
    models: Vec<Gpu>,
    streams: Vec<Stream>,
    /// Its pool and the GPUs there, if they are locked.
    pool: Option<(LockId, Vec<GpuId>)>,
    /// For each GPU the locks of its engines, if they are locked.
    engines: Vec<Vec<(laxity_model::Engine, LockId)>>,
    /// Operations that the job issued and did not wait for.
    outstanding: Vec<Event>,
}

/// Why a job did not come to its end.
pub(crate) enum Cut {
    /// Everything was stopped.
    Stopped,
    /// Something does not work.
    Failed(String),
}

/// What of GPUs the job holds.
#[derive(Clone, Copy)]
struct Holding<'a> {
    client: Option<&'a Client>,
    token: Option<&'a Token<'a>>,
}

impl Jobs {
    /// Those of `task`, which uses what `share` says of the GPUs of `plan`.
    ///
    /// # Errors
    /// That there is not enough memory.
    pub fn new(
        plan: &Plan,
        task: TaskPlan,
        share: Option<&Share>,
        log: Writer,
        resources: Arc<[PiLock]>,
        halt: Arc<Halt>,
    ) -> Result<Jobs, String> {
        let work = Work::new(task.working_set)?;
        let (held, priorities) = (Vec::with_capacity(task.ops.len()), Vec::with_capacity(task.ops.len()));
        let gpus = share.map(|share| Gpus::new(plan, &task, share));
        Ok(Jobs { plan: task, log, resources, halt, work, gpus, held, priorities, index: 0 })
    }

    /// Carries out job `index`, which is due at `deadline`. It is complete when this returns, and not yet known to be.
    ///
    /// # Errors
    /// Why it did not come to its end. It holds nothing then.
    pub fn carry_out(&mut self, index: u32, deadline: Instant, client: Option<&mut Client>) -> Result<(), Cut> {
        self.index = index;
        self.note(Deed::Begin);
        self.work.begin_job();
        let client = match client {
            // A fixed urgency is that of all jobs.
            Some(client) if self.plan.urgency.is_none() => {
                let rebased = client.rebase(gpus::base(None, deadline));
                rebased.map_err(|error: RegisterError| Cut::Failed(error.to_string()))?;
                Some(&*client)
            }
            client => client.map(|client| &*client),
        };
        match self.steps(0, Holding { client, token: None }) {
            Ok(end) => assert_eq!(end, self.plan.ops.len(), "a job gives up what it took, and nothing else"),
            Err(cut) => {
                self.give_up_resources();
                return Err(cut);
            }
        }
        self.work.end_job();
        self.note(Deed::Complete);
        Ok(())
    }

    fn note(&mut self, deed: Deed) {
        self.log.note(self.index, deed);
    }

    /// Carries out the steps from `first` on, up to the one that gives up what the caller has; answers which that is.
    fn steps(&mut self, first: usize, holding: Holding<'_>) -> Result<usize, Cut> {
        let ops = Arc::clone(&self.plan.ops);
        let mut at = first;
        while let Some(op) = ops.get(at) {
            match *op {
                Op::Dispatch => {}
                Op::Run(ref time) => self.execute(self.draw(time, at))?,
                Op::NonPreemptive(ref time) => self.non_preemptive(self.draw(time, at))?,
                Op::Suspend(ref time) => self.suspend(self.draw(time, at))?,
                Op::Lock { lock, length, only } if self.is_pool(lock) => {
                    at = self.with_token(at, Ask { gpu: only, length, deadline: Instant::NEVER }, holding)?;
                }
                Op::Unlock(lock) if self.is_pool(lock) => return Ok(at),
                Op::Lock { lock, .. } => self.lock(lock)?,
                Op::Unlock(lock) => self.unlock(lock)?,
                Op::LockEngine(target) => at = self.with_engine(at, target, holding)?,
                Op::UnlockEngine(_) => return Ok(at),
                Op::Issue(ref operation) => self.issue(operation, at, holding)?,
                Op::Wait => self.wait()?,
                Op::UnlessMoved(_) => unreachable!("a plan refuses what moves from GPU to GPU"),
            }
            at += 1;
        }
        Ok(at)
    }

    fn draw(&self, time: &ExecutionTime, at: usize) -> Nanos {
        self.plan.draws.step(&time.actual, time.wcet, self.index, at)
    }

    fn execute(&mut self, span: Nanos) -> Result<(), Cut> {
        if self.work.execute(span, &self.halt.control) { Ok(()) } else { Err(Cut::Stopped) }
    }

    fn suspend(&mut self, span: Nanos) -> Result<(), Cut> {
        let until = clock::now().saturating_add(span);
        self.note(Deed::Suspend);
        if !self.halt.control.suspend_until(until) {
            return Err(Cut::Stopped);
        }
        self.note(Deed::Resume);
        Ok(())
    }

    /// Noted only where it is one: under `SCHED_FIFO`, and within it.
    fn non_preemptive(&mut self, span: Nanos) -> Result<(), Cut> {
        let Some(priority) = self.plan.raised.as_ref().map(|raised| raised.non_preemptive) else {
            return self.execute(span);
        };
        self.raise(Some(priority))?;
        self.note(Deed::NonPreemptiveBegin);
        let outcome = self.execute(span);
        self.note(Deed::NonPreemptiveEnd);
        self.lower()?;
        outcome
    }
}

/// Resources.
impl Jobs {
    fn lock(&mut self, lock: LockId) -> Result<(), Cut> {
        self.note(Deed::Request(lock));
        let ceiling = self.plan.raised.as_ref().and_then(|raised| raised.ceilings[lock.index()]);
        let resources = Arc::clone(&self.resources);
        let guard = &resources[lock.index()];
        if !guard.try_lock() {
            self.note(Deed::Wait(lock));
            guard.lock().map_err(|error| no_lock(lock, &error))?;
        }
        self.held.push(lock);
        self.note(Deed::Grant(lock, ReplicaId(0)));
        self.raise(ceiling)
    }

    fn unlock(&mut self, lock: LockId) -> Result<(), Cut> {
        self.held.retain(|&held| held != lock);
        // Before it is true: nobody is granted earlier.
        self.note(Deed::Unlock(lock, ReplicaId(0)));
        self.resources[lock.index()].unlock().map_err(|error| no_lock(lock, &error))?;
        self.lower()
    }

    /// So that others get on to where they are stopped.
    fn give_up_resources(&mut self) {
        while let Some(&lock) = self.held.last() {
            // It holds it; and if Linux disagrees, all are stopped anyway.
            let _ = self.unlock(lock);
        }
    }

    /// Has `priority`, if any, and at least the present one, until [`Jobs::lower`].
    fn raise(&mut self, priority: Option<u8>) -> Result<(), Cut> {
        let Some(now) = self.priority() else { return Ok(()) };
        let raised = priority.map_or(now, |priority| priority.max(now));
        self.priorities.push(raised);
        change(now, raised)
    }

    fn lower(&mut self) -> Result<(), Cut> {
        let Some(now) = self.priority() else { return Ok(()) };
        self.priorities.pop();
        change(now, self.priority().unwrap_or(now))
    }

    /// The priority that it gave itself, where there are any.
    fn priority(&self) -> Option<u8> {
        let base = self.plan.raised.as_ref().map(|&Raised { base, .. }| base)?;
        Some(self.priorities.last().copied().unwrap_or(base))
    }
}

/// GPUs.
impl Jobs {
    fn is_pool(&self, lock: LockId) -> bool {
        self.gpus().is_some_and(|gpus| gpus.pool.as_ref().is_some_and(|&(pool, _)| pool == lock))
    }

    fn gpus(&self) -> Option<&Gpus> {
        self.gpus.as_ref()
    }

    /// Carries out what comes while the job holds a token; answers where it was given up.
    fn with_token(&mut self, at: usize, ask: Ask, holding: Holding<'_>) -> Result<usize, Cut> {
        let Op::Lock { lock, .. } = self.plan.ops[at] else { unreachable!("it is about a token") };
        let client = holding.client.expect("who locks GPUs is registered");
        self.note(Deed::Request(lock));
        let token = client.request(ask).map_err(not_granted)?;
        self.note(Deed::Grant(lock, token.replica()));
        let outcome = self.steps(at + 1, Holding { client: Some(client), token: Some(&token) });
        self.note(Deed::Unlock(lock, token.replica()));
        drop(token);
        outcome
    }

    /// Carries out what comes while the job holds an engine; answers where it was given up.
    fn with_engine(&mut self, at: usize, target: Target, holding: Holding<'_>) -> Result<usize, Cut> {
        let Target::Own(wanted) = target else { unreachable!("a plan refuses what moves from GPU to GPU") };
        let token = holding.token.expect("engines are locked by holders of a token");
        let gpus = self.gpus().expect("who locks engines uses GPUs");
        let gpu = gpus.granted(token);
        let engine = wanted.on(gpus.models[gpu.index()].copy_engines);
        let lock = gpus.engine_lock(gpu, engine);
        self.note(Deed::Request(lock));
        let locked: EngineLock<'_> = token.engine(engine, Instant::NEVER).map_err(not_granted)?;
        self.note(Deed::Grant(lock, ReplicaId(0)));
        let outcome = self.steps(at + 1, holding);
        self.note(Deed::Unlock(lock, ReplicaId(0)));
        drop(locked);
        outcome
    }

    fn issue(&mut self, operation: &Operation, at: usize, holding: Holding<'_>) -> Result<(), Cut> {
        let gpus = self.gpus().expect("who issues operations uses GPUs");
        let gpu = match operation.gpu {
            On::Gpu(gpu) => gpu,
            On::Granted => gpus.granted(holding.token.expect("the lock's grant comes first")),
            On::Left => unreachable!("a plan refuses what moves from GPU to GPU"),
        };
        let span = match &operation.time {
            OperationTime::Given(time) => self.draw(time, at),
            OperationTime::Bytes(bytes) => gpus.models[gpu.index()].copy_time(*bytes),
        };
        self.note(Deed::Issue(gpu));
        let gpus = self.gpus.as_mut().expect("still there");
        let stream = &gpus.streams[gpu.index()];
        let issued = match operation.engine {
            Wanted::Execution => stream.launch_timed(span),
            Wanted::Copy(direction) => stream.copy_timed(direction, span),
        };
        gpus.outstanding.push(issued.map_err(gone)?);
        Ok(())
    }

    /// Until all operations that the job issued are complete.
    fn wait(&mut self) -> Result<(), Cut> {
        let gpus = self.gpus.as_mut().expect("who waits for operations uses GPUs");
        let outstanding = std::mem::take(&mut gpus.outstanding);
        if outstanding.iter().all(Event::is_complete) {
            return Ok(());
        }
        let (before, after, how) = match self.plan.spins {
            true => (Deed::SpinBegin, Deed::SpinEnd, Wait::Spinning),
            false => (Deed::Suspend, Deed::Resume, Wait::Blocking),
        };
        self.note(before);
        outstanding.iter().try_for_each(|operation| operation.wait(how)).map_err(gone)?;
        self.note(after);
        if self.halt.is_stopped() { Err(Cut::Stopped) } else { Ok(()) }
    }
}

impl Gpus {
    fn new(plan: &Plan, task: &TaskPlan, share: &Share) -> Gpus {
        let engines = |gpu: usize| {
            let locks = plan.header().locks.iter().enumerate();
            let engine = |(lock, info): (usize, &laxity_trace::LockInfo)| match info.kind {
                laxity_trace::LockKind::Engine { gpu: GpuId(of), engine, .. } if usize::from(of) == gpu => {
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
            outstanding: Vec::new(),
        }
    }

    /// The GPU that `token` is one of.
    fn granted(&self, token: &Token<'_>) -> GpuId {
        let (_, gpus) = self.pool.as_ref().expect("a token is one of a pool");
        gpus[usize::from(token.gpu())]
    }

    fn engine_lock(&self, gpu: GpuId, engine: laxity_model::Engine) -> LockId {
        let found = self.engines[gpu.index()].iter().find(|(of, _)| *of == engine);
        found.map(|&(_, lock)| lock).expect("an engine that exists has a lock")
    }
}

fn no_lock(lock: LockId, error: &io::Error) -> Cut {
    let circle = match error.kind() {
        io::ErrorKind::Deadlock => ": tasks wait for one another; lock resources in the same order everywhere",
        _ => "",
    };
    Cut::Failed(format!("resource {} cannot be locked or unlocked: {error}{circle}", lock.0))
}

fn not_granted(error: LockError) -> Cut {
    Cut::Failed(error.to_string())
}

fn gone(error: GpuError) -> Cut {
    Cut::Failed(error.to_string())
}

fn change(from: u8, to: u8) -> Result<(), Cut> {
    if from == to {
        return Ok(());
    }
    let refused = |error| Cut::Failed(format!("cannot go from SCHED_FIFO priority {from} to {to}: {error}"));
    scheduling::set_fifo(to).map_err(refused)
}
