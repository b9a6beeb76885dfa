//! GPUs as devices: engines and streams.

mod engines;

pub use engines::{Action, Engines, Operation, copy_engine};
