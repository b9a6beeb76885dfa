//! The bottom halves that one CPU executes: on its current stack, or in its daemon while it is otherwise idle.
//!
//! ```text
//!            push             resume                       end
//!   waiting -----> on stack <--------> executes on stack ------> done
//!      |                      pause
//!      |  run_daemon                     end
//!      +------------> executes in daemon ----> done
//!                       |         ^
//!                 pause +--> in daemon
//!                                 | run_daemon
//! ```

use laxity_model::{CpuId, Instant, JobId, Nanos};
use laxity_policy::interrupt::Tasklets;
use laxity_trace::{DeviceId, Event, Sink};

use crate::context::Context;

/// A bottom half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BottomHalf {
    pub device: DeviceId,
    /// The owner: the job whose operation raised the interrupt.
    pub job: Option<JobId>,
    /// Whether the operation is complete when this is done.
    pub last: bool,
    /// How long it takes.
    pub time: Nanos,
}

/// The top half of a device's interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TopHalf {
    /// What it defers.
    pub deferred: BottomHalf,
    /// How long it takes itself.
    pub time: Nanos,
}

/// Where a CPU executes a bottom half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// On the stack of the current process.
    Stack,
    /// In the CPU's daemon.
    Daemon,
}

/// What follows a bottom half on a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// The interrupted work goes on.
    Return,
    /// It executed in place of a job that was picked: the pick is due.
    Pick,
}

/// The bottom halves of one CPU.
#[derive(Default)]
pub(crate) struct CpuBottomHalves {
    /// On the current stack: the job cannot go on, nor be switched out, before it ends.
    on_stack: Option<Running>,
    /// What standard Linux has left to do.
    pub tasklets: Tasklets<BottomHalf>,
    /// The tasklet that the daemon is at.
    in_daemon: Option<Running>,
}

/// A bottom half that has begun.
#[derive(Clone, Copy, Debug)]
struct Running {
    half: BottomHalf,
    remaining: Nanos,
    since: Instant,
    then: Then,
}

impl BottomHalf {
    fn begins(&self, cpu: CpuId) -> Event {
        Event::BottomHalfBegin { cpu, device: self.device, job: self.job }
    }

    fn ends(&self, cpu: CpuId) -> Event {
        Event::BottomHalfEnd { cpu, device: self.device, job: self.job }
    }
}

impl CpuBottomHalves {
    /// Whether one is on the current stack.
    pub fn is_on_stack(&self) -> bool {
        self.on_stack.is_some()
    }

    /// `half` begins on the current stack of `cpu`, on which nothing executes.
    pub fn push<S: Sink>(&mut self, cx: &mut Context<S>, cpu: CpuId, half: BottomHalf, then: Then) {
        cx.record(half.begins(cpu));
        self.on_stack = Some(Running { half, remaining: half.time, since: cx.now, then });
    }

    /// The one on the stack goes on; answers when it will end.
    pub fn resume(&mut self, now: Instant) -> Instant {
        let run = self.on_stack.as_mut().expect("a bottom half is on the stack");
        run.since = now;
        now + run.remaining
    }

    /// Whether the daemon has a tasklet to go on with.
    pub fn daemon_has_work(&self) -> bool {
        self.in_daemon.is_some() || !self.tasklets.is_empty()
    }

    /// The daemon of an otherwise idle CPU goes on with a tasklet, if there is one; answers when that will end.
    pub fn run_daemon<S: Sink>(&mut self, cx: &mut Context<S>, cpu: CpuId) -> Option<Instant> {
        if self.in_daemon.is_none() {
            let half = self.tasklets.next_for_daemon()?;
            self.in_daemon = Some(Running { half, remaining: half.time, since: cx.now, then: Then::Return });
        }
        let run = self.in_daemon.as_mut()?;
        run.since = cx.now;
        cx.record(run.half.begins(cpu));
        Some(cx.now + run.remaining)
    }

    /// The one that executes at `place` stops for a while.
    pub fn pause<S: Sink>(&mut self, cx: &mut Context<S>, cpu: CpuId, place: Place) {
        let run = self.at(place).as_mut().expect("what executes is there");
        run.remaining -= cx.now - run.since;
        if place == Place::Daemon {
            cx.record(run.half.ends(cpu));
        }
    }

    /// The one that executes at `place` ends.
    pub fn end<S: Sink>(&mut self, cx: &mut Context<S>, cpu: CpuId, place: Place) -> (BottomHalf, Then) {
        let Running { half, then, .. } = self.at(place).take().expect("what executes is there");
        cx.record(half.ends(cpu));
        (half, then)
    }

    fn at(&mut self, place: Place) -> &mut Option<Running> {
        match place {
            Place::Stack => &mut self.on_stack,
            Place::Daemon => &mut self.in_daemon,
        }
    }
}
