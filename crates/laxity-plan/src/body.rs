//! Lowers bodies to flat lists of steps: what a job does to CPUs, locks and GPUs, one thing after the other.
//!
//! ```text
//!   body      cpu a | kernel k | cpu b          under the k-FMLP          under GPUSync
//!   steps     Run a                             Run a                     Run a
//!                                               Lock pool, Dispatch       Lock tokens, Dispatch, Migrate
//!                                                                         LockEngine EE, Dispatch
//!             Issue k, Wait, Dispatch           Issue k, Wait, Dispatch   Issue k, Wait, Dispatch
//!                                                                         UnlockEngine EE
//!                                               Unlock pool
//!             Run b                             Run b                     Run b, Unlock tokens
//! ```

use laxity_model::{
    CopyDirection, ExecutionTime, Factor, Gpu, GpuArbitration, GpuId, GpuOperation, GpuSync, GpuWork, LockId,
    MigrationPath, Nanos, Scheduler, Step, Task, TokenHold, Waiting, Workload,
};

use crate::bandwidth;
use crate::clusters::Assignment;
use crate::devices::DevicePlan;
use crate::locks::{Locks, Pool, reachable_gpus};
use crate::op::{EngineKind, EngineTarget, GpuChoice, Op, Operation, OperationTime};
use crate::unsupported::UnsupportedFeatures;

/// What the lowering of one body depends on.
struct Context<'a> {
    arbitration: GpuArbitration,
    gpus: &'a [Gpu],
    /// The pool of the task's cluster, if GPUs are locked.
    pool: Option<&'a Pool>,
    /// The GPU it uses where none is named and none is granted.
    default_gpu: Option<GpuId>,
    /// What both halves of an interrupt and the callback that follows take at most.
    interrupt: Nanos,
}

impl Context<'_> {
    fn lower(&self, body: &[Step]) -> Vec<Op> {
        let ops = Vec::with_capacity(body.len() + 2);
        let mut lowering = Lowering { context: self, ops, holding: false, may_move: false };
        lowering.body(body);
        lowering.finish()
    }

    /// Bound on the time that `steps` take, their interrupts included, without waiting for others: the length of a
    /// critical section, as paper 000 has it.
    fn length(&self, steps: &[Step]) -> Nanos {
        let one = |step: &Step| match step {
            Step::Cpu(time) | Step::NonPreemptive(time) | Step::Suspend(time) => time.wcet,
            Step::Critical { body, .. } | Step::GpuSection { body } => self.length(body),
            Step::Gpu(operation) => self.length_of(operation),
        };
        steps.iter().map(one).fold(Nanos::ZERO, |total, time| Nanos(total.0.saturating_add(time.0)))
    }

    fn length_of(&self, operation: &GpuOperation) -> Nanos {
        let time = match &operation.work {
            GpuWork::Kernel(time) | GpuWork::Copy { time: Some(time), .. } => time.wcet,
            GpuWork::Copy { bytes, time: None, .. } => {
                self.gpus.iter().map(|gpu| gpu.copy_time(*bytes)).max().unwrap_or_default()
            }
        };
        Nanos(time.0.saturating_add(self.interrupt.0.saturating_mul(operation.interrupts.into())))
    }
}

/// The steps of the jobs of each of `tasks`. A task that names no GPU uses one of its cluster: round robin among the tasks
/// of the cluster that use GPUs.
pub(crate) fn lower(
    workload: &Workload,
    scheduler: &Scheduler,
    tasks: &[Task],
    clusters: &Assignment,
    locks: &Locks,
    devices: &[DevicePlan],
) -> Vec<Vec<Op>> {
    let reachable = reachable_gpus(workload, scheduler, &clusters.cpus);
    let interrupt = interrupt_time(workload, devices);
    let mut users = vec![0; clusters.cpus.len()];
    let mut body = |(task, &cluster): (&Task, &usize)| {
        let gpus: &[GpuId] = &reachable[cluster];
        let default_gpu = gpus.get(users[cluster] % gpus.len().max(1)).copied();
        users[cluster] += usize::from(task.body.iter().any(uses_gpu));
        let context = Context {
            arbitration: workload.gpu_management.arbitration,
            gpus: &workload.platform.gpus,
            pool: locks.pools[cluster].as_ref(),
            default_gpu,
            interrupt,
        };
        bandwidth::protect(context.lower(&task.body), workload.gpu_management.bandwidth_lock)
    };
    tasks.iter().zip(&clusters.of_task).map(&mut body).collect()
}

