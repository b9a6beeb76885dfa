//! `laxity graph run`: a graph on this machine, carried out by threads or by processes.

mod attributes;
mod body;
mod channel;
mod conduct;
mod crew;
mod load;
mod measure;
pub mod member;
pub(super) mod notation;
mod orders;
mod processes;
mod record;
mod report;
mod settings;
mod threads;
mod worker;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use laxity_graph::{Graph, MEMBERS_MAX, RECORDER_DEFAULT, Registry, Spec};
use laxity_model::{self as model, Nanos, Workload};
use laxity_runtime::{control, work};
use laxity_sys::journal::Journal;

use self::attributes::Scheduling;
use self::body::Body;
use self::channel::Carried;
use self::conduct::Conductor;
use self::crew::Crew;
use self::load::Load;
use self::orders::{Orders, Releases};
use self::processes::Processes;
use self::record::Records;
use self::report::Outcome;
use self::settings::Setting;
use self::threads::Threads;
use super::display::Display;
use super::recording;
use super::{live, parse_interval};
use crate::commands::simulate::parse_duration;
use crate::error::CliError;
use crate::input;
use crate::interrupt::Interrupt;
use crate::output::{self, Output};
use crate::quantity::{counted, short};

/// Run a graph, and measure response times, deadlines and end-to-end latencies.
///
/// The graph is one of a workload file, or written as edges after -g: FROM[.PRODUCE]:TO[.CONSUME[.THRESHOLD]] between commas. An edge that ends in +2 starts with two tokens; one that ends in @2 does, too, and is a back-edge, as in A:B,B:A@1.
///
/// Each node gets a thread, or with --processes a process, that Linux schedules as any other unless --priorities or --priority is there. Sources are released by time, all other nodes when their tokens are there; each job goes through its working set and computes for as long as is said there. All releases before the end are carried out, however late, and all that they led to.
///
/// A job arrives when it is released or its last token is there; from then to its completion is its response time. The end-to-end latency of a job of a sink is from the arrival of a job of a source to its completion: the earliest of those whose tokens, directly or through other nodes, it takes away. Tokens that only raise a threshold, tokens from the start, and back-edges do not count.
///
/// On a terminal a table shows what the nodes are doing; elsewhere a line goes to standard error every 5 s. Ctrl-C ends the run at once; what was measured is printed. A second Ctrl-C ends this program, whatever it is doing, without trace or summary.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity graph run car.toml
  laxity graph run car.toml --for 10s --json
  laxity graph run car.toml --edges ring:4096      messages of 4096 bytes instead of events
  laxity graph run car.toml --no-work              what the graph itself costs
  laxity graph run car.toml --trace car.lxt        then laxity trace car.lxt gantt
  laxity graph run car.toml --processes --restart  a process a node; one that is killed is replaced
  laxity graph run -g camera:detector,detector.2:planner.4 --period 33ms --cost 9ms
  laxity graph run -g A:B,B:C,C:A@2 --rate 100 --cost 'B={ uniform = [\"1 ms\", \"4 ms\"] }' --jobs 500
  laxity graph run -g A:B --rate 50 --priorities depth --cpus 0-1 --cpus B=1 --working-set B=2MB

Exit codes: 0 it ran; 1 it cannot, a process was killed and not replaced, or jobs missed deadlines
(--fail-on-miss); 2 bad usage or a bad workload; 130 interrupted.")]
pub struct Arguments {
    /// The workload, TOML or JSON; - reads standard input
    #[arg(required_unless_present = "notation")]
    file: Option<PathBuf>,
    /// Run the graph with these edges instead, as in A:B.2.3,B.5:C
    #[arg(short = 'g', value_name = "EDGES", conflicts_with = "file")]
    notation: Option<String>,
    /// Which graph, where the workload has several
    #[arg(long, value_name = "NAME", conflicts_with = "notation")]
    graph: Option<String>,
    /// Call it NAME while it runs [default: what the file calls it; "graph" with -g]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Run for DURATION, as in 10s or "2 min" [default: 1s, or as long as --jobs takes]
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    duration: Option<Nanos>,
    /// Release each source NUMBER times at most
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    jobs: Option<u64>,
    /// What edges carry, or one of them: counter (events), ring, fifo, mq or tcp (messages of 64 bytes), or ring:BYTES and so on; can be repeated
    #[arg(long, value_name = "[FROM:TO=]KIND")]
    edges: Vec<Setting<Carried>>,
    #[command(flatten)]
    load: Load,
    #[command(flatten)]
    scheduling: Scheduling,
    /// Have the jobs of all nodes wait for their releases, a period apart, not only those of sources
    #[arg(long)]
    on_time: bool,
    /// Give each node a process of its own instead of a thread
    #[arg(long)]
    processes: bool,
    /// With --processes: start another process in place of one that is killed
    #[arg(long, requires = "processes")]
    restart: bool,
    /// Write what happens to OUT, for `laxity trace`
    #[arg(long, value_name = "OUT")]
    trace: Option<PathBuf>,
    /// Have each node remember its last NUMBER jobs [default: 256; 4096 with --trace]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    recorder: Option<u32>,
    /// Seed of random execution times
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    seed: u64,
    /// Show how it goes every DURATION [default: 250ms on a terminal, else 5s]
    #[arg(long, value_name = "DURATION", value_parser = parse_interval)]
    every: Option<Nanos>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Exit with 1 if any job missed its deadline
    #[arg(long)]
    fail_on_miss: bool,
    /// Print nothing but errors and, with --json, the JSON
    #[arg(long, short)]
    quiet: bool,
}

