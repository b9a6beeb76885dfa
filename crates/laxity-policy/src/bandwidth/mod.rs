//! BWLOCK++ (paper 004): while a bandwidth lock is held, the best-effort tasks of each CPU may cause so much memory traffic
//! in a period, and then stand still for the rest of it.
//!
//! ```text
//!   jobs:  Holder of each job --its budget--> BandwidthLock --the least budget--> Regulator of each CPU
//!                                                                                      | throttle, unthrottle
//!                                                                                      v
//!                                                                    fair class: CFS, or TFS, which charges lost time
//! ```

mod holder;
mod lock;
mod regulator;

pub use holder::{Hold, Holder, NotHeld};
pub use lock::{BandwidthLock, Change};
pub use regulator::{Action, Event, Regulator, Rules};
