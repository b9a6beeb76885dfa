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
//! ```
//! use laxity_graph::{Channel, Registry, Spec, WaitError};
//! use laxity_model::{Edge, Graph, Nanos, Node};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let nodes = vec![Node::new("camera", Some(Nanos::from_millis(33))), Node::new("detector", None)];
//! let name = format!("example-{}", std::process::id());
//! let spec = Spec::with_channels(
//!     Graph::new(&name, nodes, vec![Edge::new(0, 1)]),
//!     vec![Channel::Ring { message: 640 * 480, capacity: 4 }],
//! )?;
//! let registry = Registry::default();
//! let graph = registry.create(&spec)?;
//!
//! // This may as well be another process: all it needs is the name.
//! let consumer = std::thread::spawn(move || {
//!     let graph = registry.attach(&name).expect("it was created");
//!     let mut detector = graph.claim("detector").expect("it is free");
//!     let mut images = 0;
//!     loop {
//!         match detector.wait() {
//!             Ok(mut job) => {
//!                 assert_eq!(job.input(0, 0).expect("an image")[0], images);
//!                 images += 1;
//!                 job.complete();
//!             }
//!             Err(WaitError::Lost { .. }) => {} // the camera was killed: wait for it to come back
//!             Err(_) => return images,          // it ended
//!         }
//!     }
//! });
//!
//! let mut camera = graph.claim("camera")?;
//! for image in 0..10 {
//!     let mut job = camera.wait()?; // for room
//!     job.output(0, 0)?.fill(image); // in place
//!     job.complete();
//! }
//! camera.terminate();
//! assert_eq!(consumer.join().unwrap(), 10);
//! # Ok(())
//! # }
//! ```
//!
//! Nodes that share memory rather than hand over messages are described by what they read and write: see [`Pipeline`].
//!
//! Any process may be killed at any instruction. A job is then either complete or not begun; nodes that wait for the
//! dead hear of it ([`WaitError::Lost`]); the next owner of its node gets the job that was not completed. Decisions 13,
//! 14 and 34 have the reasons.
//!
//! Each node remembers its last jobs. A [`Collector`] makes a trace of them, which is checked, measured and drawn like a
//! simulated one (decision 17), and jobs have releases and deadlines ([`Job::release`]), of which [`hooks`] tell
//! schedulers (decision 18).
#![deny(unsafe_code)]

mod channel;
mod collector;
mod data_object;
mod description;
mod details;
pub mod flags;
mod graph;
pub mod hooks;
mod layout;
mod link;
mod members;
mod node;
mod objects;
mod owner;
mod parking;
mod peer_progress;
mod pipeline;
mod poll;
mod recorder;
mod registers;
mod registry;
mod releases;
mod responses;
mod ring;
mod shared;
#[cfg(all(test, debug_assertions))]
mod simulation;
mod spec;
mod step;
mod swap;
mod topology;
mod user_data;
mod wait_error;

pub use bytemuck::Pod;
pub use channel::{ChannelKind, UnknownChannel};
pub use collector::{Collected, Collector};
pub use data_object::{Access, Object, Use};
pub use graph::{ClaimError, Graph, NodeStatus, Ownership};
pub use laxity_membership::{MEMBERS_MAX, NAME_MAX as GRAPH_NAME_MAX};
pub use node::{Job, Node};
pub use objects::{ObjectError, ObjectInputs, ObjectKey, ObjectOutputs};
pub use pipeline::{Link, Parameter, Pipeline, PipelineError};
pub use registers::{LatestInputs, LatestOutputs, LatestValue};
pub use registry::{NoChannel, Registry, RegistryError};
pub use releases::{NoRecorder, Releasing};
pub use ring::{Inputs, MessageError, Outputs};
pub use spec::{COUNT_MAX, Channel, NAME_MAX, RECORDER_DEFAULT, RECORDER_MAX, Spec, SpecError, SwappingError};
pub use topology::Topology;
pub use user_data::{UserData, UserDataError};
pub use wait_error::WaitError;
