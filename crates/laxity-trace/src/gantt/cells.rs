//! Time cut into columns, and the activities that fill each: the common ground of text and drawing.

use std::collections::BTreeMap;

use laxity_model::{Instant, Nanos, OverheadKind, TaskId};

use super::engines::EngineRow;
use super::stolen::Stolen;
use crate::intervals::{Activity, Timeline};

/// An activity that fills a cell. Where two fill the same time of a column, the smaller is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fill {
    /// A job of this task executes, or an operation of it on an engine.
    Executing(TaskId),
    /// A bottom half on the CPU's stack.
    BottomHalf,
    /// A top half.
    TopHalf,
    /// Other scheduler or interrupt code.
    Overhead,
    /// Spinning for the scheduler lock.
    LockWait,
    /// A job has the CPU and waits by spinning.
    Spinning,
    /// Best-effort jobs stand still, and no other has the CPU.
    Throttled,
    /// The CPU, which may be the job's, carries out no thread.
    Stolen,
    /// Something that is no task has the CPU.
    Outside,
    /// The task's job waits for a lock, suspended or preempted.
    AwaitingLock,
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

    /// The activities of every CPU.
    pub fn cpu_rows(&self, timeline: &Timeline, cpus: usize) -> Vec<Cells> {
        let mut rows = vec![Cells::new(self); cpus];
        let stolen = Stolen::of(timeline, cpus);
        for interval in &timeline.intervals {
            if let (Some(cpu), Some(fill)) = (interval.activity.cpu(), cpu_fill(&interval.activity)) {
                for piece in stolen.outside(interval) {
                    rows[cpu.index()].add(piece.from, piece.to, fill);
                }
            }
        }
        // Last: it shows where nothing else does.
        for interval in &timeline.intervals {
            if let Activity::Throttled { cpu, .. } = interval.activity {
                rows[cpu.index()].fill_idle(interval.from, interval.to, Fill::Throttled);
            }
        }
        rows
    }

    /// The operations on every engine of `engines`.
    pub fn engine_rows(&self, timeline: &Timeline, engines: &[EngineRow]) -> Vec<Cells> {
        let mut rows = vec![Cells::new(self); engines.len()];
        for interval in &timeline.intervals {
            let Activity::Operation { gpu, engine, job, .. } = interval.activity else { continue };
            if let Some(row) = engines.iter().position(|row| row.is(gpu, engine)) {
                rows[row].add(interval.from, interval.to, Fill::Executing(job.task));
            }
        }
        rows
    }

    /// How every task fared.
    pub fn task_rows(&self, timeline: &Timeline, tasks: usize, cpus: usize) -> Vec<Cells> {
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
        let stolen = Stolen::of(timeline, cpus);
        for interval in &timeline.intervals {
            let (task, fill) = match interval.activity {
                Activity::Execution { job, .. } => (job.task, Fill::Executing(job.task)),
                Activity::Spinning { job, .. } => (job.task, Fill::Spinning),
                Activity::Suspension { job } => (job.task, Fill::Suspended),
                Activity::Throttled { task: Some(task), .. } => (task, Fill::Throttled),
                _ => continue,
            };
            let row = &mut rows[task.index()];
            stolen.outside(interval).iter().for_each(|piece| row.move_from_waiting(piece.from, piece.to, fill));
            if matches!(fill, Fill::Executing(_) | Fill::Spinning) {
                stolen.during(interval).for_each(|(from, to)| row.move_from_waiting(from, to, Fill::Stolen));
            }
        }
        // Last, because it says why a job is suspended or waits.
        for interval in &timeline.intervals {
            if let Activity::AwaitingLock { job, .. } = interval.activity {
                rows[job.task.index()].explain_by_lock(interval.from, interval.to);
            }
        }
        rows
    }
}

/// The fill of the activity in the row of its CPU, if it shows there.
fn cpu_fill(activity: &Activity) -> Option<Fill> {
    match *activity {
        Activity::Execution { job, .. } => Some(Fill::Executing(job.task)),
        Activity::Overhead { kind: OverheadKind::TopHalf, .. } => Some(Fill::TopHalf),
        Activity::Overhead { .. } => Some(Fill::Overhead),
        Activity::LockWait { .. } => Some(Fill::LockWait),
        Activity::BottomHalf { .. } => Some(Fill::BottomHalf),
        Activity::Spinning { .. } => Some(Fill::Spinning),
        Activity::Stolen { .. } => Some(Fill::Stolen),
        Activity::Outside { .. } => Some(Fill::Outside),
        Activity::Operation { .. }
        | Activity::Throttled { .. }
        | Activity::Suspension { .. }
        | Activity::NonPreemptive { .. }
        | Activity::AwaitingLock { .. }
        | Activity::CriticalSection { .. }
        | Activity::Inheritance { .. } => None,
    }
}

impl Cells {
    fn new(grid: &Grid) -> Self {
        Cells { from: grid.from, step: grid.step.0, columns: vec![BTreeMap::new(); grid.columns] }
    }

    /// The fill of most of the column; idle time counts too.
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

    /// The fill of the whole column, if there is one.
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

    /// What nothing else fills of the columns that overlap the span, as far as it overlaps.
    fn fill_idle(&mut self, from: Instant, to: Instant, fill: Fill) {
        let step = self.step;
        self.each_column(from, to, |cell, time| {
            let filled = cell.values().fold(0u64, |sum, &time| sum.saturating_add(time));
            let idle = step.saturating_sub(filled).min(time);
            if idle > 0 {
                grow(cell, fill, idle);
            }
        });
    }

    fn move_from_waiting(&mut self, from: Instant, to: Instant, fill: Fill) {
        self.each_column(from, to, |cell, time| {
            shrink(cell, Fill::Waiting, time);
            grow(cell, fill, time);
        });
    }

    /// Suspended or waiting time in the span is time in which a lock was awaited; time on a CPU is not.
    fn explain_by_lock(&mut self, from: Instant, to: Instant) {
        self.each_column(from, to, |cell, time| {
            let mut left = time;
            for fill in [Fill::Suspended, Fill::Waiting] {
                let taken = cell.get(&fill).map_or(0, |&time| time.min(left));
                if taken > 0 {
                    left -= taken;
                    shrink(cell, fill, taken);
                    grow(cell, Fill::AwaitingLock, taken);
                }
            }
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

fn shrink(cell: &mut BTreeMap<Fill, u64>, fill: Fill, time: u64) {
    if let Some(filled) = cell.get_mut(&fill) {
        *filled = filled.saturating_sub(time);
    }
}
