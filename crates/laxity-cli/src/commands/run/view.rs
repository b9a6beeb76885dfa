//! What the tasks of a run are doing, for users who watch: a fold over its records.

use std::collections::BTreeMap;

use laxity_model::{CpuId, Instant, JobId, LockId, Nanos};
use laxity_trace::{Event, LockKind, Sink, TraceHeader};

use crate::quantity::TimeUnit;
use crate::table::{Cell, Table};

/// What each task did so far, and does.
pub struct View {
    tasks: Vec<Row>,
    /// What locks are called.
    locks: Vec<String>,
    /// Jobs that are released and not complete, and when they are due.
    due: BTreeMap<JobId, Instant>,
}

struct Row {
    name: String,
    relative_deadline: Nanos,
    released: u64,
    completed: u64,
    missed: u64,
    /// Response times: of the last job, and the longest.
    last: Nanos,
    longest: Nanos,
    state: State,
    /// Operations of its jobs that are on a GPU.
    on_gpus: u32,
}

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It waits for its next job.
    Idle,
    Runs(CpuId),
    /// It was preempted, or woken and has no CPU yet.
    Ready,
    Suspended,
    /// It asked for a lock.
    Wants(LockId),
}

impl View {
    /// Of a run whose trace begins with `header`.
    pub fn new(header: &TraceHeader) -> View {
        let row = |task: &laxity_trace::TaskInfo| Row {
            name: task.name.clone(),
            relative_deadline: task.deadline,
            released: 0,
            completed: 0,
            missed: 0,
            last: Nanos::ZERO,
            longest: Nanos::ZERO,
            state: State::Idle,
            on_gpus: 0,
        };
        let lock = |lock: &laxity_trace::LockInfo| match &lock.kind {
            LockKind::Tokens { .. } => format!("a token of {}", lock.name),
            LockKind::Resource { .. }
            | LockKind::Semaphore { .. }
            | LockKind::KFmlp { .. }
            | LockKind::Bandwidth
            | LockKind::Engine { .. } => lock.name.clone(),
        };
        let tasks = header.tasks.iter().filter(|task| task.kind.has_deadlines());
        View { tasks: tasks.map(row).collect(), locks: header.locks.iter().map(lock).collect(), due: BTreeMap::new() }
    }

    /// Deadlines missed so far.
    pub fn missed(&self) -> u64 {
        self.tasks.iter().map(|task| task.missed).sum()
    }

    /// At most `rows` of the tasks as a table; those that missed deadlines come first.
    pub fn table(&self, rows: usize) -> Table {
        let unit = TimeUnit::for_longest(self.tasks.iter().map(|task| task.longest).max().unwrap_or_default());
        let response = format!("response, {}", unit.name);
        let mut table =
            Table::of("task").group("jobs", &["released", "completed", "missed"]).group(&response, &["last", "max"]);
        table = table.text("now");
        let mut order: Vec<usize> = (0..self.tasks.len()).collect();
        order.sort_by_key(|&task| (self.tasks[task].missed == 0, task));
        for task in order.into_iter().take(rows) {
            let row = &self.tasks[task];
            let span = |span: Nanos| match row.completed {
                0 => Cell::faint("-"),
                _ => unit.show(span).into(),
            };
            table.row(vec![
                row.name.as_str().into(),
                row.released.to_string().into(),
                row.completed.to_string().into(),
                Cell::mishaps(row.missed),
                span(row.last),
                span(row.longest),
                self.now(row),
            ]);
        }
        table
    }

    fn now(&self, row: &Row) -> Cell {
        match row.state {
            State::Idle => Cell::faint("-"),
            State::Runs(cpu) => format!("runs on {cpu}").into(),
            State::Ready => "ready".into(),
            State::Suspended if row.on_gpus > 0 => "on a GPU".into(),
            State::Suspended => "suspended".into(),
            State::Wants(lock) => match self.locks.get(lock.index()) {
                Some(name) => format!("waits for {name}").into(),
                None => "waits".into(),
            },
        }
    }

