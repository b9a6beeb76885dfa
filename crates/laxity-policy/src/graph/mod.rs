//! PGM graphs: when tokens release the jobs of a node, and when a job may run.
//!
//! ```text
//!            tokens there, separated by p               feedback tokens there, previous job complete
//! (waits) -------------- Released -------------> (pending) ---- Consumed, Ready ----> (may run)
//!                                                                                         | Event::Completed
//!                         consumers <-- Produced: feedback tokens, then tokens -----------+
//! ```
//!
//! A [`CompiledGraph`] is what the rules need to know of a graph; [`Tokens`] carries them out, for the simulator and for live
//! threads alike. Sources: paper 003, sections 5.1, 5.2.3 and 5.4.1; Liu & Anderson, RTSS 2010.

mod compiled;
mod details;
mod error;
mod latest;
mod period;
mod pipeline;
mod tokens;

pub use compiled::{CompiledGraph, Edge, Node};
pub use error::CompiledGraphError;
pub use latest::{LatestEdge, LatestValues};
pub use laxity_model::EdgeKind;
pub use period::{Arrival, Period};
pub use tokens::{Action, Event, Releasing, Tokens};
