//! Locks: their holders, the jobs that wait for them, and the effective priorities that follow.
//!
//! ```text
//!  Event ──► Arbiter ──► Discipline (queue, k-FMLP, tokens)      the next holder
//!               │              │ grants, give-edges
//!               ├──► Holdings ─┘                                 holders and waiters
//!               └──► Priorities                                  base, raised and inherited
//! ```

mod arbiter;
pub mod budget;
mod build;
mod deadlock;
mod discipline;
mod event;
mod holdings;
mod kfmlp;
mod priorities;
mod queue;
mod raised_levels;
mod saved;
#[cfg(test)]
mod sorted_queue_tests;
pub mod tokens;

pub use arbiter::Arbiter;
pub use discipline::{Config, Discipline, Grant, Levels, Progress, Request, Standing};
pub use event::{Action, Event};
pub use saved::{Codec, Damaged, Saved};
pub use tokens::Tokens;
