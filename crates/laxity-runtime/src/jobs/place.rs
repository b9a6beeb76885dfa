//! Where the thread of a job is, of which Linux tells nothing.

use laxity_model::{Instant, Nanos};
use laxity_sys::{clock, scheduling};

use super::Jobs;
use crate::log::{JobStep, Writer};

/// A thread that was off its CPU for longer says that it is on one again: above most interrupts.
const AWAY: Nanos = Nanos::from_micros(5);

/// What the clocks said when the thread last looked, if it notes where it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place(Option<Look>);

#[derive(Clone, Copy, Debug)]
struct Look {
    at: Instant,
    /// How long the thread had been off CPUs, from some moment on.
    away: Nanos,
    cpu: usize,
}

impl Jobs {
    /// Where Linux schedules by priorities, a job in a non-preemptive section notes when it has been moved, or had no CPU for a
    /// while: no other job can have taken its CPU, and that is what the trace would show else.
    pub(super) fn place(&self) -> Place {
        let notes = self.sections > 0 && self.plan.raised.is_some();
        // At first it notes where it is.
        Place(notes.then(|| Look { at: clock::now(), away: away(clock::now()), cpu: usize::MAX }))
    }
}

impl Place {
    /// Notes where the thread is, if it is elsewhere or was away.
    pub fn look(&mut self, log: &mut Writer, index: u32) {
        let Place(Some(last)) = self else { return };
        let (at, cpu) = (clock::now(), scheduling::current_cpu());
        let mut is_back = cpu != last.cpu;
        // The CPU time is a system call, which only a thread that may have been away makes.
        if at.saturating_since(last.at) > AWAY {
            let away = away(at);
            is_back |= away.saturating_sub(last.away) > AWAY;
            last.away = away;
        }
        (last.at, last.cpu) = (at, cpu);
        if is_back {
            log.note(index, JobStep::Executes);
        }
    }
}

/// The time at which the thread was on no CPU, up to a constant.
fn away(now: Instant) -> Nanos {
    Nanos(now.0.saturating_sub(clock::thread_cpu_time().0))
}
