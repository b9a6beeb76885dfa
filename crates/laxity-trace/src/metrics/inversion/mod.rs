//! Priority inversions that bottom halves cause.

mod collect;
mod judge;
mod machine;
mod summary;

pub use collect::{Collect, Lengths};
pub(super) use summary::InversionFold;
pub use summary::InversionSummary;

use laxity_model::{CpuId, Instant, JobId, Nanos, OverheadKind};

use self::judge::{Found, Judge};
use self::machine::Machine;
use crate::{DeviceId, Event, Sink, TraceHeader};

/// Finds the priority inversions that bottom halves cause, as the study of klmirqd measures them (paper 000, sections
/// II and V; Fig. 1).
///
/// *Entities.* The sporadic model is single-threaded, so a task and the bottom halves on behalf of its jobs are one
/// entity. It is ready while its job is ready (running included) or one of its bottom halves is: from the end of the
/// top half, on whatever stack or in whatever thread it then runs. A job has its effective priority, a bottom half that
/// of its owner (after the owner's completion, that of its own right), whatever the thread has that runs it; an entity
/// has the highest of its parts. A bottom half without owner is an entity of its own, in a thread with the thread's
/// priority and on a stack below every job.
///
/// *Running.* A CPU runs the bottom half on its stack, else the job dispatched there. Overheads change nothing: through
/// top halves, scheduler code and context switches a CPU goes on with what it ran. A job that is linked to a CPU
/// without a bottom half on its stack waits for nothing but overheads and is not inverted; a bottom half waits until
/// it is dispatched.
///
/// *Inversion.* In a cluster of m CPUs a ready entity of which nothing runs is inverted
///
/// - if a CPU of the cluster runs something of lower priority and either the entity waits with a bottom half of its own
///   ([`InversionKind::WaitingBottomHalf`]), or the CPU that its job has or is linked to has a bottom half on its stack
///   ([`InversionKind::BlockedStack`]), or what runs with lower priority is itself a bottom half
///   ([`InversionKind::Overtaken`]);
/// - or if it is among the m most urgent ready entities and another runs on two CPUs of the cluster: every CPU too many
///   inverts one entity, the most urgent first ([`InversionKind::CoScheduled`]).
///
/// Inversions that jobs alone cause (non-preemptive sections, locks, quanta) are not reported. With
/// [`Inversions::entitled_only`], neither are those of entities that are not among the m most urgent ready ones and
/// would wait anyway: "a task has sufficient priority to be scheduled but it is not" (paper 000, footnote 3).
///
/// *Intervals.* What holds after the last record of an instant holds until the next. Each maximal interval in which the
/// same job's entity is inverted is reported once, when it ends, by the kind that it began with. Time and memory per
/// record depend on the number of CPUs, and of the inverted; without bottom halves about only the ready list is kept.
///
/// A top half that costs nothing leaves no record: then, with [`TraceHeader::costs`] saying so, a bottom half is ready
/// from the interrupt on.
#[derive(Clone, Debug)]
pub struct Inversions<C> {
    machine: Machine,
    judge: Judge,
    /// The inversion that goes on, by task.
    open: Vec<Option<Inversion>>,
    /// The tasks with one, by cluster.
    inverted: Vec<Vec<usize>>,
    top_halves: TopHalves,
    now: Instant,
    collector: C,
}

/// A maximal interval of priority inversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inversion {
    /// Who is inverted: a job, or the owner of the bottom half that waits.
    pub job: JobId,
    /// From when on.
    pub since: Instant,
    /// For how long.
    pub length: Nanos,
    /// What caused it, at its beginning.
    pub kind: InversionKind,
}

/// How a bottom half causes a priority inversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InversionKind {
    /// The bottom half itself waits, though its owner's priority suffices.
    WaitingBottomHalf,
    /// A bottom half is on the stack that the job needs.
    BlockedStack,
    /// A bottom half of lower priority runs.
    Overtaken,
    /// An owner and its bottom half, or two of its bottom halves, run at once (paper 000, Fig. 1).
    CoScheduled,
}

/// The interrupts on their way to their bottom halves.
#[derive(Clone, Debug)]
struct TopHalves {
    /// Whether the trace shows them.
    cost: bool,
    /// Raised, the top half not begun, by CPU.
    raised: Vec<Vec<(DeviceId, JobId)>>,
    /// Handled at that time, the bottom half not yet ready.
    handled: Vec<(Instant, DeviceId, JobId)>,
}

impl<C: Collect> Inversions<C> {
    /// Nothing seen yet; what is found goes to `collector`.
    pub fn new(header: &TraceHeader, collector: C) -> Self {
        Inversions {
            machine: Machine::new(header),
            judge: Judge::new(header.tasks.len()),
            open: vec![None; header.tasks.len()],
            inverted: vec![Vec::new(); header.clusters.len()],
            top_halves: TopHalves {
                cost: !header.costs.top_half.is_zero(),
                raised: vec![Vec::new(); header.cpus],
                handled: Vec::new(),
            },
            now: Instant::ZERO,
            collector,
        }
    }

    /// Only entities among the m most urgent ready ones of their cluster count.
    #[must_use]
    pub fn entitled_only(mut self) -> Self {
        self.judge.entitled_only = true;
        self
    }

    /// The collector, after a run that ended at `end`: what goes on then ends there.
    pub fn finish(mut self, end: Instant) -> C {
        self.advance(end);
        self.settle();
        for task in 0..self.open.len() {
            self.close(task);
        }
        self.collector
    }

