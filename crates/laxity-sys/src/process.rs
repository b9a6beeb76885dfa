//! Which process is which, and whether it is gone.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Once, OnceLock};

use laxity_model::Instant;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, getppid, kill_process, pidfd_open, set_parent_process_death_signal};

use crate::clock;

/// A process, told apart from later ones that got its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number, in its PID namespace.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub started: u64,
    /// Its PID namespace.
    pub namespace: u64,
    /// The boot of the machine.
    pub boot: u64,
}

/// What is known of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// At least one of its threads lives.
    Alive,
    /// No instruction of it will be carried out any more.
    Gone,
    /// It belongs to another PID namespace, so nothing can be said.
    Unknown,
}

impl Process {
    /// This process.
    pub fn current() -> Self {
        let pid = std::process::id();
        Process { pid, started: started(pid).unwrap_or(0), namespace: namespace(), boot: boot() }
    }

    /// Whether it lives. A process that was killed lives until the last of its threads has ended.
    pub fn standing(&self) -> Standing {
        self.look(|_| None)
    }

    /// Waits until it is gone, or until `deadline`; answers as [`Process::standing`] does.
    pub fn wait_until_gone(&self, deadline: Instant) -> Standing {
        self.look(|process| {
            loop {
                let left = deadline.saturating_since(clock::now());
                if left.is_zero() {
                    return None;
                }
                let timeout = rustix::time::Timespec {
                    tv_sec: (left.0 / 1_000_000_000) as i64,
                    tv_nsec: (left.0 % 1_000_000_000) as i64,
                };
                match poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&timeout)) {
                    Ok(0) | Err(Errno::INTR) => continue,
                    _ => return Some(()),
                }
            }
        })
    }

    fn look(&self, wait: impl FnOnce(&OwnedFd) -> Option<()>) -> Standing {
        if self.boot != boot() {
            return Standing::Gone;
        }
        if self.namespace != namespace() {
            return Standing::Unknown;
        }
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else { return Standing::Gone };
        let process = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(process) => process,
            Err(Errno::SRCH) => return Standing::Gone,
            Err(_) => return Standing::Unknown,
        };
        // The descriptor stands for whoever has the number now.
        if started(self.pid).is_some_and(|started| started != self.started) {
            return Standing::Gone;
        }
        let has_ended = || poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&Default::default())) == Ok(1);
        if has_ended() || (wait(&process).is_some() && has_ended()) { Standing::Gone } else { Standing::Alive }
    }
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

/// Asks the process `pid`, a child that nobody has waited for yet, to end: SIGTERM.
///
/// # Errors
/// If there is no such process, or it belongs to another user.
pub fn ask_to_end(pid: u32) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(kill_process(pid, Signal::TERM)?)
}

static FORKS: AtomicU32 = AtomicU32::new(0);

/// How often this process was forked since its first ancestor that called this: whoever compares two answers learns
/// whether it is a copy, for the price of a load.
#[inline]
pub fn forks() -> u32 {
    static COUNTING: Once = Once::new();
    extern "C" fn count() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    COUNTING.call_once(|| {
        // SAFETY: the handler only adds to a counter, which any child may do. If there is no memory for its
        // registration forks are not noticed.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(count)) };
    });
    FORKS.load(Ordering::Relaxed)
}

/// Field 22 of `/proc/PID/stat`. The name in field 2 may contain anything, but no field after it a parenthesis.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let after_name = &stat[stat.rfind(')')? + 1..];
    after_name.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// The inode that stands for this process's PID namespace; 0 if `/proc` does not say.
fn namespace() -> u64 {
    fs::metadata("/proc/self/ns/pid").map_or(0, |metadata| metadata.ino())
}

/// The boot of the machine: 64 bits of its random number, which are enough; 0 if `/proc` does not say.
pub fn boot() -> u64 {
    // Longer than it lasts no process lives.
    static BOOT: OnceLock<u64> = OnceLock::new();
    *BOOT.get_or_init(|| {
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let digits: String = id.chars().filter(char::is_ascii_hexdigit).take(16).collect();
        u64::from_str_radix(&digits, 16).unwrap_or(0)
    })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use laxity_model::Nanos;

    use super::*;

    #[test]
    fn a_copy_knows_that_it_is_one() {
        let before = forks();
        // SAFETY: the child calls nothing but what may be called after a fork of a process with threads.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "another process");
        if child == 0 {
            let is_told = forks() == before + 1;
            // SAFETY: as above; it never returns.
            unsafe { libc::_exit(if is_told { 42 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: our child, and a variable.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(libc::WEXITSTATUS(status), 42);
        assert_eq!(forks(), before, "not the original");
    }

    #[test]
    fn this_process_lives() {
        assert_eq!(Process::current().standing(), Standing::Alive);
    }

    #[test]
    fn a_number_that_another_process_got_stands_for_one_that_is_gone() {
        let now = Process::current();
        assert_eq!(Process { started: now.started + 1, ..now }.standing(), Standing::Gone);
        assert_eq!(Process { boot: now.boot ^ 1, ..now }.standing(), Standing::Gone);
        assert_eq!(Process { namespace: now.namespace ^ 1, ..now }.standing(), Standing::Unknown);
    }

    #[test]
    fn a_killed_process_is_gone_before_anyone_waited_for_it() {
        let mut child = Command::new("sleep").arg("60").stdout(Stdio::null()).spawn().expect("sleep(1)");
        let now = Process::current();
        let process = Process { pid: child.id(), started: started(child.id()).expect("it runs"), ..now };
        assert_eq!(process.wait_until_gone(clock::now().saturating_add(Nanos::from_millis(1))), Standing::Alive);
        child.kill().expect("it is ours");
        let deadline = clock::now().saturating_add(Nanos::from_secs(10));
        assert_eq!(process.wait_until_gone(deadline), Standing::Gone);
        assert_eq!(process.standing(), Standing::Gone);
        child.wait().expect("it is ours");
        assert_eq!(process.standing(), Standing::Gone);
    }
}
