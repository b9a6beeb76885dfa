//! What a body asks of resources and GPUs: its requests for locks, and the GPU operations that it waits for.

use laxity_model::{CopyDirection, Engine, Gpu, GpuArbitration, GpuOperation, GpuWork, Step, Waiting, Workload};

/// What jobs may wait for while another holds it.
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
    /// Interrupts that its GPU operations raise.
    pub interrupts: u64,
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
}

/// A request for a lock.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub lock: Lock,
    /// What the job does while it holds the lock; locks that it waits for meanwhile are not counted in.
    pub demand: Demand,
    /// How many locks it holds already.
    pub depth: usize,
    /// The locks that it asks for while it holds this one.
    pub within: Vec<Lock>,
}

/// A body as the analysis sees it.
#[derive(Clone, Debug, Default)]
pub(super) struct Uses {
    pub demand: Demand,
    /// In the order of the body, an outer request before those within it.
    pub requests: Vec<Request>,
}

impl Uses {
    /// Of a body on a platform with `gpus`. `holds_gpus`: GPUs are held from the first operation of a section to its
    /// last; else the driver takes operations one at a time.
    pub fn of(body: &[Step], gpus: &[Gpu], holds_gpus: bool) -> Uses {
        let mut uses = Uses::default();
        let whole = if holds_gpus { with_section(body) } else { body.to_vec() };
        uses.demand = uses.steps(&whole, gpus, holds_gpus, &mut Vec::new());
        uses
    }

    /// With execution times of `permille` thousandths, rounded up; GPU operations take as long as ever.
    pub fn scaled(&self, scale: impl Fn(u64) -> u64) -> Uses {
        let scaled =
            |demand: &Demand| Demand { wcet: scale(demand.wcet), section: scale(demand.section), ..demand.clone() };
        let request = |request: &Request| Request { demand: scaled(&request.demand), ..request.clone() };
        Uses { demand: scaled(&self.demand), requests: self.requests.iter().map(request).collect() }
    }

    /// The requests of jobs that hold nothing else.
    pub fn outermost(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(|request| request.depth == 0)
    }

    /// `held` are the positions of the requests around the steps.
    fn steps(&mut self, steps: &[Step], gpus: &[Gpu], holds_gpus: bool, held: &mut Vec<usize>) -> Demand {
        let mut demand = Demand::default();
        for step in steps {
            demand.add(match step {
                Step::Cpu(time) => Demand { wcet: time.wcet.0, ..Demand::default() },
                Step::NonPreemptive(time) => Demand { wcet: time.wcet.0, section: time.wcet.0, ..Demand::default() },
                Step::Suspend(time) => Demand { suspension: time.wcet.0, suspensions: 1, ..Demand::default() },
                Step::Critical { resource, body } => {
                    self.request(Lock::Resource(*resource), body, gpus, holds_gpus, held)
                }
                Step::GpuSection { body } if holds_gpus => self.request(Lock::Gpu, body, gpus, holds_gpus, held),
                Step::GpuSection { body } => self.steps(body, gpus, holds_gpus, held),
                Step::Gpu(operation) => Operation::of(operation, gpus).demand(),
            });
        }
        demand
    }

    fn request(&mut self, lock: Lock, body: &[Step], gpus: &[Gpu], holds_gpus: bool, held: &mut Vec<usize>) -> Demand {
        for &outer in held.iter() {
            self.requests[outer].within.push(lock);
        }
        let at = self.requests.len();
        self.requests.push(Request { lock, demand: Demand::default(), depth: held.len(), within: Vec::new() });
        held.push(at);
        let demand = self.steps(body, gpus, holds_gpus, held);
        held.pop();
        self.requests[at].demand = demand.clone();
        // It may have to wait for the lock.
        Demand { suspensions: demand.suspensions.saturating_add(1), ..demand }
    }
}

impl Demand {
    fn add(&mut self, other: Demand) {
        self.wcet = self.wcet.saturating_add(other.wcet);
        self.section = self.section.max(other.section);
        self.suspension = self.suspension.saturating_add(other.suspension);
        self.suspensions = self.suspensions.saturating_add(other.suspensions);
        self.interrupts = self.interrupts.saturating_add(other.interrupts);
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

impl Operation {
    fn of(operation: &GpuOperation, gpus: &[Gpu]) -> Operation {
        let (work, time, declared) = match &operation.work {
            GpuWork::Kernel(time) => (Work::Kernel, time.wcet.0, time.wcet.0),
            GpuWork::Copy { direction, time: Some(time), .. } => (Work::Copy(*direction), time.wcet.0, time.wcet.0),
            GpuWork::Copy { direction, bytes, time: None } => {
                let longest = gpus.iter().map(|gpu| gpu.copy_time(*bytes).0).max().unwrap_or(0);
                let named = operation.gpu.and_then(|gpu| gpus.get(gpu));
                (Work::Copy(*direction), named.map_or(longest, |gpu| gpu.copy_time(*bytes).0), longest)
            }
        };
        Operation {
            gpu: operation.gpu,
            work,
            time,
            declared,
            interrupts: operation.interrupts,
            is_asynchronous: operation.waiting == Waiting::Asynchronous,
        }
    }

    fn demand(self) -> Demand {
        // An operation that is not waited for here is waited for later; that may be a suspension of its own.
        Demand { suspensions: 1, interrupts: self.interrupts.into(), operations: vec![self], ..Demand::default() }
    }
}

impl Work {
    /// The engine on a GPU with that many copy engines.
    pub fn engine(self, copy_engines: u8) -> Engine {
        match self {
            Work::Kernel => Engine::Execution,
            Work::Copy(CopyDirection::Out) if copy_engines > 1 => Engine::Copy(1),
            Work::Copy(_) => Engine::Copy(0),
        }
    }
}

/// Whether jobs hold a GPU during their GPU sections.
pub(super) fn holds_gpus(workload: &Workload) -> bool {
    match workload.gpu_management.arbitration {
        GpuArbitration::Driver | GpuArbitration::DriverSpinning => false,
        GpuArbitration::Semaphore | GpuArbitration::KFmlp { .. } | GpuArbitration::GpuSync(_) => true,
    }
}

/// A body with a GPU section where it has none: from the first step that contains an operation to the last, or to the
/// end of the job if that does not wait for it.
fn with_section(body: &[Step]) -> Vec<Step> {
    let first = body.iter().position(uses_gpu);
    let last = if ends_asynchronously(body) { body.len().checked_sub(1) } else { body.iter().rposition(uses_gpu) };
    match (first, last) {
        (Some(first), Some(last)) if !body.iter().any(has_section) => {
            let section = Step::GpuSection { body: body[first..=last].to_vec() };
            [&body[..first], &[section], &body[last + 1..]].concat()
        }
        _ => body.to_vec(),
    }
}

fn uses_gpu(step: &Step) -> bool {
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

fn ends_asynchronously(steps: &[Step]) -> bool {
    match steps.iter().rev().find(|step| uses_gpu(step)) {
        Some(Step::Gpu(operation)) => operation.waiting == Waiting::Asynchronous,
        Some(Step::Critical { body, .. } | Step::GpuSection { body }) => ends_asynchronously(body),
        _ => false,
    }
}