/// Adds the tasks that use GPUs and were put where none is, or not the one that they name. A file is judged for its own scheduler, and another one may
/// put its tasks elsewhere.
pub(crate) fn refuse_out_of_reach(
    workload: &Workload,
    scheduler: &Scheduler,
    tasks: &[Task],
    clusters: &Assignment,
    unsupported: &mut UnsupportedFeatures,
) {
    let reachable = reachable_gpus(workload, scheduler, &clusters.cpus);
    for (task, &cluster) in tasks.iter().zip(&clusters.of_task) {
        let is_elsewhere = |used: Option<usize>| match used {
            Some(gpu) => !reachable[cluster].contains(&GpuId(gpu as u16)),
            None => reachable[cluster].is_empty(),
        };
        let Some(used) = used_gpus(&task.body).into_iter().find(|&used| is_elsewhere(used)) else { continue };
        let cpus: Vec<String> = clusters.cpus[cluster].iter().map(ToString::to_string).collect();
        let (gpu, which) = match used.and_then(|gpu| workload.platform.gpus.get(gpu)) {
            Some(gpu) => (format!("its GPU \"{}\" does not belong there", gpu.name), "that GPU"),
            None => ("no GPU of the platform belongs there".to_owned(), "a GPU"),
        };
        unsupported.add(format!(
            "task \"{}\": under {scheduler} it is on {}, and {gpu}; put it into the `cluster` of {which}, or take a global \
             scheduler",
            task.name,
            cpus.join(", ")
        ));
    }
}

/// The GPUs that steps use; `None` is one that they do not name.
fn used_gpus(body: &[Step]) -> Vec<Option<usize>> {
    let of = |step: &Step| match step {
        Step::Critical { body, .. } | Step::GpuSection { body } => used_gpus(body),
        Step::Gpu(operation) => vec![operation.gpu],
        Step::Cpu(_) | Step::NonPreemptive(_) | Step::Suspend(_) => Vec::new(),
    };
    body.iter().flat_map(of).collect()
}

/// What an interrupt of a GPU and the callback that follows take at most. All GPUs have the same.
fn interrupt_time(workload: &Workload, devices: &[DevicePlan]) -> Nanos {
    let callback = workload.gpu_management.callback.as_ref().map_or(0, |time| time.wcet.0);
    devices.first().map_or(Nanos::ZERO, |gpu| {
        Nanos(gpu.top_half.wcet.0.saturating_add(gpu.bottom_half.wcet.0).saturating_add(callback))
    })
}

/// The steps of a body, as far as it is lowered.
struct Lowering<'a> {
    context: &'a Context<'a>,
    ops: Vec<Op>,
    /// Whether the job holds a GPU here.
    holding: bool,
    /// Whether its next one may be another.
    may_move: bool,
}