/// How many jobs a node remembers whose trace is written: as many as it completes, at 100 kHz, between two looks.
const RECORDER_TRACED: u32 = 4096;

/// Creates the graph, runs it, removes it, and prints what was measured.
pub fn run(registry: &Registry, arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    let argument = |message| CliError::Argument { message };
    let (mut model, file) = read(arguments)?;
    model.name = arguments.name.clone().unwrap_or(model.name);
    arguments.load.apply(&mut model).map_err(argument)?;
    let bodies = arguments.load.bodies(&model);
    if !arguments.quiet && !arguments.json && bodies.iter().any(Body::leaves_out) {
        output::warning(format_args!("{file}: GPU operations are left out, and what resources guard runs unguarded"));
    }
    let channels = channel::channels(&model, &arguments.edges).map_err(argument)?;
    let refused = |error| argument(format!("{file}: {error}"));
    let spec = Spec::with_channels(model, channels).map_err(refused)?;
    let spec = spec.with_recorder(recorder(arguments)).map_err(|error| argument(format!("--recorder: {error}")))?;
    check_processes(arguments, spec.graph().nodes.len()).map_err(argument)?;
    let orders = orders(arguments, &spec, bodies)?;
    let interrupt = Interrupt::watch();
    let graph = registry.create(&spec).map_err(live)?;
    let (names, name) = (registry.clone(), spec.graph().name.clone());
    interrupt.end_with(move || _ = names.unlink(&name));
    let outcome = carry_out(registry, arguments, &graph, &orders, &interrupt);
    // Before anything else is written, so that nothing is left even if that fails.
    interrupt.end_with(|| {});
    drop(graph);
    let (outcome, is_broken) = outcome?;
    arguments.trace.iter().for_each(|path| warn_of_flaw(path, &outcome, spec.recorder()));
    print(arguments, &spec, &outcome, output)?;
    conclude(arguments, &outcome, is_broken)
}

/// How many jobs each node remembers.
fn recorder(arguments: &Arguments) -> u32 {
    let default = if arguments.trace.is_some() { RECORDER_TRACED } else { RECORDER_DEFAULT };
    arguments.recorder.unwrap_or(default)
}

/// Whether `nodes` processes and this one find room at a graph.
fn check_processes(arguments: &Arguments, nodes: usize) -> Result<(), String> {
    // This process is one of them.
    let limit = MEMBERS_MAX - 1;
    if !arguments.processes || nodes <= limit {
        return Ok(());
    }
    Err(format!("--processes: the graph has {nodes} nodes, but only {limit} can be processes; leave it out"))
}

/// The graph that is asked for, and what it comes from.
fn read(arguments: &Arguments) -> Result<(model::Graph, String), CliError> {
    let argument = |message| CliError::Argument { message };
    match (&arguments.notation, &arguments.file) {
        (Some(edges), _) => Ok((notation::graph(edges).map_err(argument)?, "-g".to_owned())),
        (None, Some(path)) => {
            let file = input::name(path);
            let workload = input::workload(path)?;
            Ok((choose(&workload, arguments.graph.as_deref(), &file)?.clone(), file))
        }
        (None, None) => Err(argument("name a workload, or write edges after -g".to_owned())),
    }
}

/// The graph called `name`, or the only one.
fn choose<'w>(workload: &'w Workload, name: Option<&str>, file: &str) -> Result<&'w model::Graph, CliError> {
    let names: Vec<String> = workload.graphs.iter().map(|graph| graph.name.clone()).collect();
    let argument = |message| Err(CliError::Argument { message });
    match (name, workload.graphs.as_slice()) {
        (_, []) => argument(format!("{file}: the workload has no graph; add a [[graph]]")),
        (None, [graph]) => Ok(graph),
        (None, _) => argument(format!("{file}: several graphs; choose one with --graph: {}", names.join(", "))),
        (Some(name), graphs) => match graphs.iter().find(|graph| graph.name == name) {
            Some(graph) => Ok(graph),
            None => argument(format!("{file}: no graph is called {name}; {}", super::way_out(name, &names, "graph"))),
        },
    }
}

