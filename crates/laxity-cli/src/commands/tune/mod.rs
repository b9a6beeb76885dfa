//! `laxity tune`: which configuration leaves the most laxity?

mod text;

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant as WallInstant};

use clap::Args;
use laxity_model::{Instant, Nanos, Workload};
use laxity_tune::{Effort, Host, Part, Score, Setting, Space, Tuned, scaled, tune};
use rayon::prelude::*;
use serde::Serialize;

use super::simulate::parse_duration;
use crate::error::CliError;
use crate::input;
use crate::interrupt::Interrupt;
use crate::output::{self, Output, word};
use crate::output_file::OutputFile;
use crate::overheads::Overheads;
use crate::progress::Progress;
use crate::quantity::{parse_count, parse_seed, short};

/// Search for the configuration that leaves the most laxity.
///
/// Tries schedulers, priorities (Audsley's order among them), placements, GPU arbitration, chunks, places for bottom halves,
/// replicas and bandwidth budgets. A configuration whose deadlines are all proven is better than any other, then the one with
/// the most proven laxity relative to its deadline, then the one with the better simulated tail: missed jobs, then the
/// greatest 99th percentile of a response time relative to its deadline, or of what a graph's latency lies above that of the
/// graph alone, relative to its period.
///
/// Shows the best, what each of its changes buys, and what stands in the way of a proof. The search is seeded; how far it
/// gets in the time it has depends on the machine. Ctrl-C ends it, and what was found by then is shown.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity tune car.toml
  laxity tune car.toml --load 120% -o better.toml        what to change to carry 20 % more
  laxity tune car.toml --within 2min --overheads profile.toml --json

Exit codes: 0 it searched; 1 no configuration is possible; 2 bad usage or a bad workload; 130 interrupted.")]
pub struct Arguments {
    /// The workload, TOML or JSON; - reads standard input
    file: PathBuf,
    /// Multiply all execution times first, as by 120%
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent, default_value = "100%", hide_default_value = true)]
    load: u64,
    /// Search for DURATION at most
    #[arg(long, value_name = "DURATION", value_parser = parse_within, default_value = "1 min")]
    within: Nanos,
    /// Simulate each configuration for DURATION [default: ten periods of each task after its phase, at least 1 s]
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    duration: Option<Nanos>,
    /// Seed of the search and of the simulations
    #[arg(long, value_name = "NUMBER", value_parser = parse_seed, default_value_t = 0)]
    seed: u64,
    /// Charge PROFILE instead of the file's overheads: a published one, none, or a FILE of `laxity measure`
    #[arg(long, value_name = "PROFILE|FILE")]
    overheads: Option<String>,
    /// Show so many of the best
    #[arg(long, value_name = "NUMBER", value_parser = parse_count, default_value_t = 5)]
    best: usize,
    /// Write the best configuration to FILE (.toml or .json)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// Print nothing but errors and, with --json, the JSON
    #[arg(long, short)]
    quiet: bool,
}

fn parse_within(text: &str) -> Result<Nanos, String> {
    match text.parse::<Nanos>() {
        Ok(Nanos::ZERO) => Err("nothing is found in no time; search for longer, as in \"1 min\"".to_owned()),
        parsed => parsed.map_err(|error| error.to_string()),
    }
}

/// `120%`, in thousandths.
fn parse_percent(text: &str) -> Result<u64, String> {
    let digits = text.trim().trim_end_matches('%').trim();
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let permille = whole.parse::<u64>().ok().zip(format!("{part:0<1}")[..1].parse::<u64>().ok());
    match permille {
        Some((whole, part)) if (1..=100_000).contains(&whole) => Ok(whole * 10 + part),
        _ => Err(format!("`{text}` is no percentage of 1 to 100000; write, as in 120%")),
    }
}

/// What was found.
#[derive(Serialize)]
struct Found<'a> {
    laxity: &'static str,
    workload: &'a str,
    load_permille: u64,
    #[serde(flatten)]
    tuned: &'a Tuned,
}

