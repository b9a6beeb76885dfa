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

/// A thread that handles interrupts: of the kernel, or of a process that handles them by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlingThread {
    /// Its number.
    pub number: u32,
    /// Its name, such as `irq/16-uio_pci_generic`.
    pub name: String,
    /// The CPU that it was on last.
    pub cpu: usize,
    /// The process; `None`: the kernel.
    pub process: Option<u32>,
    /// Whether it slept when this was asked.
    pub sleeps: bool,
}

/// `PF_KTHREAD` of Linux.
const OF_KERNEL: u64 = 0x0020_0000;

impl HandlingThread {
    /// The thread of that number, if it is one of the kernel or of the process `asking`. An error is the reason why not.
    pub fn of(number: u32, asking: u32) -> Result<HandlingThread, String> {
        let stat =
            fs::read_to_string(format!("/proc/{number}/stat")).map_err(|_| format!("there is no thread {number}"))?;
        let Stat { name, sleeps, flags, cpu } =
            Stat::of(&stat).ok_or_else(|| format!("/proc/{number}/stat: {stat}"))?;
        let is_of_kernel = flags & OF_KERNEL != 0;
        let process = (!is_of_kernel).then_some(asking);
        if process.is_some() && fs::metadata(format!("/proc/{asking}/task/{number}")).is_err() {
            return Err(format!(
                "thread {number} {name} is none of the kernel, and none of process {asking}, which asks; `Membership::begin` makes a thread a task"
            ));
        }
        let name = thread_name(number, process.unwrap_or(number)).unwrap_or(name);
        Ok(HandlingThread { number, name, cpu, process, sleeps })
    }
}

impl fmt::Display for HandlingThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread {} {}", self.number, self.name)
    }
}

/// What Linux says of a thread in a line.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    name: String,
    sleeps: bool,
    flags: u64,
    cpu: usize,
}

impl Stat {
    /// Fields 2, 3, 9 and 39. The name, which may have blanks, ends with the last parenthesis.
    fn of(stat: &str) -> Option<Stat> {
        let (head, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let name = head.split_once('(')?.1.to_owned();
        let (flags, cpu) = (fields.get(6)?.parse().ok()?, fields.get(36)?.parse().ok()?);
        Some(Stat { name, sleeps: *fields.first()? == "S", flags, cpu })
    }
}

/// The threads, and the process that gives them back what they had once this one has ended.
#[derive(Debug, Default)]
pub struct Borrowed {
    restorer: Option<Restorer>,
}

impl Borrowed {
    /// Before `thread` is scheduled otherwise, on other CPUs than `cpus` if these are said. Returns how Linux schedules it. An error is
    /// the reason why it stays so.
    pub fn keep(&mut self, thread: &HandlingThread, cpus: Option<&CpuMask>) -> Result<Attributes, String> {
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
        let found = Stat::of(&stat).expect("it has all fields");
        assert_eq!(found, Stat { name: "irq/131-nv (x) y".to_owned(), sleeps: true, flags: 2_129_984, cpu: 3 });
        assert_ne!(found.flags & OF_KERNEL, 0, "a thread of the kernel");
    }

    #[test]
    fn a_thread_of_a_program_is_none_of_the_kernel_and_its_own_program_may_name_it() {
        let own = std::process::id();
        let named = std::thread::Builder::new().name("softgpu-handling".to_owned());
        let asks = move || HandlingThread::of(laxity_sys::scheduling::current_thread(), own);
        let found = named.spawn(asks).expect("a thread").join().expect("no panic").expect("this process asks");
        // As far as Linux keeps names.
        assert_eq!((found.name.as_str(), found.process), ("softgpu-handlin", Some(own)));
        // The first process of the machine, or of the container, is another one, unless it is this.
        if own != 1 {
            let refused = HandlingThread::of(own, 1).expect_err("another process asks");
            assert!(refused.contains("none of the kernel, and none of process 1"), "{refused}");
        }
        assert!(HandlingThread::of(u32::MAX, own).is_err());
    }
}
