//! The `laxity` command: one verb per file in `commands/`, each a thin use of the libraries.
//!
//! Results go to standard output, errors and progress to standard error, errors last. Exit codes: 0 it worked, 1 what
//! was asked for failed, 2 bad usage or bad input, 130 interrupted.
#![forbid(unsafe_code)]

mod cli;
mod commands;
mod configuration;
mod error;
mod input;
mod interrupt;
mod management;
mod output;
mod output_file;
mod output_name;
mod overheads;
mod policy;
mod progress;
mod quantity;
mod report;
mod style;
mod suggest;
mod table;

use std::process::ExitCode;

use crate::cli::Command;
use crate::error::CliError;
use crate::output::Output;

fn main() -> ExitCode {
    let cli = match cli::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => {
            if let Err(failed) = output::usage(&error) {
                output::error(&failed);
                return failed.exit_code().into();
            }
            return u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from);
        }
    };
    cli.color.apply();
    let mut output = Output::stdout();
    let outcome = run(cli.command, &mut output);
    // Text printed before an error belongs before it.
    let printed = output.finish();
    let code = outcome.and(printed).map_or_else(
        |error| {
            output::error(&error);
            error.exit_code()
        },
        |()| 0,
    );
    #[cfg(target_os = "linux")]
    laxity_sys::crash::end_process_that_exits(code);
    ExitCode::from(code)
}

fn run(command: Command, output: &mut Output) -> Result<(), CliError> {
    match command {
        Command::Simulate(arguments) => commands::simulate::run(arguments, output),
        #[cfg(target_os = "linux")]
        Command::Run(arguments) => commands::run::run(arguments, output),
        Command::Check(arguments) => commands::check::run(arguments, output),
        Command::Trace(arguments) => commands::trace::run(arguments, output),
        Command::Report(arguments) => commands::report::run(arguments, output),
        Command::Tune(arguments) => commands::tune::run(arguments, output),
        Command::Gen(arguments) => commands::generate::run(arguments, output),
        Command::Validate(arguments) => commands::validate::run(arguments, output),
        Command::Schema => commands::schema::run(output),
        Command::Policies => commands::policies::run(output),
        #[cfg(target_os = "linux")]
        Command::Measure(arguments) => commands::measure::run(arguments, output),
        Command::Overheads(arguments) => commands::overheads::run(arguments, output),
        #[cfg(target_os = "linux")]
        Command::Gpu(arguments) => commands::gpu::run(arguments, output),
        #[cfg(target_os = "linux")]
        Command::Bandwidth(arguments) => commands::bandwidth::run(arguments, output),
        #[cfg(target_os = "linux")]
        Command::Graph(arguments) => commands::graph::run(arguments, output),
        #[cfg(target_os = "linux")]
        Command::Sched(arguments) => commands::sched::run(arguments, output),
        #[cfg(target_os = "linux")]
        Command::Exec(arguments) => commands::exec::run(arguments),
        Command::Completions(arguments) => commands::completions::run(&arguments, output),
    }
}
