//! Streams of programs that know nothing of Laxity, under its GPU arbitration: what the interposers for OpenCL and CUDA
//! share. A *front* translates the program's calls; [`laxity_policy::program`] decides.
//!
//! ```text
//!   program's threads          front                       here                              laxity-gpu
//!   ----------------- call --> is_ready? --begin--> LiveStream: machine, client  --take--> tokens, engines
//!                              driver    <--gate?-- Ticket                                      |
//!                                 |                                                             |
//!   driver's threads <------------'--- callback --complete--> LiveStream --------unlock------->-+
//!                                                                 | not free                    |
//!   home thread of the stream <-----------------------------------'---------acquire, open <-----'
//! ```
//!
//! A free engine is taken by the thread that issues, and unlocked by the thread that learns of the completion first.
//! Only what must wait goes to the stream's own thread, its home. No lock is held while the driver is called, but one that
//! keeps operations of a stream in order, and only threads of the program take that.
#![forbid(unsafe_code)]

mod home;
mod issue_lock;
pub mod log;
mod operation;
mod process;
pub mod settings;
mod state;
mod stopped;
mod stream;
pub mod trace;
mod waits;

pub use operation::{Label, Operation};
pub use process::{Announced, Process, Report, ReportState};
pub use stream::{LiveStream, Ticket};
pub use waits::InDriver;
