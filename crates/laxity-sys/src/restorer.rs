//! A process that gives threads of Linux back how they were scheduled, once another process has ended in whatever way.
//!
//! ```text
//!  the one that schedules them otherwise     says before what they had, and keeps a pipe open
//!        |  the pipe ends with it, by SIGKILL, too
//!  the restorer                              reads to the end of the pipe, and gives each what it had
//! ```

use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use crate::cpu_mask::{CPUS_MAX, CpuMask};
use crate::scheduling::{Attributes, thread_name};

/// The process, as the one knows it that schedules threads otherwise.
#[derive(Debug)]
pub struct Restorer {
    child: Child,
}

impl Restorer {
    /// Starts the program of `command`, which is to call [`restore`].
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(mut command: Command) -> io::Result<Restorer> {
        // In a group of its own Ctrl-C is not for it.
        Ok(Restorer { child: command.stdin(Stdio::piped()).process_group(0).spawn()? })
    }

    /// At the end the kernel's `thread`, if it has that name then, gets these attributes, and these CPUs if any are given.
    ///
    /// # Errors
    /// If the process is gone.
    pub fn keep(&mut self, thread: u32, name: &str, own: Attributes, cpus: Option<&CpuMask>) -> io::Result<()> {
        let [flags, rest] = own.to_words();
        let cpus: Vec<String> = cpus.iter().flat_map(|cpus| cpus.cpus()).map(|cpu| cpu.to_string()).collect();
        let cpus = if cpus.is_empty() { "-".to_owned() } else { cpus.join(",") };
        let input = self.child.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        // One write: the reader gets a line or nothing of it.
        input.write_all(format!("{thread} {flags} {rest} {cpus} {name}\n").as_bytes())
    }

    /// Has it do so now. Returns whether all threads that still exist have what they had.
    ///
    /// # Errors
    /// If its end is not to be had.
    pub fn end(mut self) -> io::Result<bool> {
        drop(self.child.stdin.take());
        Ok(self.child.wait()?.success())
    }
}

/// Reads `lines` to their end, each of which [`Restorer::keep`] wrote, and gives the threads what they had. The caller sees to
/// it that no signal ends it before.
///
/// # Errors
/// The last thread to which Linux does not give it, with the reason.
pub fn restore(lines: impl BufRead) -> Result<(), String> {
    let lines: Vec<String> = lines.lines().map_while(Result::ok).collect();
    let mut failed = Ok(());
    for line in &lines {
        let mut words = line.splitn(5, ' ');
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
        let (Some(thread), Some(flags), Some(rest)) = (number(), number(), number()) else { continue };
        let (cpus, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let thread = thread as u32;
        // Its driver may have been unloaded, and another thread have the number.
        if thread_name(thread, thread).as_deref() != Some(name) {
            continue;
        }
        let cpus = CpuMask::of(cpus.split(',').filter_map(|cpu| cpu.parse().ok()).filter(|&cpu| cpu < CPUS_MAX));
        let mut given = Attributes::from_words([flags, rest]).give_to(thread);
        // Linux lets some threads have their own CPUs only, and refuses to be told which they are.
        let is_elsewhere = CpuMask::of_thread(thread).is_ok_and(|now| now != cpus);
        if cpus != CpuMask::EMPTY && is_elsewhere {
            given = given.and(cpus.give_to(thread));
        }
        if let Err(error) = given {
            failed = Err(format!("thread {thread} {name}: {error}"));
        }
    }
    failed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduling::current_thread;

    #[test]
    fn a_thread_gets_back_what_it_had_unless_another_one_has_its_number() {
        let thread = current_thread();
        let name = thread_name(thread, thread).expect("it is this one");
        let before = CpuMask::of_thread(thread).expect("it is this one");
        let [flags, rest] = Attributes::of(thread).expect("it is this one").to_words();
        let cpus = before.cpus().map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(",");
        let line = |name: &str| format!("no number\n{thread} {flags} {rest} {cpus} {name}\n");
        let first = CpuMask::of(before.cpus().take(1));
        first.give_to(thread).expect("it may use it");
        restore(line("another").as_bytes()).expect("nothing to do");
        assert_eq!(CpuMask::of_thread(thread).expect("it is this one"), first);
        restore(line(&name).as_bytes()).expect("it may use them");
        assert_eq!(CpuMask::of_thread(thread).expect("it is this one"), before);
    }

    #[test]
    fn the_process_reads_what_each_thread_had_until_it_is_to_act() {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "read thread flags rest cpus name && test \"$thread $cpus $name\" = '7 1,3 irq/9 x' && ! read rest",
        ]);
        let own = Attributes::of(current_thread()).expect("it is this one");
        let mut restorer = Restorer::start(command).expect("a shell");
        restorer.keep(7, "irq/9 x", own, Some(&CpuMask::of([1, 3]))).expect("it reads");
        assert!(restorer.end().expect("it ends"));
    }
}