/// Searches, then shows what was found.
pub fn run(arguments: Arguments, output: &mut Output) -> Result<(), CliError> {
    let file = input::name(&arguments.file);
    let mut workload = input::workload(&arguments.file)?;
    if let Some(named) = &arguments.overheads {
        workload.platform.overheads = Overheads::read(named)?.of(&workload.scheduler)?;
    }
    let best = arguments.output.as_deref().map(create).transpose()?;
    let workload = scaled(&workload, arguments.load, Part::All);
    workload.validate().map_err(|errors| CliError::Argument { message: format!("with --load: {errors}") })?;
    let simulated = arguments.duration.unwrap_or_else(|| laxity_plan::default_duration(&workload));
    let effort = Effort::new(&workload, simulated, arguments.seed);
    let space = Space::of(workload.clone());
    let interrupt = Interrupt::watch();
    let progress = Progress::new("tuned  ".to_owned(), arguments.within, arguments.quiet || arguments.json);
    let within = arguments.within;
    let host = Here { started: WallInstant::now(), within, interrupt: &interrupt, progress: Mutex::new(progress) };
    let tuned = tune(&space, &effort, arguments.best, &host);
    let host_was_over = host.is_over(10) && !interrupt.is_requested();
    host.progress.into_inner().unwrap_or_else(PoisonError::into_inner).finish();
    if tuned.best.is_empty() && host_was_over {
        let (simulated, within) = (short(simulated), short(within));
        let message = format!(
            "{file}: no configuration was simulated for {simulated} within {within}; give the search more time with `--within`, or \
             less to simulate with `--for`"
        );
        return Err(CliError::Live { message });
    }
    if tuned.best.is_empty() {
        let message = format!("{file}: no configuration can be simulated; `laxity simulate {}` says why", word(&file));
        return Err(CliError::Live { message });
    }
    let laxity = env!("CARGO_PKG_VERSION");
    let found = Found { laxity, workload: &workload.name, load_permille: arguments.load, tuned: &tuned };
    match arguments.json {
        true => output.line(serde_json::to_string_pretty(&found).expect("numbers and texts are JSON"))?,
        false if arguments.quiet => {}
        false => output.print(text::text(&found, &effort, output.width()))?,
    }
    if let (Some(file), Some(path)) = (best, &arguments.output) {
        write(file, path, &tuned.workload)?;
        if !arguments.quiet && !arguments.json {
            output.finish()?;
            output::note(format_args!("the best is in {}; `laxity check` and `laxity run` take it", path.display()));
            input::warn_of_moved_code(&tuned.workload, &arguments.file, path);
        }
    }
    match interrupt.is_requested() {
        true => Err(CliError::Interrupted {
            reached: format!("after {} settings; the best of these is shown", tuned.tried),
        }),
        false => Ok(()),
    }
}

/// All CPUs, the clock since the search began, and Ctrl-C.
struct Here<'a> {
    started: WallInstant,
    within: Nanos,
    interrupt: &'a Interrupt,
    progress: Mutex<Progress>,
}

impl Host for Here<'_> {
    fn map(&self, settings: &[Setting], score: &(dyn Fn(&Setting) -> Option<Score> + Sync)) -> Vec<Option<Score>> {
        settings.par_iter().map(score).collect()
    }

    fn is_over(&self, tenths: u32) -> bool {
        self.interrupt.is_requested() || self.started.elapsed() > Duration::from_nanos(self.within.0 / 10) * tenths
    }

    fn progress(&self, tried: usize, best: Option<&Score>) {
        let elapsed = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let at = Instant(elapsed.min(self.within.0));
        let best = best.map_or_else(String::new, text::brief);
        let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.doing(at, format_args!("{tried} settings, best {best}"));
    }
}

/// The file for the best configuration, in a format that its name tells and this can write.
fn create(path: &Path) -> Result<OutputFile, CliError> {
    let is_known = |extension: &OsStr| ["toml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known));
    match path.extension() {
        Some(extension) if !is_known(extension) => {
            let message =
                format!("workloads are TOML or JSON; name a file with .toml or .json, not {}", path.display());
            Err(CliError::Argument { message })
        }
        _ => OutputFile::create(path),
    }
}

fn write(mut file: OutputFile, path: &Path, workload: &Workload) -> Result<(), CliError> {
    let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let text = if is_json { workload.to_json() } else { workload.to_toml() };
    file.write_all(text.as_bytes()).map_err(|source| CliError::Write { path: path.to_owned(), source })?;
    file.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_percentages_to_the_tenth() {
        assert_eq!(parse_percent("120%"), Ok(1_200));
        assert_eq!(parse_percent("87.5 %"), Ok(875));
        assert_eq!(parse_percent("100"), Ok(1_000));
        assert!(parse_percent("0%").is_err() && parse_percent("-5%").is_err() && parse_percent("x").is_err());
    }
}
