//! What a started program inherits.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use crate::fault;

/// The first descriptor that is not a standard stream.
const FIRST: libc::c_uint = 3;

/// Starts `command`. Its program inherits its standard streams and no other descriptor, even those without `FD_CLOEXEC` that
/// other code of this process opened. Needs Linux 5.11.
///
/// # Errors
/// If there can be no more processes, the program cannot be executed, or Linux is older.
pub fn nothing(command: &mut Command) -> io::Result<Child> {
    let close = || {
        let (all, on_exec) = (libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
        // SAFETY: the call takes three numbers, and only marks the descriptors of the new process. Descriptors that std
        // needs until the program is executed have the mark already.
        match unsafe { libc::syscall(libc::SYS_close_range, FIRST, all, on_exec) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: between fork and exec the closure makes one system call and allocates nothing.
    unsafe { command.pre_exec(close) };
    fault::point("fork")?;
    fault::point("execve")?;
    command.spawn()
}
