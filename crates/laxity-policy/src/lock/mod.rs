//! Locks: who holds what, who waits, and what effective priorities follow from it.

mod arbiter;
pub mod budget;
mod discipline;
pub mod tokens;

pub use arbiter::{Action, Arbiter, Event};
pub use discipline::{Config, Discipline, Grant, Levels, Progress, Request};
pub use tokens::Tokens;
