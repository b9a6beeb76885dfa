//! Named graphs in shared memory: threads and processes that exchange tokens and data. The successor of PGM^RT
//! (paper 003, section 5.2).
//!
//! ```text
//! Registry --- create, attach ---> Graph --- claim ---> Node --- wait ---> Job --- complete
//!                                                         ^                          |
//!                                                         +--------------------------+
//! ```
//!
//! A job runs when there are tokens on all inbound edges and room on all outbound ones, by the rule that the simulator
//! uses ([`laxity_policy::graph::Edge::suffices`]). When it completes, its tokens and messages are there all at once.
//!
//! Any process may be killed at any instruction. A job is then either complete or not begun; those who wait for the dead
//! hear of it ([`WaitError::Lost`]); whoever claims its node next gets the job that was not completed. Decisions 60 and
//! 61 have the reasons.
#![deny(unsafe_code)]

mod description;
mod graph;
mod guardian;
mod layout;
mod members;
mod node;
mod owner;
mod parking;
mod registry;
mod ring;
mod shared;
mod spec;
mod topology;

pub use graph::{ClaimError, Graph, NodeStatus, Ownership};
pub use node::{Job, Node, WaitError};
pub use registry::{GRAPH_NAME_MAX, Registry, RegistryError};
pub use ring::{Inputs, MessageError, Outputs};
pub use spec::{COUNT_MAX, Channel, NAME_MAX, Spec, SpecError};
pub use topology::Topology;
