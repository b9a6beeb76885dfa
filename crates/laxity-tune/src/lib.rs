//! Searches the configurations of a workload for the one that leaves the most laxity.
//!
//! ```text
//!   Workload --Space::of--> dimensions (scheduler, priorities, placement, arbitration, interrupts, replicas, budgets)
//!                               |
//!              Search --next--> settings --evaluate--> Score (proven first, the simulated tail second)
//!                   ^                                    |
//!                   '------------------- tell -----------'
//! ```
//!
//! A [`Setting`] is one choice of each [`Dimension`]. [`Search`] does not evaluate anything itself: it hands out settings
//! and is told their scores, so that the caller decides how many threads evaluate, and when to stop. It climbs: of one
//! dimension after the other it takes the best choice, until no single change is better; then it starts again elsewhere.
//! The same workload, seed and scores give the same search. [`tune()`] does all of it, with the threads and the clock of a
//! [`Host`].
//!
//! A configuration is *proven* if [`laxity_analysis::check`] proves that no deadline is missed. Where the analysis says
//! nothing, as for features that it does not treat, the simulator's tail counts; it never outranks a proof.
#![forbid(unsafe_code)]

mod bottleneck;
mod edit;
mod priorities;
mod scale;
mod score;
mod search;
mod space;
mod tune;

pub use bottleneck::{Bottleneck, bottlenecks, growth};
pub use edit::Edit;
pub use scale::{Part, scaled};
pub use score::{Effort, Proof, Score, Tail, evaluate};
pub use search::Search;
pub use space::{Choice, Dimension, Setting, Space};
pub use tune::{Change, Effect, Host, Ranked, Tuned, tune};
