//! The lines below rows: releases and deadlines, locks and priorities, interrupts.

use laxity_model::Instant;

use super::glyphs::Glyphs;
use super::legend::{Legend, Sign};
use crate::TraceHeader;
use crate::gantt::cells::Grid;
use crate::intervals::{Activity, Interval, Timeline};

/// The chart's columns and the right edge of its window.
pub struct Marks<'a> {
    pub grid: &'a Grid,
    pub to: Instant,
    pub glyphs: &'a Glyphs,
}

impl Marks<'_> {
    /// Releases and deadlines of every task, one column more than the chart for those at the right edge. A thread's jobs
    /// have their owners' deadlines, which are shown there.
    pub fn jobs(&self, timeline: &Timeline, header: &TraceHeader) -> Vec<Vec<char>> {
        let mut rows = self.empty(header.tasks.len());
        for job in &timeline.jobs {
            let Some(released) = job.released else { continue };
            let row = &mut rows[job.job.task.index()];
            if let Some(column) = self.column(released.release) {
                row[column] = self.glyphs.add_release(row[column]);
            }
            if header.lacks_deadlines(job.job.task) {
                continue;
            }
            if let Some(column) = self.column(released.deadline) {
                row[column] = self.glyphs.add_deadline(row[column], job.is_missed(timeline.end));
            }
        }
        rows
    }

    /// The locks and inherited priorities of every task: a job that inherits while it holds a lock shows as inheriting.
    pub fn locks(&self, timeline: &Timeline, tasks: usize, legend: &mut Legend) -> Vec<Vec<char>> {
        let mut rows = self.empty(tasks);
        let mut draw = |wanted: fn(&Activity) -> bool, glyph: char, sign: Sign| {
            for interval in timeline.intervals.iter().filter(|interval| wanted(&interval.activity)) {
                let (Some(job), Some(columns)) = (interval.activity.job(), self.columns(interval)) else { continue };
                rows[job.task.index()][columns].fill(glyph);
                legend.signs.insert(sign);
            }
        };
        draw(|activity| matches!(activity, Activity::CriticalSection { .. }), self.glyphs.holds, Sign::Holds);
        draw(|activity| matches!(activity, Activity::Inheritance { .. }), self.glyphs.inherits, Sign::Inherits);
        rows
    }

    /// The interrupts of devices, in the rows of the CPUs that they are routed to.
    pub fn interrupts(&self, timeline: &Timeline, cpus: usize, legend: &mut Legend) -> Vec<Vec<char>> {
        let mut rows = self.empty(cpus);
        for interrupt in &timeline.interrupts {
            if let Some(column) = self.column(interrupt.at) {
                rows[interrupt.cpu.index()][column] = self.glyphs.interrupt;
                legend.signs.insert(Sign::Interrupt);
            }
        }
        rows
    }

    fn empty(&self, rows: usize) -> Vec<Vec<char>> {
        vec![vec![' '; self.grid.columns + 1]; rows]
    }

    fn column(&self, at: Instant) -> Option<usize> {
        if at <= self.to { self.grid.column(at) } else { None }
    }

    /// The columns that show some of the interval: at least one, if the window does.
    fn columns(&self, interval: &Interval) -> Option<std::ops::Range<usize>> {
        let from = interval.from.max(self.grid.from);
        let to = interval.to.min(self.to);
        if from >= to {
            return None;
        }
        let last = self.grid.column(Instant(to.0 - 1))?;
        Some(self.grid.column(from)?..last + 1)
    }
}
