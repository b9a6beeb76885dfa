//! `laxity exec`: a program that knows nothing of Laxity, as a task of a system of its own scheduler, or of the one in the kernel.

mod kernel;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use laxity_model::Nanos;
use laxity_sched::{
    BeginError, Config, NAME_MAX, Parameters, Program, ProgramReport, Registry, RegistryError, Rule, System,
    parse_clusters,
};
use laxity_sys::scheduling;
use laxity_sys::signals::Signals;
use serde::Serialize;

use super::named::live;
use super::program::{self, ended, wait_for};
use super::sched::refused;
use crate::error::CliError;
use crate::output;

/// Run any program as a task of Laxity's own scheduler.
///
/// In each period the program gets WCET of CPU time, by the system's policy among its other tasks, and no more: when it has used that, it is stopped (SIGSTOP) until its next release. Its first thread is what the policy places; other threads are scheduled by Linux as usual, count against the same budget and are stopped with it. Processes that it starts are not limited. The first program of a system creates it, and the last one to end removes it. If this process ends, however that is, the program is killed. See docs/guides/scheduling.md.
///
/// With --kernel the scheduler in the kernel does that for the first thread, by a hard constant bandwidth server, and nothing is stopped; other threads of the program have the time that tasks leave. See docs/guides/kernel.md.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity exec --system robot --period 10ms --wcet 2ms -- ./control
  laxity exec --system robot --period 33ms --wcet 12ms --deadline 20ms -- python3 detect.py
  laxity exec --system robot --cpus 2,3 --policy rm --period 10ms --wcet 2ms -- ./control
  laxity exec --system robot --clusters '0;1' --cluster 1 --period 5ms --wcet 1ms -- ./motor
  laxity exec --system robot --period 10ms --wcet 2ms --report -- ./control
  laxity sched top robot                   which of them has a CPU
  laxity exec --kernel --period 10ms --wcet 2ms -- ./control       by `laxity sched start`

Exit codes: that of the program, 128 and the signal that ended it; 1 the system or Linux refuses; 2 bad usage.")]
pub struct Arguments {
    /// The system; it is created if it does not exist
    #[arg(long, value_name = "NAME", required_unless_present = "kernel")]
    system: Option<String>,
    /// The scheduler in the kernel instead: see `laxity sched start`
    #[arg(long, conflicts_with_all = ["system", "deadline", "cpus", "clusters", "policy", "folder"])]
    kernel: bool,
    /// Between two releases, as in 10ms
    #[arg(long, value_name = "DURATION")]
    period: Nanos,
    /// The CPU time that it gets in each period
    #[arg(long, value_name = "DURATION")]
    wcet: Nanos,
    /// When it is to have got that, after each release [default: the period]
    #[arg(long, value_name = "DURATION")]
    deadline: Option<Nanos>,
    /// The CPUs of the system, one cluster of them, as in 0-3 [default: those that this process may use]
    #[arg(long, value_name = "LIST", conflicts_with = "clusters")]
    cpus: Option<String>,
    /// The CPUs of each cluster of the system, as in "0,1;2,3"
    #[arg(long, value_name = "LISTS")]
    clusters: Option<String>,
    /// The cluster that schedules the program [default: 0, and in the kernel the one with the least load]
    #[arg(long, value_name = "N")]
    cluster: Option<usize>,
    /// How the system's jobs are ranked [default: edf]
    #[arg(long, value_name = "POLICY", ignore_case = true)]
    policy: Option<Policy>,
    /// Its priority under fp, which requires one: the smaller the more urgent
    #[arg(long, value_name = "N")]
    priority: Option<u32>,
    /// The name of the task [default: that of the program]
    #[arg(long, value_name = "NAME")]
    task: Option<String>,
    /// Where systems have their names
    #[arg(long, value_name = "DIR", default_value = "/dev/shm")]
    folder: PathBuf,
    /// Say at the end, on standard error, what the program got
    #[arg(long)]
    report: bool,
    /// The same as a line of JSON
    #[arg(long)]
    json: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// A rule of the scheduler, as it is written here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Policy {
    /// The earliest deadline first
    Edf,
    /// The shortest period first
    Rm,
    /// The shortest relative deadline first
    Dm,
    /// The smallest --priority first
    Fp,
}

/// Runs the program to its end.
pub fn run(arguments: Arguments) -> Result<(), CliError> {
    // Before any other thread: they are to keep the signals from this process, too.
    let signals = Signals::requests().map_err(live)?;
    let shown = arguments.program[0].to_string_lossy().into_owned();
    if arguments.kernel {
        return kernel::run(&arguments, &shown, &signals);
    }
    let system = system(&arguments)?;
    let mut started = program::start(&mut program::command(&arguments.program), &signals)?;
    let mut program = match Program::begin(&system, parameters(&arguments, &shown), started.pid()) {
        Ok(program) => program,
        // It ended at once, so that there is nothing to schedule.
        Err(BeginError::Refused { .. }) if started.has_ended() => return ended(shown, program::status(&mut started)?),
        Err(error) => return Err(begin(error)),
    };
    while !started.has_ended() {
        let next = match program.look() {
            Ok(next) => next,
            Err(_) if started.has_ended() => break,
            Err(error) => return Err(live(error)),
        };
        wait_for(&mut started, &signals, next);
    }
    if arguments.report || arguments.json {
        output::to_stderr(report(&program, &arguments, &shown));
    }
    // Its task ends while the program still has its number.
    drop(program);
    ended(shown, program::status(&mut started)?)
}

