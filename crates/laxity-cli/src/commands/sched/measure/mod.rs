//! `laxity sched measure`: what the scheduler in the kernel costs, over the number of tasks.

mod drawn;
mod programs;
mod session;
mod worker;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use laxity_measure::Host;
use laxity_measure::kernel::{ByTasks, Part};
use laxity_model::{CpuId, MeasuredMachine, Measurement, Nanos, OverheadKind};
use laxity_scx::{Membership, Settings};
use laxity_sys::scheduling::usable_cpus;

use super::start;
use crate::commands::simulate::parse_duration;
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::output::{self, Output};
use crate::output_file::OutputFile;
use crate::quantity::{TimeUnit, parse_seed};
use crate::table::{Cell, Table};
use session::Session;

/// Measure what the scheduler in the kernel costs, over the number of tasks, as profiles for `--overheads`.
///
/// Loads the scheduler once for each realization, with real threads as tasks of global EDF: more and more of them, with the utilizations (uniform light) and periods (moderate) of paper 002, section 4.1. Periods are longer by as much as this machine has fewer CPUs than the paper's 32, so that each CPU releases as many jobs in a second. The kernel's side writes down each release, decision, switch, tick, timer set and interrupt of a CPU. Of each, for each number of tasks, the largest samples are left out; the largest of the rest is the worst case, their mean the average.
///
/// FOLDER/CEm.toml and so on are as the file of `laxity measure`. Ctrl-C ends it: the scheduler is unloaded, and of the realization that was being measured nothing is written.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity sched measure --out overheads
  laxity sched measure --realization CEm,CQm --tasks 50,100,200 --for 60s --out overheads
  laxity check car.toml --overheads overheads/CEm.toml
  laxity simulate car.toml --overheads overheads/CEm.toml:average

Exit codes: 0 measured; 1 it cannot be; 2 bad usage; 130 interrupted.")]
pub struct Arguments {
    /// CEm, CE1, CQm, CQ1, S-CQm, S-CQ1, or with F or H in place of C; several with commas between, or all [default: those with C that the CPUs suffice for]
    #[arg(long, value_name = "LIST")]
    realization: Option<String>,
    /// Numbers of tasks, each larger than the one before
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "25,50,75,100,125,150,175,200,225,250")]
    tasks: Vec<u32>,
    /// Measure each number of tasks for DURATION
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration, default_value = "30s")]
    duration: Nanos,
    /// The CPUs of the scheduler, as in 0-3; one dedicated to releases is the first [default: those that this process may use]
    #[arg(long, value_name = "LIST", value_parser = start::parse_list)]
    cpus: Option<start::List>,
    /// How much of each CPU the jobs of the most tasks take, in percent; the paper's 450 tasks take 71
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=90))]
    load: u32,
    /// Leave out the largest PERCENT of the samples
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = parse_thousandths)]
    outliers: Thousandths,
    /// Also take the times for which locks are held, and write what it costs at most where so many CPUs wait for each other's: FOLDER/CEm-waiting-32.toml
    #[arg(long, value_name = "CPUS", value_parser = clap::value_parser!(u32).range(2..=64))]
    waiting: Option<u32>,
    /// Draw the tasks from this seed
    #[arg(long, value_name = "N", value_parser = parse_seed, default_value_t = 1)]
    seed: u64,
    /// What the files say of this machine besides the name of its processor, as in "emulated"
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Write a file for each realization into FOLDER
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Print nothing but errors
    #[arg(long, short)]
    quiet: bool,
    /// For the processes that have the tasks
    #[arg(long, hide = true, exclusive = true, value_name = "JSON")]
    worker: Option<String>,
}

/// A share in thousandths.
#[derive(Clone, Copy, Debug)]
struct Thousandths(u32);

/// Percent with one decimal, below 50.
fn parse_thousandths(text: &str) -> Result<Thousandths, String> {
    let error = || format!("{text:?} is no share of the samples; write 0 to 49.9, in percent");
    let (whole, tenths) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(tenths) || tenths.len() != 1 {
        return Err(error());
    }
    let number = |text: &str| text.parse::<u32>().map_err(|_| error());
    let found = number(whole)?.checked_mul(10).ok_or_else(error)? + number(tenths)?;
    if found < 500 { Ok(Thousandths(found)) } else { Err(error()) }
}

