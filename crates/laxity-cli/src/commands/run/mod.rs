//! `laxity run`: a workload, live on this machine.

pub mod own_code;
mod view;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::{Duration, Instant as WallInstant};

use clap::Args;
use clap::builder::PossibleValuesParser;
use laxity_model::{GpuArbitration, Instant, Nanos, Scheduler, Workload};
use laxity_runtime::{Ended, LinuxScheduler, LivePlan, Machine, Next, Options, StartOptions};
use laxity_trace::codec::TraceWriter;
use laxity_trace::metrics::Metrics;

use self::view::View;
use super::graph::display::Display;
use super::simulate::{parse_duration, settle_replicas};
use crate::error::CliError;
use crate::input;
use crate::interrupt::Interrupt;
use crate::output::{self, Output};
use crate::output_file::{Failed, OutputFile};
use crate::quantity::{counted, parse_seed, short};
use crate::report::{self, Report};
use crate::style::{RESET, STRONG};

/// How often the trace is written: if this process is killed, no more than that is lost.
pub const KEEP: Duration = Duration::from_millis(500);

/// Run a workload live, and measure it as a simulation is measured.
///
/// Each task and each node of a graph gets a thread. Timers release jobs, and tokens those of nodes; a job calls the code that the file names for it (`run = ...`), or else computes for the CPU time that is drawn for it, sleeps where it suspends itself, locks what it locks, and uses soft GPUs under the workload's arbitration. With one seed, draws are those of `laxity simulate`. All jobs that are released before the end are carried out, however late. Best-effort tasks are threads of the fair class, with their weights as niceness and their memory traffic; they end with the run. While a job holds the bandwidth lock their CPUs are throttled beyond its budget.
///
/// If Laxity's scheduler is in the kernel (`laxity sched start`) with the workload's policy on its CPUs, that schedules. Else Linux does: by SCHED_FIFO with the priorities of the policy (RM, DM, FP), or SCHED_DEADLINE for EDF, where this user may, and otherwise by SCHED_OTHER, which is said. On a terminal a table shows what each task does. Ctrl-C ends the run at once; what was measured is printed, and the trace is complete up to there.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity run car.toml
  laxity run car.toml --for 10s --policy P-RM --scheduler fifo
  laxity run examples/workloads/stabilizer.toml --cpus 2           eight CPUs folded onto two
  laxity run examples/workloads/live-gpu.toml --for 10s --arbitration driver
  laxity run car.toml --trace live.lxt && laxity trace live.lxt gantt
  laxity simulate car.toml --json > model.json; laxity run car.toml --json > machine.json

Exit codes: 0 it ran; 1 it cannot, or jobs missed deadlines (--fail-on-miss);
2 bad usage or a bad workload; 130 interrupted.")]
pub struct Arguments {
    /// The workload, TOML or JSON; - reads standard input
    file: PathBuf,
    /// Take priorities and clusters of POLICY instead of the workload's, as in P-RM; `laxity policies` lists them
    #[arg(long, value_name = "POLICY", value_parser = parse_policy)]
    policy: Option<Scheduler>,
    /// Share GPUs by NAME instead of the file's arbitration: driver, driver_spinning, k_fmlp or gpusync
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(GpuArbitration::ALL.map(GpuArbitration::name)), hide_possible_values = true)]
    arbitration: Option<String>,
    /// What schedules: laxity, kernel, fifo, deadline or other; laxity is the scheduler in the kernel if that is loaded with
    /// this policy on these CPUs [default: that, else the class of Linux that does just what the policy says, else laxity, as
    /// far as permitted]
    #[arg(long, value_name = "CLASS")]
    scheduler: Option<LinuxScheduler>,
    /// Run on NUMBER CPUs though the workload is for more: neighbours share one, and clusters that then share a CPU are one
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1024))]
    cpus: Option<u16>,
    /// Run for DURATION, as in 60s or "2 min" [default: ten periods of each task after its phase, at least 1 s]
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    duration: Option<Nanos>,
    /// Seed of random execution times, arrivals and jitter
    #[arg(long, value_name = "NUMBER", value_parser = parse_seed, default_value_t = 0)]
    seed: u64,
    /// Use up CPU time where the file names code to run: what analysis and simulation suppose
    #[arg(long)]
    no_code: bool,
    /// Look each millisecond on each CPU for time stolen by the hypervisor, firmware or interrupts; `trace why` then names it
    #[arg(long)]
    watch_cpus: bool,
    /// Have Linux record which other threads and interrupts get the run's CPUs, and when; `trace why` then names them
    #[arg(long)]
    watch_threads: bool,
    /// Write the trace to OUT, as it happens: if the run is killed, OUT has it up to the last second
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

