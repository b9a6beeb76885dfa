//! What the records of a trace add up to at every moment: the one place where an event becomes state.
//!
//! ```text
//!                        .---> Tasks      released and incomplete jobs, arrivals, where jobs ran
//!   record --> Replay ---+---> Cpus       the job, the bottom half or the overhead that each CPU has
//!                        '---> Details    ready and linked jobs, priorities, locks, engines, interrupts
//! ```
//!
//! Observers ([metrics](crate::metrics), [checkers](crate::check), [intervals](crate::intervals)) ask the replay what was
//! true before a record, let it apply the record, and look at the [`Change`] and at what is true then.
//!
//! The replay believes the records: whether a schedule is legal is for the checkers to say. A record that cannot be
//! applied (a task or CPU that the header does not know, a job that completes out of turn, the preemption of a job that
//! does not have the CPU) changes nothing. Memory grows with the tasks and CPUs of the header and with what is pending.

mod cpu;
mod engines;
mod interrupts;
mod locks;
mod pending;
mod queues;
mod task;

use laxity_model::{CpuId, Instant, JobId, Nanos, OverheadKind};

pub(crate) use self::cpu::{Cpu, Running};
pub(crate) use self::engines::{Engines, Operation};
use self::interrupts::Interrupts;
pub use self::interrupts::Source;
pub(crate) use self::locks::{Holder, Locks};
pub(crate) use self::queues::{Level, Named, Queues, Section};
pub(crate) use self::task::{Completion, Task};
use crate::{Event, TraceHeader};

/// The state of a trace after its records so far.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    tasks: Vec<Task>,
    cpus: Vec<Cpu>,
    details: Option<Box<Details>>,
}

/// What a schedule of tasks without GPUs and locks is measured without.
#[derive(Clone, Debug)]
pub(crate) struct Details {
    pub queues: Queues,
    pub locks: Locks,
    pub engines: Engines,
    pub interrupts: Interrupts,
}

/// What a record did, as far as it can be told only while it is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing of the following.
    Other,
    /// The next job of its task was released.
    Released,
    /// A job got a CPU.
    Dispatched {
        /// Where it was dispatched before, if it was.
        before: Option<CpuId>,
    },
    /// A job left its CPU.
    Stopped {
        /// How long it executed there since its dispatch.
        executed: Nanos,
    },
    /// A job completed.
    Completed {
        /// How long it executed since its dispatch; `None` if it did not have the CPU.
        executed: Option<Nanos>,
        /// `None` if it was not the oldest pending job of its task.
        job: Option<Completion>,
    },
    /// An overhead or a lock wait took a CPU.
    Covered {
        /// How much of it lies beyond an earlier one: all of it, in a legal schedule.
        added: Nanos,
    },
}

impl Replay {
    /// Follows everything.
    pub fn new(header: &TraceHeader) -> Self {
        let details = Details {
            queues: Queues::new(header),
            locks: Locks::new(header),
            engines: Engines::new(header),
            interrupts: Interrupts::default(),
        };
        Replay { details: Some(Box::new(details)), ..Replay::of_jobs_and_cpus(header) }
    }

    /// Follows jobs and CPUs alone.
    pub fn of_jobs_and_cpus(header: &TraceHeader) -> Self {
        Replay {
            tasks: header.tasks.iter().map(|task| Task::new(task.deadline, task.kind.is_thread())).collect(),
            cpus: vec![Cpu::default(); header.cpus],
            details: None,
        }
    }

    /// The tasks, by `TaskId`.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// The task of `job`.
    pub fn task(&self, job: JobId) -> Option<&Task> {
        self.tasks.get(job.task.index())
    }

    /// The CPUs, by `CpuId`.
    pub fn cpus(&self) -> &[Cpu] {
        &self.cpus
    }

    /// The CPU, if the header knows it.
    pub fn cpu(&self, cpu: CpuId) -> Option<&Cpu> {
        self.cpus.get(cpu.index())
    }

    /// The CPU that `job` has.
    pub fn cpu_of(&self, job: JobId) -> Option<CpuId> {
        self.task(job)?.last_cpu().filter(|&cpu| self.cpu(cpu).is_some_and(|cpu| cpu.job() == Some(job)))
    }

