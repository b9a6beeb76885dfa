//! The program that loads the scheduler, keeps its tasks, and ends it: what needs libbpf.

mod borrowed;
mod functions;
mod object;
mod server;
mod tasks;

pub use borrowed::RESTORE;
pub use functions::{KERNEL_TYPES, functions};
pub use object::LoadError;
pub use server::{Outcome, Server, ServerError};
