//! Explains the signs that the picture uses, and only those.

use std::collections::BTreeSet;

use laxity_model::{LockId, OverheadKind, TaskId};

use super::canvas::{Area, Canvas, GRAY, INK, Layer, Stroke, TextStyle, text_width};
use super::layout::{Layout, MARGIN, Row, task_name};
use super::palette::{
    BOTTOM_HALF_PATTERN, LOCK_FILL, OUTSIDE_PATTERN, RED, SPINNING_PATTERN, STOLEN_FILL, STOLEN_PATTERN,
    TOP_HALF_PATTERN, lock_colour, overhead_fill, owner_colour, task_colour,
};
use super::{interrupts, locks, marks};
use crate::TraceHeader;

/// A sign of the picture, in the order of the legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sign {
    /// Up-arrow.
    Release,
    /// Down-arrow.
    Deadline,
    /// Red, crossed down-arrow.
    Missed,
    /// Line with a cap.
    Completion,
    /// Torn right edge.
    Preempted,
    /// Dashed arrow between CPUs.
    Migration,
    /// Thin arrow between CPUs.
    Ipi,
    /// Light strip.
    Pending,
    /// Red strip.
    Tardy,
    /// Dashed line.
    Suspended,
    /// Line above a bar.
    NonPreemptive,
    /// Red line at the foot of a row.
    Throttled,
    /// Wide lines that fall, in a colour of their own.
    Stolen,
    /// Wide lines that rise, in a colour of their own.
    Outside,
    /// Dark or hatched box.
    Overhead(OverheadKind),
    /// Vertically hatched box.
    LockWait,
    /// Flash.
    Interrupt,
    /// Finely checked box.
    TopHalf,
    /// Diagonally hatched box.
    BottomHalf,
    /// Dotted box.
    Spinning,
    /// Dashed box.
    AwaitingLock,
    /// Strip above a bar.
    Inherits,
    /// Executions too short to be told apart.
    Merged,
    /// Dark strip of overheads too short to be told apart.
    MergedOverhead,
}

/// The signs and colours that the picture used.
#[derive(Default)]
pub struct Legend {
    pub signs: BTreeSet<Sign>,
    /// Locks that were held.
    pub locks: BTreeSet<LockId>,
    tasks: BTreeSet<TaskId>,
}

const SIZE: f64 = 10.0;
const SWATCH: f64 = 22.0;
/// Stands for the colour of any task.
const SAMPLE: &str = "#D8D8D8";
const LINE: f64 = 20.0;
/// More tasks than this are not listed: a legend of a hundred colours explains nothing.
const TASKS_MAX: usize = 60;
/// More locks than this are explained by one entry.
const LOCKS_MAX: usize = 12;

impl Legend {
    /// The colour of a task that is drawn on a CPU.
    pub fn task_fill(&mut self, task: TaskId) -> String {
        self.tasks.insert(task);
        task_colour(task)
    }

    /// The colour of bars on behalf of `owner` on a CPU.
    pub fn owner_fill(&mut self, owner: Option<TaskId>) -> String {
        self.tasks.extend(owner);
        owner_colour(owner)
    }

    /// Draws the legend below the axis; returns its lower edge.
    pub fn draw(&self, canvas: &mut Canvas, header: &TraceHeader, layout: &Layout) -> f64 {
        let mut cursor = Cursor { x: MARGIN, y: layout.bottom + 6.0, right: layout.width - MARGIN };
        // Rows of tasks explain the colours themselves.
        if layout.tasks.is_empty() && self.tasks.len() <= TASKS_MAX {
            for &task in &self.tasks {
                let name = task_name(header, task.index());
                let (x, y) = cursor.place(text_width(&name, SIZE));
                canvas.bar(Area { x, y, width: 14.0, height: 10.0 }, &task_colour(task), "");
                label(canvas, x + 19.0, y, &name);
                cursor.x -= SWATCH - 14.0;
            }
            cursor.next_line();
        }
        for &sign in &self.signs {
            let text = sign.text();
            let (x, y) = cursor.place(text_width(text, SIZE));
            sign.draw(canvas, x, y);
            label(canvas, x + SWATCH + 5.0, y, text);
        }
        for (colour, text) in self.lock_entries(header) {
            let (x, y) = cursor.place(text_width(&text, SIZE));
            canvas.bar(Area { x, y: y + 1.0, width: SWATCH, height: 8.0 }, colour, "");
            label(canvas, x + SWATCH + 5.0, y, &text);
        }
        cursor.next_line();
        cursor.y - LINE + 14.0
    }

    /// Colour and name of every lock held; one entry for all where they are too many.
    fn lock_entries(&self, header: &TraceHeader) -> Vec<(&'static str, String)> {
        if self.locks.len() > LOCKS_MAX {
            return vec![(lock_colour(LockId::default()), "holds a lock".to_owned())];
        }
        let name = |lock: LockId| header.locks.get(lock.index()).map_or("", |lock| lock.name.as_str());
        self.locks.iter().map(|&lock| (lock_colour(lock), format!("holds {}", name(lock)))).collect()
    }
}

/// Where the next entry goes.
struct Cursor {
    x: f64,
    y: f64,
    right: f64,
}

impl Cursor {
    /// Room for a swatch and a text of this width.
    fn place(&mut self, text: f64) -> (f64, f64) {
        let width = SWATCH + 5.0 + text;
        if self.x + width > self.right {
            self.next_line();
        }
        let place = (self.x, self.y);
        self.x += width + 16.0;
        place
    }

    fn next_line(&mut self) {
        if self.x > MARGIN {
            self.x = MARGIN;
            self.y += LINE;
        }
    }
}

fn label(canvas: &mut Canvas, x: f64, y: f64, text: &str) {
    canvas.text(Layer::Text, x, y + 8.8, text, TextStyle { size: SIZE, fill: GRAY, ..TextStyle::default() });
}