    /// The effective priority of a pending job.
    pub fn level(&self, job: JobId) -> Option<Level> {
        self.details().queues.level(job, &self.tasks)
    }

    /// The priority of a pending job in its own right.
    pub fn own_level(&self, job: JobId) -> Option<Level> {
        self.details().queues.own_level(job, &self.tasks)
    }

    /// Everything but jobs and CPUs.
    ///
    /// Panics if the replay follows jobs and CPUs alone.
    pub fn details(&self) -> &Details {
        self.details.as_deref().expect("observers that ask for details have a replay that follows them")
    }

    /// Takes the next record.
    #[inline]
    pub fn apply(&mut self, at: Instant, event: Event) -> Change {
        if let Some(details) = &mut self.details {
            details.apply(at, event, &self.tasks);
        }
        match event {
            Event::Release { job, deadline } => self.release(at, job, deadline),
            Event::Dispatch { cpu, job } => self.dispatch(at, cpu, job),
            Event::Preempt { cpu, job } | Event::Suspend { cpu, job } => match self.stop(at, cpu, job) {
                Some(executed) => Change::Stopped { executed },
                None => Change::Other,
            },
            Event::Complete { cpu, job } => {
                let executed = self.stop(at, cpu, job);
                let task = self.tasks.get_mut(job.task.index());
                Change::Completed { executed, job: task.and_then(|task| task.complete(job.index)) }
            }
            Event::Overhead { cpu, kind, duration } if occupies_cpu(kind) => self.cover(at, cpu, duration),
            Event::LockWait { cpu, duration } => self.cover(at, cpu, duration),
            Event::Ready { .. } | Event::Link { .. } | Event::Overhead { .. } => Change::Other,
            rare => {
                self.apply_rare(at, rare);
                Change::Other
            }
        }
    }

    /// What schedules of tasks without GPUs are not full of: out of line, so that the rest stays small.
    #[inline(never)]
    fn apply_rare(&mut self, at: Instant, event: Event) {
        match event {
            Event::BottomHalfBegin { cpu, device, job } => {
                if let Some(cpu) = self.cpus.get_mut(cpu.index()) {
                    let owner = job.filter(|owner| owner.task.index() < self.tasks.len());
                    cpu.begin_bottom_half(at, Source { device, owner });
                }
            }
            Event::BottomHalfEnd { cpu, .. } => {
                if let Some(cpu) = self.cpus.get_mut(cpu.index()) {
                    cpu.end_bottom_half(at);
                }
            }
            Event::Outside { cpu, by } => {
                if let Some(cpu) = self.cpus.get_mut(cpu.index()) {
                    cpu.put_outside(at, by);
                }
            }
            Event::SpinBegin { cpu, job } => self.spin(at, cpu, job, true),
            Event::SpinEnd { cpu, job } => self.spin(at, cpu, job, false),
            _ => {}
        }
    }

    #[inline]
    fn release(&mut self, at: Instant, job: JobId, deadline: Instant) -> Change {
        let Some(task) = self.tasks.get_mut(job.task.index()) else { return Change::Other };
        if task.release(at, job.index, deadline) { Change::Released } else { Change::Other }
    }

    #[inline]
    fn dispatch(&mut self, at: Instant, cpu: CpuId, job: JobId) -> Change {
        let Some(state) = self.cpus.get_mut(cpu.index()) else { return Change::Other };
        let Some(task) = self.tasks.get_mut(job.task.index()) else { return Change::Other };
        state.dispatch(at, job);
        if task.spins() {
            state.begin_spinning(at, job);
        }
        Change::Dispatched { before: task.dispatch(cpu) }
    }

    /// Returns how long `job` executed on `cpu`; `None` if it did not have it.
    #[inline]
    fn stop(&mut self, at: Instant, cpu: CpuId, job: JobId) -> Option<Nanos> {
        self.cpus.get_mut(cpu.index())?.stop(at, job)
    }

    #[inline]
    fn cover(&mut self, at: Instant, cpu: CpuId, duration: Nanos) -> Change {
        match self.cpus.get_mut(cpu.index()) {
            Some(cpu) => Change::Covered { added: cpu.cover(at, duration) },
            None => Change::Other,
        }
    }

