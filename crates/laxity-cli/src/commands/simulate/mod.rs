//! `laxity simulate`: what does the schedule look like?

mod run;
mod simulations;

use std::path::PathBuf;

use clap::Args;
use laxity_model::{Nanos, Workload};
use laxity_trace::TraceHeader;

use self::simulations::Simulation;
#[cfg(target_os = "linux")]
pub use self::simulations::settle_replicas;
use crate::configuration::Alternatives;
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::output::{self, Output};
use crate::progress::Progress;
use crate::quantity::parse_seed;
use crate::report::{self, Report};
use crate::{input, quantity};

/// Simulate a workload and measure its schedule.
///
/// Prints what was measured of each task, and where the CPU time went. With several policies, or ways to manage GPUs, compares them. The
/// same file, seed and version give the same schedule, byte for byte. Ctrl-C ends a simulation at the time it has
/// reached; its results are printed and its trace is complete up to there.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity simulate car.toml
  laxity simulate car.toml --for 60s --overheads brandenburg2009-worst
  laxity simulate car.toml --policy CEm,CQm,S-CQm        compare three schedulers
  laxity simulate car.toml --policy all --json           compare the nine measured in paper 002
  laxity simulate car.toml --handling all                compare where bottom halves of GPU interrupts run
  laxity simulate car.toml --arbitration driver,gpusync --handling linux,klmirqd
  laxity simulate car.toml --trace car.lxt && laxity trace car.lxt gantt
  laxity gen uni-light/moderate cap=2 | laxity simulate -

Exit codes: 0 simulated; 1 it failed, or jobs missed deadlines (--fail-on-miss);
2 bad usage or a bad workload; 130 interrupted.")]
pub struct Arguments {
    /// The workload, TOML or JSON; - reads standard input
    file: PathBuf,
    #[command(flatten)]
    instead: Alternatives,
    /// Simulate for DURATION, as in 60s or "2 min" [default: ten periods of each task after its phase, at least 1 s]
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    duration: Option<Nanos>,
    /// Seed of random execution times, arrivals and jitter
    #[arg(long, value_name = "NUMBER", value_parser = parse_seed, default_value_t = 0)]
    seed: u64,
    /// Write the trace to OUT; where several things are compared, one file each, the name of each inserted
    #[arg(long, value_name = "OUT")]
    trace: Option<PathBuf>,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// Show each CPU, not only all of them together
    #[arg(long, conflicts_with = "json")]
    per_cpu: bool,
    /// Exit with 1 if any job missed its deadline
    #[arg(long)]
    fail_on_miss: bool,
    /// Print nothing but errors and, with --json, the JSON
    #[arg(long, short)]
    quiet: bool,
}

pub fn parse_duration(text: &str) -> Result<Nanos, String> {
    match text.parse::<Nanos>() {
        Ok(Nanos::ZERO) => Err("nothing happens in no time; simulate for longer, as in \"1 s\"".to_owned()),
        Ok(span) => Ok(span),
        Err(error) => Err(error.to_string()),
    }
}

/// Simulates under each policy in turn, then prints.
pub fn run(arguments: Arguments, output: &mut Output) -> Result<(), CliError> {
    let file = input::name(&arguments.file);
    let workload = input::workload(&arguments.file)?;
    let simulations = simulations::simulations(&arguments, &file, &workload)?;
    let quiet = arguments.quiet || arguments.json;
    if !quiet {
        for warning in workload.warnings() {
            output::warning(format_args!("{file}: {warning}"));
        }
        arguments.instead.without_effect(&workload).for_each(|what| output::warning(format_args!("{file}: {what}")));
    }
    if !quiet {
        for warning in simulations.iter().filter_map(|simulation| overfull(&workload, &simulation.plan.header)) {
            output::warning(format_args!("{file}: {warning}"));
        }
    }
    let duration = arguments.duration.unwrap_or_else(|| laxity_plan::default_duration(&workload));
    let interrupt = Interrupt::watch();
    let mut reports = Vec::with_capacity(simulations.len());
    for (number, simulation) in simulations.iter().enumerate() {
        let label = match simulations.len() {
            1 => String::new(),
            count => format!("{}/{count} {}  ", number + 1, simulation.name),
        };
        let mut progress = Progress::new(label, duration, quiet);
        let report = run::simulate(simulation, duration, &mut progress, &interrupt)?;
        progress.finish();
        let done = report.cut_short.is_none();
        reports.push(report);
        if !done {
            break;
        }
    }
    print(&arguments, &simulations, &reports, output)?;
    conclude(&arguments, &simulations, &reports)
}