impl Lowering<'_> {
    /// GPU operations of a body without sections get one, from the first to the last of them, or to the end of the job
    /// if it does not wait for the last.
    fn body(&mut self, body: &[Step]) {
        let first = body.iter().position(uses_gpu);
        let last = if ends_asynchronously(body) { body.len().checked_sub(1) } else { body.iter().rposition(uses_gpu) };
        match (first, last) {
            (Some(first), Some(last)) if !body.iter().any(has_section) => {
                self.steps(&body[..first]);
                self.section(&body[first..=last]);
                self.steps(&body[last + 1..]);
            }
            _ => self.steps(body),
        }
        if let (Some(pool), true) = (self.context.pool, self.holding) {
            self.give_up(pool);
        }
    }

    /// The steps during which the job holds a GPU, if GPUs are held at all.
    fn section(&mut self, steps: &[Step]) {
        let Some(pool) = self.context.pool else { return self.steps(steps) };
        if !self.holding {
            self.acquire(pool, steps);
            self.holding = true;
        }
        self.steps(steps);
        self.wait_if_needed(steps);
        if !self.holds_to_the_end() {
            self.give_up(pool);
        }
    }

    fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Cpu(time) => self.ops.push(Op::Run(time.clone())),
                Step::NonPreemptive(time) => self.ops.push(Op::NonPreemptive(time.clone())),
                Step::Suspend(time) => self.suspend(time),
                Step::Critical { resource, body } => {
                    let lock = LockId(*resource as u16);
                    self.on_cpu(Op::Lock { lock, length: self.context.length(body), only: None });
                    self.ops.push(Op::Dispatch);
                    self.steps(body);
                    self.on_cpu(Op::Unlock(lock));
                }
                Step::GpuSection { body } => self.section(body),
                Step::Gpu(operation) => self.operation(operation),
            }
        }
    }

    /// A job must be dispatched before it can suspend, and between two suspensions: an empty step.
    fn suspend(&mut self, time: &ExecutionTime) {
        if matches!(self.ops.last(), None | Some(Op::Suspend(_))) {
            self.ops.push(Op::Run(ExecutionTime::constant(Nanos::ZERO)));
        }
        self.ops.push(Op::Suspend(time.clone()));
    }

    /// A step that the job carries out while it has the CPU.
    fn on_cpu(&mut self, op: Op) {
        if matches!(self.ops.last(), Some(Op::Suspend(_))) {
            self.ops.push(Op::Dispatch);
        }
        self.ops.push(op);
    }

    fn acquire(&mut self, pool: &Pool, section: &[Step]) {
        let only = named_gpu(section).and_then(|gpu| pool.gpus.iter().position(|&known| known == gpu));
        let length = self.context.length(section);
        self.on_cpu(Op::Lock { lock: pool.lock, length, only: only.map(|at| at as u16) });
        self.ops.push(Op::Dispatch);
        self.may_move = only.is_none() && pool.gpus.len() > 1;
        if let Some((time, path)) = self.migration() {
            let at = self.ops.len();
            self.ops.push(Op::UnlessMoved(0));
            match path {
                MigrationPath::Peer => self.copy_from_peer(time),
                MigrationPath::Host => self.locked(state(GpuChoice::Granted, CopyDirection::In, time)),
            }
            self.ops[at] = Op::UnlessMoved((self.ops.len() - at - 1) as u32);
        }
    }

    fn give_up(&mut self, pool: &Pool) {
        if let Some((time, MigrationPath::Host)) = self.migration()
            && self.may_move
        {
            self.locked(state(GpuChoice::Granted, CopyDirection::Out, time));
        }
        self.on_cpu(Op::Unlock(pool.lock));
        self.holding = false;
    }

    /// How long a copy of a task's state takes, and its way.
    fn migration(&self) -> Option<(Nanos, MigrationPath)> {
        let GpuArbitration::GpuSync(sync) = self.context.arbitration else { return None };
        sync.migration.map(|time| (time, sync.migration_path))
    }

    /// One copy, for which both GPUs have a copy engine busy; the GPU that receives it raises the interrupt.
    fn copy_from_peer(&mut self, time: Nanos) {
        let sent = Operation { interrupts: 0, ..state(GpuChoice::Left, CopyDirection::Out, time) };
        let received = state(GpuChoice::Granted, CopyDirection::In, time);
        self.on_cpu(Op::LockEngine(EngineTarget::LowerPeer));
        self.ops.extend([Op::Dispatch, Op::LockEngine(EngineTarget::UpperPeer), Op::Dispatch]);
        self.ops.extend([Op::Issue(Box::new(sent)), Op::Issue(Box::new(received)), Op::Wait, Op::Dispatch]);
        self.ops.extend([EngineTarget::UpperPeer, EngineTarget::LowerPeer].map(Op::UnlockEngine));
    }

    fn operation(&mut self, operation: &GpuOperation) {
        let (engine, time) = match &operation.work {
            GpuWork::Kernel(time) => (EngineKind::Execution, OperationTime::Given(time.clone())),
            GpuWork::Copy { direction, time: Some(time), .. } => {
                (EngineKind::Copy(*direction), OperationTime::Given(time.clone()))
            }
            GpuWork::Copy { direction, bytes, time: None } => {
                (EngineKind::Copy(*direction), OperationTime::Bytes(*bytes))
            }
        };
        let gpu = match self.context.pool {
            Some(_) => GpuChoice::Granted,
            None => {
                let named = operation.gpu.map(|index| GpuId(index as u16));
                GpuChoice::Gpu(
                    named.or(self.context.default_gpu).expect("a workload that uses GPUs has one within reach"),
                )
            }
        };
        let whole = Operation {
            gpu,
            engine,
            time,
            interrupts: operation.interrupts,
            memory: operation.memory,
            is_state: false,
        };
        let GpuArbitration::GpuSync(sync) = self.context.arbitration else {
            self.on_cpu(Op::Issue(Box::new(whole)));
            if operation.waiting == Waiting::Synchronous {
                self.ops.extend([Op::Wait, Op::Dispatch]);
            }
            return;
        };
        for chunk in chunks(whole, operation, sync.chunk) {
            self.locked(chunk);
        }
    }

    /// GPUSync's pattern: lock the engine, issue, wait suspended, unlock. It makes every operation synchronous.
    fn locked(&mut self, operation: Operation) {
        let engine = EngineTarget::Own(operation.engine);
        self.on_cpu(Op::LockEngine(engine));
        let issue = Op::Issue(Box::new(operation));
        self.ops.extend([Op::Dispatch, issue, Op::Wait, Op::Dispatch, Op::UnlockEngine(engine)]);
    }

    /// A GPU is not given up, and a job does not end, before its operations are complete.
    fn wait_if_needed(&mut self, steps: &[Step]) {
        let synchronous = matches!(self.context.arbitration, GpuArbitration::GpuSync(_));
        if !synchronous && ends_asynchronously(steps) {
            self.on_cpu(Op::Wait);
            self.ops.push(Op::Dispatch);
        }
    }

    fn holds_to_the_end(&self) -> bool {
        matches!(self.context.arbitration, GpuArbitration::GpuSync(GpuSync { hold: TokenHold::Job, .. }))
    }

    /// The first step has the job dispatched, and so does the last: it completes on a CPU.
    fn finish(mut self) -> Vec<Op> {
        let issued = self.ops.iter().rposition(|op| matches!(op, Op::Issue(_)));
        let waited = self.ops.iter().rposition(|op| matches!(op, Op::Wait));
        if issued > waited {
            self.on_cpu(Op::Wait);
            self.ops.push(Op::Dispatch);
        }
        if !matches!(self.ops.first(), Some(Op::Run(_) | Op::NonPreemptive(_))) {
            self.ops.insert(0, Op::Dispatch);
        }
        if matches!(self.ops.last(), Some(Op::Suspend(_))) {
            self.ops.push(Op::Run(ExecutionTime::constant(Nanos::ZERO)));
        }
        self.ops
    }
}

