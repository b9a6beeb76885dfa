//! Interrupt threads, and klmirqd's rule: never beside the owner.

use std::collections::BTreeMap;

use laxity_model::{CpuId, Instant, InterruptHandling, JobId};

use super::super::{Problem, Report, Violation};
use crate::replay::Replay;
use crate::{Event, TraceHeader};

/// Finds jobs that are no interrupt thread's and yet serve; under klmirqd, moreover, threads that execute while the
/// owner they serve does (paper 000, section III: the scheduler "ensures that a dependent-mode klmirqd thread is never
/// co-scheduled with its tasklet owner"). Both execute only where neither CPU is in an overhead: a process that is
/// about to be switched out does no harm. A thread in another cluster than its owner's may run beside it: no scheduler
/// knows both.
#[derive(Debug)]
pub(super) struct Threads<'a> {
    header: &'a TraceHeader,
    is_klmirqd: bool,
    /// The CPUs that have jobs of interrupt threads, and the pair last found there: a violation that goes on is reported
    /// once.
    cpus: BTreeMap<CpuId, Option<(JobId, JobId)>>,
    now: Instant,
}

impl<'a> Threads<'a> {
    pub fn new(header: &'a TraceHeader) -> Self {
        let is_klmirqd = matches!(header.handling, InterruptHandling::Klmirqd { .. });
        Threads { header, is_klmirqd, cpus: BTreeMap::new(), now: Instant::ZERO }
    }

    /// `before`: what was true before the event.
    pub fn record(&mut self, at: Instant, event: Event, before: &Replay, report: &mut Report) {
        if let Event::Serve { thread, .. } = event
            && !self.header.is_thread(thread.task)
        {
            report.push(Violation { at, cpu: None, job: Some(thread), what: Problem::NoThread });
        }
        if !self.is_klmirqd {
            return;
        }
        if at > self.now {
            self.judge_until(at, before, report);
            self.now = at;
        }
        if let Event::Dispatch { cpu, job } = event
            && self.header.is_thread(job.task)
            && before.cpu(cpu).is_some()
        {
            self.cpus.entry(cpu).or_default();
        }
    }

    /// Nothing changes from now until `until`.
    fn judge_until(&mut self, until: Instant, before: &Replay, report: &mut Report) {
        let (header, now) = (self.header, self.now);
        self.cpus.retain(|&cpu, last_found| {
            let job = before.cpu(cpu).and_then(|cpu| cpu.job());
            let Some(thread) = job.filter(|job| header.is_thread(job.task)) else { return false };
            let pair = owner_beside(header, cpu, thread, now, until, before).map(|owner| (thread, owner));
            if let Some((thread, owner)) = pair.filter(|_| pair != *last_found) {
                let what = Problem::BesideOwner { owner };
                report.push(Violation { at: now, cpu: Some(cpu), job: Some(thread), what });
            }
            *last_found = pair;
            true
        });
    }
}

/// The owner that `thread`, on `cpu`, serves, if both execute some time from `now` to `until`.
fn owner_beside(
    header: &TraceHeader,
    cpu: CpuId,
    thread: JobId,
    now: Instant,
    until: Instant,
    replay: &Replay,
) -> Option<JobId> {
    let cluster_of = |job: JobId| header.tasks.get(job.task.index()).map(|info| info.cluster);
    let owner = replay.details().queues.owner_of(thread)?;
    let beside = replay.cpu_of(owner)?;
    let covered = [cpu, beside].into_iter().filter_map(|cpu| replay.cpu(cpu)).map(|cpu| cpu.covered_until()).max()?;
    (cluster_of(owner) == cluster_of(thread) && covered.max(now) < until).then_some(owner)
}
