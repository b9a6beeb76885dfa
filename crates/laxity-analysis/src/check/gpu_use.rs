//! How bodies use GPUs under a way to share them: where sections begin and end, and what an operation takes.

use laxity_model::{
    CopyDirection, Gpu, GpuArbitration, GpuOperation, GpuSync, GpuWork, MigrationPath, Nanos, Scheduler, Scope, Step,
    TokenHold, Waiting, Workload,
};

use super::uses::{Demand, Operation, Work};

/// What jobs hold while they use GPUs.
#[derive(Clone, Copy, Debug)]
pub(super) enum GpuUse {
    /// Nothing: the driver takes operations one at a time.
    Driver,
    /// A GPU, from the first operation of a section to its last.
    Held,
    /// A token of GPUSync, and an engine during each operation.
    Tokens {
        /// The token is kept until the job ends.
        to_the_end: bool,
        /// Copies are broken into pieces of so many bytes.
        chunk: Option<u64>,
        /// How long a copy of a task's state takes if its GPU may change.
        migration: Option<(Nanos, MigrationPath)>,
    },
}

impl GpuUse {
    /// That of a workload under a scheduler.
    pub fn of(workload: &Workload, scheduler: &Scheduler) -> GpuUse {
        match workload.gpu_management.arbitration {
            GpuArbitration::Driver | GpuArbitration::DriverSpinning => GpuUse::Driver,
            GpuArbitration::Semaphore | GpuArbitration::KFmlp { .. } => GpuUse::Held,
            GpuArbitration::GpuSync(GpuSync { hold, chunk, migration, migration_path, .. }) => GpuUse::Tokens {
                to_the_end: hold == TokenHold::Job,
                chunk,
                migration: migration
                    .filter(|_| has_several_to_choose(workload, scheduler))
                    .map(|time| (time, migration_path)),
            },
        }
    }

    /// Whether jobs wait until they hold something.
    pub fn holds(self) -> bool {
        !matches!(self, GpuUse::Driver)
    }

    /// `body` with its GPU sections made explicit. A body without any has one: from the first step that contains an
    /// operation to the last, or to the end of the job if that does not wait for it.
    pub fn with_section(self, body: &[Step]) -> Vec<Step> {
        let first = body.iter().position(holds_gpu);
        let last = match self {
            GpuUse::Driver => return body.to_vec(),
            GpuUse::Tokens { to_the_end: true, .. } => body.len().checked_sub(1),
            _ if body.iter().any(has_section) => return body.to_vec(),
            _ if ends_asynchronously(body) => body.len().checked_sub(1),
            _ => body.iter().rposition(holds_gpu),
        };
        match (first, last) {
            (Some(first), Some(last)) => {
                let section = Step::GpuSection { body: body[first..=last].to_vec() };
                [&body[..first], &[section], &body[last + 1..]].concat()
            }
            _ => body.to_vec(),
        }
    }

    /// Whether a job may find itself on another GPU than before, so that its state is copied.
    pub fn may_move(self) -> bool {
        matches!(self, GpuUse::Tokens { migration: Some(_), .. })
    }

    /// Whether a job may copy its state when it ends, as it keeps its token until then.
    pub fn may_copy_at_the_end(self) -> bool {
        self.may_move() && matches!(self, GpuUse::Tokens { to_the_end: true, .. })
    }

    /// Whether a job keeps its token beyond the critical section in which it asked for it.
    pub fn outlasts_a_section(self, body: &[Step]) -> bool {
        let first = body.iter().find(|step| holds_gpu(step));
        matches!(self, GpuUse::Tokens { to_the_end: true, .. })
            && first.is_some_and(|step| matches!(step, Step::Critical { .. }) && has_section(step))
    }

    /// What an operation demands.
    pub fn operation(self, operation: &GpuOperation, gpus: &[Gpu]) -> Demand {
        let GpuUse::Tokens { chunk, .. } = self else { return demand(Operation::of(operation, gpus), 0) };
        let mut pieces = Demand::default();
        for piece in pieces_of(operation, gpus, chunk) {
            pieces.add(demand(piece, 1));
        }
        pieces
    }

