//! Where a started program begins: its CPUs and its control group, from its first instruction on.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The program that `command` starts may use `cpus` only, and with `group`, the open file `cgroup.procs` of a control
/// group, is a member of that group.
///
/// # Errors
/// None here. Starting fails if it may use none of the CPUs, or may not be a member.
pub fn in_place(command: &mut Command, cpus: &[usize], group: Option<OwnedFd>) {
    // SAFETY: all-zero is an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &cpu in cpus.iter().filter(|&&cpu| cpu < libc::CPU_SETSIZE as usize) {
        // SAFETY: the number is within the set.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    let enter = move || {
        // SAFETY: 0 is the calling process, and the set is read only.
        if unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let Some(group) = &group else { return Ok(()) };
        // SAFETY: one byte is read. "0" is the process that writes it.
        match unsafe { libc::write(group.as_raw_fd(), c"0".as_ptr().cast(), 1) } {
            1 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: between fork and exec the closure makes two system calls and allocates nothing; an error that Linux made is
    // a number.
    unsafe { command.pre_exec(enter) };
}