impl Sign {
    const fn text(self) -> &'static str {
        match self {
            Sign::Release => "release",
            Sign::Deadline => "deadline",
            Sign::Missed => "missed deadline",
            Sign::Completion => "completion",
            Sign::Preempted => "preempted",
            Sign::Migration => "migration",
            Sign::Ipi => "IPI",
            Sign::Pending => "pending",
            Sign::Tardy => "tardy",
            Sign::Suspended => "suspended",
            Sign::NonPreemptive => "non-preemptive",
            Sign::Throttled => "throttled",
            Sign::Stolen => "CPU stolen from all threads",
            Sign::Outside => "other threads and interrupts of the machine",
            Sign::Overhead(OverheadKind::Release) => "release overhead",
            Sign::Overhead(OverheadKind::Scheduling) => "scheduling",
            Sign::Overhead(OverheadKind::ContextSwitch) => "context switch",
            Sign::Overhead(OverheadKind::Tick) => "tick",
            Sign::Overhead(OverheadKind::TimerRearming) => "timer re-arming",
            Sign::Overhead(OverheadKind::ThreadRelease) => "thread release",
            Sign::Overhead(OverheadKind::PaiEnqueue) => "PAI enqueueing",
            Sign::Overhead(OverheadKind::PaiCheck) => "PAI check",
            Sign::Overhead(_) => "other overhead",
            Sign::LockWait => "lock wait",
            Sign::Interrupt => "interrupt",
            Sign::TopHalf => "top half (colour: owner)",
            Sign::BottomHalf => "bottom half (colour: owner)",
            Sign::Spinning => "spins",
            Sign::AwaitingLock => "waits for a lock",
            Sign::Inherits => "inherits a priority (colour: whose)",
            Sign::Merged => "below a pixel: height is share of time",
            Sign::MergedOverhead => "overhead below a pixel",
        }
    }

    /// Draws the sign into a swatch with this upper left corner.
    fn draw(self, canvas: &mut Canvas, x: f64, y: f64) {
        let (middle, centre) = (x + SWATCH / 2.0, y + 5.0);
        let area = Area { x, y, width: SWATCH, height: 10.0 };
        let row = Row { top: y - 6.0, bar_top: y + 5.0, baseline: y + 11.0, font: SIZE };
        let across = |y: f64| ((x, y), (x + SWATCH, y));
        match self {
            Sign::Release => marks::release(canvas, &row, middle, INK),
            Sign::Deadline => marks::deadline(canvas, &row, middle, INK, false),
            Sign::Missed => marks::deadline(canvas, &row, middle, INK, true),
            Sign::Completion => marks::completion(canvas, &row, middle, INK),
            Sign::Preempted => canvas.torn_bar(area, SAMPLE, ""),
            Sign::Migration => {
                let (from, to) = across(centre);
                canvas.arrow(Layer::Marks, from, to, Stroke { colour: INK, width: 1.0, dashes: "3,2" }, 4.5);
            }
            Sign::Ipi => {
                let (from, to) = across(centre);
                canvas.arrow(Layer::Marks, from, to, Stroke::solid(GRAY, 0.9), 4.5);
            }
            Sign::Pending | Sign::Tardy => {
                let strip = Area { y: centre - 1.5, height: 3.0, ..area };
                canvas.fill(Layer::Bars, strip, if self == Sign::Tardy { RED } else { "#C4C4C4" });
            }
            Sign::Suspended => {
                let (from, to) = across(centre);
                canvas.line(Layer::Bars, from, to, Stroke { colour: GRAY, width: 1.2, dashes: "4,3" });
            }
            Sign::NonPreemptive => {
                let (from, to) = across(centre);
                canvas.line(Layer::Marks, from, to, Stroke::solid(INK, 2.4));
            }
            Sign::Throttled => {
                let (from, to) = across(centre);
                canvas.line(Layer::Marks, from, to, Stroke::solid(RED, 2.4));
            }
            Sign::Stolen => canvas.hatched_bar(area, (STOLEN_FILL, STOLEN_PATTERN), ""),
            Sign::Outside => canvas.hatched_bar(area, (STOLEN_FILL, OUTSIDE_PATTERN), ""),
            Sign::Overhead(kind) => canvas.bar(area, overhead_fill(kind), ""),
            Sign::LockWait => canvas.bar(area, LOCK_FILL, ""),
            Sign::Interrupt => {
                interrupts::flash(canvas, &Row { top: y - 1.0, bar_top: y + 11.0, ..row }, middle, None);
            }
            Sign::TopHalf => canvas.hatched_bar(area, (SAMPLE, TOP_HALF_PATTERN), ""),
            Sign::BottomHalf => canvas.hatched_bar(area, (SAMPLE, BOTTOM_HALF_PATTERN), ""),
            Sign::Spinning => canvas.hatched_bar(area, (SAMPLE, SPINNING_PATTERN), ""),
            Sign::AwaitingLock => canvas.outline(area, ("#F4F4F4", GRAY), ""),
            Sign::Inherits => {
                let row = Row { bar_top: y + 9.0, ..row };
                locks::inheritance_sign(canvas, &row, x, x + SWATCH);
            }
            Sign::Merged => {
                for (step, height) in (0u8..).zip([4.0, 8.0, 2.0, 6.0, 10.0]) {
                    let strip = Area { x: x + 4.0 * f64::from(step), y: y + 10.0 - height, width: 3.0, height };
                    canvas.fill(Layer::Bars, strip, "#A0A0A0");
                }
            }
            Sign::MergedOverhead => canvas.fill(Layer::Bars, Area { y: y + 6.0, height: 4.0, ..area }, INK),
        }
    }
}
