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
//! keeps operations of a stream in order: threads of the program take that, and the home where it is free.
//!
//! While a stream is the only client, its operations are *unwatched* where the front allows it: the driver gets the program's call as
//! it is, and the stream learns that it is complete from a thread that waits. If another client comes, or something has to wait for
//! them, the front puts a marker behind them.
#![forbid(unsafe_code)]

mod home;
mod issue_lock;
mod leave;
pub mod log;
mod operation;
mod process;
pub mod settings;
mod state;
mod stopped;
mod stream;
mod ticket;
pub mod trace;
mod waits;

pub use operation::{Label, Operation};
pub use process::{Announced, Process, Report, ReportState};
pub use stream::LiveStream;
pub use ticket::Ticket;
pub use waits::InDriver;
