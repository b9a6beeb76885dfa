//! `laxity measure`: what scheduling costs on this machine.

mod memory;
mod nodes;
mod tables;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use laxity_measure::{MeasureError, Options, Session, Worst};
use laxity_model::{Instant, Measurement, Nanos, parse_cpus, parse_size};
use laxity_runtime::{LinuxScheduler, Machine};

use super::simulate::parse_duration;
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::output::{self, Output};
use crate::output_file::OutputFile;
use crate::progress::Progress;
use crate::quantity::short;

/// Measure what scheduling costs on this machine, as a profile for `--overheads`.
///
/// Threads do what real-time tasks do, again and again: sleep until a time, wake each other on one CPU and across CPUs, yield, wait for locks, copy memory, find their caches used by others. They are scheduled by SCHED_FIFO where this user may, else by SCHED_OTHER, which is said, and then whatever else runs is measured, too. From what they saw follow the sources of overhead that `check` and `simulate` charge, once for the worst case and once on average.
///
/// With --memory a stream on the first CPU is measured alone and beside a hog on the second one, in turn, at eight rates of the hog: the curve that [platform.memory] of workload files has as `contention`.
///
/// With --nodes FILE each task of the workload that names code (`run = ...`) runs alone, each graph on one CPU with longer periods, and then the whole workload as it is. The worst case is the longest time that was seen and --margin percent more, which proves nothing: it is what a proof may start from.
///
/// What runs beside is part of what is measured: measure on the machine as it will be. Ctrl-C ends it, and then nothing is written.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity measure
  laxity measure --out profile.toml
  laxity measure --for 5min --cpus 2-3 --working-set '256 KiB' --worst p99.9 --out profile.toml
  laxity measure --memory --for 10s --out memory.toml      the contention of [platform.memory]
  laxity measure --nodes car.toml --for 1min --out car-measured.toml      execution times of the user's code
  laxity check car.toml --overheads profile.toml
  laxity simulate car.toml --overheads profile.toml:average

Exit codes: 0 measured; 1 it cannot be; 2 bad usage; 130 interrupted.")]
pub struct Arguments {
    /// Measure for DURATION, though everything once at least
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration, default_value = "30s")]
    duration: Nanos,
    /// Write what was measured to FILE (.toml or .json)
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Measure these CPUs, as in 0-1,3; what takes two is measured on neighbours [default: the first two]
    #[arg(long, value_name = "LIST", value_parser = parse_cpu_list)]
    cpus: Option<CpuList>,
    /// Charge cache-related delays of a working set of SIZE
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "64 KiB")]
    working_set: u64,
    /// Take as the worst case what was seen as max, or without outliers as p99.9 or p99
    #[arg(long, value_name = "WHICH", default_value = "max", hide_default_value = true)]
    worst: Worst,
    /// Measure instead how much slower memory-bound work is beside traffic of another CPU
    #[arg(long, conflicts_with_all = ["working_set", "worst"])]
    memory: bool,
    /// Measure instead how long the code takes that workload FILE names, alone and beside the rest; --out has the same
    /// workload with these times
    #[arg(long, value_name = "FILE", conflicts_with_all = ["memory", "cpus", "working_set", "worst"])]
    nodes: Option<PathBuf>,
    /// With --nodes, so many percent more than the longest time that was seen are the worst case
    #[arg(long, value_name = "PERCENT", default_value_t = 20, requires = "nodes")]
    margin: u32,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// Print nothing but errors and, with --json, the JSON
    #[arg(long, short)]
    quiet: bool,
}

/// The CPUs of a list: one value of an option.
#[derive(Clone, Debug)]
struct CpuList(Vec<usize>);

fn parse_cpu_list(text: &str) -> Result<CpuList, String> {
    Ok(CpuList(parse_cpus(text)?.into_iter().map(|cpu| cpu.index()).collect()))
}

/// Measures, then writes, then prints.
pub fn run(arguments: Arguments, output: &mut Output) -> Result<(), CliError> {
    if arguments.memory {
        return memory::run(&arguments, output);
    }
    if let Some(file) = &arguments.nodes {
        return nodes::run(&arguments, file, output);
    }
    let quiet = arguments.quiet || arguments.json;
    let options = options(&arguments)?;
    let is_alone = options.cpus.len() == 1;
    let session = Session::new(options).map_err(refused)?;
    let interrupt = Interrupt::watch();
    // Before anything is measured: an error about a missing folder should not take half a minute.
    let file = arguments.out.as_deref().map(open).transpose()?;
    if !quiet {
        say(&session);
    }
    if is_alone && !quiet {
        output::warning(
            "with one CPU no interrupt between CPUs and no migration is measured, and the profile says that they cost nothing: \
             for workloads of several CPUs measure on two (--cpus)",
        );
    }
    let measurement = measure(session, arguments.duration, quiet, &interrupt)?;
    if let Some(file) = file {
        file.finish(&measurement)?;
    }
    print(&arguments, &measurement, output)
}

