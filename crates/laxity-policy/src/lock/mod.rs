//! Locks: who holds what, who waits, and what effective priorities follow from it.
//!
//! ```text
//!  Event ──► Arbiter ──► Discipline (queue, k-FMLP, tokens)      who is next
//!               │              │ grants, give-edges
//!               ├──► Holdings ─┘                                 who holds and who waits
//!               └──► Priorities                                  base, raised and inherited
//! ```

mod arbiter;
mod boosts;
mod build;
mod deadlock;
mod discipline;
mod holdings;
mod kfmlp;
mod priorities;
mod queue;

pub use arbiter::{Action, Arbiter, Event};
pub use discipline::{Config, Discipline, Grant, Levels, Progress, Request};
