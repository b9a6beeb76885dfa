//! Explains the characters of the chart.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use laxity_model::TaskId;

use super::glyphs::Glyphs;
use crate::gantt::Rows;
use crate::gantt::cells::Fill;
use crate::{Origin, TraceHeader};

/// A sign that is explained only where it occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sign {
    TopHalf,
    BottomHalf,
    Interrupt,
    Spinning,
    Throttled,
    Stolen,
    Outside,
    AwaitingLock,
    Holds,
    Inherits,
}

/// The signs that the chart used.
#[derive(Default)]
pub struct Legend {
    tasks: BTreeSet<TaskId>,
    pub signs: BTreeSet<Sign>,
}

impl Legend {
    /// The character of a cell in the row of a CPU or an engine.
    pub fn cpu(&mut self, fill: Fill, glyphs: &Glyphs) -> char {
        self.note(fill);
        match fill {
            Fill::Executing(task) => {
                self.tasks.insert(task);
                task_letter(task)
            }
            Fill::BottomHalf => glyphs.bottom_half,
            Fill::TopHalf => glyphs.top_half,
            Fill::Overhead => glyphs.overhead,
            Fill::LockWait => glyphs.lock_wait,
            Fill::Spinning => glyphs.spinning,
            Fill::Throttled => glyphs.throttled,
            Fill::Stolen => glyphs.stolen,
            Fill::Outside => glyphs.outside,
            Fill::AwaitingLock | Fill::Suspended | Fill::Waiting | Fill::Idle => glyphs.idle,
        }
    }

    /// The character of a cell in the row of a task.
    pub fn task(&mut self, fill: Fill, glyphs: &Glyphs) -> char {
        self.note(fill);
        glyphs.task(fill)
    }

    fn note(&mut self, fill: Fill) {
        match fill {
            Fill::BottomHalf => self.signs.insert(Sign::BottomHalf),
            Fill::TopHalf => self.signs.insert(Sign::TopHalf),
            Fill::Spinning => self.signs.insert(Sign::Spinning),
            Fill::Throttled => self.signs.insert(Sign::Throttled),
            Fill::Stolen => self.signs.insert(Sign::Stolen),
            Fill::Outside => self.signs.insert(Sign::Outside),
            Fill::AwaitingLock => self.signs.insert(Sign::AwaitingLock),
            _ => false,
        };
    }

    pub fn write(&self, out: &mut String, header: &TraceHeader, rows: Rows, glyphs: &Glyphs) {
        if rows.cpus() {
            for &task in self.tasks.iter().filter(|&&task| task_letter(task) != '*') {
                let _ = write!(out, "{} {}  ", task_letter(task), header.tasks[task.index()].name);
            }
            if self.tasks.iter().any(|&task| task_letter(task) == '*') {
                out.push_str("* other tasks  ");
            }
            let Glyphs { overhead, lock_wait, idle, .. } = glyphs;
            let _ = match header.origin {
                Origin::Simulated => {
                    writeln!(out, "{overhead} overhead  {lock_wait} waits for the lock  {idle} idle")
                }
                // Linux ran other threads there, too, which are not recorded.
                Origin::Live => writeln!(out, "{idle} none of these"),
            };
        }
        if rows.tasks() {
            let Glyphs { executing, waiting, suspended, release, deadline, both, missed, .. } = glyphs;
            let _ = writeln!(
                out,
                "{executing} executes  {waiting} waits  {suspended} suspended  {release} release  {deadline} deadline  \
                 {both} both  {missed} missed deadline"
            );
        }
        let signs: Vec<String> = self.signs.iter().map(|sign| sign.explain(glyphs)).collect();
        if !signs.is_empty() {
            let _ = writeln!(out, "{}", signs.join("  "));
        }
    }
}

impl Sign {
    fn explain(self, glyphs: &Glyphs) -> String {
        let (glyph, text) = match self {
            Sign::TopHalf => (glyphs.top_half, "top half"),
            Sign::BottomHalf => (glyphs.bottom_half, "bottom half"),
            Sign::Interrupt => (glyphs.interrupt, "interrupt"),
            Sign::Spinning => (glyphs.spinning, "spins"),
            Sign::Throttled => (glyphs.throttled, "throttled"),
            Sign::Stolen => (glyphs.stolen, "CPU stolen"),
            Sign::Outside => (glyphs.outside, "other threads, interrupts"),
            Sign::AwaitingLock => (glyphs.awaiting_lock, "waits for a lock"),
            Sign::Holds => (glyphs.holds, "holds a lock"),
            Sign::Inherits => (glyphs.inherits, "inherits a priority"),
        };
        format!("{glyph} {text}")
    }
}

/// The letter that stands for a task in a CPU's row: A to Z, a to z, 0 to 9, then `*` for all others.
fn task_letter(task: TaskId) -> char {
    const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    LETTERS.get(task.index()).map_or('*', |&letter| char::from(letter))
}
