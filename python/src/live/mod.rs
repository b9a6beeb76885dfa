//! `laxity.live`: graphs in shared memory.
//!
//! ```text
//! Python   Spec   Registry - create, attach -> Graph - claim -> Node - wait -> Job - input, output -> memoryview
//! here     spec   registry                     graph            node, claimed  job                    message
//!                                                user_data: what users keep with nodes and edges
//!          pipeline: a Spec that follows from what nodes read and write; recording: from a Graph to a Trace
//!            |  edges (which one is meant), channel, errors, waiting (GIL released, Ctrl-C) for all of them
//! crates   laxity-graph
//! ```
//!
//! A job of Rust borrows its node; one of Python cannot, and finds it again each time ([`laxity_graph::Node::job`]).
//! A message is lent to Python as memory, which is the one thing here that Rust cannot check: see `message`.

mod channel;
mod claimed;
mod edges;
mod errors;
mod graph;
mod job;
mod latest;
pub mod message;
mod node;
mod pipeline;
mod recording;
mod registry;
mod spec;
mod user_data;
pub mod waiting;

pub use graph::PyGraph;
pub use job::PyJob;
pub use node::PyNode;
pub use pipeline::PyPipeline;
pub use recording::PyRecording;
pub use registry::PyRegistry;
pub use spec::PySpec;
pub use user_data::PyUserData;
