//! Were deadlines met?

use laxity_model::{Instant, JobId, TaskId};

use super::{Problem, Report, Violation};
use crate::header::is_no_deadline;
use crate::metrics::{Chains, LateOutput};
use crate::replay::{Change, Completion, Replay};
use crate::{Event, Sink, TraceHeader};

/// Finds every job that completed after its deadline, or is incomplete at the last record with a deadline no later
/// than that, and every output that exceeded a deadline of its chain. Bottom halves in interrupt threads have none.
#[derive(Clone, Debug)]
pub struct DeadlineCheck {
    replay: Replay,
    lacks_deadlines: Vec<bool>,
    chains: Chains,
    now: Instant,
    report: Report,
    /// Whether jobs were released, with and without a deadline.
    released: [bool; 2],
}

impl DeadlineCheck {
    /// Nothing seen yet.
    pub fn new(header: &TraceHeader) -> Self {
        DeadlineCheck {
            replay: Replay::of_jobs_and_cpus(header),
            lacks_deadlines: header.tasks.iter().map(|info| !info.kind.has_deadlines()).collect(),
            chains: Chains::new(header),
            now: Instant::ZERO,
            report: Report::default(),
            released: [false; 2],
        }
    }

    /// Whether there were jobs, but none that has a deadline: then there is nothing to say of them.
    pub fn is_void(&self) -> bool {
        self.released == [false, true]
    }

    /// What was found: late jobs and outputs by their completion, then incomplete ones by task.
    pub fn finish(mut self) -> Report {
        for (index, task) in self.replay.tasks().iter().enumerate().filter(|&(index, _)| !self.lacks_deadlines[index]) {
            for (job, deadline) in task.pending().iter().filter(|&(_, deadline)| deadline <= self.now) {
                let job = JobId { task: TaskId(index as u32), index: job };
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
        if let Event::Release { deadline, .. } = event {
            self.released[usize::from(is_no_deadline(at, deadline))] = true;
        }
        let change = self.replay.apply(at, event);
        if let (Event::Complete { cpu, job }, Change::Completed { job: Some(completion), .. }) = (event, change) {
            let Completion { deadline, .. } = completion;
            if deadline < at && !self.lacks_deadlines[job.task.index()] {
                let what = Problem::Late { deadline };
                self.report.push(Violation { at, cpu: Some(cpu), job: Some(job), what });
            }
        }
        let DeadlineCheck { chains, report, .. } = self;
        chains.record_and(at, event, |LateOutput { chain, deadline, span, limit }| {
            let [job, _] = event.jobs();
            let what = Problem::LateOutput { chain, deadline, span, limit };
            report.push(Violation { at, cpu: None, job, what });
        });
    }
}
