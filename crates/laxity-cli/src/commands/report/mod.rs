//! `laxity report`: all that is known of a workload, on one page.

mod bounded;
mod gather;
#[cfg(target_os = "linux")]
mod live;
mod observed;
mod page;

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use laxity_model::{Nanos, Scheduler};
#[cfg(target_os = "linux")]
use laxity_runtime::LinuxScheduler;

use self::gather::Evidence;
use super::simulate::parse_duration;
use crate::error::CliError;
use crate::input;
use crate::interrupt::Interrupt;
use crate::output::{self, Output};
use crate::output_file::OutputFile;
use crate::output_name;
use crate::quantity::parse_seed;

/// Prove, simulate and run a workload, and put it all on one page.
///
/// Of a workload file: proves bounds, simulates, runs live on this machine, and writes one HTML page that needs no network:
/// bounds beside simulated and live response times of each task and graph, the worst jobs with a picture and an account of
/// each nanosecond, where the laxity went, and what it was measured on. Parts that cannot be done here are left out, and the
/// page says why. Of a workload and traces of it: the traces are in place of the live run. Of traces: the same from them alone,
/// side by side.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity report car.toml
  laxity report car.toml --for 10s --measure 20s -o car.html
  laxity report car.toml --no-run --overheads profile.toml
  laxity report before.lxt after.lxt -o both.html
  laxity report car.toml fifo.lxt laxity.lxt      bounds beside two runs of it that were recorded

Exit codes: 0 the page is written; 1 it cannot be, or is of traces that are cut off; 2 bad usage or bad input; 130 interrupted.")]
pub struct Arguments {
    /// A workload, TOML or JSON, and maybe traces of it; or traces alone
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Where the page goes
    #[arg(short, long, value_name = "PAGE", default_value = "report.html", value_parser = output_name::html())]
    output: PathBuf,
    /// Take POLICY instead of the workload's, as in P-RM; `laxity policies` lists them
    #[arg(long, value_name = "POLICY", value_parser = parse_policy)]
    policy: Option<Scheduler>,
    /// Charge PROFILE instead of the file's overheads: a published one, none, or a FILE of `laxity measure`
    #[arg(long, value_name = "PROFILE|FILE")]
    overheads: Option<String>,
    /// Measure first what scheduling costs on this machine, for DURATION, and charge that
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, num_args = 0..=1,
        default_missing_value = "10s", conflicts_with = "overheads")]
    measure: Option<Nanos>,
    /// Do not run it live
    #[arg(long)]
    no_run: bool,
    /// What schedules live: laxity, kernel, fifo, deadline or other [default: as `laxity run`]
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "CLASS")]
    scheduler: Option<LinuxScheduler>,
    /// Run live on NUMBER CPUs though the workload is for more, as `laxity run --cpus` does
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1024))]
    cpus: Option<u16>,
    /// Simulate and run for DURATION [default: ten periods of each task after its phase, at least 1 s]
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    duration: Option<Nanos>,
    /// Seed of random execution times, arrivals and jitter
    #[arg(long, value_name = "NUMBER", value_parser = parse_seed, default_value_t = 0)]
    seed: u64,
    /// Write the body of the page alone, without title and styles, and with headings from h3 on: for a page of your own
    #[arg(long)]
    part: bool,
    /// Print nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

fn parse_policy(text: &str) -> Result<Scheduler, String> {
    text.parse::<Scheduler>().map_err(|error| error.to_string())
}

/// Gathers what there is, then writes the page.
pub fn run(arguments: Arguments, output: &mut Output) -> Result<(), CliError> {
    let interrupt = Interrupt::watch();
    for file in &arguments.files {
        if let Ok(metadata) = fs::metadata(file) {
            input::remember(&metadata, &input::name(file));
        }
    }
    // Before all the work: a page that cannot be written should not take a simulation and a run.
    let mut file = OutputFile::create(&arguments.output)?;
    let mut evidence = match arguments.files.as_slice() {
        [file, traces @ ..] if !is_trace(file) => match traces.iter().find(|file| !is_trace(file)) {
            None => gather::of_workload(&arguments, file, traces, &interrupt)?,
            Some(other) => return Err(no_trace(other)),
        },
        files => match files.iter().find(|file| !is_trace(file)) {
            None => gather::of_traces(files)?,
            Some(workload) => return Err(no_trace(workload)),
        },
    };
    let page = if arguments.part { page::part(&evidence) } else { page::html(&evidence) };
    file.write_all(page.as_bytes()).map_err(|source| CliError::Write { path: arguments.output.clone(), source })?;
    file.commit()?;
    if !arguments.quiet {
        say(&arguments, &evidence, output)?;
    }
    // What is wrong with the traces comes last.
    let last = evidence.damaged.pop();
    evidence.damaged.iter().for_each(output::error);
    last.map_or(Ok(()), Err)
}

fn say(arguments: &Arguments, evidence: &Evidence, output: &mut Output) -> Result<(), CliError> {
    for line in page::verdict(evidence) {
        output.line(line)?;
    }
    for missing in &evidence.missing {
        output::warning(format_args!("left out: {}: {}", missing.what, missing.why));
    }
    output.finish()?;
    output::note(format_args!("the page is {}", arguments.output.display()));
    Ok(())
}

fn no_trace(path: &std::path::Path) -> CliError {
    let message = format!(
        "{} is no trace (.lxt), and a report is about one workload, which comes first, and traces; name them so",
        path.display()
    );
    CliError::Argument { message }
}

/// Whether a file holds a trace: its name says so.
fn is_trace(file: &std::path::Path) -> bool {
    let extension = file.extension().map(|extension| extension.to_ascii_lowercase());
    extension.is_some_and(|extension| extension == "lxt")
}

/// A part of the page that is missing.
struct Missing {
    what: String,
    why: String,
}

impl Evidence {
    /// Notes that a part is missing.
    fn leave_out(&mut self, what: &str, why: impl ToString) {
        self.missing.push(Missing { what: what.to_owned(), why: why.to_string() });
    }
}
