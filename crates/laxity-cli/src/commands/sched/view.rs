//! The tasks of a system as a table and as JSON.

use laxity_model::Instant;
use laxity_sched::{Snapshot, TaskSnapshot, TaskState};
use serde::Serialize;

use crate::quantity::short;
use crate::table::{Cell, Table};

/// A row for each task, but for those beyond `rows`: first those that have a CPU, then those that wait for one.
pub fn table(look: &Snapshot, now: Instant, rows: usize) -> Table {
    let mut table = Table::of("task")
        .group("process", &[""])
        .group("cluster", &[""])
        .text("state")
        .group("CPU", &[""])
        .group("job", &[""])
        .group("due in", &[""])
        .group("jobs", &["complete", "late"])
        .group("latest by", &[""]);
    let mut tasks: Vec<&TaskSnapshot> = look.tasks.iter().collect();
    tasks.sort_by_key(|task| (task.cluster, order(task.state), task.deadline, task.id));
    for task in tasks.into_iter().take(rows) {
        let has_job = task.state != TaskState::Parked;
        let due = if has_job { short_signed(left(task, now)) } else { String::new() };
        table.row(vec![
            task.name.clone().into(),
            task.pid.to_string().into(),
            task.cluster.to_string().into(),
            state(task.state).into(),
            task.cpu.map_or(Cell::default(), |cpu| cpu.to_string().into()),
            task.job.to_string().into(),
            if left(task, now) < 0 && has_job { Cell::bad(due) } else { due.into() },
            task.completed.to_string().into(),
            if task.late > 0 { Cell::bad(task.late.to_string()) } else { task.late.to_string().into() },
            if task.late > 0 { short(task.tardiness_max).into() } else { Cell::default() },
        ]);
    }
    table
}

/// A look as a line of JSON. Times are in nanoseconds.
pub fn json(name: &str, look: &Snapshot, now: Instant) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        system: &'a str,
        rule: String,
        clusters: &'a [Vec<u16>],
        tasks: Vec<Task<'a>>,
    }
    #[derive(Serialize)]
    struct Task<'a> {
        name: &'a str,
        pid: u32,
        thread: u32,
        cluster: usize,
        state: &'static str,
        cpu: Option<u16>,
        job: u64,
        /// Negative: it is late.
        due_in_ns: i64,
        period_ns: u64,
        deadline_ns: u64,
        completed: u64,
        late: u64,
        tardiness_max_ns: u64,
    }
    let task = |task| {
        let &TaskSnapshot { pid, thread, cluster, cpu, job, period, completed, late, .. } = task;
        Task {
            name: &task.name,
            pid,
            thread,
            cluster,
            state: state(task.state),
            cpu,
            job,
            due_in_ns: left(task, now),
            period_ns: period.0,
            deadline_ns: task.relative_deadline.0,
            completed,
            late,
            tardiness_max_ns: task.tardiness_max.0,
        }
    };
    let line = Line {
        system: name,
        rule: look.config.rule.to_string(),
        clusters: &look.config.clusters,
        tasks: look.tasks.iter().map(task).collect(),
    };
    serde_json::to_string(&line).expect("numbers, texts and lists are JSON")
}

fn order(state: TaskState) -> u8 {
    match state {
        TaskState::Linked => 0,
        TaskState::Ready | TaskState::Held => 1,
        TaskState::Suspended | TaskState::Throttled => 2,
        TaskState::Parked => 3,
    }
}

fn state(state: TaskState) -> &'static str {
    match state {
        TaskState::Linked => "runs",
        TaskState::Ready => "ready",
        TaskState::Held => "held",
        TaskState::Suspended => "suspended",
        TaskState::Throttled => "throttled",
        TaskState::Parked => "parked",
    }
}

/// Nanoseconds until the job is due.
fn left(task: &TaskSnapshot, now: Instant) -> i64 {
    (i128::from(task.deadline.0) - i128::from(now.0)).clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

fn short_signed(span: i64) -> String {
    let text = short(laxity_model::Nanos(span.unsigned_abs()));
    if span < 0 { format!("-{text}") } else { text }
}