fn options(arguments: &Arguments) -> Result<Options, CliError> {
    let default = Options::new().map_err(refused)?;
    Ok(Options {
        cpus: arguments.cpus.clone().map_or(default.cpus, |list| list.0),
        duration: arguments.duration,
        working_set: arguments.working_set,
        worst: arguments.worst,
    })
}

fn refused(error: MeasureError) -> CliError {
    let message = error.to_string();
    match error {
        MeasureError::Cpus(_) | MeasureError::Thread { .. } => CliError::Live { message },
        MeasureError::NoCpu
        | MeasureError::NotUsable { .. }
        | MeasureError::Twice { .. }
        | MeasureError::WorkingSet { .. } => CliError::Argument { message },
    }
}

/// What weakens what is measured.
fn say(session: &Session) {
    let scheduler = if session.is_real_time() { LinuxScheduler::Fifo } else { LinuxScheduler::Other };
    for remark in Machine::look().remarks(scheduler) {
        output::note(remark);
    }
    if session.is_real_time() {
        output::note("measured under SCHED_FIFO");
    } else {
        output::warning(
            "measured under SCHED_OTHER, so that other threads are measured, too: SCHED_FIFO is not permitted; raise the \
             limit of priorities (`ulimit -r 98`) or give the program the capability (`sudo setcap cap_sys_nice+ep \
             $(command -v laxity)`)",
        );
    }
}

fn measure(mut session: Session, duration: Nanos, quiet: bool, interrupt: &Interrupt) -> Result<Measurement, CliError> {
    let progress = Progress::new(String::new(), duration, quiet);
    while !session.is_over() {
        if interrupt.is_requested() {
            let (after, of) = (short(session.elapsed()), short(duration));
            return Err(CliError::Interrupted { reached: format!("after {after} of {of}; nothing was written") });
        }
        progress.doing((Instant::ZERO + session.elapsed()).min(Instant::ZERO + duration), session.next());
        session.step().map_err(refused)?;
    }
    Ok(session.finish())
}

/// A file that will be there when all is measured.
struct Profile {
    file: OutputFile,
    path: PathBuf,
    is_json: bool,
}

fn open(path: &Path) -> Result<Profile, CliError> {
    let extension = path.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
    let is_json = match extension.as_deref() {
        Some("json") => true,
        Some("toml") => false,
        _ => {
            let message = format!("--out {}: give the file the extension .toml or .json", path.display());
            return Err(CliError::Argument { message });
        }
    };
    Ok(Profile { file: OutputFile::create(path)?, path: path.to_owned(), is_json })
}

impl Profile {
    fn finish(mut self, measurement: &Measurement) -> Result<(), CliError> {
        let text = if self.is_json {
            measurement.to_json()
        } else {
            format!(
                "# Overheads of a machine, by laxity measure {}. `worst` is what --overheads {} charges, `average` with \
                 :average\n# after it; both are written as [platform.overheads] of workloads.\n{}",
                env!("CARGO_PKG_VERSION"),
                self.path.display(),
                measurement.to_toml()
            )
        };
        let failed = |source| CliError::Write { path: self.path.clone(), source };
        self.file.write_all(text.as_bytes()).map_err(failed)?;
        self.file.commit()
    }
}

fn print(arguments: &Arguments, measurement: &Measurement, output: &mut Output) -> Result<(), CliError> {
    if arguments.json {
        return output.print(measurement.to_json());
    }
    if arguments.quiet {
        return Ok(());
    }
    let width = output.width();
    output.line(tables::machine(measurement))?;
    output.line("")?;
    output.print(tables::quantities(measurement).render(width))?;
    output.line("")?;
    output.print(tables::profiles(measurement).render(width))?;
    output.finish()?;
    if let Some(note) = tables::too_long(measurement) {
        output::note(note);
    }
    match &arguments.out {
        Some(path) => {
            let path = path.display();
            output::note(format_args!("written to {path}; use it as in `laxity check FILE --overheads {path}`"));
        }
        None => output::note("nothing was written; name a file with --out to use this as --overheads FILE"),
    }
    Ok(())
}
