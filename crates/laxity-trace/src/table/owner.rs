//! A job in one cell.

use std::fmt;

use laxity_model::JobId;
use serde::{Serialize, Serializer};

use super::task_name;
use crate::TraceHeader;

/// The job on whose behalf something happened, as text: `camera.3` is job 3 of task `camera`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner<'a> {
    /// The task's name, which may have dots of its own.
    pub task_name: &'a str,
    /// Which job of the task; the first is 0.
    pub job: u32,
}

impl<'a> Owner<'a> {
    pub(super) fn of(header: &'a TraceHeader, job: JobId) -> Self {
        Owner { task_name: task_name(header, job.task), job: job.index }
    }
}

impl fmt::Display for Owner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.task_name, self.job)
    }
}

impl Serialize for Owner<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
