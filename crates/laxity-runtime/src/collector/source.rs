//! Where a trace comes from: timetables and logs, and whichever of them is next.

use std::collections::VecDeque;
use std::iter::Peekable;

use crate::log::{Entry, Reader};
use crate::plan::ReleaseTimes;

/// A thread: when its jobs arrive, if that is known before, and what it notes.
#[derive(Debug)]
pub(super) struct Source {
    pub releases: Option<Peekable<ReleaseTimes>>,
    pub reader: Reader,
    pub entries: VecDeque<Entry>,
}

/// The next thing that happened. Of one instant tokens come first, then releases, and then what follows from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Next {
    /// Something that is no task gets a CPU, or has it no longer.
    Outside,
    /// Something happens to a graph because time passes.
    Timeout(usize),
    /// A job of a task.
    Release(usize),
    /// A GPU does something.
    Gpu(usize),
    /// A thread noted something.
    Entry(usize),
}
