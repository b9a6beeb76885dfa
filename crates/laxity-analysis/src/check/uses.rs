//! What a body asks of resources and GPUs: its requests for locks, and the GPU operations that it waits for.

use laxity_model::{CopyDirection, Engine, Gpu, Step, Waiting};

use super::gpu_use::GpuUse;

/// What jobs may wait for while another holds it. Engines, which jobs hold within a token of their GPU, are not listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lock {
    /// A resource of the workload, by its index.
    Resource(usize),
    /// A GPU of the task's pool, where GPUs are held.
    Gpu,
}

/// What some steps need, all of them together. Times in ticks (nanoseconds).
#[derive(Clone, Debug, Default)]
pub(super) struct Demand {
    /// Worst-case CPU time.
    pub wcet: u64,
    /// The longest non-preemptive section.
    pub section: u64,
    /// Total length of self-suspensions for a time.
    pub suspension: u64,
    /// How often the job may suspend: for a time, for a lock, for a GPU operation.
    pub suspensions: u64,
    /// Requests for locks, engines not counted.
    pub requests: u64,
    /// Interrupts that its GPU operations raise.
    pub interrupts: u64,
    /// Engines that it asks for, one at a time.
    pub engine_locks: u64,
    /// Its GPU operations.
    pub operations: Vec<Operation>,
}

/// A GPU operation.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    /// The GPU it names.
    pub gpu: Option<usize>,
    pub work: Work,
    /// The longest that the operation takes on a GPU it may run on.
    pub time: u64,
    /// The same over all GPUs of the platform: what the job declares when it asks for a GPU.
    pub declared: u64,
    pub interrupts: u32,
    pub is_asynchronous: bool,
}

/// Which kind of engine an operation occupies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Kernel,
    Copy(CopyDirection),
    /// A copy of a task's state from one GPU to another, which occupies a copy engine of both.
    Peer,
}

/// A request for a lock.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub lock: Lock,
    /// What the job does while it holds the lock; locks that it waits for meanwhile are not counted in. With the interrupts of all
    /// operations that it issued before and may not have waited for: their bottom halves may run in its place, at the priority that
    /// it inherits.
    pub demand: Demand,
    /// How many locks it holds already.
    pub depth: usize,
    /// The locks that it asks for while it holds this one.
    pub within: Vec<Lock>,
    /// Of an outermost one: whether the job may ask for it at the very instant at which it unlocked the one before.
    pub follows_at_once: bool,
}

/// A body as the analysis sees it.
#[derive(Clone, Debug, Default)]
pub(super) struct Uses {
    pub demand: Demand,
    /// In the order of the body, an outer request before those within it.
    pub requests: Vec<Request>,
    /// Whether a job keeps its token beyond the critical section in which it asked for it.
    pub outlasts_a_section: bool,
    /// The non-preemptive section with which a job ends.
    pub ending: u64,
    /// Whether a job that has executed for its worst case is complete then, or once it has unlocked what it holds.
    pub ends_executing: bool,
    /// Whether the job holds nothing, and nothing need take time after its last section so far.
    has_just_unlocked: bool,
    /// Interrupts of the operations so far that it does not wait for at once.
    under_way: u64,
}

impl Uses {
    /// Of a body on a platform with `gpus`.
    pub fn of(body: &[Step], gpus: &[Gpu], gpu_use: GpuUse) -> Uses {
        let mut uses = Uses { outlasts_a_section: gpu_use.outlasts_a_section(body), ..Uses::default() };
        uses.ending = if let Some(Step::NonPreemptive(time)) = body.last() { time.wcet.0 } else { 0 };
        uses.ends_executing = ends_executing(body, gpu_use) && !waits_later(body);
        let whole = gpu_use.with_section(body);
        uses.demand = uses.steps(&whole, gpus, gpu_use, &mut Vec::new());
        uses
    }

    /// With execution times of `permille` thousandths, rounded up; GPU operations take as long as ever.
    pub fn scaled(&self, scale: impl Fn(u64) -> u64) -> Uses {
        let scaled =
            |demand: &Demand| Demand { wcet: scale(demand.wcet), section: scale(demand.section), ..demand.clone() };
        let request = |request: &Request| Request { demand: scaled(&request.demand), ..request.clone() };
        Uses {
            demand: scaled(&self.demand),
            requests: self.requests.iter().map(request).collect(),
            ending: scale(self.ending),
            ..*self
        }
    }

    /// The requests of jobs that hold nothing else.
    pub fn outermost(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(|request| request.depth == 0)
    }

    /// `held` are the positions of the requests around the steps.
    fn steps(&mut self, steps: &[Step], gpus: &[Gpu], gpu_use: GpuUse, held: &mut Vec<usize>) -> Demand {
        let mut demand = Demand::default();
        for step in steps {
            let takes_time = match step {
                Step::Cpu(time) | Step::NonPreemptive(time) | Step::Suspend(time) => time.actual.min(time.wcet).0 > 0,
                Step::Gpu(_) => true,
                Step::Critical { .. } | Step::GpuSection { .. } => false,
            };
            if takes_time {
                self.has_just_unlocked = false;
            }
            demand.add(match step {
                Step::Cpu(time) => Demand { wcet: time.wcet.0, ..Demand::default() },
                Step::NonPreemptive(time) => Demand { wcet: time.wcet.0, section: time.wcet.0, ..Demand::default() },
                Step::Suspend(time) => Demand { suspension: time.wcet.0, suspensions: 1, ..Demand::default() },
                Step::Critical { resource, body } => self.request(Lock::Resource(*resource), body, gpus, gpu_use, held),
                Step::GpuSection { body } if gpu_use.holds() && !self.holds_gpu(held) => {
                    self.request(Lock::Gpu, body, gpus, gpu_use, held)
                }
                Step::GpuSection { body } => self.steps(body, gpus, gpu_use, held),
                Step::Gpu(operation) => {
                    let demand = gpu_use.operation(operation, gpus);
                    if operation.waiting == Waiting::Asynchronous {
                        self.under_way = self.under_way.saturating_add(demand.interrupts);
                    }
                    demand
                }
            });
        }
        demand
    }