/// A copy of a task's state, as a part of a migration.
fn state(gpu: GpuChoice, direction: CopyDirection, time: Nanos) -> Operation {
    let time = OperationTime::Given(ExecutionTime::constant(time));
    Operation { gpu, engine: EngineKind::Copy(direction), time, interrupts: 1, memory: Factor::ZERO, is_state: true }
}

pub(crate) fn uses_gpu(step: &Step) -> bool {
    match step {
        Step::Gpu(_) => true,
        Step::Critical { body, .. } | Step::GpuSection { body } => body.iter().any(uses_gpu),
        Step::Cpu(_) | Step::NonPreemptive(_) | Step::Suspend(_) => false,
    }
}

fn has_section(step: &Step) -> bool {
    match step {
        Step::GpuSection { .. } => true,
        Step::Critical { body, .. } => body.iter().any(has_section),
        Step::Gpu(_) | Step::Cpu(_) | Step::NonPreemptive(_) | Step::Suspend(_) => false,
    }
}

/// Whether the last GPU operation is one the job does not wait for.
fn ends_asynchronously(steps: &[Step]) -> bool {
    let last = steps.iter().rev().find(|step| uses_gpu(step));
    match last {
        Some(Step::Gpu(operation)) => operation.waiting == Waiting::Asynchronous,
        Some(Step::Critical { body, .. } | Step::GpuSection { body }) => ends_asynchronously(body),
        _ => false,
    }
}

/// The GPU that the operations name, if any.
fn named_gpu(steps: &[Step]) -> Option<GpuId> {
    steps.iter().find_map(|step| match step {
        Step::Gpu(operation) => operation.gpu.map(|index| GpuId(index as u16)),
        Step::Critical { body, .. } | Step::GpuSection { body } => named_gpu(body),
        Step::Cpu(_) | Step::NonPreemptive(_) | Step::Suspend(_) => None,
    })
}

/// A copy in pieces of at most `chunk` bytes; its last piece raises the operation's interrupts, the others one each.
fn chunks(whole: Operation, operation: &GpuOperation, chunk: Option<u64>) -> Vec<Operation> {
    let (GpuWork::Copy { bytes, .. }, Some(chunk)) = (&operation.work, chunk) else { return vec![whole] };
    let count = bytes.div_ceil(chunk).max(1);
    (0..count)
        .map(|index| {
            let size = if index + 1 == count { bytes - chunk * index } else { chunk };
            let time = match &whole.time {
                // A measured time is divided in proportion; what does not divide goes to the last piece.
                OperationTime::Given(time) => {
                    OperationTime::Given(ExecutionTime::constant(part(time.wcet, index, count)))
                }
                OperationTime::Bytes(_) => OperationTime::Bytes(size),
            };
            let interrupts = if index + 1 == count { whole.interrupts } else { whole.interrupts.min(1) };
            Operation { time, interrupts, ..whole.clone() }
        })
        .collect()
}

/// Piece `index` of `count` of `span`; they add up to it.
fn part(span: Nanos, index: u64, count: u64) -> Nanos {
    let until = |index: u64| (u128::from(span.0) * u128::from(index) / u128::from(count)) as u64;
    Nanos(until(index + 1) - until(index))
}
