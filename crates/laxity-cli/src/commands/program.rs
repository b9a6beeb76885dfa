//! Programs that a verb starts, passes signals on to, and ends like.

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use laxity_model::{Instant, Nanos};
use laxity_sys::clock;
use laxity_sys::signals::Signals;
use laxity_sys::started::Started;

use super::named::live;
use crate::error::CliError;

/// How often a verb that has something to look after meanwhile does so.
const LOOK: Nanos = Nanos::from_millis(20);

/// The command line of a program: its name and its arguments.
pub fn command<W: AsRef<OsStr>>(words: &[W]) -> Command {
    // The parser demands one word at least.
    let (program, arguments) = words.split_first().expect("a program has a name");
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// Starts `command`. It does not outlive this process.
pub fn start(command: &mut Command, signals: &Signals) -> Result<Started, CliError> {
    let started = Started::new(command, signals);
    started.map_err(|error| CliError::Argument { message: format!("cannot start {}: {error}", shown(command)) })
}

/// Suspends until it ends or `until` has come, or a signal has, which it gets, too: the same one, as it may clean up on one
/// and end at once on another.
pub fn wait_for(started: &mut Started, signals: &Signals, until: Instant) {
    started.wait(signals, until);
    while let Some(signal) = signals.take() {
        // A terminal's Ctrl-C reaches the program by itself.
        if !signal.is_from_linux {
            let _ = started.pass_on(signal);
        }
    }
}

/// Runs `command` to its end. Signals that `signals` keeps from this process are passed on to it.
pub fn run(command: &mut Command, signals: &Signals) -> Result<ExitStatus, CliError> {
    let mut started = start(command, signals)?;
    while !started.has_ended() {
        wait_for(&mut started, signals, Instant::NEVER);
    }
    status(&mut started)
}

/// The same, and calls `look` meanwhile.
pub fn run_and(command: &mut Command, signals: &Signals, mut look: impl FnMut()) -> Result<ExitStatus, CliError> {
    let mut started = start(command, signals)?;
    while !started.has_ended() {
        wait_for(&mut started, signals, clock::now() + LOOK);
        look();
    }
    status(&mut started)
}

/// How a program ended that did.
pub fn status(started: &mut Started) -> Result<ExitStatus, CliError> {
    let status = started.ended().map_err(live)?;
    status.ok_or_else(|| CliError::Live { message: "the program ended without a status".to_owned() })
}

/// This process ends as `program` did.
pub fn ended(program: String, status: ExitStatus) -> Result<(), CliError> {
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(()),
        (code, signal) => Err(CliError::Program { program, code, signal }),
    }
}

/// What the program of `command` is called in messages.
pub fn shown(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}
