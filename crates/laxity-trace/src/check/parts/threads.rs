//! Interrupt threads, and klmirqd's rule: never beside the owner.

use laxity_model::{CpuId, Instant, InterruptHandling, JobId};

use super::super::{Problem, Report, Violation};
use crate::metrics::occupancy::Occupancy;
use crate::{Event, TraceHeader};

/// Finds jobs that are no interrupt thread's and yet serve; under klmirqd, moreover, threads that execute while the
/// owner they serve does (paper 000, section III: the scheduler "ensures that a dependent-mode klmirqd thread is never
/// co-scheduled with its tasklet owner"). Both execute only where neither CPU is in an overhead: a process that is
/// about to be switched out harms nobody. A thread of another cluster than its owner's is none of the business of either
/// scheduler, and may.
#[derive(Debug)]
pub(super) struct Threads<'a> {
    header: &'a TraceHeader,
    is_klmirqd: bool,
    cpus: Vec<Occupancy>,
    /// Whom the thread's job serves, by task.
    serves: Vec<Option<(JobId, JobId)>>,
    /// The pair last found on the thread's CPU: a violation that goes on is reported once.
    last_found: Vec<Option<(JobId, JobId)>>,
    now: Instant,
}

impl<'a> Threads<'a> {
    pub fn new(header: &'a TraceHeader) -> Self {
        Threads {
            header,
            is_klmirqd: matches!(header.handling, InterruptHandling::Klmirqd { .. }),
            cpus: vec![Occupancy::default(); header.cpus],
            serves: vec![None; header.tasks.len()],
            last_found: vec![None; header.cpus],
            now: Instant::ZERO,
        }
    }

    pub fn record(&mut self, at: Instant, event: Event, report: &mut Report) {
        if let Event::Serve { thread, job, .. } = event {
            self.serve(at, thread, job, report);
        }
        if !self.is_klmirqd {
            return;
        }
        if at > self.now {
            self.judge_until(at, report);
            self.now = at;
        }
        match event {
            Event::Dispatch { cpu, job } => {
                if let Some(cpu) = self.cpus.get_mut(cpu.index()) {
                    cpu.dispatch(at, job);
                }
            }
            Event::Preempt { cpu, job } | Event::Suspend { cpu, job } | Event::Complete { cpu, job } => {
                if let Some(cpu) = self.cpus.get_mut(cpu.index()) {
                    cpu.stop(at, job);
                }
            }
            Event::Overhead { cpu, duration, .. } | Event::LockWait { cpu, duration } => {
                if let Some(cpu) = self.cpus.get_mut(cpu.index()) {
                    cpu.cover(at, duration);
                }
            }
            _ => {}
        }
    }

    fn serve(&mut self, at: Instant, thread: JobId, owner: Option<JobId>, report: &mut Report) {
        let info = self.header.tasks.get(thread.task.index());
        if info.is_none_or(|info| !info.kind.is_thread()) {
            return report.push(Violation { at, cpu: None, job: Some(thread), what: Problem::NoThread });
        }
        let tasks = &self.header.tasks;
        let cluster_of = |job: JobId| tasks.get(job.task.index()).map(|info| info.cluster);
        let owner = owner.filter(|&owner| cluster_of(owner) == cluster_of(thread));
        self.serves[thread.task.index()] = owner.map(|owner| (thread, owner));
    }

    /// Nothing changes from now until `until`.
    fn judge_until(&mut self, until: Instant, report: &mut Report) {
        for cpu in 0..self.cpus.len() {
            let pair = self.pair(cpu, until);
            if let Some((thread, owner)) = pair.filter(|_| pair != self.last_found[cpu]) {
                let what = Problem::BesideOwner { owner };
                report.push(Violation { at: self.now, cpu: Some(CpuId(cpu as u16)), job: Some(thread), what });
            }
            self.last_found[cpu] = pair;
        }
    }

    /// The thread on `cpu` and its owner, if both execute some time before `until`.
    fn pair(&self, cpu: usize, until: Instant) -> Option<(JobId, JobId)> {
        let job = self.cpus[cpu].running()?;
        let serves = self.serves.get(job.task.index()).copied().flatten();
        let (_, owner) = serves.filter(|&(thread, _)| thread == job)?;
        let beside = self.cpus.iter().find(|other| other.running() == Some(owner))?;
        let covered = self.cpus[cpu].covered_until().max(beside.covered_until());
        (covered.max(self.now) < until).then_some((job, owner))
    }
}
