//! What tells processes apart: the boot of the machine, and PID namespaces.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

use laxity_model::{Instant, Nanos};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, getppid, kill_process, kill_process_group, pidfd_open, set_parent_process_death_signal,
};

use crate::clock;
use crate::fault;
pub use crate::fork::forks;

/// This process does not know what it needs to know of itself to share memory with others.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot read {path}: {error}; a process must know it before it shares memory: mount all of /proc, or raise the \
     limit of open files (ulimit -n)"
)]
pub struct IdentityError {
    /// The file that says it.
    pub path: &'static str,
    /// Why it cannot be read.
    #[source]
    pub error: io::Error,
}

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const PID_NAMESPACE: &str = "/proc/self/ns/pid";

/// The boot of the machine: 64 bits of its random number, which are enough; never 0.
///
/// # Errors
/// If Linux does not say. An unreadable identity is never a value: every other boot would look different.
pub fn boot() -> Result<u64, IdentityError> {
    // A process does not outlast a boot. Failures may pass, so they are not kept.
    static BOOT: OnceLock<u64> = OnceLock::new();
    if let Some(&boot) = BOOT.get().filter(|_| !fault::is_active()) {
        return Ok(boot);
    }
    let read = || -> io::Result<u64> {
        fault::point("open")?;
        let id = fs::read(BOOT_ID)?;
        boot_in(&id).ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "it is no random number"))
    };
    let boot = read().map_err(|error| IdentityError { path: BOOT_ID, error })?;
    Ok(*BOOT.get_or_init(|| boot))
}

/// The first 64 bits of a UUID as text.
fn boot_in(id: &[u8]) -> Option<u64> {
    let digits: String =
        id.iter().filter(|byte| byte.is_ascii_hexdigit()).take(16).map(|&byte| char::from(byte)).collect();
    let number = u64::from_str_radix(&digits, 16).ok()?;
    (digits.len() == 16 && number != 0).then_some(number)
}

/// The inode that stands for this process's PID namespace.
///
/// # Errors
/// If Linux does not say.
pub fn pid_namespace() -> Result<u64, IdentityError> {
    let read = || -> io::Result<u64> {
        fault::point("stat")?;
        Ok(fs::metadata(PID_NAMESPACE)?.ino())
    };
    read().map_err(|error| IdentityError { path: PID_NAMESPACE, error })
}

/// From now on this process gets SIGTERM when the thread of `parent` that started it ends, however that ends. Answers
/// whether `parent` is still there: if it died before this call, there will be no signal.
///
/// # Errors
/// If Linux refuses, which none is known to.
pub fn end_with(parent: u32) -> io::Result<bool> {
    set_parent_process_death_signal(Some(Signal::TERM))?;
    // Orphans get another parent before their signal would come.
    Ok(getppid().is_some_and(|now| now.as_raw_pid().unsigned_abs() == parent))
}

/// Asks the process `pid`, a child that has not been waited for, to end: SIGTERM.
///
/// # Errors
/// If there is no such process, or it belongs to another user.
pub fn ask_to_end(pid: u32) -> io::Result<()> {
    signal(pid, Signal::TERM)
}

/// All threads of the process `pid` stop, soon: SIGSTOP.
///
/// # Errors
/// As [`ask_to_end`].
pub fn stop(pid: u32) -> io::Result<()> {
    signal(pid, Signal::STOP)
}

/// The process `pid` goes on if it is stopped: SIGCONT.
///
/// # Errors
/// As [`ask_to_end`].
pub fn go_on(pid: u32) -> io::Result<()> {
    signal(pid, Signal::CONT)
}

/// Kills all processes of the group that the process `pid` leads, which is a child that has not been waited for.
pub fn kill_group(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // They belong to this user, or have become another's by their own doing, which this one may not kill.
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

fn signal(pid: u32, signal: Signal) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(kill_process(pid, signal)?)
}

/// Suspends this thread until all threads of the process `pid`, a child that was not waited for, have ended, but not beyond
/// `until`. Answers whether they have; the child keeps its number until it is waited for.
///
/// # Errors
/// If Linux is older than 5.3, or this process has too many descriptors.
pub fn has_ended_by(pid: u32, until: Instant) -> io::Result<bool> {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    let process = pidfd_open(number, PidfdFlags::empty())?;
    loop {
        let left = until.saturating_since(clock::now());
        let left = Timespec { tv_sec: (left.0 / 1_000_000_000) as i64, tv_nsec: (left.0 % 1_000_000_000) as i64 };
        match poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&left)) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(ended) => return Ok(ended != 0),
        }
    }
}