/// What the program got, in words or as JSON.
fn report(program: &Program, arguments: &Arguments, shown: &str) -> String {
    let ProgramReport { jobs, completed, late, tardiness_max, stops, cpu_time } = program.report();
    let task = parameters(arguments, shown).name;
    if arguments.json {
        let line = Report {
            system: system_name(arguments),
            task: &task,
            jobs,
            completed,
            late,
            tardiness_max_ns: tardiness_max.0,
            stops,
            cpu_time_ns: cpu_time.0,
        };
        return serde_json::to_string(&line).expect("numbers and texts are JSON");
    }
    let late = if late > 0 { format!("{late} late, by {tardiness_max} at most") } else { "none late".to_owned() };
    format!(
        "{task}: {jobs} jobs, {completed} complete, {late}; {cpu_time} of CPU time, stopped {stops} times for its budget"
    )
}

/// The report as JSON.
#[derive(Serialize)]
struct Report<'a> {
    system: &'a str,
    task: &'a str,
    jobs: u64,
    completed: u64,
    late: u64,
    tardiness_max_ns: u64,
    stops: u64,
    cpu_time_ns: u64,
}

fn parameters(arguments: &Arguments, program: &str) -> Parameters {
    let Arguments { cluster, period, wcet, deadline, priority, .. } = *arguments;
    let name = name(arguments, program);
    let (cluster, deadline) = (cluster.unwrap_or(0), deadline.unwrap_or(period));
    Parameters { cluster, deadline, wcet, budget: Some(wcet), priority, ..Parameters::periodic(name, period) }
}

/// The name of the task: that of the program without its folders, as far as it fits, if no other is asked for.
fn name(arguments: &Arguments, program: &str) -> String {
    if let Some(name) = &arguments.task {
        return name.clone();
    }
    let name = Path::new(program).file_name().map_or(program.into(), |name| name.to_string_lossy());
    let fits = name.char_indices().take_while(|(at, letter)| at + letter.len_utf8() <= NAME_MAX);
    fits.map(|(_, letter)| letter).collect()
}

fn system_name(arguments: &Arguments) -> &str {
    arguments.system.as_deref().expect("it is required but with --kernel")
}

/// The system of that name, created if need be. It must be as the options say.
fn system(arguments: &Arguments) -> Result<System, CliError> {
    let registry = Registry::at(&arguments.folder);
    let Arguments { cpus, clusters, policy, .. } = arguments;
    let is_described = cpus.is_some() || clusters.is_some() || policy.is_some();
    let attached = if is_described { None } else { Some(registry.attach(system_name(arguments))) };
    let system = match attached {
        None | Some(Err(RegistryError::NotFound { .. })) => {
            let config = config(arguments)?;
            check_cpus(&config)?;
            registry.create_or_attach(system_name(arguments), &config)
        }
        Some(attached) => attached,
    };
    let system = system.map_err(|error| refused(&registry, error))?;
    check_priority(&system, arguments)?;
    check_cpus(system.config())?;
    Ok(system)
}

/// A priority that is forgotten, or has no effect, is a mistake: files of workloads have both refused, too.
fn check_priority(system: &System, arguments: &Arguments) -> Result<(), CliError> {
    let name = system_name(arguments);
    let message = match (system.config().rule, arguments.priority) {
        (Rule::Given, None) => format!("system {name} ranks jobs by given priorities (fp); say --priority"),
        (Rule::Given, Some(_)) | (_, None) => return Ok(()),
        (_, Some(priority)) => format!(
            "--priority {priority} has no effect: system {name} does not rank jobs by given priorities; leave it out, or create \
             the system with --policy fp"
        ),
    };
    Err(CliError::Argument { message })
}

/// Before the program starts: on a CPU that this process may not use, no task of the system can be placed.
fn check_cpus(config: &Config) -> Result<(), CliError> {
    let usable = scheduling::usable_cpus().map_err(live)?;
    let unusable = |cpu: &&u16| !usable.contains(&usize::from(**cpu));
    match config.clusters.iter().flatten().find(unusable) {
        Some(cpu) => {
            let usable: Vec<String> = usable.iter().map(usize::to_string).collect();
            let message = format!("--cpus: CPU {cpu} cannot be used; those that can are {}", usable.join(","));
            Err(CliError::Argument { message })
        }
        None => Ok(()),
    }
}

fn config(arguments: &Arguments) -> Result<Config, CliError> {
    let written = arguments.clusters.as_deref().or(arguments.cpus.as_deref());
    let option = if arguments.clusters.is_some() { "--clusters" } else { "--cpus" };
    let clusters = match written {
        Some(text) if arguments.cpus.is_some() && text.contains(';') => {
            let message = format!("--cpus {text}: one cluster has no semicolons; use --clusters for several");
            return Err(CliError::Argument { message });
        }
        Some(text) => parse_clusters(text)
            .map_err(|error| CliError::Argument { message: format!("{option} {text:?}: {error}") })?,
        None => {
            let cpus = scheduling::usable_cpus().map_err(live)?;
            vec![cpus.into_iter().filter_map(|cpu| u16::try_from(cpu).ok()).collect()]
        }
    };
    let rule = match arguments.policy {
        None | Some(Policy::Edf) => Rule::Edf,
        Some(Policy::Rm) => Rule::RateMonotonic,
        Some(Policy::Dm) => Rule::DeadlineMonotonic,
        Some(Policy::Fp) => Rule::Given,
    };
    Ok(Config::new(rule, clusters))
}

/// Impossible parameters are bad usage.
fn begin(error: BeginError) -> CliError {
    let is_usage = matches!(
        error,
        BeginError::Name { .. }
            | BeginError::Control { .. }
            | BeginError::Cluster { .. }
            | BeginError::Zero { .. }
            | BeginError::Short { .. }
            | BeginError::Deadline { .. }
    );
    if is_usage { CliError::Argument { message: error.to_string() } } else { live(error) }
}
