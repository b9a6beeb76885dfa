//! One core that several threads drive at once, as CPUs do in the kernel: for tests.

use std::sync::Mutex;

use super::ffi::{self, Functions, Memory};
use super::{Arrival, Core, Invocation, Leaf, Queue, Refusal, Rule, checked, leaf, some};

/// A core, whose links have a lock, and what its lock guards besides.
pub struct Shared<T> {
    memory: Memory,
    functions: &'static Functions,
    /// The core owns the memory.
    locked: Mutex<(Core, T)>,
}

// SAFETY: without the lock C only uses exchanges and reads of single words there, and any thread may have the lock.
unsafe impl<T: Send> Sync for Shared<T> {}
// SAFETY: the memory belongs to the core, which goes along.
unsafe impl<T: Send> Send for Shared<T> {}

impl<T> Shared<T> {
    /// An event-driven core with rule `mutant` broken; 0: none.
    ///
    /// # Errors
    /// As of [`Core::new`].
    pub fn new(tasks: u32, cpus: u32, queue: Queue, mutant: u32, guarded: T) -> Result<Shared<T>, Refusal> {
        let mut core = Core::broken(tasks, cpus, Rule::ByJob, Invocation::EventDriven, queue, mutant)?;
        let memory = core.memory.as_mut_ptr();
        Ok(Shared { memory, functions: &ffi::breakable::FUNCTIONS, locked: Mutex::new((core, guarded)) })
    }

    /// As [`Core::arrive_early`], without the lock.
    pub fn arrive_early(&self, task: u32, arrival: Arrival, cpu: u32, (major, tie): (u64, u32)) -> Option<Leaf> {
        // SAFETY: the memory is that of a core, which lives as long as this; C needs no lock.
        leaf(unsafe { (self.functions.arrive_early)(self.memory, task, arrival as u32, cpu, major, tie) })
    }

    /// Takes a job out that was put in early, if no other thread touches it.
    pub fn leave_early(&self, task: u32) {
        // SAFETY: as above; what it does besides is of no account where nothing is reported.
        unsafe { (self.functions.end_early)(self.memory, task) }
    }

    /// The first job in the queue, those aside that are put in or taken out at this moment.
    pub fn first(&self) -> Option<u32> {
        // SAFETY: as above.
        some(unsafe { (self.functions.first)(self.memory) })
    }

    /// What happens with the lock.
    pub fn with<R>(&self, section: impl FnOnce(&mut Locked<'_>, &mut T) -> R) -> R {
        let mut locked = self.locked.lock().expect("no thread failed with the lock");
        section(&mut Locked { memory: self.memory, functions: self.functions, cpus: locked.0.cpus }, &mut locked.1)
    }
}

/// A core whose lock one has: as [`Core`].
pub struct Locked<'a> {
    memory: Memory,
    functions: &'a Functions,
    cpus: u32,
}

impl Locked<'_> {
    /// As [`Core::release`].
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn release(&mut self, task: u32, major: u64) -> Result<(), Refusal> {
        // SAFETY: the memory is that of a core, and its lock is ours; so for the functions below.
        checked(unsafe { (self.functions.release)(self.memory, task, major) }).map(drop)
    }

    /// As [`Core::complete`], or [`Core::suspend`].
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn leave(&mut self, cpu: u32, task: u32, suspends: bool) -> Result<(), Refusal> {
        let function = if suspends { self.functions.suspend } else { self.functions.complete };
        // SAFETY: as of `release`.
        checked(unsafe { function(self.memory, cpu, task) }).map(drop)
    }

    /// As [`Core::resume`].
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn resume(&mut self, task: u32) -> Result<(), Refusal> {
        // SAFETY: as of `release`.
        checked(unsafe { (self.functions.resume)(self.memory, task) }).map(drop)
    }

    /// As [`Core::prioritize`].
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn prioritize(&mut self, task: u32, (major, tie): (u64, u32)) -> Result<(), Refusal> {
        // SAFETY: as of `release`.
        checked(unsafe { (self.functions.prioritize)(self.memory, task, major, tie) }).map(drop)
    }

    /// As [`Core::expect`].
    pub fn expect(&mut self, leaf: Leaf) {
        // SAFETY: as of `release`.
        unsafe { (self.functions.expect)(self.memory, leaf.0) }
    }

    /// As [`Core::end_early`].
    pub fn end_early(&mut self, task: u32) {
        // SAFETY: as of `release`.
        unsafe { (self.functions.end_early)(self.memory, task) }
    }

    /// As [`Core::decide_after_event`].
    pub fn decide(&mut self) -> u64 {
        // SAFETY: as of `release`.
        unsafe { (self.functions.round)(self.memory) }
    }

    /// The task whose job is linked to each CPU.
    pub fn links(&mut self) -> Vec<Option<u32>> {
        // SAFETY: as of `release`.
        (0..self.cpus).map(|cpu| some(unsafe { (self.functions.linked)(self.memory, cpu) })).collect()
    }
}

/// Between which instructions of a CPU another one comes: tests say so.
impl Core {
    /// As [`Core::put_early`], but the CPU has not climbed yet.
    pub fn publish(&mut self, task: u32, claimed: Leaf, cpu: u32, (major, tie): (u64, u32)) -> Leaf {
        // SAFETY: as of `put_early`.
        Leaf(self.call(|c, core| unsafe { (c.publish)(core, task, claimed.0, cpu, major, tie) }))
    }

    /// In so many matches that are decided next another CPU, which looked before, is faster.
    pub fn interfere(&mut self, matches: u32) {
        // SAFETY: as of `set_rank`.
        self.call(|c, core| unsafe { (c.interfere)(core, matches) });
    }

    /// Whether a CPU writes down the winner of match `at` of a bracket that another CPU has decided since that looked at it.
    pub fn overtakes(&mut self, bracket: u32, at: u32) -> bool {
        // SAFETY: as of `set_rank`; C keeps eight bits of a match.
        self.call(|c, core| unsafe { (c.overtakes)(core, bracket, at) }) == 1
    }
}