    /// What moving to another GPU demands each time that a job asks for one.
    pub fn migration(self) -> Demand {
        let GpuUse::Tokens { migration: Some((time, path)), .. } = self else { return Demand::default() };
        match path {
            MigrationPath::Peer => demand(copy_of_state(Work::Peer, time), 2),
            MigrationPath::Host => {
                let mut both = demand(copy_of_state(Work::Copy(CopyDirection::In), time), 1);
                both.add(demand(copy_of_state(Work::Copy(CopyDirection::Out), time), 1));
                both
            }
        }
    }
}

/// Whether some pool has several GPUs.
fn has_several_to_choose(workload: &Workload, scheduler: &Scheduler) -> bool {
    let gpus = &workload.platform.gpus;
    match scheduler.scope {
        Scope::Global => gpus.len() > 1,
        Scope::Clustered | Scope::Partitioned => {
            gpus.iter().any(|gpu| gpus.iter().filter(|other| other.cluster == gpu.cluster).count() > 1)
        }
    }
}

/// An operation for which the job locks so many engines. One that is not waited for here is waited for later; that may be
/// a suspension of its own.
fn demand(operation: Operation, engine_locks: u64) -> Demand {
    Demand {
        suspensions: 1 + engine_locks,
        interrupts: operation.interrupts.into(),
        engine_locks,
        operations: vec![operation],
        ..Demand::default()
    }
}

fn copy_of_state(work: Work, time: Nanos) -> Operation {
    Operation { gpu: None, work, time: time.0, declared: time.0, interrupts: 1, is_asynchronous: false }
}

/// The operations that GPUSync makes of one: each is waited for, and a copy comes in pieces, the last of which raises the
/// interrupts of the whole, the others one each.
fn pieces_of(operation: &GpuOperation, gpus: &[Gpu], chunk: Option<u64>) -> Vec<Operation> {
    let whole = Operation { is_asynchronous: false, ..Operation::of(operation, gpus) };
    let (GpuWork::Copy { bytes, time, .. }, Some(chunk)) = (&operation.work, chunk) else { return vec![whole] };
    let count = bytes.div_ceil(chunk.max(1)).max(1);
    let piece = |index: u64| {
        let is_last = index + 1 == count;
        let time = match time {
            Some(time) => part(time.wcet.0, index, count),
            None => {
                let size = if is_last { bytes - chunk * index } else { chunk };
                longest_copy(operation, gpus, size).0
            }
        };
        let interrupts = if is_last { whole.interrupts } else { whole.interrupts.min(1) };
        Operation { time, interrupts, ..whole.clone() }
    };
    (0..count).map(piece).collect()
}

/// Piece `index` of `count` of `span`; they add up to it.
fn part(span: u64, index: u64, count: u64) -> u64 {
    let until = |index: u64| (u128::from(span) * u128::from(index) / u128::from(count)) as u64;
    until(index + 1) - until(index)
}

/// What a copy of `bytes` takes on the GPU that the operation names, or on the slowest; and on the slowest of all.
fn longest_copy(operation: &GpuOperation, gpus: &[Gpu], bytes: u64) -> (u64, u64) {
    let longest = gpus.iter().map(|gpu| gpu.copy_time(bytes).0).max().unwrap_or(0);
    let named = operation.gpu.and_then(|gpu| gpus.get(gpu));
    (named.map_or(longest, |gpu| gpu.copy_time(bytes).0), longest)
}

impl Operation {
    fn of(operation: &GpuOperation, gpus: &[Gpu]) -> Operation {
        let (work, time, declared) = match &operation.work {
            GpuWork::Kernel(time) => (Work::Kernel, time.wcet.0, time.wcet.0),
            GpuWork::Copy { direction, time: Some(time), .. } => (Work::Copy(*direction), time.wcet.0, time.wcet.0),
            GpuWork::Copy { direction, bytes, time: None } => {
                let (time, longest) = longest_copy(operation, gpus, *bytes);
                (Work::Copy(*direction), time, longest)
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
}

/// Whether a GPU is held during a step, or within it.
fn holds_gpu(step: &Step) -> bool {
    uses_gpu(step) || has_section(step)
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
