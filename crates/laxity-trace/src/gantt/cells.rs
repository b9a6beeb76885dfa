//! Time cut into columns, and what fills each: the common ground of text and drawing.

use std::collections::BTreeMap;

use laxity_model::{CpuId, Instant, Nanos, TaskId};

use crate::intervals::{Activity, Timeline};

/// What can fill a cell. Where two fill the same time of a column, the smaller is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fill {
    /// A job of this task executes.
    Executing(TaskId),
    /// Scheduler or interrupt code.
    Overhead,
    /// Spinning for the scheduler lock.
    LockWait,
    /// The task's job is suspended.
    Suspended,
    /// The task has a job pending, and none executes or is suspended.
    Waiting,
    /// Nothing.
    Idle,
}

/// The columns of one row.
#[derive(Clone, Debug)]
pub(super) struct Cells {
    from: Instant,
    step: u64,
    columns: Vec<BTreeMap<Fill, u64>>,
}

/// The columns of a chart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    pub from: Instant,
    pub step: Nanos,
    pub columns: usize,
}

impl Grid {
    /// The column that contains `at`; the one after the last for the right edge; `None` outside.
    pub fn column(&self, at: Instant) -> Option<usize> {
        let column = at.0.checked_sub(self.from.0)? / self.step.0;
        usize::try_from(column).ok().filter(|&column| column <= self.columns)
    }

    /// What every CPU did.
    pub fn cpu_rows(&self, timeline: &Timeline, cpus: usize) -> Vec<Cells> {
        let mut rows = vec![Cells::new(self); cpus];
        for interval in &timeline.intervals {
            let (cpu, fill) = match interval.activity {
                Activity::Execution { cpu, job, .. } => (cpu, Fill::Executing(job.task)),
                Activity::Overhead { cpu, .. } => (cpu, Fill::Overhead),
                Activity::LockWait { cpu } => (cpu, Fill::LockWait),
                Activity::Suspension { .. } | Activity::NonPreemptive { .. } => continue,
            };
            rows[CpuId::index(cpu)].add(interval.from, interval.to, fill);
        }
        rows
    }

    /// How every task fared.
    pub fn task_rows(&self, timeline: &Timeline, tasks: usize) -> Vec<Cells> {
        let mut rows = vec![Cells::new(self); tasks];
        // Jobs of a task may overlap (a tardy one and its successor): time counts as pending once.
        let mut pending_until = vec![Instant::ZERO; tasks];
        for job in &timeline.jobs {
            let Some(released) = job.released else { continue };
            let task = job.job.task.index();
            let from = released.release.max(pending_until[task]);
            let to = job.completion().unwrap_or(timeline.end);
            rows[task].add(from, to, Fill::Waiting);
            pending_until[task] = pending_until[task].max(to);
        }
        for interval in &timeline.intervals {
            let (task, fill) = match interval.activity {
                Activity::Execution { job, .. } => (job.task, Fill::Executing(job.task)),
                Activity::Suspension { job } => (job.task, Fill::Suspended),
                _ => continue,
            };
            rows[task.index()].move_from_waiting(interval.from, interval.to, fill);
        }
        rows
    }
}

impl Cells {
    fn new(grid: &Grid) -> Self {
        Cells { from: grid.from, step: grid.step.0, columns: vec![BTreeMap::new(); grid.columns] }
    }

    /// What fills most of the column; idle time counts too.
    pub fn dominant(&self, column: usize) -> Fill {
        let filled = self.filled(column);
        let mut best = (Fill::Idle, self.step.saturating_sub(filled));
        for (&fill, &time) in self.columns[column].iter().rev() {
            if time >= best.1 && time > 0 {
                best = (fill, time);
            }
        }
        best.0
    }

    /// What fills the whole column, if one thing does.
    pub fn whole(&self, column: usize) -> Option<Fill> {
        if self.filled(column) == 0 {
            return Some(Fill::Idle);
        }
        self.columns[column].iter().find(|&(_, &time)| time == self.step).map(|(&fill, _)| fill)
    }

    fn filled(&self, column: usize) -> u64 {
        self.columns[column].values().fold(0, |sum, &time| sum.saturating_add(time))
    }

    fn add(&mut self, from: Instant, to: Instant, fill: Fill) {
        self.each_column(from, to, |cell, time| grow(cell, fill, time));
    }

    fn move_from_waiting(&mut self, from: Instant, to: Instant, fill: Fill) {
        self.each_column(from, to, |cell, time| {
            if let Some(waiting) = cell.get_mut(&Fill::Waiting) {
                *waiting = waiting.saturating_sub(time);
            }
            grow(cell, fill, time);
        });
    }

    /// Calls `change` with every column that overlaps the span, and by how much.
    fn each_column(&mut self, from: Instant, to: Instant, mut change: impl FnMut(&mut BTreeMap<Fill, u64>, u64)) {
        let start = from.0.saturating_sub(self.from.0);
        let end = to.0.saturating_sub(self.from.0);
        let first = usize::try_from(start / self.step).unwrap_or(usize::MAX);
        for (column, cell) in self.columns.iter_mut().enumerate().skip(first) {
            let left = column as u64 * self.step;
            if left >= end {
                return;
            }
            let overlap = end.min(left.saturating_add(self.step)).saturating_sub(start.max(left));
            if overlap > 0 {
                change(cell, overlap);
            }
        }
    }
}

fn grow(cell: &mut BTreeMap<Fill, u64>, fill: Fill, time: u64) {
    let filled = cell.entry(fill).or_default();
    *filled = filled.saturating_add(time);
}
