//! Threads of the kernel that this process schedules otherwise than Linux did, until it ends in whatever way.

use std::env;
use std::fmt;
use std::fs;
use std::io;
use std::process::Command;

use laxity_sys::cpu_mask::CpuMask;
use laxity_sys::restorer::Restorer;
use laxity_sys::scheduling::{Attributes, thread_name};

/// The argument by which the loader's program is the process that gives such threads back what they had.
pub const RESTORE: &str = "restore";

/// A thread of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelThread {
    /// Its number.
    pub number: u32,
    /// Its name, such as `irq/16-uio_pci_generic`.
    pub name: String,
    /// The CPU that it was on last.
    pub cpu: usize,
}

/// `PF_KTHREAD` of Linux.
const OF_KERNEL: u64 = 0x0020_0000;

impl KernelThread {
    /// The thread of that number, if it is one of the kernel. An error is the reason why not.
    pub fn of(number: u32) -> Result<KernelThread, String> {
        let stat =
            fs::read_to_string(format!("/proc/{number}/stat")).map_err(|_| format!("there is no thread {number}"))?;
        let (name, flags, cpu) = stat_of(&stat).ok_or_else(|| format!("/proc/{number}/stat: {stat}"))?;
        let name = thread_name(number, number).unwrap_or(name);
        if flags & OF_KERNEL == 0 {
            return Err(format!("thread {number} {name} is none of the kernel: `Membership::begin` makes it a task"));
        }
        Ok(KernelThread { number, name, cpu })
    }
}

impl fmt::Display for KernelThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread {} {}", self.number, self.name)
    }
}

/// The name, the flags and the last CPU: fields 2, 9 and 39. The name, which may have blanks, ends with the last parenthesis.
fn stat_of(stat: &str) -> Option<(String, u64, usize)> {
    let (head, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let name = head.split_once('(')?.1.to_owned();
    Some((name, fields.get(6)?.parse().ok()?, fields.get(36)?.parse().ok()?))
}

/// The threads, and the process that gives them back what they had once this one has ended.
#[derive(Debug, Default)]
pub struct Borrowed {
    restorer: Option<Restorer>,
}

impl Borrowed {
    /// Before `thread` is scheduled otherwise, on other CPUs than `cpus` if these are said. Returns how Linux schedules it. An error is
    /// the reason why it stays so.
    pub fn keep(&mut self, thread: &KernelThread, cpus: Option<&CpuMask>) -> Result<Attributes, String> {
        let mut keep = || {
            let own = Attributes::of(thread.number)?;
            // What it has, given again: Linux says at once whether this user may.
            own.give_to(thread.number)?;
            let restorer = match self.restorer.take() {
                Some(restorer) => restorer,
                None => {
                    let mut command = Command::new(env::current_exe()?);
                    command.arg(RESTORE);
                    Restorer::start(command)?
                }
            };
            self.restorer.insert(restorer).keep(thread.number, &thread.name, own, cpus)?;
            Ok(own)
        };
        keep().map_err(|error: io::Error| {
            format!("{thread} keeps its class and its CPUs: {error}; CAP_SYS_NICE changes them")
        })
    }

    /// All have what they had before. An error is the reason why some have not.
    pub fn give_back(&mut self) -> io::Result<()> {
        match self.restorer.take().map(Restorer::end) {
            None | Some(Ok(true)) => Ok(()),
            Some(Ok(false)) => Err(io::Error::other("not all threads of interrupts have their own classes again")),
            Some(Err(error)) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_described_behind_a_name_with_blanks() {
        let rest = "S 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 -51 0 1 0 300 0 0 18446744073709551615 0 0 0 0 0 0 0 2147483647 0 0 0 0 17 3 50 1";
        let stat = format!("77 (irq/131-nv (x) y) {rest}");
        let (name, flags, cpu) = stat_of(&stat).expect("it has all fields");
        assert_eq!((name.as_str(), flags, cpu), ("irq/131-nv (x) y", 2_129_984, 3));
        assert_ne!(flags & OF_KERNEL, 0, "a thread of the kernel");
    }

    #[test]
    fn a_thread_of_a_program_is_none_of_the_kernel() {
        let refused = KernelThread::of(std::process::id()).expect_err("this is a program");
        assert!(refused.contains("none of the kernel"), "{refused}");
        assert!(KernelThread::of(u32::MAX).is_err());
    }
}
