//! The size of stacks.

use rustix::process::{Resource, getrlimit};

/// The stack of an ordinary thread if `RLIMIT_STACK` is unlimited.
const UNLIMITED: usize = 8 << 20;
/// Less than this no code of users runs in.
const LEAST: usize = 256 << 10;

/// Bytes of the stack of an ordinary thread: the soft limit `RLIMIT_STACK`, as for the threads of C programs, or 8 MiB if
/// that is unlimited; at least 256 KiB.
pub fn ordinary() -> usize {
    let limit = getrlimit(Resource::Stack).current.and_then(|bytes| usize::try_from(bytes).ok());
    limit.unwrap_or(UNLIMITED).max(LEAST)
}
