//! A trace as it is for real-time jobs: a CPU that a best-effort job has is there for them.

use laxity_model::{JobId, TaskId};

use crate::{Event, TraceHeader};

/// Tells best-effort jobs from others.
#[derive(Clone, Debug)]
pub(crate) struct RealTimeView {
    /// By task; empty where there is no best-effort task.
    is_best_effort: Vec<bool>,
}

impl RealTimeView {
    pub fn new(header: &TraceHeader) -> Self {
        let is_best_effort: Vec<bool> =
            (0..header.tasks.len() as u32).map(|task| header.is_best_effort(TaskId(task))).collect();
        let has_any = is_best_effort.contains(&true);
        RealTimeView { is_best_effort: if has_any { is_best_effort } else { Vec::new() } }
    }

    /// Whether `job` is one of a best-effort task.
    pub fn hides(&self, job: JobId) -> bool {
        self.is_best_effort.get(job.task.index()).copied().unwrap_or(false)
    }

    /// `event` as it is for real-time jobs; `None`: it is about best-effort jobs alone.
    pub fn of(&self, event: Event) -> Option<Event> {
        if self.is_best_effort.is_empty() {
            return Some(event);
        }
        match event {
            Event::Link { cpu, job: Some(job) } if self.hides(job) => Some(Event::Link { cpu, job: None }),
            other if other.jobs()[0].is_some_and(|job| self.hides(job)) => None,
            other => Some(other),
        }
    }
}