    fn holds_gpu(&self, held: &[usize]) -> bool {
        held.iter().any(|&outer| self.requests[outer].lock == Lock::Gpu)
    }

    fn request(&mut self, lock: Lock, body: &[Step], gpus: &[Gpu], gpu_use: GpuUse, held: &mut Vec<usize>) -> Demand {
        for &outer in held.iter() {
            self.requests[outer].within.push(lock);
        }
        let at = self.requests.len();
        let depth = held.len();
        let follows_at_once = depth == 0 && self.has_just_unlocked;
        let under_way = self.under_way;
        let demand = Demand::default();
        self.requests.push(Request { lock, demand, depth, within: Vec::new(), follows_at_once });
        held.push(at);
        let mut demand = self.steps(body, gpus, gpu_use, held);
        if lock == Lock::Gpu {
            demand.add(gpu_use.migration());
        }
        held.pop();
        if held.is_empty() {
            self.has_just_unlocked = true;
        }
        let interrupts = demand.interrupts.saturating_add(under_way);
        self.requests[at].demand = Demand { interrupts, ..demand.clone() };
        // It may have to wait for the lock.
        let (suspensions, requests) = (demand.suspensions.saturating_add(1), demand.requests.saturating_add(1));
        Demand { suspensions, requests, ..demand }
    }
}

/// Whether a body ends with a step that executes, and copies nothing after it.
fn ends_executing(body: &[Step], gpu_use: GpuUse) -> bool {
    match body.last() {
        Some(Step::Cpu(time) | Step::NonPreemptive(time)) => {
            time.wcet.0 > 0 && !(gpu_use.may_copy_at_the_end() && body.iter().any(uses_gpu))
        }
        Some(Step::Critical { body, .. }) => ends_executing(body, gpu_use),
        Some(Step::GpuSection { body }) => !gpu_use.may_move() && ends_executing(body, gpu_use),
        Some(Step::Suspend(_) | Step::Gpu(_)) | None => false,
    }
}

fn uses_gpu(step: &Step) -> bool {
    match step {
        Step::Gpu(_) => true,
        Step::GpuSection { body } | Step::Critical { body, .. } => body.iter().any(uses_gpu),
        Step::Cpu(_) | Step::NonPreemptive(_) | Step::Suspend(_) => false,
    }
}

/// Whether a job may wait at its end for an operation that it issued before.
fn waits_later(body: &[Step]) -> bool {
    body.iter().any(|step| match step {
        Step::Gpu(operation) => operation.waiting == Waiting::Asynchronous,
        Step::GpuSection { body } | Step::Critical { body, .. } => waits_later(body),
        Step::Cpu(_) | Step::NonPreemptive(_) | Step::Suspend(_) => false,
    })
}

impl Demand {
    pub fn add(&mut self, other: Demand) {
        self.wcet = self.wcet.saturating_add(other.wcet);
        self.section = self.section.max(other.section);
        self.suspension = self.suspension.saturating_add(other.suspension);
        self.suspensions = self.suspensions.saturating_add(other.suspensions);
        self.requests = self.requests.saturating_add(other.requests);
        self.interrupts = self.interrupts.saturating_add(other.interrupts);
        self.engine_locks = self.engine_locks.saturating_add(other.engine_locks);
        self.operations.extend(other.operations);
    }

    /// Total length of its GPU operations.
    pub fn gpu(&self) -> u64 {
        self.operations.iter().fold(0, |sum: u64, operation| sum.saturating_add(operation.time))
    }

    /// The length that a job declares when it asks for what it holds meanwhile.
    pub fn declared(&self) -> u64 {
        let operations = self.operations.iter().map(|operation| operation.declared);
        operations.fold(self.wcet.saturating_add(self.suspension), u64::saturating_add)
    }

    /// The GPU that the operations name, if any.
    pub fn named_gpu(&self) -> Option<usize> {
        self.operations.iter().find_map(|operation| operation.gpu)
    }
}

impl Work {
    /// The engine on a GPU with that many copy engines.
    pub fn engine(self, copy_engines: u8) -> Engine {
        match self {
            Work::Kernel => Engine::Execution,
            Work::Copy(CopyDirection::Out) if copy_engines > 1 => Engine::Copy(1),
            Work::Copy(_) | Work::Peer => Engine::Copy(0),
        }
    }

    /// Whether the two may occupy the same engine, on GPUs with at least that many copy engines.
    pub fn meets(self, other: Work, copy_engines: u8) -> bool {
        match (self, other) {
            (Work::Kernel, Work::Kernel) => true,
            (Work::Kernel, _) | (_, Work::Kernel) => false,
            (Work::Copy(one), Work::Copy(other)) => copy_engines < 2 || one == other,
            (Work::Peer, _) | (_, Work::Peer) => true,
        }
    }
}