/// The CPU time that all threads of the process `pid` have used, in ns. Exact for threads that have no CPU, and for the
/// calling process. Of a thread that another process has on a CPU, Linux counts it at ticks and context switches only, so
/// that it is short by up to a tick (4 ms at 250 Hz): see [`cpus_of_ready`].
///
/// # Errors
/// If there is no such process.
pub fn cpu_time(pid: u32) -> io::Result<Nanos> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut clock: libc::clockid_t = 0;
    // SAFETY: the clock's number is written only.
    match unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) } {
        0 => {}
        error => return Err(io::Error::from_raw_os_error(error)),
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is written only.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // Neither part of a CPU time is negative.
    Ok(Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64))
}

/// The process that started the process `pid`, or took it over from one that ended; `None`: there is no such process.
pub fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Field 4, after the name in parentheses, which may have any characters.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// The CPUs that threads of the process `pid` run on, or wait for, each once, and that of its first thread last; also those of
/// threads that were about to leave theirs. None without a `/proc`.
///
/// A thread that is more urgent than these and goes to one of these CPUs takes it from them, and so has Linux count what they
/// used there, for [`cpu_time`].
pub fn cpus_of_ready(pid: u32) -> Vec<usize> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let mut found: Vec<(bool, usize)> = tasks
        .flatten()
        .filter_map(|task| {
            let stat = fs::read_to_string(task.path().join("stat")).ok()?;
            let is_first = task.file_name().to_str() == Some(pid.to_string().as_str());
            Some((is_first, ready_on(&stat)?))
        })
        .collect();
    // In this order a CPU is that of the first thread if one of its entries is.
    found.sort_unstable();
    let last = found.last().copied();
    let mut cpus: Vec<usize> =
        found.into_iter().map(|(_, cpu)| cpu).filter(|&cpu| last.is_some_and(|(_, last)| cpu != last)).collect();
    cpus.dedup();
    cpus.extend(last.map(|(_, cpu)| cpu));
    cpus
}

/// The CPU of a thread that is running or ready, by its line in `/proc`.
fn ready_on(stat: &str) -> Option<usize> {
    // Fields 3 and 39, after the name in parentheses, which may have any characters.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    (fields.next()? == "R").then_some(())?;
    fields.nth(35)?.parse().ok()
}

/// Whether the process `pid` is stopped, by a signal or by a debugger: none of its threads goes on by itself. Not if there
/// is none, or no `/proc`.
pub fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| matches!(state(&stat), Some('T' | 't')))
}

/// Whether the first thread of the process `pid` runs or is ready to, rather than waiting for something; not if there is
/// none.
pub fn is_ready(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/task/{pid}/stat")).is_ok_and(|stat| state(&stat) == Some('R'))
}

/// The state of a process or thread, by its line in `/proc`.
fn state(stat: &str) -> Option<char> {
    // Field 3, after the name in parentheses, which may have any characters.
    stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_of_a_child_is_this_process() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep is there");
        assert_eq!(parent_of(child.id()), Some(std::process::id()));
        child.kill().and_then(|()| child.wait()).expect("it ends");
        assert_eq!(parent_of(child.id()), None);
        assert_eq!(parent_of(std::process::id()), Some(std::os::unix::process::parent_id()));
    }

    #[test]
    fn a_line_of_proc_names_the_cpu_of_a_ready_thread_whatever_the_thread_is_called() {
        let line = |state: &str| {
            let rest: Vec<String> = (4..=52).map(|field| field.to_string()).collect();
            format!("7 (a) R 1 2) {state} {}", rest.join(" "))
        };
        assert_eq!(ready_on(&line("R")), Some(39));
        assert_eq!(ready_on(&line("S")), None);
        assert_eq!(ready_on("7 (short) R 1"), None);
    }

    #[test]
    fn a_process_that_runs_is_not_stopped_and_has_a_cpu() {
        let own = std::process::id();
        assert!(!is_stopped(own));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep is there");
        stop(child.id()).expect("it is ours");
        while !is_stopped(child.id()) {
            std::thread::yield_now();
        }
        assert_eq!(cpus_of_ready(child.id()), [0; 0], "a stopped one needs none");
        go_on(child.id()).expect("it is ours");
        while is_stopped(child.id()) {
            std::thread::yield_now();
        }
        child.kill().and_then(|()| child.wait()).expect("it ends");
        assert!(!is_stopped(child.id()));
        assert!(!cpus_of_ready(own).is_empty(), "the thread that asks runs");
    }

    #[test]
    fn a_boot_that_is_no_number_is_none() {
        assert_eq!(boot_in(b"de0cf33a-602e-4499-bfa4-3c358af16b36\n"), Some(0xde0c_f33a_602e_4499));
        for id in [&b""[..], b"\xff", b"de0cf33a-602e", b"00000000-0000-0000-0000-000000000000"] {
            assert_eq!(boot_in(id), None);
        }
    }
}
