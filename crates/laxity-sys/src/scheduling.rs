//! Scheduling attributes of the calling thread.

use std::io;

use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};

/// The CPU that this thread runs on, unless it has moved since.
pub fn current_cpu() -> usize {
    sched_getcpu()
}

/// How many CPUs the machine is configured for, those that this thread may not use included: all CPUs are below, unless
/// the machine numbers them with gaps.
pub fn cpus() -> usize {
    // SAFETY: takes a number and touches no memory of ours.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    usize::try_from(count).unwrap_or(0).max(current_cpu() + 1)
}

/// Schedules this thread by `SCHED_FIFO` at `priority`, 1 to 99.
///
/// # Errors
/// If the user may not, which is usual without `CAP_SYS_NICE` or `RLIMIT_RTPRIO`.
pub fn set_fifo(priority: u8) -> io::Result<()> {
    // SAFETY: all-zero is a valid `sched_param`; the C library adds fields on some systems.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority.into();
    // SAFETY: 0 is the calling thread, and the parameters are read only.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Keeps this thread on `cpu`.
///
/// # Errors
/// If there is no such CPU or the thread may not use it.
pub fn pin(cpu: usize) -> io::Result<()> {
    let mut cpus = CpuSet::new();
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    cpus.set(cpu);
    Ok(sched_setaffinity(None, &cpus)?)
}
