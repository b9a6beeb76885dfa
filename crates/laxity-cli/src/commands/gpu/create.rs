//! `laxity gpu create`: an arbitration that is there before the processes that use it.

use std::thread;
use std::time::Duration;

use clap::Args;
use laxity_gpu::{Inheritance, Registry};

use super::{refused, rules, view};
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::output::{self, Output};

/// Create an arbitration, and keep it until Ctrl-C.
///
/// Prints a line when it is there. An arbitration lasts as long as a process is attached, and this is one that does nothing else: it needs no place on a CPU, and others may come and go, or be killed. If others are attached when it ends, the arbitration ends with the last of them. Programs that all know the configuration do without it: the first creates the arbitration, the others attach to it.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity gpu create car --gpus 2
  laxity gpu create car --gpus 1 --cpus 6 --tokens 3 --engine-order priority --chunk \"1 MiB\"
  laxity gpu create car --gpus 2 --arbitration k_fmlp
  laxity gpu create car --file car.toml --tokens 2
  systemd-run --user --unit car-gpus laxity gpu create car --gpus 2

Exit codes: 0 Ctrl-C or a request to terminate; 1 someone uses the name, or Linux refuses; 2 bad usage.")]
pub struct Arguments {
    /// The name that others attach by
    name: String,
    #[command(flatten)]
    rules: rules::Rules,
}

/// How often to look whether it should end.
const LOOK: Duration = Duration::from_millis(50);

/// Creates it, says so, and stays.
pub fn run(registry: &Registry, arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    let config = arguments.rules.config()?;
    let interrupt = Interrupt::watch();
    let arbitration = registry.create(&arguments.name, &config).map_err(|error| refused(registry, error))?;
    output.line(format_args!("{}: {}; until Ctrl-C", arguments.name, view::rules(&config)))?;
    output.finish()?;
    if arbitration.inheritance() == Inheritance::OrderOnly {
        output::note(arbitration.inheritance());
    }
    while !interrupt.is_requested() {
        thread::sleep(LOOK);
    }
    drop(arbitration);
    if registry.is_in_use(&arguments.name).unwrap_or(false) {
        output::note(format_args!("{}: others use it; it ends with the last of them", arguments.name));
    }
    Ok(())
}
