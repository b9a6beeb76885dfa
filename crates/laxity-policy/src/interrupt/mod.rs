//! Interrupt handling: where the bottom half of an interrupt runs, and when.
//!
//! | Handling | Bottom half | File |
//! | --- | --- | --- |
//! | standard Linux (SLIH) | on the interrupted CPU, up to ten after each interrupt; the rest in that CPU's daemon | `tasklets` |
//! | PREEMPT_RT | in a thread of one fixed priority | `threads` |
//! | process-aware (PAI) | by its owner's priority, on the stack of the job it preempts | `process_aware` |
//! | klmirqd | in a thread at its owner's effective priority, never beside the owner | `threads` |
//!
//! Source: paper 000, sections II to IV.

mod process_aware;
mod tasklets;
mod threads;

pub use process_aware::ProcessAware;
pub use tasklets::Tasklets;
pub use threads::Threads;
