//! The policy core of `bpf/`, compiled for user space: one cluster's job scheduling, and which process each CPU runs.
//!
//! Tasks and CPUs are numbered from 0 within the cluster. The caller reports every event of an instant and then asks once
//! for the decision, as with `CpuPolicy` of laxity-policy.

mod fair;
mod ffi;
mod server;
#[doc(hidden)]
pub mod shared;
mod times;

pub use fair::{CREDIT, Clock, LEAD, PACE, punishment, virtual_span, weight};
use ffi::Functions;
pub use server::Server;
pub use times::Times;

/// The most tasks of a core, interrupt threads among them.
pub const TASKS_MAX: u32 = 256;
/// The most CPUs of a core.
pub const CPUS_MAX: u32 = 64;
/// How many rules the build for tests can break, numbered from 1.
#[doc(hidden)]
pub const MUTANTS: u32 = 50;

/// In place of a task or a CPU.
const NONE: u32 = 0xffff;

/// How jobs rank; ties go to the task listed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// By the number that comes with each release: the absolute deadline under EDF, anything under job-level priorities.
    ByJob,
    /// By the task's level: rate- or deadline-monotonic, or given.
    ByTask,
}

/// When jobs are linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invocation {
    /// At each event.
    EventDriven,
    /// Where a quantum begins, on all CPUs at once.
    Aligned,
    /// Where a quantum begins, each CPU for itself.
    Staggered,
}

/// The ready queue (paper 002: R1 to R3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// A heap.
    Coarse,
    /// A tournament of all tasks.
    Fine,
    /// A tournament for each CPU, and one of these.
    Hierarchical,
}

/// How a job arrives, where it is put into the queue before its arrival is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Its release, or work of an interrupt thread for no task.
    Fresh,
    /// After it suspended itself.
    Back,
}

/// What C says of a job that is on its way into the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf(u64);

/// The core refused an event. Its state is as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No such task, CPU or size.
    #[error("no such task or CPU, or more than {TASKS_MAX} tasks or {CPUS_MAX} CPUs; split the system into clusters")]
    NoSuch,
    /// Jobs of a task are sequential, and so is the work of an interrupt thread.
    #[error("the task has a job already; report its completion first")]
    IsPending,
    /// Only a suspended job resumes.
    #[error("the job is not suspended; report its suspension first")]
    NotSuspended,
    /// Only a job that is ready, linked or held back leaves its CPU; only a process that has a CPU is non-preemptive.
    #[error("the task has no job that could run there; report its release first")]
    NotPending,
    /// A linked job is never on another CPU, and a process occupies one CPU at a time.
    #[error("the task is on another CPU; report that it left that one first")]
    Elsewhere,
    /// A second tick of a CPU before the decision.
    #[error("the CPU's quantum began twice; decide first")]
    Ticked,
}

/// One cluster's job scheduling in C.
pub struct Core {
    /// As large as C says it must be, and zero before `init`.
    memory: Box<[u64]>,
    functions: &'static Functions,
    cpus: u32,
}

impl Core {
    /// A cluster of `cpus` CPUs and `tasks` tasks, interrupt threads among them: all idle, no job pending. Under
    /// [`Rule::ByTask`] each task has the least urgent level until [`Core::set_rank`].
    ///
    /// # Errors
    /// [`Refusal::NoSuch`] if there are none or too many of either.
    pub fn new(tasks: u32, cpus: u32, rule: Rule, invocation: Invocation) -> Result<Core, Refusal> {
        Core::queued(tasks, cpus, rule, invocation, Queue::Coarse)
    }

    /// The same, with that ready queue.
    ///
    /// # Errors
    /// As of [`Core::new`].
    pub fn queued(tasks: u32, cpus: u32, rule: Rule, invocation: Invocation, queue: Queue) -> Result<Core, Refusal> {
        Core::build(&ffi::whole::FUNCTIONS, tasks, cpus, rule, invocation, queue, 0)
    }

    /// The build for tests, with rule `mutant` broken; 0: none.
    ///
    /// # Errors
    /// As of [`Core::new`].
    #[doc(hidden)]
    pub fn broken(
        tasks: u32,
        cpus: u32,
        rule: Rule,
        invocation: Invocation,
        queue: Queue,
        mutant: u32,
    ) -> Result<Core, Refusal> {
        Core::build(&ffi::breakable::FUNCTIONS, tasks, cpus, rule, invocation, queue, mutant)
    }

