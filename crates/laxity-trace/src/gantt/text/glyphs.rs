//! The characters of the chart.

use super::Characters;
use crate::gantt::cells::Fill;

/// One character for each thing a column can show.
pub struct Glyphs {
    pub executing: char,
    pub waiting: char,
    pub suspended: char,
    pub awaiting_lock: char,
    pub spinning: char,
    pub throttled: char,
    pub stolen: char,
    pub outside: char,
    pub overhead: char,
    pub top_half: char,
    pub bottom_half: char,
    pub lock_wait: char,
    pub idle: char,
    pub release: char,
    pub deadline: char,
    pub both: char,
    pub missed: char,
    pub interrupt: char,
    pub holds: char,
    pub inherits: char,
    pub tick: char,
}

impl Glyphs {
    const ASCII: Glyphs = Glyphs {
        executing: '#',
        waiting: '.',
        suspended: '-',
        awaiting_lock: '?',
        spinning: '@',
        throttled: ':',
        stolen: '/',
        outside: '\\',
        overhead: '%',
        top_half: '"',
        bottom_half: '_',
        lock_wait: '=',
        idle: '.',
        release: '^',
        deadline: 'v',
        both: 'x',
        missed: '!',
        interrupt: 'i',
        holds: '~',
        inherits: '+',
        tick: '|',
    };
    const UNICODE: Glyphs = Glyphs {
        executing: '█',
        waiting: '░',
        suspended: '┄',
        awaiting_lock: '◇',
        spinning: '◌',
        throttled: '╳',
        stolen: '▚',
        outside: '▞',
        overhead: '▒',
        top_half: '▀',
        bottom_half: '▄',
        lock_wait: '≡',
        idle: '·',
        release: '↑',
        deadline: '↓',
        both: '↕',
        missed: '✗',
        interrupt: '↯',
        holds: '━',
        inherits: '▲',
        tick: '│',
    };

    pub fn of(characters: Characters) -> &'static Glyphs {
        match characters {
            Characters::Ascii => &Glyphs::ASCII,
            Characters::Unicode => &Glyphs::UNICODE,
        }
    }

    /// In the row of a task.
    pub fn task(&self, fill: Fill) -> char {
        match fill {
            Fill::Executing(_) => self.executing,
            Fill::Spinning => self.spinning,
            Fill::Throttled => self.throttled,
            Fill::Stolen => self.stolen,
            Fill::AwaitingLock => self.awaiting_lock,
            Fill::Suspended => self.suspended,
            Fill::Waiting => self.waiting,
            Fill::BottomHalf | Fill::TopHalf | Fill::Overhead | Fill::LockWait | Fill::Outside | Fill::Idle => ' ',
        }
    }

    /// The mark in a column that showed `mark` and in which a job is released; a miss is never covered.
    pub fn add_release(&self, mark: char) -> char {
        match mark {
            mark if mark == self.missed => mark,
            mark if mark == self.deadline || mark == self.both => self.both,
            _ => self.release,
        }
    }

    pub fn add_deadline(&self, mark: char, missed: bool) -> char {
        match mark {
            _ if missed => self.missed,
            mark if mark == self.missed => mark,
            mark if mark == self.release || mark == self.both => self.both,
            _ => self.deadline,
        }
    }
}
