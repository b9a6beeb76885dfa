//! Where one CPU is dedicated to interrupts, it releases the jobs of all others.

use laxity_model::{CpuId, Instant, JobId, ReleaseInterrupts};

use super::super::{Problem, Violation};
use crate::{Event, Origin, TaskKind, TraceHeader};

/// Judges which CPU makes jobs ready that timers release, in simulated traces. Those of nodes are released by the CPUs of
/// their producers, and those of servers by the CPU that gives them a budget.
#[derive(Clone, Debug)]
pub(super) struct Dedicated {
    /// Of each task, whether it is judged, and when a job of it was last complete.
    tasks: Vec<(bool, Option<Instant>)>,
    /// Of each CPU, whether it runs jobs.
    runs_jobs: Vec<bool>,
}

impl Dedicated {
    /// `None` where no CPU is dedicated to interrupts.
    pub fn new(header: &TraceHeader) -> Option<Dedicated> {
        if header.scheduler.interrupts != ReleaseInterrupts::Dedicated || header.origin != Origin::Simulated {
            return None;
        }
        let mut tasks: Vec<_> = header.tasks.iter().map(|info| (info.kind == TaskKind::Task, None)).collect();
        for server in &header.servers {
            tasks.get_mut(server.task.index()).into_iter().for_each(|task| task.0 = false);
        }
        let mut runs_jobs = vec![false; header.cpus];
        header.clusters_of_cpus().for_each(|(cpu, _)| runs_jobs[cpu.index()] = true);
        Some(Dedicated { tasks, runs_jobs })
    }

    /// What is wrong with `event`.
    pub fn judge(&mut self, at: Instant, event: Event) -> Option<Violation> {
        match event {
            Event::Complete { job, .. } => self.tasks.get_mut(job.task.index())?.1 = Some(at),
            Event::Ready { job, cpu } if self.is_foreign(at, job, cpu) => {
                return Some(Violation { at, cpu: Some(cpu), job: Some(job), what: Problem::NotDedicated });
            }
            _ => {}
        }
        None
    }

    /// A job that was released before its predecessor was complete is made ready by that, on that CPU.
    fn is_foreign(&self, at: Instant, job: JobId, cpu: CpuId) -> bool {
        let runs_jobs = self.runs_jobs.get(cpu.index()) == Some(&true);
        let task = self.tasks.get(job.task.index());
        runs_jobs && task.is_some_and(|&(is_judged, completed)| is_judged && completed != Some(at))
    }
}
