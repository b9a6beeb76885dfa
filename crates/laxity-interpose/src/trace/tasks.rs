//! The tasks of a trace, and which job of which of them a job of a stream is.
//!
//! A stream is a task. Only where a program announces jobs may it have several: a task of a trace has one relative deadline, and
//! jobs that arrive one after the other.

use std::collections::BTreeMap;

use laxity_model::{JobId, Nanos, TaskId};
use laxity_trace::{TaskInfo, TaskKind};

use super::logs::StreamLog;
use super::{NO_DEADLINE, id};
use crate::log::Line;

/// The tasks of all streams.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    pub infos: Vec<TaskInfo>,
    /// By stream and number in it.
    jobs: BTreeMap<(usize, u32), JobId>,
}

/// Jobs of a stream that make a task.
#[derive(Debug)]
struct Row {
    jobs: Vec<u32>,
    /// Of its last job; nothing: its jobs have no deadlines.
    due: Option<u64>,
    relative: Nanos,
}

impl Tasks {
    pub fn of(streams: &[StreamLog]) -> Tasks {
        let mut tasks = Tasks::default();
        for (number, stream) in streams.iter().enumerate() {
            let rows = rows(stream);
            let is_one = rows.len() == 1;
            for (place, row) in rows.into_iter().enumerate() {
                let task = TaskId(tasks.infos.len() as u32);
                let which = match row.due {
                    _ if is_one => String::new(),
                    None => ", without deadlines".to_owned(),
                    Some(_) if place == 0 => String::new(),
                    Some(_) => format!(", {}", place + 1),
                };
                // Of a program with two interfaces, streams have the same names.
                let is_other = |other: &StreamLog| other.pid == stream.pid && other.front != stream.front;
                let front = if streams.iter().any(is_other) { format!(", {}", stream.front) } else { String::new() };
                tasks.infos.push(TaskInfo {
                    name: format!("{} ({}{front}{which})", stream.name, stream.pid),
                    // Sporadic jobs are as far apart as two instants are.
                    period: stream.period.map_or(Nanos(1), Nanos),
                    deadline: row.relative,
                    wcet: Nanos::ZERO,
                    cluster: 0,
                    rank: task.0,
                    kind: TaskKind::Task,
                });
                tasks.jobs.extend(row.jobs.into_iter().zip(0..).map(|(job, index)| ((number, job), id(task, index))));
            }
        }
        tasks
    }

    /// Job `job` of the stream with this number, if it begins in the log.
    pub fn job(&self, stream: usize, job: u32) -> Option<JobId> {
        self.jobs.get(&(stream, job)).copied()
    }
}

fn rows(stream: &StreamLog) -> Vec<Row> {
    let begins = || {
        stream.lines.iter().filter_map(|(at, line)| match *line {
            Line::Begins { job, deadline, .. } => Some((*at, job, deadline)),
            _ => None,
        })
    };
    if let Some(period) = stream.period {
        return vec![Row { jobs: begins().map(|(_, job, _)| job).collect(), due: Some(0), relative: Nanos(period) }];
    }
    // A job arrives as long before its deadline as the one that was announced the longest before its own, so that none arrives
    // after its announcement.
    let spans = begins().filter_map(|(at, _, due)| Some(due?.saturating_sub(at)));
    let relative = Nanos(spans.max().unwrap_or(0));
    let mut rows: Vec<Row> = Vec::new();
    for (_, job, due) in begins() {
        // Jobs of a task arrive in their order, and so are due in it.
        let fits = |row: &&mut Row| match (row.due, due) {
            (Some(last), Some(due)) => last < due,
            (None, None) => true,
            _ => false,
        };
        match rows.iter_mut().find(fits) {
            Some(row) => {
                row.jobs.push(job);
                row.due = due;
            }
            None => {
                rows.push(Row { jobs: vec![job], due, relative: if due.is_some() { relative } else { NO_DEADLINE } })
            }
        }
    }
    if rows.is_empty() {
        rows.push(Row { jobs: Vec::new(), due: None, relative: NO_DEADLINE });
    }
    // Those without deadlines are the last.
    rows.sort_by_key(|row| row.due.is_none());
    rows
}
