//! A snapshot as a table.

use std::collections::HashMap;

use arrow_array::{StringArray, UInt16Array, UInt32Array, UInt64Array};
use laxity_sched::{Snapshot, TaskSnapshot, TaskState};
use pyo3::prelude::*;

use crate::arrow::{self, Columns};

/// What `laxity.sched.look` says.
pub fn rows<'py>(py: Python<'py>, name: &str, snapshot: &Snapshot) -> PyResult<Bound<'py, PyAny>> {
    let tasks = &snapshot.tasks;
    let mut columns = Columns::default();
    let numbers = |of: &dyn Fn(&TaskSnapshot) -> u32| UInt32Array::from_iter_values(tasks.iter().map(of));
    let longs = |of: &dyn Fn(&TaskSnapshot) -> u64| UInt64Array::from_iter_values(tasks.iter().map(of));
    columns.push("task", numbers(&|task| task.id.0), false);
    columns.push("name", StringArray::from_iter_values(tasks.iter().map(|task| &task.name)), false);
    columns.push("pid", numbers(&|task| task.pid), false);
    columns.push("thread", numbers(&|task| task.thread), false);
    columns.push("cluster", numbers(&|task| task.cluster as u32), false);
    columns.push("state", StringArray::from_iter_values(tasks.iter().map(|task| state(task.state))), false);
    columns.push("cpu", UInt16Array::from_iter(tasks.iter().map(|task| task.cpu)), true);
    columns.push("job", longs(&|task| task.job), false);
    columns.push("deadline_ns", longs(&|task| task.deadline.0), false);
    columns.push("period_ns", longs(&|task| task.period.0), false);
    columns.push("relative_deadline_ns", longs(&|task| task.relative_deadline.0), false);
    columns.push("completed", longs(&|task| task.completed), false);
    columns.push("late", longs(&|task| task.late), false);
    columns.push("tardiness_max_ns", longs(&|task| task.tardiness_max.0), false);
    let rule = snapshot.config.rule.to_string();
    let metadata = HashMap::from([("system".to_owned(), name.to_owned()), ("rule".to_owned(), rule)]);
    arrow::table(py, columns.batch(metadata)?)
}

fn state(state: TaskState) -> &'static str {
    match state {
        TaskState::Parked => "parked",
        TaskState::Ready => "ready",
        TaskState::Linked => "linked",
        TaskState::Suspended => "suspended",
        TaskState::Throttled => "throttled",
        TaskState::Held => "held",
    }
}
