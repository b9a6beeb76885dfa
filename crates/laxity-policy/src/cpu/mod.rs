//! CPU scheduling: ready queues, release queue, processor mapping, and the event- and quantum-driven schedulers.

mod priority;
pub mod ready;

pub use priority::Priority;
