//! CPU scheduling: ready queues, release queue, processor mapping, the event- and quantum-driven schedulers, and Linux's
//! fair class.

mod build;
mod core;
mod event_driven;
pub mod fair;
mod mapping;
mod partition;
mod policy;
mod priority;
mod quantum_driven;
mod ranking;
pub mod ready;
mod release_queue;

pub use self::core::Standing;
pub use build::build;
pub use event_driven::EventDriven;
pub use mapping::ProcessorMapping;
pub use partition::worst_fit;
pub use policy::{Action, CpuPolicy, Event};
pub use priority::Priority;
pub use quantum_driven::QuantumDriven;
pub use ranking::Ranking;
pub use release_queue::ReleaseQueue;
