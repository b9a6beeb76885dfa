//! Locks: who holds what, who waits, and what effective priorities follow from it.

mod arbiter;
mod discipline;

pub use arbiter::{Action, Arbiter, Event};
pub use discipline::{Config, Discipline, Grant, Levels, Progress, Request};
