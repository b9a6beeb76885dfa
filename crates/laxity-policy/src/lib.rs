//! Every decision Laxity makes, as pure state machines: events in, actions out.
#![forbid(unsafe_code)]

pub mod bandwidth;
pub mod cpu;
pub mod gpu;
pub mod graph;
pub mod interrupt;
pub mod lock;
pub mod program;
pub mod server;