/// The realizations of paper 002, with the letter 1 for those that need a CPU for interrupts alone; those with a coarse queue first.
const REALIZATIONS: [&str; 18] = [
    "CEm", "CQm", "S-CQm", "CE1", "CQ1", "S-CQ1", "FEm", "FQm", "S-FQm", "FE1", "FQ1", "S-FQ1", "HEm", "HQm", "S-HQm",
    "HE1", "HQ1", "S-HQ1",
];
/// Of these, those that are measured where none is named.
const COARSE: usize = 6;
/// Tasks that the kernel's side can number (`LAXITY_TASKS`), without the one that looks for interruptions.
const TASKS_MAX: u32 = 255;

/// Measures one realization after another, and writes each.
pub fn run(arguments: Arguments, output: &mut Output) -> Result<(), CliError> {
    if let Some(plan) = &arguments.worker {
        return worker::run(plan).map_err(live);
    }
    let interrupt = Interrupt::watch();
    let cpus = cpus(&arguments)?;
    let realizations = realizations(&arguments, &cpus)?;
    check(&arguments)?;
    for name in &realizations {
        settings(name, &cpus).check().map_err(|error| CliError::Argument { message: error.to_string() })?;
    }
    let loader = start::ready()?;
    if Membership::join().is_ok() {
        return Err(live("Laxity's scheduler is in the kernel already; `laxity sched stop` ends it".to_owned()));
    }
    if let Some(folder) = &arguments.out {
        fs::create_dir_all(folder).map_err(|source| CliError::Write { path: folder.clone(), source })?;
    }
    for name in realizations {
        let session = Session {
            settings: Settings { holds: arguments.waiting.is_some(), ..settings(name, &cpus) },
            loader: &loader,
            jobs_on: cpus.len() - usize::from(name.ends_with('1')),
            counts: &arguments.tasks,
            duration: arguments.duration,
            load: arguments.load,
            seed: arguments.seed,
            is_quiet: arguments.quiet,
        };
        let (measured, waiting) = session.measure(&interrupt)?;
        let Thousandths(outliers) = arguments.outliers;
        let measurement = measured.measurement(&format!("kernel-{name}"), outliers, machine(&arguments, name, &cpus));
        if let Some(folder) = &arguments.out {
            write(&folder.join(format!("{name}.toml")), &measurement)?;
        }
        print(&arguments, name, &measured, &measurement, output)?;
        if !arguments.quiet {
            measured.missing().into_iter().filter_map(|part| missing(part, name)).for_each(output::note);
        }
        if let Some(cpus) = arguments.waiting {
            let name = format!("{name}-waiting-{cpus}");
            let contended = measured.contended(&waiting, &measurement, &format!("kernel-{name}"), cpus, outliers);
            if let Some(folder) = &arguments.out {
                write(&folder.join(format!("{name}.toml")), &contended)?;
            }
            print(&arguments, &name, &measured, &contended, output)?;
        }
    }
    Ok(())
}

fn live(message: String) -> CliError {
    CliError::Live { message }
}

fn cpus(arguments: &Arguments) -> Result<Vec<usize>, CliError> {
    match &arguments.cpus {
        Some(start::List(cpus)) => Ok(cpus.iter().map(|cpu| cpu.index()).collect()),
        None => usable_cpus().map_err(|error| live(format!("the CPUs of this process are unknown: {error}"))),
    }
}

