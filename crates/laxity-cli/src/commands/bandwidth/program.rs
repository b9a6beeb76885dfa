//! A program that a verb runs, and how it ended.

use std::process::{Command, ExitStatus};
use std::thread;
use std::time::Duration;

use laxity_sys::process::ask_to_end;

use crate::error::CliError;
use crate::interrupt::Interrupt;

/// How often to look whether it ended.
const LOOK: Duration = Duration::from_millis(20);

/// The command line of a program: its name and its arguments.
pub fn command(words: &[String]) -> Command {
    // The parser demands one word at least.
    let mut command = Command::new(words.first().map_or("", String::as_str));
    command.args(&words[words.len().min(1)..]);
    command
}

/// Runs `command` to its end, and calls `look` meanwhile. A request to end is passed on to it.
pub fn run(command: &mut Command, interrupt: &Interrupt, mut look: impl FnMut()) -> Result<ExitStatus, CliError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |error: std::io::Error| CliError::Live {
        message: format!("cannot run {name}: {error}; check that it exists and may be executed"),
    };
    let mut child = command.spawn().map_err(failed)?;
    let mut is_told = false;
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(status);
        }
        if interrupt.is_requested() && !is_told {
            is_told = true;
            let _ = ask_to_end(child.id());
        }
        look();
        thread::sleep(LOOK);
    }
}

/// A program that failed is a failure of the verb.
pub fn check(words: &[String], status: ExitStatus, interrupt: &Interrupt) -> Result<(), CliError> {
    if status.success() {
        return Ok(());
    }
    let name = words.first().map_or("", String::as_str);
    if interrupt.is_requested() {
        return Err(CliError::Interrupted { reached: format!("{name} was told to end") });
    }
    Err(CliError::Live { message: format!("{name} ended with {status}") })
}
