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

/// The CPU time that all threads of the process `pid` have used, to the nanosecond.
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

/// Whether the first thread of the process `pid` runs or is ready to, rather than waiting for something; not if there is
/// none.
pub fn is_ready(pid: u32) -> bool {
    // Field 3, after the name in parentheses, which may have any characters.
    let state = |stat: &str| stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    fs::read_to_string(format!("/proc/{pid}/task/{pid}/stat")).is_ok_and(|stat| state(&stat) == Some('R'))
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
    fn a_boot_that_is_no_number_is_none() {
        assert_eq!(boot_in(b"de0cf33a-602e-4499-bfa4-3c358af16b36\n"), Some(0xde0c_f33a_602e_4499));
        for id in [&b""[..], b"\xff", b"de0cf33a-602e", b"00000000-0000-0000-0000-000000000000"] {
            assert_eq!(boot_in(id), None);
        }
    }
}