/// Those that were asked for, each once.
fn realizations(arguments: &Arguments, cpus: &[usize]) -> Result<Vec<&'static str>, CliError> {
    let suffice = |name: &&str| cpus.len() > 1 || !name.ends_with('1');
    let Some(asked) = &arguments.realization else {
        let (measured, left): (Vec<_>, Vec<_>) = REALIZATIONS.into_iter().take(COARSE).partition(suffice);
        if !left.is_empty() && !arguments.quiet {
            output::note(format_args!("not measured, as they take a CPU for interrupts alone: {}", left.join(", ")));
        }
        return Ok(measured);
    };
    if asked == "all" {
        return Ok(REALIZATIONS.to_vec());
    }
    let known = |name: &str| REALIZATIONS.into_iter().find(|it| *it == name);
    let mut found = Vec::new();
    for name in asked.split(',') {
        let refused = || CliError::Argument {
            message: format!("--realization {name}: there are {}, and all of them as `all`", REALIZATIONS.join(", ")),
        };
        found.push(known(name.trim()).ok_or_else(refused)?);
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

fn check(arguments: &Arguments) -> Result<(), CliError> {
    let refused = |message: String| Err(CliError::Argument { message });
    let tasks = &arguments.tasks;
    if !tasks.is_sorted_by(|a, b| a < b) {
        return refused(format!("--tasks {}: each number larger than the one before", list(tasks)));
    }
    match (tasks.first(), tasks.last()) {
        (Some(0), _) => refused("--tasks 0: at least one task is measured".to_owned()),
        (_, Some(&most)) if most > TASKS_MAX => refused(format!(
            "--tasks {most}: the scheduler in the kernel has {TASKS_MAX} at most beside one that measures"
        )),
        _ if arguments.duration < Nanos::from_millis(100) => {
            refused(format!("--for {}: at least 100 ms, or there are next to no samples", arguments.duration))
        }
        _ => Ok(()),
    }
}

fn list(numbers: &[u32]) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

fn settings(realization: &str, cpus: &[usize]) -> Settings {
    Settings {
        policy: format!("G-EDF/{realization}"),
        cpus: cpus.to_vec(),
        cluster_size: None,
        trace: None,
        object: None,
        others: None,
        overheads: true,
        holds: false,
    }
}

fn machine(arguments: &Arguments, realization: &str, cpus: &[usize]) -> MeasuredMachine {
    let Host { processor, kernel, governor } = Host::look();
    let Thousandths(left_out) = arguments.outliers;
    MeasuredMachine {
        processor: arguments.label.iter().fold(processor, |processor, label| format!("{processor} ({label})")),
        kernel,
        governor,
        cpus: cpus.iter().map(|&cpu| CpuId(u16::try_from(cpu).expect("the settings were checked"))).collect(),
        scheduler: format!("G-EDF/{realization}, in the kernel through sched_ext"),
        worst: format!("largest of all but {}.{} %", left_out / 10, left_out % 10),
        working_set: 0,
        duration: Nanos(arguments.duration.0.saturating_mul(arguments.tasks.len() as u64)),
    }
}

fn write(path: &Path, measurement: &Measurement) -> Result<(), CliError> {
    let text = format!(
        "# Overheads of Laxity's scheduler in the kernel over the number of tasks, by laxity sched measure {}. Use it as in\n\
         # `laxity check FILE --overheads {}`; decision 143 says what each interval is.\n{}",
        env!("CARGO_PKG_VERSION"),
        path.display(),
        measurement.to_toml()
    );
    let mut file = OutputFile::create(path)?;
    file.write_all(text.as_bytes()).map_err(|source| CliError::Write { path: path.to_owned(), source })?;
    file.commit()
}

/// The sources of overhead that can be measured.
const KINDS: [OverheadKind; 6] = [
    OverheadKind::Release,
    OverheadKind::Scheduling,
    OverheadKind::ContextSwitch,
    OverheadKind::IpiLatency,
    OverheadKind::Tick,
    OverheadKind::TimerRearming,
];

fn print(
    arguments: &Arguments,
    name: &str,
    measured: &ByTasks,
    measurement: &Measurement,
    output: &mut Output,
) -> Result<(), CliError> {
    if arguments.quiet {
        return Ok(());
    }
    output.line(format_args!("G-EDF/{name}, {} samples; worst and mean in us", measured.len()))?;
    let titles = KINDS.map(|kind| kind.name().replace('_', " "));
    let mut table = titles.iter().fold(Table::of("tasks"), |table, title| table.group(title, &["worst", "mean"]));
    for tasks in measured.counts() {
        let mut cells: Vec<Cell> = vec![tasks.to_string().into()];
        for kind in KINDS {
            for profile in [&measurement.worst, &measurement.average] {
                cells.push(match profile.at(tasks as usize).of(kind) {
                    Nanos::ZERO => Cell::faint("-"),
                    cost => TimeUnit::MICROS.show(cost).into(),
                });
            }
        }
        table.row(cells);
    }
    output.print(table.render(output.width()))?;
    output.finish()?;
    if let Some(folder) = &arguments.out {
        output::note(format_args!("written to {}", folder.join(format!("{name}.toml")).display()));
    }
    Ok(())
}

/// Why there is nothing of a part, where that is not just how the realization is.
fn missing(part: Part, realization: &str) -> Option<String> {
    let is_driven = realization.contains('Q');
    match part {
        Part::Kick => Some(format!(
            "{realization}: no CPU interrupted another one, so that the IPI latency is not known and counts as none; two CPUs at least show it"
        )),
        Part::Tick if !is_driven => None,
        Part::Rearming if realization.ends_with('1') => None,
        Part::KickHere | Part::Links | Part::Times | Part::Early => None,
        part => Some(format!("{realization}: there is no sample of {}; measure for longer with --for", part.name())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_samples_has_one_decimal() {
        let parsed = |text| parse_thousandths(text).map(|share| share.0);
        assert_eq!(["0", "1", "0.1", "49.9"].map(parsed), [Ok(0), Ok(10), Ok(1), Ok(499)]);
        for text in ["50", "-1", "1.25", "1.", "x", "", "99999999999"] {
            assert!(parsed(text).is_err(), "{text}");
        }
    }
}