    fn set(&mut self, job: JobId, state: State) {
        if let Some(row) = self.tasks.get_mut(job.task.index()) {
            row.state = state;
        }
    }

    fn complete(&mut self, at: Instant, job: JobId) {
        let Some(row) = self.tasks.get_mut(job.task.index()) else { return };
        row.state = State::Idle;
        row.completed += 1;
        let Some(due) = self.due.remove(&job) else { return };
        // From its arrival, which is its deadline less the relative one.
        row.last = Nanos((at.0.saturating_add(row.relative_deadline.0)).saturating_sub(due.0));
        row.longest = row.longest.max(row.last);
        row.missed += u64::from(at > due);
    }
}

impl Sink for View {
    fn record(&mut self, at: Instant, event: Event) {
        match event {
            Event::Release { job, deadline } => {
                if let Some(row) = self.tasks.get_mut(job.task.index()) {
                    row.released += 1;
                    self.due.insert(job, deadline);
                }
            }
            Event::Dispatch { cpu, job } => self.set(job, State::Runs(cpu)),
            Event::Ready { job, .. } | Event::Preempt { job, .. } | Event::Resume { job, .. } => {
                self.set(job, State::Ready);
            }
            Event::Request { job, lock } => self.set(job, State::Wants(lock)),
            Event::Grant { job, .. } => self.set(job, State::Ready),
            Event::Suspend { job, .. } => {
                let row = self.tasks.get_mut(job.task.index());
                if let Some(row) = row.filter(|row| !matches!(row.state, State::Wants(_))) {
                    row.state = State::Suspended;
                }
            }
            Event::EngineBegin { job, .. } => {
                if let Some(row) = self.tasks.get_mut(job.task.index()) {
                    row.on_gpus += 1;
                }
            }
            Event::EngineEnd { job, .. } => {
                if let Some(row) = self.tasks.get_mut(job.task.index()) {
                    row.on_gpus = row.on_gpus.saturating_sub(1);
                }
            }
            Event::Complete { job, .. } => self.complete(at, job),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::{Platform, Scheduler, Task, TaskId, Workload};
    use laxity_trace::{Origin, TaskInfo};

    use super::*;

    /// Two jobs of one task: the first 2 ms late, the second waiting.
    #[test]
    fn a_task_shows_what_it_did_and_what_it_waits_for() {
        let ms = Nanos::from_millis;
        let workload = Workload::new("w", Platform::identical(1), vec![Task::periodic("steer", ms(1), ms(10))]);
        let mut header = TraceHeader::new(Origin::Live, "w", 1, Scheduler::GLOBAL_EDF);
        header.tasks = TaskInfo::of(&workload.tasks, |_| (0, 0));
        header.locks = vec![laxity_trace::LockInfo {
            name: "door".to_owned(),
            kind: LockKind::Resource { order: laxity_model::EngineOrder::Fifo },
            replicas: 1,
        }];
        let mut view = View::new(&header);
        let (cpu, at) = (CpuId(0), |millis| Instant::ZERO + ms(millis));
        let job = |index| JobId { task: TaskId(0), index };
        view.record(at(0), Event::Release { job: job(0), deadline: at(10) });
        view.record(at(1), Event::Dispatch { cpu, job: job(0) });
        view.record(at(12), Event::Complete { cpu, job: job(0) });
        view.record(at(12), Event::Release { job: job(1), deadline: at(20) });
        view.record(at(13), Event::Request { job: job(1), lock: LockId(0) });
        view.record(at(13), Event::Suspend { cpu, job: job(1) });
        assert_eq!(view.missed(), 1);
        let text = crate::style::plain(&view.table(9).render(None));
        let line = text.lines().find(|line| line.starts_with("steer")).expect("a row");
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words, ["steer", "2", "1", "1", "12.000", "12.000", "waits", "for", "door"], "{text}");
    }
}
