//! Memory that is there when it is touched.

use std::io;

use rustix::mm::{MlockAllFlags, mlockall};

/// Brings all memory that this process has now, stacks of its threads included, into RAM, and keeps it there.
///
/// # Errors
/// If the user may not lock so much (`RLIMIT_MEMLOCK`), or there is not as much.
pub fn lock_all() -> io::Result<()> {
    Ok(mlockall(MlockAllFlags::CURRENT)?)
}
