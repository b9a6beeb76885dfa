//! `laxity.gpu`: GPUs that processes share.
//!
//! ```text
//! Python   Arbitration - client -> Client - token -> Token - execution_engine, copy_engine -> Engine
//!                                          |             '-- copy_chunks ------------------> CopyChunks
//!                                          '-- budget -> Budget
//! here     arbitration             client            token, budget                           engine, chunks
//!          own: what this thread holds; errors, table for all of them
//! crates   laxity-gpu
//! ```
//!
//! Objects of Python may go anywhere, clients of Rust may not leave their thread. So the latter stay, in memory of the
//! thread, and objects of Python have no more than a number: in another thread nothing has that number. Only budgets are
//! for all threads.

mod arbitration;
mod bandwidth;
mod budget;
mod chunks;
mod client;
mod engine;
pub mod errors;
mod own;
mod table;
mod token;

pub use arbitration::{PyArbitration, gc, look, names};
pub use bandwidth::PyBandwidthLock;
pub use budget::PyBudget;
pub use chunks::PyCopyChunks;
pub use client::PyClient;
pub use engine::PyEngine;
pub use token::PyToken;
