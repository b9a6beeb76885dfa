//! A program that this process started and that does not outlive it.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};

use laxity_model::Instant;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::clock;
use crate::signals::{Signal, Signals};

/// A program that this process started. It is killed when this is dropped, or when the thread that started it ends,
/// however that is: Linux sends it SIGKILL.
#[derive(Debug)]
pub struct Started {
    child: Child,
    process: OwnedFd,
}

impl Started {
    /// Starts `command`. What `signals` keeps from this process reaches the program.
    ///
    /// # Errors
    /// If there is no such program or it may not be executed, or Linux is older than 5.3.
    pub fn new(command: &mut Command, signals: &Signals) -> io::Result<Started> {
        let (parent, set) = (std::process::id(), signals.set());
        let enter = move || {
            // SAFETY: these calls take numbers and read a set.
            unsafe {
                if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong, 0, 0, 0) != 0 {
                    return Err(io::Error::last_os_error());
                }
                // The parent may have died before that.
                if libc::getppid().unsigned_abs() != parent {
                    libc::_exit(1);
                }
                libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
            }
            Ok(())
        };
        // SAFETY: between fork and exec the closure makes system calls and allocates nothing.
        unsafe { command.pre_exec(enter) };
        let mut child = command.spawn()?;
        let number = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let opened = number.ok_or(io::ErrorKind::InvalidData.into());
        match opened.and_then(|number| Ok(pidfd_open(number, PidfdFlags::empty())?)) {
            Ok(process) => Ok(Started { child, process }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// Its number, which stands for no other process as long as this is kept and did not say that it ended.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it did.
    ///
    /// # Errors
    /// None is known.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Whether all its threads have ended. It still keeps its number.
    pub fn has_ended(&self) -> bool {
        loop {
            match poll(&mut [PollFd::new(&self.process, PollFlags::IN)], Some(&Timespec::default())) {
                Err(rustix::io::Errno::INTR) => {}
                result => return result != Ok(0),
            }
        }
    }

    /// Suspends until it ends, one of `signals` comes, or `until` has come, whichever is first.
    pub fn wait(&self, signals: &Signals, until: Instant) {
        let mut both = [PollFd::new(&self.process, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
        let left = until.saturating_since(clock::now());
        let left = clock::timespec(Instant(left.0)).filter(|_| until != Instant::NEVER);
        // After an error the caller looks for itself.
        let _ = poll(&mut both, left.as_ref());
    }

    /// Sends it a signal that this process got.
    ///
    /// # Errors
    /// If it belongs to another user.
    pub fn pass_on(&self, signal: Signal) -> io::Result<()> {
        // SAFETY: takes numbers. The child was not waited for, so that its number is its own.
        match unsafe { libc::kill(self.child.id().cast_signed(), signal.number) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

    /// Both in one test, as the signals are those of the process.
    #[test]
    fn a_program_can_be_stopped_watched_and_told_and_ends_with_its_owner() {
        // The thread of this test alone blocks them; signals of a thread's own reach no other one.
        let signals = Signals::requests().expect("a descriptor");
        assert_eq!(signals.take(), None);
        let mut command = Command::new("sh");
        command.args(["-c", "trap 'exit 7' TERM; while :; do :; done"]);
        let mut started = Started::new(&mut command, &signals).expect("there is a shell");
        let pid = started.pid();
        // It spins, so it can be seen to have begun, and to have stopped.
        laxity_testing::until("it uses CPU time", || process::cpu_time(pid).expect("it lives").0 > 5_000_000);
        process::stop(pid).expect("it lives");
        laxity_testing::until("it is stopped", || !process::is_ready(pid));
        let used = process::cpu_time(pid).expect("it lives");
        started.wait(&signals, clock::now() + laxity_model::Nanos::from_millis(20));
        assert_eq!(process::cpu_time(pid).expect("it lives"), used, "a stopped program uses no CPU time");
        started.pass_on(Signal { number: libc::SIGTERM, is_from_linux: false }).expect("it lives");
        assert!(!started.has_ended());
        process::go_on(pid).expect("it lives");
        laxity_testing::until("it ended", || started.has_ended());
        assert_eq!(started.ended().expect("ours").and_then(|status| status.code()), Some(7));
        let started = Started::new(Command::new("sleep").arg("600"), &signals).expect("there is such a program");
        let pid = started.pid();
        drop(started);
        assert!(process::cpu_time(pid).is_err(), "it is gone");
    }
}