    fn build(
        functions: &'static Functions,
        tasks: u32,
        cpus: u32,
        rule: Rule,
        invocation: Invocation,
        queue: Queue,
        mutant: u32,
    ) -> Result<Core, Refusal> {
        // SAFETY: it takes nothing and returns a constant.
        let bytes = unsafe { (functions.size)() };
        let mut core = Core { memory: vec![0; bytes.div_ceil(8) as usize].into(), functions, cpus };
        let memory = core.memory.as_mut_ptr();
        // SAFETY: the memory has the size that C asked for, is aligned for its largest member, and is ours alone.
        checked(unsafe {
            (functions.init)(memory, tasks, cpus, rule as u32, invocation as u32, queue as u32, mutant)
        })?;
        Ok(core)
    }

    /// Calls one of the functions; there is no other use of the memory.
    fn call<R>(&mut self, function: impl FnOnce(&Functions, ffi::Memory) -> R) -> R {
        function(self.functions, self.memory.as_mut_ptr())
    }

    /// The level of all later jobs of `task` under [`Rule::ByTask`], at least 1, and its place in the list of all tasks,
    /// which breaks ties.
    ///
    /// # Errors
    /// [`Refusal`], as of all events.
    pub fn set_rank(&mut self, task: u32, level: u64, position: u32) -> Result<(), Refusal> {
        // SAFETY: `init` has filled the memory; so for all functions below, which check their other arguments.
        checked(self.call(|c, core| unsafe { (c.set_rank)(core, task, level, position) })).map(drop)
    }

