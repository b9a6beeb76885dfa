//! How a process uses a soft GPU.

use std::path::PathBuf;
use std::sync::Arc;

use laxity_sys::stack;

use super::threads::{Handling, Unmanaged};

/// No address space has room for as much, and rounding it up to pages does not overflow.
const STACK_MAX: usize = usize::MAX / 4;

/// How a process uses a soft GPU. The default suits most programs.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program to start if there is no server. `None`: [`SERVER_VARIABLE`](crate::SERVER_VARIABLE) of the
    /// environment, or the one beside this program or in `PATH`.
    pub server: Option<PathBuf>,
    /// Manages the handling thread and the callback thread.
    pub handling: Arc<dyn Handling>,
    /// Bytes of the stack of each thread that runs kernels, copies or callbacks. `None`: as much as an ordinary
    /// thread's, `RLIMIT_STACK`, or 8 MiB if that is unlimited. Linux takes memory only for the part that is used, or
    /// that `mlockall` locks.
    pub stack: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Options { server: None, handling: Arc::new(Unmanaged), stack: None }
    }
}

impl Options {
    pub(super) fn stack(&self) -> usize {
        self.stack.unwrap_or_else(stack::ordinary).min(STACK_MAX)
    }
}