    /// What was collected so far.
    pub fn collected(&self) -> &C {
        &self.collector
    }

    /// What is true after the records of `now` is true until `at`, top halves that end in between apart.
    fn advance(&mut self, at: Instant) {
        while let Some((end, device, owner)) = self.top_halves.next_until(at) {
            self.move_to(end);
            self.machine.queue_bottom_half(device, owner);
        }
        self.move_to(at);
    }

    #[inline]
    fn move_to(&mut self, at: Instant) {
        if at > self.now {
            self.settle();
            self.now = at;
        }
    }

    /// Inversions begin and end now.
    fn settle(&mut self) {
        while let Some(cluster) = self.machine.next_changed() {
            self.judge.judge(&self.machine, cluster);
            let mut ongoing = std::mem::take(&mut self.inverted[cluster]);
            ongoing.retain(|&task| {
                let goes_on = self.open[task].is_some_and(|open| self.judge.job_of(task) == Some(open.job));
                if !goes_on {
                    self.close(task);
                }
                goes_on
            });
            for &Found { task, job, kind } in self.judge.found() {
                if self.open[task].is_none() {
                    self.open[task] = Some(Inversion { job, since: self.now, length: Nanos::ZERO, kind });
                    ongoing.push(task);
                }
            }
            self.inverted[cluster] = ongoing;
        }
    }

    fn close(&mut self, task: usize) {
        if let Some(inversion) = self.open[task].take() {
            let length = self.now.saturating_since(inversion.since);
            self.collector.collect(Inversion { length, ..inversion });
        }
    }

    fn interrupt(&mut self, at: Instant, cpu: CpuId, device: DeviceId, owner: JobId) {
        if !self.top_halves.cost {
            self.top_halves.handled.push((at, device, owner));
        } else if let Some(raised) = self.top_halves.raised.get_mut(cpu.index()) {
            raised.push((device, owner));
        }
    }

    /// A bottom half begins to be served, wherever: it is no longer on its way.
    fn arrives(&mut self, device: DeviceId, owner: JobId) {
        if !self.machine.has_queued(device, owner) {
            self.top_halves.forget(device, owner);
            self.machine.queue_bottom_half(device, owner);
        }
    }
}

impl<C: Collect> Sink for Inversions<C> {
    fn record(&mut self, at: Instant, event: Event) {
        if at > self.now || !self.top_halves.handled.is_empty() {
            self.advance(at);
        }
        match event {
            Event::Release { job, deadline } => self.machine.release(job, deadline),
            Event::Ready { job, .. } | Event::Resume { job, .. } => self.machine.ready(job),
            Event::Link { cpu, job } => self.machine.link(cpu, job),
            Event::Dispatch { cpu, job } => self.machine.dispatch(cpu, job),
            Event::Preempt { cpu, job } => self.machine.stop(cpu, job),
            Event::Suspend { cpu, job } => {
                self.machine.stop(cpu, job);
                self.machine.suspend(job);
            }
            Event::Complete { cpu, job } => {
                self.machine.stop(cpu, job);
                self.machine.complete(job);
            }
            Event::Priority { job, level, of } => self.machine.prioritize(job, (level, of.0)),
            Event::Interrupt { cpu, device, job: Some(owner) } => self.interrupt(at, cpu, device, owner),
            Event::Overhead { cpu, kind: OverheadKind::TopHalf, duration } => {
                self.top_halves.begin(cpu, at.saturating_add(duration));
            }
            Event::BottomHalfBegin { cpu, device, job: owner } => {
                if let Some(owner) = owner {
                    self.arrives(device, owner);
                }
                self.machine.begin_bottom_half(cpu, device, owner);
            }
            Event::BottomHalfEnd { cpu, .. } => self.machine.end_bottom_half(cpu),
            Event::Serve { thread, device, job: Some(owner) } => {
                self.arrives(device, owner);
                self.machine.serve(thread, device, owner);
            }
            _ => {}
        }
    }
}

impl TopHalves {
    /// Takes the first that is handled no later than `at`.
    fn next_until(&mut self, at: Instant) -> Option<(Instant, DeviceId, JobId)> {
        let first = (0..self.handled.len()).min_by_key(|&index| self.handled[index].0)?;
        (self.handled[first].0 <= at).then(|| self.handled.remove(first))
    }

    /// The top half of the first interrupt raised on `cpu` begins.
    fn begin(&mut self, cpu: CpuId, end: Instant) {
        if let Some(raised) = self.raised.get_mut(cpu.index()).filter(|raised| !raised.is_empty()) {
            let (device, owner) = raised.remove(0);
            self.handled.push((end, device, owner));
        }
    }

    fn forget(&mut self, device: DeviceId, owner: JobId) {
        if let Some(index) = self.handled.iter().position(|&(_, of, by)| (of, by) == (device, owner)) {
            self.handled.remove(index);
            return;
        }
        for raised in &mut self.raised {
            if let Some(index) = raised.iter().position(|&interrupt| interrupt == (device, owner)) {
                raised.remove(index);
                return;
            }
        }
    }
}

impl InversionKind {
    /// All kinds.
    pub const ALL: [InversionKind; 4] = [
        InversionKind::WaitingBottomHalf,
        InversionKind::BlockedStack,
        InversionKind::Overtaken,
        InversionKind::CoScheduled,
    ];

    /// The name in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            InversionKind::WaitingBottomHalf => "waiting_bottom_half",
            InversionKind::BlockedStack => "blocked_stack",
            InversionKind::Overtaken => "overtaken",
            InversionKind::CoScheduled => "co_scheduled",
        }
    }
}