    /// A job of `task` is ready for the first time; `major`: its absolute deadline in ns, or its own priority.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn release(&mut self, task: u32, major: u64) -> Result<(), Refusal> {
        // SAFETY: as of `set_rank`.
        checked(self.call(|c, core| unsafe { (c.release)(core, task, major) })).map(drop)
    }

    /// The job of `task` completed on `cpu`.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn complete(&mut self, cpu: u32, task: u32) -> Result<(), Refusal> {
        // SAFETY: as of `set_rank`.
        checked(self.call(|c, core| unsafe { (c.complete)(core, cpu, task) })).map(drop)
    }

    /// The job of `task` suspended itself on `cpu`.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn suspend(&mut self, cpu: u32, task: u32) -> Result<(), Refusal> {
        // SAFETY: as of `set_rank`.
        checked(self.call(|c, core| unsafe { (c.suspend)(core, cpu, task) })).map(drop)
    }

    /// The suspended job of `task` is ready again.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn resume(&mut self, task: u32) -> Result<(), Refusal> {
        // SAFETY: as of `set_rank`.
        checked(self.call(|c, core| unsafe { (c.resume)(core, task) })).map(drop)
    }

    /// The effective priority of the job of `task` is this level, major and tie, from now on.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn prioritize(&mut self, task: u32, (major, tie): (u64, u32)) -> Result<(), Refusal> {
        // SAFETY: as of `set_rank`.
        checked(self.call(|c, core| unsafe { (c.prioritize)(core, task, major, tie) })).map(drop)
    }

    /// As [`Core::prioritize`], of the job of `owner` and of all interrupt threads that work for it.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn lead(&mut self, owner: u32, (major, tie): (u64, u32)) -> Result<(), Refusal> {
        // SAFETY: as of `set_rank`.
        checked(self.call(|c, core| unsafe { (c.lead)(core, owner, major, tie) })).map(drop)
    }

    /// The idle interrupt thread `thread` has work, on behalf of `owner` if there is one, at this level.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn wake(&mut self, thread: u32, owner: Option<u32>, (major, tie): (u64, u32)) -> Result<(), Refusal> {
        let owner = owner.unwrap_or(NONE);
        // SAFETY: as of `set_rank`.
        checked(self.call(|c, core| unsafe { (c.wake)(core, thread, owner, major, tie) })).map(drop)
    }

    /// Quantum number `quantum` begins on `cpu`.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn tick(&mut self, cpu: u32, quantum: u64) -> Result<(), Refusal> {
        // SAFETY: as of `set_rank`.
        checked(self.call(|c, core| unsafe { (c.tick)(core, cpu, quantum) })).map(drop)
    }

    /// The process of `task`, or the idle process, is now the one on `cpu`.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn switch(&mut self, cpu: u32, task: Option<u32>) -> Result<(), Refusal> {
        let task = task.unwrap_or(NONE);
        // SAFETY: as of `set_rank`.
        checked(self.call(|c, core| unsafe { (c.switch)(core, cpu, task) })).map(drop)
    }

    /// The process of `task`, which has a CPU, enters a non-preemptive section.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn enter(&mut self, task: u32) -> Result<(), Refusal> {
        // SAFETY: as of `set_rank`.
        checked(self.call(|c, core| unsafe { (c.enter)(core, task) })).map(drop)
    }

    /// It leaves the section; whether its CPU is to run another process now.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn exit(&mut self, task: u32) -> Result<bool, Refusal> {
        // SAFETY: as of `set_rank`.
        checked(self.call(|c, core| unsafe { (c.exit)(core, task) })).map(|is_due| is_due == 1)
    }

    /// The job of `task`, which is to arrive so, is claimed, if it can be: until [`Core::put_early`] no arrival of it is taken.
    ///
    /// The queue must not be coarse; so for the functions that follow.
    pub fn claim(&mut self, task: u32, arrival: Arrival) -> Option<Leaf> {
        // SAFETY: as of `set_rank`; C keeps eight bits of a task.
        leaf(self.call(|c, core| unsafe { (c.claim)(core, task, arrival as u32) }))
    }

    /// The claimed job of `task`, which arrives on `cpu`, is put into the queue by that level. It is not there yet for decisions:
    /// [`Core::expect`], the arrival itself and [`Core::end_early`] must follow.
    pub fn put_early(&mut self, task: u32, claimed: Leaf, cpu: u32, (major, tie): (u64, u32)) -> Leaf {
        // SAFETY: as of `claim`; it keeps six bits of a CPU.
        Leaf(self.call(|c, core| unsafe { (c.put_early)(core, task, claimed.0, cpu, major, tie) }))
    }

    /// Both at once, unless an interrupt thread goes before the job.
    pub fn arrive_early(&mut self, task: u32, arrival: Arrival, cpu: u32, (major, tie): (u64, u32)) -> Option<Leaf> {
        // SAFETY: as of `put_early`.
        leaf(self.call(|c, core| unsafe { (c.arrive_early)(core, task, arrival as u32, cpu, major, tie) }))
    }

    /// What was put in early is reported next.
    pub fn expect(&mut self, leaf: Leaf) {
        // SAFETY: as of `set_rank`.
        self.call(|c, core| unsafe { (c.expect)(core, leaf.0) });
    }

    /// The arrival of the job of `task` was reported, or is not to be: if it was not taken, the job is in the queue no more.
    pub fn end_early(&mut self, task: u32) {
        // SAFETY: as of `claim`.
        self.call(|c, core| unsafe { (c.end_early)(core, task) });
    }

    /// Links jobs where that is due, and returns the CPUs, a bit each, whose links changed since the last decision. A job
    /// that completes or suspends loses its link without being told.
    pub fn decide(&mut self) -> u64 {
        // SAFETY: as of `set_rank`.
        self.call(|c, core| unsafe { (c.decide)(core) })
    }

    /// As [`Core::decide`], after a single event that is no tick: the kernel's side takes one round of a decision then.
    pub fn decide_after_event(&mut self) -> u64 {
        // SAFETY: as of `set_rank`.
        self.call(|c, core| unsafe { (c.round)(core) })
    }

    /// Of these CPUs those that must be interrupted: their process is not the one that should run, and may be preempted.
    pub fn kicks(&mut self, changed: u64) -> u64 {
        // SAFETY: as of `set_rank`.
        self.call(|c, core| unsafe { (c.kicks)(core, changed) })
    }

    /// The task whose process is to run on `cpu`; `None` for a CPU that does not exist, too.
    pub fn next(&mut self, cpu: u32) -> Option<u32> {
        // SAFETY: as of `set_rank`.
        some(self.call(|c, core| unsafe { (c.next)(core, cpu) }))
    }

    /// The task whose job is linked to `cpu`; `None` for a CPU that does not exist, too.
    pub fn linked(&mut self, cpu: u32) -> Option<u32> {
        if cpu >= self.cpus {
            return None;
        }
        // SAFETY: as of `set_rank`.
        some(self.call(|c, core| unsafe { (c.linked)(core, cpu) }))
    }

    /// The whole state, to see whether something changed.
    pub fn state(&self) -> &[u64] {
        &self.memory
    }
}

fn some(task: u32) -> Option<u32> {
    (task != NONE).then_some(task)
}

fn leaf(leaf: u64) -> Option<Leaf> {
    (leaf != 0).then_some(Leaf(leaf))
}

/// What `enum laxity_error` says.
fn checked(code: i32) -> Result<i32, Refusal> {
    Err(match code {
        0.. => return Ok(code),
        -1 => Refusal::NoSuch,
        -2 => Refusal::IsPending,
        -3 => Refusal::NotSuspended,
        -4 => Refusal::NotPending,
        -5 => Refusal::Elsewhere,
        _ => Refusal::Ticked,
    })
}
