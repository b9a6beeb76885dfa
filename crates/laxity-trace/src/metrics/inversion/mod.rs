//! Priority inversions that bottom halves cause.

mod collect;
mod entities;
mod judge;
mod search;
mod summary;

pub use collect::{Collect, Lengths};
pub(super) use search::Search;
pub(super) use summary::InversionFold;
pub use summary::InversionSummary;

use laxity_model::{Instant, JobId, Nanos};

use crate::replay::Replay;
use crate::{Event, Sink, TraceHeader};

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
/// *Intervals.* The state after the last record of an instant lasts until the next instant. Each maximal interval in which the
/// same job's entity is inverted is reported once, when it ends, by the kind that it began with. Time and memory per
/// record depend on the number of CPUs, and of the inverted; without bottom halves about only the ready list is kept.
///
/// A top half that costs nothing leaves no record: then, with [`TraceHeader::costs`] saying so, a bottom half is ready
/// from the interrupt on.
#[derive(Clone, Debug)]
pub struct Inversions<C> {
    replay: Replay,
    search: Search<C>,
}

/// A maximal interval of priority inversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inversion {
    /// The inverted job, or the owner of the bottom half that waits.
    pub job: JobId,
    /// From when on.
    pub since: Instant,
    /// For how long.
    pub length: Nanos,
    /// Its cause, at its beginning.
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

impl<C: Collect> Inversions<C> {
    /// Nothing seen yet; inversions go to `collector`.
    pub fn new(header: &TraceHeader, collector: C) -> Self {
        Inversions { replay: Replay::new(header), search: Search::new(header, collector) }
    }

    /// Only entities among the m most urgent ready ones of their cluster count.
    #[must_use]
    pub fn entitled_only(mut self) -> Self {
        self.search.count_entitled_only();
        self
    }

    /// The collector, after a run that ended at `end`: inversions that go on then end there.
    pub fn finish(self, end: Instant) -> C {
        self.search.finish(end, &self.replay)
    }

    /// The collector so far.
    pub fn collected(&self) -> &C {
        self.search.collected()
    }
}

impl<C: Collect> Sink for Inversions<C> {
    fn record(&mut self, at: Instant, event: Event) {
        self.search.record(at, event, &mut self.replay);
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
