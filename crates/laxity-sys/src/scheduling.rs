//! Scheduling attributes of threads.

use std::io;
use std::num::NonZeroU64;
use std::thread::{self, JoinHandle};

use laxity_model::Nanos;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity, set_current_timer_slack};

use crate::fault;

/// Starts a thread.
///
/// # Errors
/// If there is no memory for it, or this user has too many.
pub fn spawn(builder: thread::Builder, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    fault::point("clone")?;
    builder.spawn(body)
}

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
    fault::point("sched_setscheduler")?;
    // SAFETY: 0 is the calling thread, and the parameters are read only.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The highest priority of `SCHED_FIFO` that this process may have without `CAP_SYS_NICE` (`RLIMIT_RTPRIO`); 0 for none.
pub fn fifo_limit() -> u64 {
    rustix::process::getrlimit(rustix::process::Resource::Rtprio).current.unwrap_or(u64::MAX)
}

/// The number of this thread in its PID namespace.
pub fn current_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// Schedules this thread by `SCHED_DEADLINE`: `runtime` in each `period`, within `deadline` from when it begins, and
/// more where others leave some of what they were promised (`SCHED_FLAG_RECLAIM`): a thread that exceeds its budget is
/// throttled when nothing is left. Threads that it starts are scheduled as usual.
///
/// # Errors
/// If the user may not, or the thread may not use all CPUs (permission denied); if the CPUs are promised to others
/// (resource busy); or unless 1024 ns <= `runtime` <= `deadline` <= `period` (invalid input).
pub fn set_deadline(runtime: Nanos, deadline: Nanos, period: Nanos) -> io::Result<()> {
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_DEADLINE as u32,
        sched_flags: (libc::SCHED_FLAG_RESET_ON_FORK | libc::SCHED_FLAG_RECLAIM) as u64,
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
        /// Whether it may run longer where others leave some.
        reclaims: bool,
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
        libc::SCHED_DEADLINE => Policy::Deadline {
            runtime: Nanos(attributes.sched_runtime),
            reclaims: attributes.sched_flags & libc::SCHED_FLAG_RECLAIM as u64 != 0,
        },
        _ => Policy::Another { number: attributes.sched_policy },
    })
}

/// Whether there is a thread of that number in the process of that number, as far as this user may know.
pub fn is_thread_of(thread: u32, pid: u32) -> bool {
    // SAFETY: signal 0 is none; Linux only looks whether it could be sent.
    let result = unsafe { libc::syscall(libc::SYS_tgkill, pid, thread, 0) };
    result == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
}

