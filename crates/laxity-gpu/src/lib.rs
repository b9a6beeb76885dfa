//! GPUs that separate processes share, without a daemon: GPUSync's tokens and engine locks (paper 003, section 5.3), or
//! the k-FMLP (paper 000, appendix A), in shared memory.
//!
//! ```text
//! Registry --- create, attach ---> Arbitration --- register ---> Client --- token ---> Token --- engines, copies
//!                                                                  ^                     |
//!                                                                  +------- drop --------+
//! ```
//!
//! The state machine that grants is the one that the simulator uses ([`laxity_policy::lock::Arbiter`]). A thread that waits
//! is suspended. A holder inherits the priority of its waiters, through any number of locks, under `SCHED_FIFO` where Linux
//! permits that ([`Arbitration::inheritance`]). An uncontended lock is taken and released by one instruction each, and a
//! lone waiter that is no more urgent than the holder is handed the lock by one, too.
//!
//! ```
//! use laxity_gpu::{Base, Config, Registry};
//! use laxity_model::CopyDirection;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let name = format!("example-{}", std::process::id());
//! // Two GPUs for the threads of four CPUs. Every process says the same, in any order.
//! let arbitration = Registry::default().create_or_attach(&name, &Config::new(4, 2))?;
//! println!("{}", arbitration.inheritance());
//!
//! let client = arbitration.register("detector", Base::Fixed(50))?; // this thread
//! let token = client.token()?; // a GPU, for this job
//! {
//!     let _engine = token.copy_engine(CopyDirection::In)?;
//!     // issue the copy to GPU `token.gpu()`, and wait until it is complete
//! }
//! {
//!     let _engine = token.execute_engine()?;
//!     // issue the GPU kernel, and wait until it is complete
//! }
//! println!("{}", arbitration.snapshot()?);
//! drop(token); // the job is over
//! # Ok(())
//! # }
//! ```
//!
//! Any process may be killed at any instruction: what its threads hold and wait for goes to the next threads, within about
//! a millisecond of their end. The same happens when a thread ends while its process goes on. Operations that it had
//! launched on a GPU are for the driver to end. Decision 20 has the reasons, decision 33 says which processes trust each
//! other.
//!
//! The same memory has the bandwidth lock ([`Client::lock_bandwidth`]) and the memory traffic of each CPU
//! ([`Arbitration::traffic`]), by which the crate `laxity-bandwidth` protects GPU work from best-effort CPUs.
//!
//! Files, from the bottom: `owner_word` and `layout`, `memory` (words in shared memory), `arbiter_cache` (the state that is
//! kept twice), `state_lock` (changing it) with `reopening` and `delivery`, `acquire` (what a client does).
#![deny(unsafe_code)]

mod acquire;
mod activity;
mod arbiter_cache;
mod arbitration;
mod bandwidth;
mod budget;
mod client;
mod client_word;
mod config;
#[cfg(test)]
mod conformance_tests;
#[cfg(test)]
mod crash_tests;
mod delivery;
mod detached;
mod details;
#[cfg(test)]
mod fast_path_tests;
mod follower_state;
mod followers;
#[cfg(test)]
mod forgery_tests;
mod holders;
mod inheritance;
mod layout;
mod members;
mod memory;
mod mobile;
mod owned;
mod owner_word;
mod registration;
mod registry;
mod reopening;
mod request;
mod shared;
#[cfg(test)]
mod simulation;
mod sleepers;
mod snapshot;
mod state_lock;
mod step;
mod token;
mod traffic;

pub use activity::Activity;
pub use arbitration::{Arbitration, Base, Inheritance, RegisterError};
pub use bandwidth::BandwidthLock;
pub use budget::Budget;
pub use client::{Client, POLL_INTERVAL};
pub use config::{CLIENTS_MAX, Config, ConfigError, GPUS_MAX, TOKENS_MAX};
pub use detached::{DetachedEngine, DetachedToken};
pub use follower_state::FollowerState;
pub use followers::{FollowError, Follower};
pub use holders::{HolderWatch, TokenHolder};
pub use laxity_membership::NAME_MAX as ARBITRATION_NAME_MAX;
pub use laxity_policy::lock::Standing;
pub use layout::{NAME_MAX, TRAFFIC_CPUS};
pub use mobile::MobileClient;
pub use owned::OwnedToken;
pub use registry::{ArbitrationError, Registry, RegistryError};
pub use request::{LockError, Resource, TokenRequest};
pub use snapshot::{ClientState, LockState, Snapshot};
pub use state_lock::StateError;
pub use token::{Chunk, CopyChunks, EngineLock, PeerCopy, Token};
pub use traffic::{Exceeded, Regulation, Traffic};