/// What whoever carries out each node has to know.
fn orders(arguments: &Arguments, spec: &Spec, bodies: Vec<Body>) -> Result<Vec<Orders>, CliError> {
    let costs: Vec<Nanos> = bodies.iter().map(Body::cost).collect();
    let attributes = arguments.scheduling.attributes(spec, &costs);
    let attributes = attributes.map_err(|message| CliError::Argument { message })?;
    attributes::check_permission(spec, &attributes).map_err(live)?;
    let releases = releases(arguments);
    let nodes = spec.graph().nodes.iter().zip(bodies).zip(attributes);
    let orders = nodes.map(|((node, body), attributes)| Orders {
        body,
        seed: arguments.seed,
        working_set: arguments.load.working_set(&node.name),
        attributes,
        releases,
        on_time: arguments.on_time,
    });
    Ok(orders.collect())
}

fn releases(arguments: &Arguments) -> Releases {
    let default = if arguments.jobs.is_some() { Nanos(u64::MAX) } else { Nanos::from_secs(1) };
    let duration = arguments.duration.unwrap_or(default);
    Releases { duration_ns: duration.0, jobs: arguments.jobs.unwrap_or(u64::MAX) }
}

/// Runs `graph`, whose nodes are all free, to its end. Answers whether a node was lost for good, too.
fn carry_out(
    registry: &Registry,
    arguments: &Arguments,
    graph: &Graph,
    orders: &[Orders],
    interrupt: &Interrupt,
) -> Result<(Outcome, bool), CliError> {
    let no_journal = |error| {
        live(format_args!("cannot note when the jobs of each node complete: {error}; raise the limit (`ulimit -n`)"))
    };
    let nodes = graph.spec().graph().nodes.iter();
    let journals = nodes.map(|_| Journal::new("laxity-journal")).collect::<io::Result<Vec<_>>>().map_err(no_journal)?;
    let records = journals.iter().map(Records::of).collect();
    let trace = arguments.trace.as_deref();
    let conductor = Conductor { graph, records, releases: releases(arguments), trace, interrupt };
    let is_quiet = arguments.quiet || (arguments.json && arguments.every.is_none());
    let mut display = Display::new(arguments.every.map(|every| Duration::from_nanos(every.0)), is_quiet);
    let mut crew: Box<dyn Crew> = if arguments.processes {
        let folder = registry.directory();
        Box::new(Processes::start(folder, graph, orders, journals, arguments.restart, interrupt).map_err(live)?)
    } else {
        Box::new(Threads::start(graph, orders, journals).map_err(live)?)
    };
    let outcome = conductor.conduct(crew.as_mut(), &mut display)?;
    Ok((outcome, crew.is_broken()))
}

fn print(arguments: &Arguments, spec: &Spec, outcome: &Outcome, output: &mut Output) -> Result<(), CliError> {
    if arguments.json {
        return output.print(report::json(spec, outcome));
    }
    if arguments.quiet {
        return Ok(());
    }
    output.print(report::text(spec, outcome, output.width()))?;
    output.finish()
}

/// Warns of what the trace has not.
fn warn_of_flaw(path: &Path, outcome: &Outcome, depth: u32) {
    let way_out =
        format!("give nodes a longer memory than {depth} jobs, as in --recorder {}", depth.saturating_mul(16));
    let flaw = outcome.trace.and_then(|collected| recording::flaw(path, collected, &way_out));
    flaw.iter().for_each(output::warning);
}

/// An interruption, a loss or missed deadlines, where those are failures.
fn conclude(arguments: &Arguments, outcome: &Outcome, is_broken: bool) -> Result<(), CliError> {
    let (missed, released) = (outcome.missed(), outcome.jobs());
    if outcome.is_cut_short {
        let of = arguments.duration.map_or(String::new(), |duration| format!(" of {}", short(duration)));
        let reached = format!("after {}{of}, {}", short(outcome.ran), counted(released, "job"));
        return Err(CliError::Interrupted { reached });
    }
    if is_broken {
        return Err(live(format_args!("a node was lost, and the graph ended after {}", counted(released, "job"))));
    }
    if arguments.fail_on_miss && missed > 0 {
        return Err(CliError::Missed { missed, released });
    }
    Ok(())
}