pub fn parse_policy(text: &str) -> Result<Scheduler, String> {
    text.parse::<Scheduler>().map_err(|error| error.to_string())
}

/// Runs the workload, then prints what was measured.
pub fn run(arguments: Arguments, output: &mut Output) -> Result<(), CliError> {
    let file = input::name(&arguments.file);
    let workload = workload(&arguments, &file)?;
    let duration = arguments.duration.unwrap_or_else(|| laxity_plan::default_duration(&workload));
    let plan = plan(&arguments, &file, &workload, duration)?;
    if !arguments.quiet && !arguments.json {
        say(&file, &workload, &plan);
        if arguments.watch_threads {
            laxity_runtime::interrupts_refused().into_iter().for_each(output::note);
        }
    }
    let interrupt = Interrupt::watch();
    let (report, is_whole, failed) = carry_out(&arguments, &plan, duration, &interrupt)?;
    print(&arguments, &report, output)?;
    failed.map_err(|message| CliError::Live { message: format!("{file}: {message}") })?;
    conclude(&arguments, &report, is_whole)
}

/// What the file describes, but for what the command line says instead.
fn workload(arguments: &Arguments, file: &str) -> Result<Workload, CliError> {
    let mut workload = input::workload(&arguments.file)?;
    workload.scheduler = arguments.policy.unwrap_or(workload.scheduler);
    let management = &mut workload.gpu_management;
    let named = arguments.arbitration.as_ref().map(|name| GpuArbitration::named(name, management.arbitration));
    management.arbitration = named.flatten().unwrap_or(management.arbitration);
    let (scheduler, quiet) = (workload.scheduler, arguments.quiet || arguments.json);
    settle_replicas(&mut workload, &scheduler, file, &scheduler.to_string(), quiet);
    Ok(workload)
}

fn plan(arguments: &Arguments, file: &str, workload: &Workload, duration: Nanos) -> Result<LivePlan, CliError> {
    let options = Options { scheduler: workload.scheduler, linux: arguments.scheduler, seed: arguments.seed, duration };
    let cpus = arguments.cpus.map_or(usize::MAX, usize::from);
    let mut plan = LivePlan::folded(workload, cpus, &options).map_err(|refusal| {
        let lines: Vec<String> = refusal.reasons().iter().map(|reason| format!("{file}: {reason}")).collect();
        CliError::Live { message: lines.join("\n") }
    })?;
    if !arguments.no_code {
        own_code::load(&mut plan, workload, &arguments.file)?;
    }
    Ok(plan)
}

/// What weakens what is measured.
fn say(file: &str, workload: &Workload, plan: &LivePlan) {
    for warning in workload.warnings() {
        output::warning(format_args!("{file}: {warning}"));
    }
    for note in plan.notes() {
        output::warning(format_args!("{file}: {note}"));
    }
    for remark in Machine::look().remarks(plan.linux()) {
        output::note(remark);
    }
    match plan.linux() {
        LinuxScheduler::Laxity => {
            output::note(format_args!("Laxity schedules the tasks by {}, upon SCHED_FIFO", plan.header().scheduler))
        }
        LinuxScheduler::Kernel => {
            output::note(format_args!("Laxity schedules the tasks by {}, in the kernel", plan.header().scheduler))
        }
        class => output::note(format_args!("Linux schedules the tasks by {class}")),
    }
}

