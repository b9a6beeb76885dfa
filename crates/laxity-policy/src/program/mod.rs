//! What to do when a program launches, copies, synchronizes, creates a stream or ends: the rules by which an interposer
//! puts GPU work of programs that know nothing of Laxity under arbitration (paper 003, sections 5.4.2 and 5.4.3).
//!
//! An interposer has one [`Stream`] for each stream (OpenCL: command queue) of the program. It translates the program's
//! calls into events, asks for the [`Admission`] of each operation before it hands that to the driver, and carries out
//! the actions:
//!
//! ```text
//!   the program issues      admission       the driver has it         the arbiter grants       the driver completes it
//!   ------------------> Gate ----------> held back by its gate --Open--> may run ------------------> Retire
//!          |                                        ^ Acquire                ^                        | Unlock
//!          +----------> TakeIfFree --(free)----------------------------------+                        |
//!          +----------> Join: the stream holds the engine already -----------+                        v
//!          +----------> Through: it uses no engine                                               next operation
//! ```
//!
//! An operation waits for its dependencies first and for the engine afterwards: a stream never holds or requests an
//! engine for an operation that could not run. So no hold depends on what the program does later.
//!
//! A *gate* is whatever lets a driver accept an operation and not yet run it: a user event in OpenCL, a stream-ordered
//! wait in CUDA. Nothing here knows either.

mod event;
mod jobs;
mod lengths;
mod policy;
mod stream;
mod work;

pub use event::{Action, Admission, Event, OperationId, Order, Passage};
pub use jobs::{JobEvent, JobRule};
pub use policy::{Policy, TokenRule};
pub use stream::Stream;
pub use work::{EngineUse, Work, chunks};
