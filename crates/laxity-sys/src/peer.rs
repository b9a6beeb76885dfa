//! Processes of this user, whose threads this process may be asked to schedule.
//!
//! Memory that processes share names threads by number. A number is no proof: a privileged process that believes it
//! would raise a thread of any user. A [`Peer`] is proof that a process belongs to this user, for as long as it lives.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, geteuid, pidfd_open};

use crate::fault;

/// `PF_EXITING` of Linux, in field 9 of `/proc/PID/task/TID/stat`.
const EXITING: u64 = 4;

/// A process that has the effective user of this one.
#[derive(Debug)]
pub struct Peer {
    pid: u32,
    process: OwnedFd,
}

impl Peer {
    /// The process `pid`.
    ///
    /// # Errors
    /// EPERM if it belongs to another user, ESRCH if there is none, and any error that keeps this process from knowing.
    pub fn of(pid: u32) -> io::Result<Peer> {
        let gone = || io::Error::from_raw_os_error(libc::ESRCH);
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(gone)?;
        let open = || pidfd_open(number, PidfdFlags::empty());
        let peer = Peer { pid, process: fault::point("pidfd_open").and_then(|()| open())? };
        fault::point("open")?;
        let user = effective_user(&fs::read(format!("/proc/{pid}/status"))?);
        // The process still lives, so that is what `/proc` told of.
        if !peer.lives() {
            return Err(gone());
        }
        if user == Some(geteuid().as_raw()) { Ok(peer) } else { Err(io::Error::from_raw_os_error(libc::EPERM)) }
    }

    /// Its number, which stands for no other process while it lives.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether at least one of its threads lives.
    pub fn lives(&self) -> bool {
        loop {
            match poll(&mut [PollFd::new(&self.process, PollFlags::IN)], Some(&Default::default())) {
                Err(Errno::INTR) => {}
                result => return result == Ok(0),
            }
        }
    }
}

/// The second of the four numbers after `Uid:`.
fn effective_user(status: &[u8]) -> Option<u32> {
    let line = status.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"Uid:"))?;
    std::str::from_utf8(line).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Whether the thread of that process was killed, or ends by itself, and has not ended.
pub fn is_ending(thread: u32, pid: u32) -> bool {
    let read = |file: &str| fs::read(format!("/proc/{pid}/task/{thread}/{file}")).unwrap_or_default();
    let status = String::from_utf8_lossy(&read("status")).into_owned();
    let pending = status.lines().find_map(|line| line.strip_prefix("SigPnd:"));
    let pending = pending.and_then(|signals| u64::from_str_radix(signals.trim(), 16).ok()).unwrap_or(0);
    let stat = String::from_utf8_lossy(&read("stat")).into_owned();
    // The name in field 2 may contain anything, but no field after it a parenthesis.
    let after_name = stat.rfind(')').map_or("", |end| &stat[end + 1..]);
    let flags = after_name.split_ascii_whitespace().nth(6).and_then(|flags| flags.parse::<u64>().ok()).unwrap_or(0);
    pending >> (Signal::KILL.as_raw() - 1) & 1 == 1 || flags & EXITING != 0
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_of_this_user_is_a_peer_while_it_lives() {
        assert!(Peer::of(std::process::id()).expect("it is ours").lives());
        let mut child = Command::new("sleep").arg("60").stdout(Stdio::null()).spawn().expect("sleep(1)");
        let peer = Peer::of(child.id()).expect("it is ours");
        assert!(peer.lives());
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
        assert!(!peer.lives());
        assert_eq!(Peer::of(child.id()).expect_err("it is gone").raw_os_error(), Some(libc::ESRCH));
    }

    #[test]
    fn a_process_of_another_user_is_no_peer() {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new("sleep");
        let Ok(mut child) = command.arg("60").uid(65534).stdout(Stdio::null()).spawn() else {
            eprintln!("skipped: only root starts processes of other users");
            return;
        };
        let refused = Peer::of(child.id()).expect_err("it belongs to another user").raw_os_error();
        child.kill().expect("root may");
        child.wait().expect("it is ours");
        assert_eq!(refused, Some(libc::EPERM));
    }

    #[test]
    fn a_thread_that_goes_on_is_not_ending() {
        assert!(!is_ending(crate::scheduling::current_thread(), std::process::id()));
    }

    #[test]
    fn the_effective_user_is_the_second() {
        assert_eq!(effective_user(b"Name:\tUid: 7\nUid:\t1\t2\t3\t4\n"), Some(2));
        assert_eq!(effective_user(b"Name:\tx\n"), None);
    }
}