/// Runs `plan` to its end or until interrupted. Its trace is in its place when this returns. Answers what was measured,
/// whether that is all that happened, and why the run could not go on, if it could not.
fn carry_out(
    arguments: &Arguments,
    plan: &LivePlan,
    duration: Nanos,
    interrupt: &Interrupt,
) -> Result<(Report, bool, Result<(), String>), CliError> {
    let quiet = arguments.quiet || arguments.json;
    let header = plan.header();
    let (trace, write_failed) = open_trace(arguments, plan)?;
    let mut sink = (Metrics::new(header), (View::new(header), trace));
    let refused = |message| CliError::Live { message };
    let start = StartOptions {
        locks_memory: true,
        watches_cpus: arguments.watch_cpus,
        watches_threads: arguments.watch_threads,
        ..StartOptions::default()
    };
    let mut display = Display::new(None, quiet || !io::stderr().is_terminal());
    let (mut kept, mut is_first) = (WallInstant::now(), true);
    let ended = plan.carry_out(start, &mut sink, |run, sink, _| {
        if let Some(note) = run.note().filter(|_| !quiet && is_first) {
            output::note(note);
        }
        if is_first {
            interrupt.end_with_graphs_of(plan);
        }
        is_first = false;
        if let Some(trace) = sink.1.1.as_mut().filter(|_| kept.elapsed() >= KEEP) {
            trace.flush();
            kept = WallInstant::now();
        }
        if display.is_due() {
            let reached = run.seen().min(Instant::ZERO + duration);
            show(&mut display, &sink.1.0, &header.workload, (reached, duration), run.completed());
        }
        Next::stop_if(interrupt.is_requested() || write_failed.get())
    });
    interrupt.end_with(|| {});
    let Ended { outcome, failed, remarks, .. } = ended.map_err(refused)?;
    display.clear();
    remarks.into_iter().filter(|_| !quiet).for_each(output::warning);
    let was_interrupted = interrupt.is_requested();
    let (metrics, (_, trace)) = sink;
    if let (Some(writer), Some(path)) = (trace, &arguments.trace) {
        writer.finish().map_err(|source| CliError::Write { path: path.clone(), source })?.commit()?;
    }
    let report = Report {
        header: header.clone(),
        overheads: None,
        summary: metrics.finish(outcome.reached),
        cut_short: was_interrupted.then_some(duration),
    };
    Ok((report, outcome.is_whole, failed))
}

/// Shows how far the run is, and what each task does.
fn show(display: &mut Display, view: &View, name: &str, (reached, duration): (Instant, Nanos), jobs: u64) {
    // To the tenth of a second: digits that race by tell nothing.
    let reached = short(Nanos(reached.0 / 100_000_000 * 100_000_000));
    let jobs = counted(jobs, "job");
    let line = format!("{STRONG}{name}{RESET}: {reached} of {}, {jobs}, {} missed", short(duration), view.missed());
    let rows = display.rows();
    display.show(&line, |width| view.table(rows).render(width));
}

/// Where the records go, if anywhere, and whether writing them failed.
fn open_trace(arguments: &Arguments, plan: &LivePlan) -> Result<(Option<TraceWriter<OutputFile>>, Failed), CliError> {
    let Some(path) = &arguments.trace else { return Ok((None, Failed::default())) };
    let file = OutputFile::record(path)?;
    let failed = file.failed();
    let writer =
        TraceWriter::new(file, plan.header()).map_err(|source| CliError::Write { path: path.clone(), source })?;
    Ok((Some(writer), failed))
}

fn print(arguments: &Arguments, report: &Report, output: &mut Output) -> Result<(), CliError> {
    if arguments.json {
        return output.print(report::one(report));
    }
    if arguments.quiet {
        return Ok(());
    }
    output.print(report::text(report, arguments.per_cpu, output.width()))?;
    output.finish()?;
    if let Some(path) = &arguments.trace {
        let path = path.to_string_lossy();
        let named = output::word(&path);
        output::note(format_args!("trace in {path}; look at it with `laxity trace {named} gantt`"));
    }
    Ok(())
}

/// An interruption, a trace that is cut off, or missed deadlines, where those are failures.
fn conclude(arguments: &Arguments, report: &Report, is_whole: bool) -> Result<(), CliError> {
    let ran = short(report.summary.duration);
    if !is_whole {
        let message = format!(
            "what happened after {ran} could not be collected in time; give the machine a CPU more than the tasks need"
        );
        return Err(CliError::Live { message });
    }
    if let Some(asked) = report.cut_short {
        let kept = if arguments.trace.is_some() { "; the trace is complete up to there" } else { "" };
        return Err(CliError::Interrupted { reached: format!("after {ran} of {}{kept}", short(asked)) });
    }
    let (missed, released) = (report.summary.total.missed, report.summary.total.released);
    let outputs = report.summary.missed() - missed;
    if arguments.fail_on_miss && missed + outputs > 0 {
        return Err(CliError::Missed { outputs, missed, released });
    }
    Ok(())
}
