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
pub mod budget;
mod build;
mod deadlock;
mod discipline;
mod holdings;
mod kfmlp;
mod priorities;
mod queue;
mod saved;
pub mod tokens;

pub use arbiter::{Action, Arbiter, Event};
pub use discipline::{Config, Discipline, Grant, Levels, Progress, Request, Standing};
pub use saved::{Damaged, Numbers};
pub use tokens::Tokens;
