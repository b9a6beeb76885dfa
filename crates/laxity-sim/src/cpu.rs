//! One CPU: which process is switched in, what executes, and what is due next.

use std::collections::VecDeque;
use std::ops::BitOr;

use laxity_model::{CpuId, Instant, TaskId};
use laxity_plan::Plan;

use crate::bottom_halves::{BottomHalf, CpuBottomHalves, Place, TopHalf};

/// A CPU's process scheduling.
pub(crate) struct Cpu {
    /// Its cluster and its number there; a dedicated interrupt CPU has none.
    pub cluster: Option<(usize, CpuId)>,
    pub activity: Activity,
    pub process: Process,
    /// The task that job scheduling assigned to this CPU.
    pub link: Option<TaskId>,
    /// The task whose job completed or suspended here and whose process must still be switched out.
    pub vacated: Option<TaskId>,
    pub due: Due,
    /// When the job's execution began or went on.
    pub since: Instant,
    /// When a handler last ended or a job last left here: links made then are enacted without an interrupt.
    pub handled_at: Instant,
    /// Interrupts that wait for the current one, or for the scheduler, to end.
    pub interrupts: VecDeque<Interrupt>,
    /// Its bottom halves; `None` where there are no devices.
    pub bottom_halves: Option<Box<CpuBottomHalves>>,
}

/// What a CPU executes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    /// The job of its process, or nothing.
    Job,
    /// A bottom half.
    BottomHalf(Place),
    /// Nothing: it is between two things, at this instant only.
    Open,
    /// Scheduler or interrupt code, until its segment ends.
    Scheduler(Work),
}

/// A piece of scheduler or interrupt code; not interruptible.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Waits for the cluster's lock before the work that it guards.
    Lock(Box<Work>),
    Interrupt(Interrupt),
    Schedule,
    /// Looks for a bottom half to execute instead of the job picked.
    PaiCheck,
    ContextSwitch,
    RearmTimer,
}

/// An interrupt of one CPU.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// Releases jobs that share a timer.
    Release(Vec<TaskId>),
    /// Ends a suspension.
    Resume(TaskId),
    /// A device needs service.
    TopHalf(TopHalf),
    /// The top half is done: its bottom half is handed to the thread or the queue that executes it.
    Deliver(BottomHalf),
    /// Of the memory regulator, which has acted already: what is left is what it costs.
    Regulator,
    /// The periodic tick; `quantum` is set where a scheduling quantum begins.
    Tick { quantum: Option<u64> },
}

/// The process that is switched in and has a job to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Process {
    /// There is none.
    None,
    /// The job has not executed since its process was switched in.
    SwitchedIn(TaskId),
    /// The job was dispatched.
    Dispatched(TaskId),
}

/// What a CPU still has to do, or is told to do, as a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due(u8);

/// What a CPU does next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Handles an interrupt.
    Interrupt(Interrupt),
    /// Goes on with the bottom half on its stack.
    ResumeBottomHalf,
    /// Begins a tasklet on the current stack.
    Tasklet(BottomHalf),
    /// Switches to the process of the linked job.
    EnactLink,
    /// Arms the timer of a future release.
    RearmTimer,
    /// Runs the scheduler.
    Schedule,
    /// Executes its job, or nothing.
    Run,
}

impl Process {
    #[inline]
    pub fn of(task: Option<TaskId>) -> Process {
        task.map_or(Process::None, Process::SwitchedIn)
    }

    #[inline]
    pub fn task(self) -> Option<TaskId> {
        match self {
            Process::None => None,
            Process::SwitchedIn(task) | Process::Dispatched(task) => Some(task),
        }
    }
}

impl Due {
    pub const NOTHING: Due = Due(0);
    /// The scheduler must run here.
    pub const SCHEDULE: Due = Due(1);
    /// The scheduler ran; the link must be enacted.
    pub const PICK: Due = Due(1 << 1);
    /// The process was switched; what follows a switch is due.
    pub const AFTER_SWITCH: Due = Due(1 << 2);
    /// A completion left a timer to be armed after the next switch, which takes time.
    pub const REARM: Due = Due(1 << 3);
    /// A quantum began here at this instant: enact the link.
    pub const QUANTUM: Due = Due(1 << 4);
    /// An inter-processor interrupt is on its way.
    pub const IPI: Due = Due(1 << 5);
    /// A process-aware bottom half needs the scheduler to run here once the inter-processor interrupt arrives.
    pub const BOTTOM_HALF: Due = Due(1 << 6);

    /// Whether any of `due` is in the set.
    #[inline]
    pub fn contains(self, due: Due) -> bool {
        self.0 & due.0 != 0
    }

