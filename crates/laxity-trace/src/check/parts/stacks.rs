//! Stacks that bottom halves borrow.

use laxity_model::{CpuId, Instant, JobId};

use super::super::{Act, Problem, Report, Violation};
use crate::Event;
use crate::replay::{Replay, Source};

/// Finds bottom halves that begin within another or end without a beginning, and what cannot happen on a CPU while a
/// bottom half is on its stack: no process is switched there, and the job whose stack it is does nothing.
///
/// `before`: what was true before the event.
pub(super) fn judge(at: Instant, event: Event, before: &Replay, report: &mut Report) {
    let on_stack = |cpu: CpuId| before.cpu(cpu).and_then(|cpu| cpu.bottom_half());
    let (cpu, job, what) = match event {
        Event::BottomHalfBegin { cpu, job, .. } | Event::BottomHalfEnd { cpu, job, .. }
            if before.cpu(cpu).is_none() =>
        {
            (cpu, job, Problem::UnknownCpu)
        }
        Event::BottomHalfBegin { cpu, job, .. } if on_stack(cpu).is_some() => (cpu, job, Problem::BottomHalvesNest),
        Event::BottomHalfEnd { cpu, device, job } if on_stack(cpu) != Some(Source { device, owner: job }) => {
            (cpu, job, Problem::NoBottomHalf)
        }
        _ => match acts_on(event) {
            Some((act, cpu, job)) if on_stack(cpu).is_some() => (cpu, Some(job), Problem::StackBorrowed { act }),
            _ => return,
        },
    };
    report.push(Violation { at, cpu: Some(cpu), job, what });
}

/// What a job does on a CPU's stack.
fn acts_on(event: Event) -> Option<(Act, CpuId, JobId)> {
    match event {
        Event::Dispatch { cpu, job } => Some((Act::Dispatch, cpu, job)),
        Event::Preempt { cpu, job } => Some((Act::Preempt, cpu, job)),
        Event::Suspend { cpu, job } => Some((Act::Suspend, cpu, job)),
        Event::Complete { cpu, job } => Some((Act::Complete, cpu, job)),
        Event::NonPreemptiveBegin { cpu, job } => Some((Act::NonPreemptiveBegin, cpu, job)),
        Event::NonPreemptiveEnd { cpu, job } => Some((Act::NonPreemptiveEnd, cpu, job)),
        _ => None,
    }
}
