//! Scheduling attributes of the calling thread.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// The CPU that this thread runs on, unless it has moved since.
pub fn current_cpu() -> usize {
    sched_getcpu()
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

/// The CPUs that this thread may use, ascending.
///
/// # Errors
/// If Linux has more than it can say in one answer.
pub fn usable_cpus() -> io::Result<Vec<usize>> {
    let cpus = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| cpus.is_set(cpu)).collect())
}

/// Keeps this thread on `cpus`.
///
/// # Errors
/// If the thread may use none of them. Those that there are not are ignored by Linux: see [`usable_cpus`].
pub fn keep_on(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set.set(cpu);
    }
    Ok(sched_setaffinity(None, &set)?)
}
