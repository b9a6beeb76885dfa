//! Memory: budgets are kept, throttled CPUs stand still, and every operation is protected.

use laxity_model::{CpuId, Instant, JobId};

use super::super::{Problem, Report, Violation};
use crate::replay::Replay;
use crate::{Event, LockKind, Origin, TraceHeader};

/// Finds regulated periods with more traffic than their budget and what the regulator's latency lets through, best-effort
/// jobs that get a throttled CPU, and GPU operations of jobs that do not hold the bandwidth lock at the ceiling priority.
/// Of live traces budgets and priorities are not judged.
///
/// Traffic is what a best-effort job executes times its demand, in bytes a second times nanoseconds.
#[derive(Debug)]
pub(super) struct Memory<'a> {
    header: &'a TraceHeader,
    cpus: Vec<Regulated>,
    has_lock: bool,
    has_ceiling: bool,
    /// Live programs count what they cause, which is not what a demand says of the time that they execute.
    judges_budgets: bool,
}

#[derive(Clone, Debug, Default)]
struct Regulated {
    /// In bytes a second.
    budget: Option<u64>,
    throttled: bool,
    /// Caused in this period, up to the execution `counted` of the job that has the CPU.
    used: u128,
    counted: u64,
    /// The greatest demand among the jobs that executed in this period.
    greatest: u64,
    is_reported: bool,
}

impl<'a> Memory<'a> {
    pub fn new(header: &'a TraceHeader) -> Self {
        let is_bandwidth = |info: &crate::LockInfo| info.kind == LockKind::Bandwidth;
        let is_simulated = header.origin == Origin::Simulated;
        Memory {
            header,
            cpus: vec![Regulated::default(); if header.memory.is_some() { header.cpus } else { 0 }],
            has_lock: header.locks.iter().any(is_bandwidth),
            // Live the trace has no priorities that a job gives itself.
            has_ceiling: is_simulated && header.scheduler.rule != laxity_model::PriorityRule::Fair,
            judges_budgets: is_simulated,
        }
    }

    /// `before`: what was true before the event.
    pub fn record(&mut self, at: Instant, event: Event, before: &Replay, report: &mut Report) {
        match event {
            Event::EngineBegin { job, .. } if self.has_lock => self.judge_operation(at, job, before, report),
            Event::Dispatch { cpu, job } if self.header.is_best_effort(job.task) => {
                if let Some(state) = self.cpus.get_mut(cpu.index()) {
                    state.counted = 0;
                    if state.throttled {
                        report.push(Violation { at, cpu: Some(cpu), job: Some(job), what: Problem::RunsThrottled });
                    }
                }
            }
            Event::Preempt { cpu, .. } | Event::Complete { cpu, .. } => self.count(at, cpu, before, report),
            Event::Regulate { cpu, budget } => {
                self.count(at, cpu, before, report);
                if let Some(state) = self.cpus.get_mut(cpu.index()) {
                    // A budget that changes within a period is judged from then on alone.
                    *state = Regulated {
                        budget,
                        throttled: state.throttled,
                        counted: state.counted,
                        ..Regulated::default()
                    };
                }
            }
            Event::Throttle { cpu, .. } | Event::Unthrottle { cpu, .. } => {
                self.count(at, cpu, before, report);
                if let Some(state) = self.cpus.get_mut(cpu.index()) {
                    state.throttled = matches!(event, Event::Throttle { .. });
                }
            }
            _ => {}
        }
    }

    /// Counts what the job on `cpu` has caused, and judges the period so far.
    fn count(&mut self, at: Instant, cpu: CpuId, before: &Replay, report: &mut Report) {
        let (Some(state), Some(memory)) = (self.cpus.get_mut(cpu.index()), &self.header.memory) else { return };
        let Some((running, job)) = before.cpu(cpu).and_then(|running| Some((running, running.job()?))) else { return };
        if !self.judges_budgets || !self.header.is_best_effort(job.task) {
            return;
        }
        let executed = running.executed_by(at).0;
        let demand = memory.demands.get(job.task.index()).copied().unwrap_or(0);
        let more = executed.saturating_sub(std::mem::replace(&mut state.counted, executed));
        state.used = state.used.saturating_add(u128::from(demand) * u128::from(more));
        if more > 0 {
            state.greatest = state.greatest.max(demand);
        }
        let Some(budget) = state.budget else { return };
        // The last nanosecond may begin just before the budget is used up.
        let overflow = u128::from(state.greatest) * (u128::from(memory.latency.0) + 1);
        let allowed = u128::from(budget) * u128::from(memory.period.0) + overflow;
        if state.used > allowed && !state.is_reported {
            state.is_reported = true;
            let what = Problem::BudgetExceeded { traffic: bytes(state.used), allowed: bytes(allowed) };
            report.push(Violation { at, cpu: Some(cpu), job: Some(job), what });
        }
    }

    fn judge_operation(&self, at: Instant, job: JobId, before: &Replay, report: &mut Report) {
        let is_bandwidth = |lock: laxity_model::LockId| {
            self.header.locks.get(lock.index()).is_some_and(|info| info.kind == LockKind::Bandwidth)
        };
        let holds = before.details().locks.held_by(job).any(|(lock, _)| is_bandwidth(lock));
        let is_above = before.level(job).is_some_and(|(level, _)| level == 0);
        if !holds || self.has_ceiling && !is_above {
            report.push(Violation { at, cpu: None, job: Some(job), what: Problem::Unprotected });
        }
    }
}

/// From bytes a second times nanoseconds, rounded down.
fn bytes(count: u128) -> u64 {
    u64::try_from(count / 1_000_000_000).unwrap_or(u64::MAX)
}