/// A cluster whose tasks need more than its CPUs, though all CPUs together would do: assigning tasks to it has failed, or the
/// workload did it.
fn overfull(workload: &Workload, header: &TraceHeader) -> Option<String> {
    // In thousandths of a CPU, rounded to the nearest as those of `laxity check` are.
    let of = |cluster: Option<usize>| -> u128 {
        let tasks = header.tasks.iter().filter(|task| task.kind.has_deadlines());
        let tasks = tasks.filter(|task| cluster.is_none_or(|cluster| task.cluster == cluster));
        (tasks.map(|task| u128::from(task.wcet.0) * 1_000_000_000 / u128::from(task.period.0.max(1))).sum::<u128>()
            + 500_000)
            / 1_000_000
    };
    let sizes = || header.clusters.iter().map(|cpus| cpus.len() as u128 * 1_000);
    if of(None) > sizes().sum() {
        // No assignment can help; the workload is warned of.
        return None;
    }
    let (cluster, size) = sizes().enumerate().find(|&(cluster, size)| of(Some(cluster)) > size)?;
    let cpus: Vec<String> = header.clusters[cluster].iter().map(ToString::to_string).collect();
    let needed = of(Some(cluster));
    let placed = workload.tasks.iter().map(|task| task.cluster);
    let placed = placed.chain(workload.graphs.iter().flat_map(|graph| graph.nodes.iter().map(|node| node.cluster)));
    let way_out = match placed.filter(|&placed| placed == Some(cluster)).count() {
        0 => "no placement was found in which all fit, so give tasks a `cluster`".to_owned(),
        1 => format!("one of them has `cluster = {cluster}`: give it another, or none"),
        some => format!("{some} of them have `cluster = {cluster}`: give some another, or none"),
    };
    Some(format!(
        "under {} the tasks on {} need {}.{:03} CPUs of {}, so that jobs get ever later; {way_out}, or schedule globally, as in \
         --policy G-EDF",
        header.scheduler,
        cpus.join(", "),
        needed / 1_000,
        needed % 1_000,
        size / 1_000
    ))
}

fn print(
    arguments: &Arguments,
    simulations: &[Simulation],
    reports: &[Report],
    output: &mut Output,
) -> Result<(), CliError> {
    if arguments.json {
        return match (simulations, reports) {
            ([_], [report]) => output.print(report::one(report)),
            _ => output.print(report::many(reports)),
        };
    }
    if arguments.quiet {
        return Ok(());
    }
    let width = output.width();
    match (simulations, reports) {
        ([_], [report]) => output.print(report::text(report, arguments.per_cpu, width))?,
        _ if arguments.per_cpu => {
            for report in reports {
                output.print(report::text(report, true, width))?;
                output.line("")?;
            }
            output.print(report::comparison(reports, width))?;
        }
        _ => output.print(report::comparison(reports, width))?,
    }
    output.finish()?;
    let mut profiles =
        simulations.iter().filter(|simulation| simulation.is_charged()).map(|simulation| simulation.overheads.as_str());
    if let Some(first) = profiles.next()
        && profiles.all(|name| name == first)
        && simulations.iter().any(|simulation| simulation.plan.header.scheduler != simulations[0].plan.header.scheduler)
    {
        output::note(format_args!(
            "all were charged {first}; name a family to charge each its own, as in --overheads brandenburg2009-worst"
        ));
    }
    for path in simulations.iter().zip(reports).filter_map(|(simulation, _)| simulation.trace.as_deref()) {
        let size = std::fs::metadata(path).map_or(String::new(), |data| format!(" ({})", quantity::bytes(data.len())));
        let path = path.to_string_lossy();
        let named = output::word(&path);
        output::note(format_args!("trace in {path}{size}; look at it with `laxity trace {named} gantt`"));
    }
    Ok(())
}

/// An interruption or missed deadlines, where those are failures.
fn conclude(arguments: &Arguments, simulations: &[Simulation], reports: &[Report]) -> Result<(), CliError> {
    if let Some((report, asked)) = reports.iter().find_map(|report| report.cut_short.map(|asked| (report, asked))) {
        let of = match simulations.len() {
            1 => String::new(),
            count => format!(", in run {} of {count}", reports.len()),
        };
        let kept = if arguments.trace.is_some() { "; the trace is complete up to there" } else { "" };
        let reached = format!("at {} of {asked} simulated{of}{kept}", quantity::short(report.summary.duration));
        return Err(CliError::Interrupted { reached });
    }
    let missed: u64 = reports.iter().map(|report| report.summary.total.missed).sum();
    let released = reports.iter().map(|report| report.summary.total.released).sum();
    let outputs: u64 = reports.iter().map(|report| report.summary.missed() - report.summary.total.missed).sum();
    if arguments.fail_on_miss && missed + outputs > 0 {
        return Err(CliError::Missed { outputs, missed, released });
    }
    Ok(())
}
