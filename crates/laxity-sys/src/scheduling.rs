//! Scheduling attributes of the calling thread.

use std::io;
use std::num::NonZeroU64;

use laxity_model::Nanos;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity, set_current_timer_slack};

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

/// Schedules this thread by `SCHED_DEADLINE`: `runtime` in each `period`, within `deadline` from when it begins. What
/// it starts is scheduled as usual.
///
/// # Errors
/// If the user may not, or the thread may not use all CPUs (permission denied); if the CPUs are promised to others
/// (resource busy); or unless 1024 ns <= `runtime` <= `deadline` <= `period` (invalid input).
pub fn set_deadline(runtime: Nanos, deadline: Nanos, period: Nanos) -> io::Result<()> {
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_DEADLINE as u32,
        sched_flags: libc::SCHED_FLAG_RESET_ON_FORK as u64,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: runtime.0,
        sched_deadline: deadline.0,
        sched_period: period.0,
    };
    // SAFETY: 0 is the calling thread, and the attributes are read only.
    match unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Has timers of this thread expire when they are due, rather than up to 50 us later, together with others. Those of
/// real-time threads do anyway.
///
/// # Errors
/// None are known.
pub fn expire_on_time() -> io::Result<()> {
    Ok(set_current_timer_slack(Some(NonZeroU64::MIN))?)
}

/// How a thread is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// `SCHED_FIFO`.
    Fifo {
        /// 1 to 99.
        priority: u8,
    },
    /// `SCHED_DEADLINE`.
    Deadline {
        /// What it may run in each period.
        runtime: Nanos,
    },
    /// Another.
    Another {
        /// Its number in Linux.
        number: u32,
    },
}

/// How this thread is scheduled.
///
/// # Errors
/// If the process may not ask.
pub fn policy() -> io::Result<Policy> {
    let mut attributes = std::mem::MaybeUninit::<libc::sched_attr>::zeroed();
    let size = size_of::<libc::sched_attr>();
    // SAFETY: 0 is the calling thread, and as many bytes are written at most as the attributes have.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, attributes.as_mut_ptr(), size, 0) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: integers, all of them zeroed or written.
    let attributes = unsafe { attributes.assume_init() };
    Ok(match attributes.sched_policy as i32 {
        // Linux has no priority above 99.
        libc::SCHED_FIFO => Policy::Fifo { priority: attributes.sched_priority as u8 },
        libc::SCHED_DEADLINE => Policy::Deadline { runtime: Nanos(attributes.sched_runtime) },
        _ => Policy::Another { number: attributes.sched_policy },
    })
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