    /// `job` begins or ends to wait by spinning; it may have been preempted since.
    fn spin(&mut self, at: Instant, cpu: CpuId, job: JobId, spins: bool) {
        let Some(task) = self.tasks.get_mut(job.task.index()) else { return };
        task.set_spins(spins);
        if let Some(cpu) = self.cpus.get_mut(cpu.index()) {
            match spins {
                true => cpu.begin_spinning(at, job),
                false => cpu.end_spinning(at, job),
            }
        }
    }
}

impl Details {
    /// `tasks`: before the event.
    #[inline(never)]
    fn apply(&mut self, at: Instant, event: Event, tasks: &[Task]) {
        let Details { queues, locks, engines, interrupts } = self;
        match event {
            Event::Ready { job, .. } => queues.make_ready(job, tasks),
            Event::Resume { job, .. } => queues.resume(job, tasks),
            Event::Suspend { job, .. } => queues.suspend(at, job),
            Event::Complete { job, .. } => queues.complete(job, tasks),
            Event::Link { cpu, job } => queues.link(cpu, job),
            Event::NonPreemptiveBegin { cpu, job } => queues.begin_section(at, cpu, job),
            Event::NonPreemptiveEnd { job, .. } => queues.end_section(job),
            Event::Priority { job, level, of } => queues.prioritize(at, job, (level, of)),
            Event::Request { job, lock } => locks.ask(at, job, lock),
            Event::Withdraw { job, lock } => locks.withdraw(job, lock),
            Event::Grant { job, lock, replica } => locks.grant(at, job, lock, replica),
            Event::Unlock { job, lock, replica } => locks.unlock(job, lock, replica),
            Event::EngineBegin { gpu, engine, job } => {
                engines.begin(Operation { gpu, engine, job, since: at, name: None });
            }
            Event::EngineOperation { gpu, engine, name } => engines.name(gpu, engine, name),
            Event::EngineEnd { gpu, engine, job } => engines.end(gpu, engine, job),
            Event::Interrupt { cpu, device, job } => interrupts.raise(cpu, Source { device, owner: job }),
            Event::Overhead { cpu, kind: OverheadKind::TopHalf, .. } => interrupts.begin_top_half(cpu),
            Event::BottomHalfBegin { device, job, .. } => interrupts.begin_bottom_half(Source { device, owner: job }),
            Event::Serve { thread, device, job } => {
                interrupts.begin_bottom_half(Source { device, owner: job });
                queues.serve(thread, job);
            }
            // Jobs and CPUs alone.
            Event::Release { .. }
            | Event::Dispatch { .. }
            | Event::Preempt { .. }
            | Event::Overhead { .. }
            | Event::LockWait { .. }
            | Event::BottomHalfEnd { .. }
            | Event::Outside { .. }
            | Event::SpinBegin { .. }
            | Event::SpinEnd { .. } => {}
            // Nothing that lasts, or that a graph's observers follow themselves.
            Event::CacheDelay { .. }
            | Event::Ipi { .. }
            | Event::Produce { .. }
            | Event::Consume { .. }
            | Event::Read { .. }
            | Event::Replenish { .. }
            | Event::Regulate { .. }
            | Event::Throttle { .. }
            | Event::Unthrottle { .. }
            | Event::EngineRate { .. }
            | Event::Stolen { .. }
            | Event::OutsiderName { .. }
            | Event::OutsiderThread { .. }
            | Event::OutsidersLost { .. }
            | Event::End => {}
        }
    }
}

/// Whether the CPU executes no job during an overhead of this kind.
#[inline]
pub(crate) const fn occupies_cpu(kind: OverheadKind) -> bool {
    match kind {
        OverheadKind::IpiLatency | OverheadKind::CachePreemption | OverheadKind::CacheMigration => false,
        OverheadKind::Release
        | OverheadKind::Scheduling
        | OverheadKind::ContextSwitch
        | OverheadKind::Tick
        | OverheadKind::TimerRearming
        | OverheadKind::TopHalf
        | OverheadKind::BottomHalf
        | OverheadKind::ThreadRelease
        | OverheadKind::PaiEnqueue
        | OverheadKind::PaiCheck => true,
    }
}
