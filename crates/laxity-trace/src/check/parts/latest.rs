//! The values that jobs read over latest-value edges.

use laxity_model::{EdgeId, Instant, JobId};

use super::super::{Problem, Report, Violation};
use crate::{Event, Origin, TraceHeader};

/// Finds reads of values that are not the newest: a job reads each inbound latest-value edge before it completes, and what
/// it reads there is the value of the producer's job that completed last, counted anew from the completions.
///
/// In a recording that may begin with any job, values are judged from the producer's first completion on.
#[derive(Debug)]
pub(super) struct Latest<'a> {
    header: &'a TraceHeader,
    /// Whether the trace shows all jobs.
    from_start: bool,
    /// The last complete job of each task; empty without latest-value edges.
    newest: Vec<Option<u32>>,
    /// By edge, the job of its consumer that read last.
    readers: Vec<Option<JobId>>,
}

impl<'a> Latest<'a> {
    pub fn new(header: &'a TraceHeader) -> Self {
        let tasks = if header.latest.is_empty() { 0 } else { header.tasks.len() };
        let from_start = header.origin == Origin::Simulated;
        Latest { header, from_start, newest: vec![None; tasks], readers: vec![None; header.latest.len()] }
    }

    pub fn expect_all_jobs(&mut self) {
        self.from_start = true;
    }

    pub fn record(&mut self, at: Instant, event: Event, report: &mut Report) {
        let mut found = |job, what| report.push(Violation { at, cpu: None, job: Some(job), what });
        match event {
            Event::Read { job, edge, value } => self.read(job, edge, value, &mut found),
            Event::Complete { job, .. } if !self.header.latest.is_empty() => self.complete(job, &mut found),
            _ => {}
        }
    }

    fn read(&mut self, job: JobId, edge: EdgeId, read: Option<u32>, found: &mut impl FnMut(JobId, Problem)) {
        let Some(info) = self.header.latest_edge(edge) else { return found(job, Problem::UnknownEdge { edge }) };
        if info.consumer != job.task {
            return found(job, Problem::WrongEnd { edge });
        }
        self.readers[edge.index() - self.header.edges.len()] = Some(job);
        let newest = self.newest.get(info.producer.index()).copied().flatten();
        if newest != read && (self.from_start || newest.is_some()) {
            found(job, Problem::NotNewest { edge, read, newest });
        }
    }

    fn complete(&mut self, job: JobId, found: &mut impl FnMut(JobId, Problem)) {
        for (index, info) in self.header.latest.iter().enumerate() {
            if info.consumer == job.task && self.from_start && self.readers[index] != Some(job) {
                found(job, Problem::NotRead { edge: EdgeId((self.header.edges.len() + index) as u32) });
            }
        }
        if let Some(newest) = self.newest.get_mut(job.task.index()) {
            *newest = Some(job.index);
        }
    }
}
