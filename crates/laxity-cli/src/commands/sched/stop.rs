//! `laxity sched stop`: the end of the scheduler in the kernel.

use clap::Args;
use laxity_scx::{ClientError, Membership};

use crate::error::CliError;

/// End the scheduler in the kernel: Linux schedules all threads, and its tasks are told.
///
/// Waits until it has ended and its trace is written.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity sched stop

Exit codes: 0 it has ended; 1 it was not there; 2 bad usage.")]
pub struct Arguments {}

/// Asks the loader, and waits for its end.
pub fn run(_: &Arguments) -> Result<(), CliError> {
    let live = |error: ClientError| CliError::Live { message: error.to_string() };
    Membership::join().and_then(|member| member.stop()).map_err(live)
}
