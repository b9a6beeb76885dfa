//! When the jobs of some tasks were complete: all that many questions about a long simulation need.

use std::collections::HashMap;

use arrow_array::{Int64Array, RecordBatch, StringArray, UInt32Array};
use laxity_model::{Instant, JobId};
use laxity_trace::{Event, Sink, TraceHeader};
use pyo3::PyResult;

use crate::arrow::Columns;
use crate::errors::value_error;

/// The completions of the tasks that are wanted, in the order in which they occurred.
pub struct Completions {
    is_wanted: Vec<bool>,
    found: Vec<(JobId, Instant)>,
}

impl Completions {
    /// Of the tasks called `names`; ValueError if there is none of that name.
    pub fn of(names: &[String], header: &TraceHeader) -> PyResult<Completions> {
        let mut is_wanted = vec![false; header.tasks.len()];
        for name in names {
            let Some(task) = header.tasks.iter().position(|task| task.name == *name) else {
                let message = format!("there is no task \"{name}\"; `Result.tasks` of a simulation lists the names");
                return Err(value_error(message));
            };
            is_wanted[task] = true;
        }
        Ok(Completions { is_wanted, found: Vec::new() })
    }

    /// A row a completion; see `Result.completions`.
    pub fn table(&self, header: &TraceHeader, metadata: HashMap<String, String>) -> PyResult<RecordBatch> {
        let names = self.found.iter().map(|(job, _)| header.tasks[job.task.index()].name.as_str());
        let mut columns = Columns::default();
        columns.push("task_name", StringArray::from_iter_values(names), false);
        columns.push("job", UInt32Array::from_iter_values(self.found.iter().map(|(job, _)| job.index)), false);
        let times = self.found.iter().map(|(_, at)| i64::try_from(at.0).unwrap_or(i64::MAX));
        columns.push("completion_ns", Int64Array::from_iter_values(times), false);
        columns.batch(metadata)
    }
}

impl Sink for Completions {
    fn record(&mut self, at: Instant, event: Event) {
        if let Event::Complete { job, .. } = event
            && self.is_wanted[job.task.index()]
        {
            self.found.push((job, at));
        }
    }
}
