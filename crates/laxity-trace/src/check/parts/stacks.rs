//! Stacks that bottom halves borrow.

use laxity_model::{CpuId, Instant, JobId};

use super::super::{Act, Problem, Report, Violation};
use crate::{DeviceId, Event, TraceHeader};

/// Finds bottom halves that begin within another or end without a beginning, and what cannot happen on a CPU while a
/// bottom half is on its stack: no process is switched there, and the job whose stack it is does nothing.
#[derive(Debug)]
pub(super) struct Stacks {
    cpus: Vec<Option<(DeviceId, Option<JobId>)>>,
}

impl Stacks {
    pub fn new(header: &TraceHeader) -> Self {
        Stacks { cpus: vec![None; header.cpus] }
    }

    pub fn record(&mut self, at: Instant, event: Event, report: &mut Report) {
        let (cpu, job, what) = match event {
            Event::BottomHalfBegin { cpu, device, job } => match self.cpus.get_mut(cpu.index()) {
                Some(stack) if stack.is_none() => {
                    *stack = Some((device, job));
                    return;
                }
                Some(_) => (cpu, job, Problem::BottomHalvesNest),
                None => (cpu, job, Problem::UnknownCpu),
            },
            Event::BottomHalfEnd { cpu, device, job } => {
                let stack = self.cpus.get_mut(cpu.index());
                match stack.map(|stack| stack.take_if(|begun| *begun == (device, job))) {
                    Some(Some(_)) => return,
                    Some(None) => (cpu, job, Problem::NoBottomHalf),
                    None => (cpu, job, Problem::UnknownCpu),
                }
            }
            _ => match acts_on(event) {
                Some((act, cpu, job)) if matches!(self.cpus.get(cpu.index()), Some(Some(_))) => {
                    (cpu, Some(job), Problem::StackBorrowed { act })
                }
                _ => return,
            },
        };
        report.push(Violation { at, cpu: Some(cpu), job, what });
    }
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
