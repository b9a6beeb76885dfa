//! Were deadlines met?

use laxity_model::{Instant, JobId, TaskId};

use super::{Problem, Report, Violation};
use crate::metrics::pending::Pending;
use crate::{Event, Sink, TraceHeader};

/// Finds every job that completed after its deadline, or is incomplete at the last record with a deadline no later
/// than that. Bottom halves in interrupt threads have none.
#[derive(Clone, Debug)]
pub struct DeadlineCheck {
    /// `None`: an interrupt thread.
    tasks: Vec<Option<Pending>>,
    now: Instant,
    report: Report,
}

impl DeadlineCheck {
    /// Nothing seen yet.
    pub fn new(header: &TraceHeader) -> Self {
        DeadlineCheck {
            tasks: header.tasks.iter().map(|info| (!info.kind.is_thread()).then(Pending::default)).collect(),
            now: Instant::ZERO,
            report: Report::default(),
        }
    }

    /// What was found: late jobs by their completion, then incomplete ones by task.
    pub fn finish(mut self) -> Report {
        for (task, pending) in self.tasks.iter().enumerate() {
            let Some(pending) = pending else { continue };
            for (index, deadline) in pending.iter().filter(|&(_, deadline)| deadline <= self.now) {
                let job = JobId { task: TaskId(task as u32), index };
                let what = Problem::Incomplete { deadline };
                self.report.push(Violation { at: self.now, cpu: None, job: Some(job), what });
            }
        }
        self.report
    }
}

impl Sink for DeadlineCheck {
    fn record(&mut self, at: Instant, event: Event) {
        self.now = self.now.max(at);
        match event {
            Event::Release { job, deadline } => {
                if let Some(Some(pending)) = self.tasks.get_mut(job.task.index()) {
                    pending.release(job.index, deadline);
                }
            }
            Event::Complete { cpu, job } => {
                let pending = self.tasks.get_mut(job.task.index()).and_then(Option::as_mut);
                let deadline = pending.and_then(|pending| pending.complete(job.index));
                if let Some(deadline) = deadline.filter(|&deadline| deadline < at) {
                    let what = Problem::Late { deadline };
                    self.report.push(Violation { at, cpu: Some(cpu), job: Some(job), what });
                }
            }
            _ => {}
        }
    }
}
