//! Measures what scheduling costs on this Linux machine, and makes an overhead profile of it.
//!
//! ```text
//!   Options --Session::new--> Session --step, step, ...--> samples of each Probe --finish--> Measurement
//! ```
//!
//! Threads of a user's process do what real-time tasks do (sleep until a time, wake each other, yield, wait for locks)
//! and look at the clock before and after. Probes are repeated in rounds, all in turn, so that a machine that is busy
//! at times slows them all. How overheads follow from what was seen is said in [`profiles`]; decision 25 has the
//! reasons.
#![forbid(unsafe_code)]

mod crew;
mod derive;
mod host;
pub mod kernel;
pub mod memory;
mod options;
mod probe;
mod probes;
mod samples;
mod session;

pub use derive::profiles;
pub use host::Host;
pub use options::{MeasureError, Options, Worst};
pub use probe::{Bytes, Probe};
pub use samples::Samples;
pub use session::Session;