    #[inline]
    pub fn add(&mut self, due: Due) {
        *self = *self | due;
    }

    /// Whether `due`, one thing, was in the set, from which it is removed.
    #[inline]
    pub fn take(&mut self, due: Due) -> bool {
        let was = self.contains(due);
        if was {
            self.0 &= !due.0;
        }
        was
    }
}

impl BitOr for Due {
    type Output = Due;

    #[inline(always)]
    fn bitor(self, other: Due) -> Due {
        Due(self.0 | other.0)
    }
}

impl Cpu {
    /// The CPUs of `plan`, all idle.
    pub fn all(plan: &Plan) -> Vec<Cpu> {
        let has_devices = !plan.devices.is_empty();
        let mut cpus: Vec<Cpu> = (0..plan.header.cpus).map(|_| Cpu::idle(has_devices)).collect();
        for (cluster, members) in plan.clusters.iter().enumerate() {
            for (local, cpu) in members.cpus.iter().enumerate() {
                cpus[cpu.index()].cluster = Some((cluster, CpuId(local as u16)));
            }
        }
        cpus
    }

    fn idle(has_devices: bool) -> Cpu {
        Cpu {
            cluster: None,
            activity: Activity::Job,
            process: Process::None,
            link: None,
            vacated: None,
            due: Due::NOTHING,
            since: Instant::ZERO,
            handled_at: Instant::NEVER,
            interrupts: VecDeque::new(),
            bottom_halves: has_devices.then(Box::default),
        }
    }

    /// Takes what is to be done next; `is_non_preemptive` tells whether the job of a task must not be preempted.
    ///
    /// ```text
    ///   job runs --interrupt--> handler --> job runs
    ///       |                      |
    ///       | job leaves, or the link changed (noticed locally, by IPI, or at a quantum)
    ///       v                      v
    ///    Schedule ------> EnactLink: context switch ------> RearmTimer ------> Run
    /// ```
    ///
    /// Only interrupts come before a bottom half that is on the stack.
    #[inline(always)]
    pub fn next(&mut self, is_non_preemptive: impl FnOnce(TaskId) -> bool) -> Next {
        if self.has_bottom_half_on_stack() {
            return self.interrupts.pop_front().map_or(Next::ResumeBottomHalf, Next::Interrupt);
        }
        if self.due.contains(Due::PICK | Due::AFTER_SWITCH) {
            if self.due.take(Due::PICK) {
                return Next::EnactLink;
            }
            if self.due.take(Due::AFTER_SWITCH) && self.due.take(Due::REARM) {
                return Next::RearmTimer;
            }
        }
        if let Some(interrupt) = self.interrupts.pop_front() {
            return Next::Interrupt(interrupt);
        }
        if let Some(half) = self.bottom_halves.as_mut().and_then(|halves| halves.tasklets.next_on_stack()) {
            return Next::Tasklet(half);
        }
        if !self.due.contains(Due::SCHEDULE) || self.process.task().is_some_and(is_non_preemptive) {
            return Next::Run;
        }
        self.due.take(Due::SCHEDULE);
        Next::Schedule
    }

    /// Whether a bottom half is on the current stack.
    #[inline]
    pub fn has_bottom_half_on_stack(&self) -> bool {
        self.bottom_halves.as_ref().is_some_and(|halves| halves.is_on_stack())
    }

    /// Its bottom halves, on a platform with devices.
    pub fn bottom_halves(&mut self) -> &mut CpuBottomHalves {
        self.bottom_halves.as_mut().expect("a platform with bottom halves has devices")
    }

    /// Whether the linked job is another than that of the process.
    #[inline]
    pub fn link_is_new(&self) -> bool {
        self.link != self.process.task()
    }

    /// The job of `task` leaves; its process is still there until the scheduler has run.
    #[inline]
    pub fn vacate(&mut self, now: Instant, task: TaskId) {
        self.process = Process::None;
        if self.link == Some(task) {
            self.link = None;
        }
        self.vacated = Some(task);
        self.due.add(Due::SCHEDULE);
        self.handled_at = now;
    }

    /// Whether an inter-processor interrupt would be of no use: one is on its way, or the scheduler runs already and will
    /// see the new link.
    pub fn will_schedule(&self) -> bool {
        self.due.contains(Due::IPI) || matches!(self.activity, Activity::Scheduler(Work::Schedule | Work::PaiCheck))
    }

    /// An inter-processor interrupt arrives; answers whether the scheduler must run.
    pub fn receive_ipi(&mut self) -> bool {
        self.due.take(Due::IPI);
        let must = self.due.take(Due::BOTTOM_HALF) || self.link_is_new();
        if must {
            self.due.add(Due::SCHEDULE);
        }
        must
    }
}
