//! Protects memory-bound work, above all GPU kernels on chips whose CPUs and GPU share memory, from the memory traffic of
//! best-effort programs: BWLOCK++ (paper 004) without a change of Linux.
//!
//! ```text
//! laxity-gpu: threads hold the bandwidth lock ----> the least budget
//!                                                        |
//! Regulator: for each best-effort CPU a thread  <--------+        programs or the CPU count traffic
//!    cpu          periods: budget, wait for overflow, throttle       |
//!    counting     software or hardware counter  <--------------------+
//!    throttling   occupier, freezer (group), or Laxity's scheduler in the kernel
//!    fair         the Throttle Fair Scheduler: feedback on niceness, where the kernel does not punish
//! ```
//!
//! ```no_run
//! use laxity_bandwidth::{Counter, Options, Regulator};
//! use laxity_gpu::{Base, Config, Registry};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let arbitration = Registry::default().create_or_attach("car", &Config::new(4, 1))?;
//! // CPU 3 runs best-effort programs, which count their traffic.
//! let options = Options { counter: Counter::Software, ..Options::new([3]) };
//! let regulator = Regulator::start(&arbitration, options)?;
//!
//! let client = arbitration.register("detector", Base::Fixed(50))?;
//! {
//!     let _lock = client.lock_bandwidth(64_000_000)?; // at most 64 MB/s on CPU 3
//!     // launch the GPU kernel, and wait for it
//! }
//! println!("{:?}", regulator.reports());
//! # Ok(())
//! # }
//! ```
//!
//! A CPU is throttled by a thread of the regulator's process, by freezing a control group that a watchdog thaws, or in the
//! kernel for a time that ends: when the process is killed, at any instruction, no CPU stays throttled. Decisions 48 to 50 and
//! 145 have the reasons.
#![forbid(unsafe_code)]

mod counting;
mod cpu;
mod error;
mod fair;
mod feedback;
mod group;
mod machine;
mod members;
mod observer;
mod occupancy;
mod options;
mod regulator;
mod self_test;
mod source;
mod threshold;
mod throttling;

pub use error::BandwidthError;
pub use machine::Machine;
pub use members::Regulated;
pub use observer::Observer;
pub use options::{Counter, Options, Throttle};
pub use regulator::{Regulator, Report, SAMPLES_MAX};
pub use threshold::{Search, Trial, first_guess};