/// What Linux calls that thread of that process; nothing if there is none, or no `/proc`.
pub fn thread_name(thread: u32, pid: u32) -> Option<String> {
    let name = std::fs::read(format!("/proc/{pid}/task/{thread}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned())
}

/// How Linux schedules a thread: `struct sched_attr`, for the policies that need no more than a priority or a niceness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
}

impl Attributes {
    /// Those of the thread with that number, of any process.
    ///
    /// # Errors
    /// If there is none.
    pub fn of(thread: u32) -> io::Result<Attributes> {
        // SAFETY: all-zero is a valid `sched_attr`.
        let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::sched_attr>();
        // SAFETY: the structure has the size that is said and is written only.
        let result = unsafe { libc::syscall(libc::SYS_sched_getattr, thread, &raw mut attributes, size, 0) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        let libc::sched_attr { sched_policy, sched_flags, sched_nice, sched_priority, .. } = attributes;
        Ok(Attributes { policy: sched_policy, flags: sched_flags, nice: sched_nice, priority: sched_priority })
    }

    /// Gives them to the thread with that number, of any process.
    ///
    /// # Errors
    /// If there is none, or this user may not.
    pub fn give_to(&self, thread: u32) -> io::Result<()> {
        // SAFETY: all-zero is a valid `sched_attr`.
        let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
        attributes.size = size_of::<libc::sched_attr>() as u32;
        attributes.sched_policy = self.policy;
        // Only this one says something about policies with a priority or a niceness.
        attributes.sched_flags = self.flags & libc::SCHED_FLAG_RESET_ON_FORK as u64;
        attributes.sched_nice = self.nice;
        attributes.sched_priority = self.priority;
        // SAFETY: the structure has the size that it says and is read only.
        let result = unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const attributes, 0) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// The priority under `SCHED_FIFO` and `SCHED_RR`, 1 to 99.
    pub fn fixed_priority(&self) -> Option<u8> {
        let is_fixed = [libc::SCHED_FIFO, libc::SCHED_RR].contains(&(self.policy as libc::c_int));
        is_fixed.then_some(self.priority as u8)
    }

    /// Whether a fixed priority would be less than what they are: `SCHED_DEADLINE`.
    pub fn is_above_fixed(&self) -> bool {
        self.policy as libc::c_int == libc::SCHED_DEADLINE
    }

    /// `SCHED_FIFO` at `priority`, 1 to 99, if that is more than they are.
    #[must_use]
    pub fn at_least(self, priority: u8) -> Self {
        if self.is_above_fixed() || self.fixed_priority() >= Some(priority) {
            return self;
        }
        Attributes { policy: libc::SCHED_FIFO as u32, priority: priority.into(), nice: 0, ..self }
    }

    /// `SCHED_FIFO` at `priority`.
    ///
    /// # Errors
    /// Unless it is 1 to 99 (invalid input).
    pub fn fixed(self, priority: u8) -> io::Result<Self> {
        if !(1..=99).contains(&priority) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(Attributes { policy: libc::SCHED_FIFO as u32, priority: priority.into(), nice: 0, ..self })
    }

    /// `SCHED_OTHER`, below all real-time threads.
    #[must_use]
    pub fn ordinary(self) -> Self {
        Attributes { policy: libc::SCHED_OTHER as u32, priority: 0, ..self }
    }

    /// With a niceness that favours the thread of that number no more than the one that Linux keeps for it, under whatever
    /// policy the thread is now.
    ///
    /// # Errors
    /// If there is no such thread.
    pub fn keeping_niceness(self, thread: u32) -> io::Result<Self> {
        // SAFETY: takes numbers and touches no memory of ours.
        let answer = unsafe { libc::syscall(libc::SYS_getpriority, libc::PRIO_PROCESS, thread) };
        // The bare system call answers 20 minus the niceness, so that errors are apart from it.
        match i32::try_from(answer) {
            Ok(answer @ 1..=40) => Ok(Attributes { nice: self.nice.max(20 - answer), ..self }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// `SCHED_FIFO` at `priority`, which is clamped to 1 to 99. Threads that the thread starts are scheduled as usual.
    pub fn fifo_not_inherited(priority: u8) -> Self {
        let flags = libc::SCHED_FLAG_RESET_ON_FORK as u64;
        Attributes { policy: libc::SCHED_FIFO as u32, flags, nice: 0, priority: priority.clamp(1, 99).into() }
    }

    /// `SCHED_OTHER`, below all real-time threads. Threads that the thread starts are scheduled as usual.
    pub fn ordinary_not_inherited() -> Self {
        let flags = libc::SCHED_FLAG_RESET_ON_FORK as u64;
        Attributes { policy: libc::SCHED_OTHER as u32, flags, nice: 0, priority: 0 }
    }

    /// As they are, but that what the thread starts is scheduled as usual: a flag that only a privileged user takes back.
    #[must_use]
    pub fn not_inherited(self) -> Self {
        Attributes { flags: self.flags | libc::SCHED_FLAG_RESET_ON_FORK as u64, ..self }
    }

    /// As two numbers.
    pub fn to_words(self) -> [u64; 2] {
        let Attributes { policy, flags, nice, priority } = self;
        [flags, u64::from(policy) << 32 | u64::from(nice as u8) << 8 | u64::from(priority as u8)]
    }

    /// What [`Attributes::to_words`] made numbers of.
    pub fn from_words([flags, rest]: [u64; 2]) -> Self {
        let nice = i32::from((rest >> 8) as u8 as i8);
        Attributes { policy: (rest >> 32) as u32, flags, nice, priority: rest as u32 & 0xff }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_one_of_its_process_while_it_lives() {
        let ours = std::process::id();
        assert!(is_thread_of(current_thread(), ours));
        assert!(!is_thread_of(1, ours));
        let ended = std::thread::spawn(current_thread).join().expect("no panic");
        // Joined threads may take a moment to be gone.
        while is_thread_of(ended, ours) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn attributes_are_what_was_given_to_a_thread_and_survive_as_words() {
        let thread = current_thread();
        let ordinary = Attributes::of(thread).expect("it is this one");
        assert_eq!(Attributes::from_words(ordinary.to_words()), ordinary);
        assert_eq!(ordinary.fixed_priority(), None, "tests run as ordinary threads");
        let raised = ordinary.at_least(7);
        assert_eq!(raised.fixed_priority(), Some(7));
        assert_eq!(raised.at_least(6), raised);
        assert_eq!(raised.fixed(3).expect("there is such a priority").fixed_priority(), Some(3));
        assert!(ordinary.fixed(0).is_err() && ordinary.fixed(100).is_err());
        assert_eq!(Attributes::from_words(raised.to_words()), raised);
        if let Err(error) = raised.give_to(thread) {
            return laxity_testing::skip(format_args!("no SCHED_FIFO: {error}"));
        }
        assert_eq!(Attributes::of(thread).expect("it is this one").fixed_priority(), Some(7));
        ordinary.give_to(thread).expect("everybody may");
        assert_eq!(Attributes::of(thread).expect("it is this one"), ordinary);
    }
}
