//! What every part of the simulator may do by itself.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use laxity_model::{CpuId, Engine, GpuId, Instant, TaskId};
use laxity_trace::{DeviceId, Event, Sink};

/// The time, the trace and the timers: every part may read the time, record what happens and set a timer. It returns
/// effects on other parts to the event loop.
pub(crate) struct Context<S> {
    pub now: Instant,
    pub sink: S,
    timers: BinaryHeap<Reverse<Timer>>,
}

/// A one-shot timer. Those of one instant go off in the order of their kinds, then of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Timer {
    at: Instant,
    kind: TimerKind,
}

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TimerKind {
    /// A suspension ends.
    Resume(TaskId),
    /// An operation that raises several interrupts raises one of them; before it is complete, though it take no time.
    Partial(GpuId, Engine),
    /// The operation on an engine is complete.
    Engine(GpuId, Engine),
    /// An inter-processor interrupt arrives.
    Ipi(CpuId),
    /// A device that serves no job raises an interrupt.
    Arrival(DeviceId),
    /// A bandwidth server has a budget again.
    Replenish(TaskId),
    /// A graph starts.
    GraphStart(u32),
    /// A node of the graph need not wait any longer for its time.
    GraphTimeout(u32),
    /// The memory regulator of a CPU wants to act, unless what happened since has changed its mind.
    Regulator(CpuId),
}

impl<S: Sink> Context<S> {
    pub fn new(sink: S) -> Self {
        Context { now: Instant::ZERO, sink, timers: BinaryHeap::new() }
    }

    /// `event` happens now.
    #[inline]
    pub fn record(&mut self, event: Event) {
        self.sink.record(self.now, event);
    }

    pub fn set_timer(&mut self, at: Instant, kind: TimerKind) {
        self.timers.push(Reverse(Timer { at, kind }));
    }

    /// When the next timer goes off.
    #[inline]
    pub fn next_timer(&self) -> Instant {
        self.timers.peek().map_or(Instant::NEVER, |Reverse(timer)| timer.at)
    }

    /// Takes a timer that goes off now.
    #[inline]
    pub fn take_due_timer(&mut self) -> Option<TimerKind> {
        if self.next_timer() > self.now {
            return None;
        }
        self.timers.pop().map(|Reverse(timer)| timer.kind)
    }
}
