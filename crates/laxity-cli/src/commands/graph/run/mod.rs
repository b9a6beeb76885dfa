//! `laxity graph run`: a graph on this machine, carried out by threads or by processes.

mod attributes;
mod channel;
mod load;
pub mod member;
pub(super) mod notation;
mod progress;
mod report;
mod settings;

use std::cell::Cell;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant as WallInstant};

use clap::Args;
use laxity_graph::{Graph, MEMBERS_MAX, RECORDER_DEFAULT, Registry, Spec};
use laxity_model::{self as model, Instant, Nanos, Platform, Step, Workload};
use laxity_runtime::{Ended, GraphOptions, LivePlan, Next, ProcessOptions, Refusal, Run, StartOptions};
use laxity_trace::codec::TraceWriter;
use laxity_trace::metrics::{Metrics, NodeJobs};
use laxity_trace::{Event, Sink};

use self::attributes::Scheduling;
use self::channel::Carried;
use self::load::Load;
use self::progress::Progress;
use self::report::{NodeOutcome, Outcome};
use self::settings::Setting;
use super::display::Display;
use super::{live, parse_interval};
use crate::commands::run::KEEP;
use crate::commands::simulate::parse_duration;
use crate::error::CliError;
use crate::input;
use crate::interrupt::Interrupt;
use crate::output::{self, Output};
use crate::output_file::{Failed, OutputFile};
use crate::quantity::{counted, parse_seed, short};

/// Run a graph, and measure response times, deadlines and end-to-end latencies.
///
/// The graph is one of a workload file, or written as edges after -g: FROM[.PRODUCE]:TO[.CONSUME[.THRESHOLD]] between commas. An edge that ends in +2 starts with two tokens; one that ends in @2 does, too, and is a back-edge, as in A:B,B:A@1.
///
/// Each node gets a thread, or with --processes a process, that Linux schedules as any other unless --priorities or --priority is there, or by Laxity's own scheduler (--scheduler laxity, or kernel). Sources are released by time, all other nodes when their tokens are there; each job goes through its working set and computes for as long as is said there. All releases before the end are carried out, however late, and all that they led to.
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
  laxity graph run car.toml --scheduler laxity     Laxity's scheduler instead of a class of Linux
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
    /// Have each node remember its last NUMBER jobs, for processes that watch or record it [default: 256]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    recorder: Option<u32>,
    /// Seed of random execution times
    #[arg(long, value_name = "NUMBER", value_parser = parse_seed, default_value_t = 0)]
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

/// A graph to be run.
struct Source {
    workload: Workload,
    /// Its position among the graphs of the workload.
    position: usize,
    /// What it comes from.
    file: String,
}

/// Creates the graph, runs it, removes it, and prints what was measured.
pub fn run(registry: &Registry, arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    let argument = |message| CliError::Argument { message };
    let Source { workload, position, file } = read(arguments)?;
    let mut model = workload.graphs[position].clone();
    model.name = arguments.name.clone().unwrap_or(model.name);
    arguments.load.apply(&mut model).map_err(argument)?;
    let channels = channel::channels(&model, &arguments.edges).map_err(argument)?;
    let refused = |error| argument(format!("{file}: {error}"));
    let spec = Spec::with_channels(model.clone(), channels).map_err(refused)?;
    let recorder = arguments.recorder.unwrap_or(RECORDER_DEFAULT);
    let spec = spec.with_recorder(recorder).map_err(|error| argument(format!("--recorder: {error}")))?;
    check_processes(arguments, spec.graph().nodes.len()).map_err(argument)?;
    let plan = plan(arguments, &workload, position, (model, spec), &file)?;
    let interrupt = Interrupt::watch();
    let graph = plan.create_graphs(registry).map_err(|error| super::not_found(registry, error))?.remove(0);
    let (names, name) = (registry.clone(), graph.spec().graph().name.clone());
    interrupt.end_with(move || _ = names.unlink(&name));
    let outcome = carry_out(registry, arguments, &plan, &graph, &interrupt);
    let spec = graph.spec().clone();
    // Before anything else is written, so that nothing is left even if that fails.
    interrupt.end_with(|| {});
    drop(graph);
    let outcome = outcome?;
    print(arguments, &spec, &outcome, output)?;
    conclude(arguments, &outcome)
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

/// The graph that is asked for.
fn read(arguments: &Arguments) -> Result<Source, CliError> {
    let argument = |message| CliError::Argument { message };
    match (&arguments.notation, &arguments.file) {
        (Some(edges), _) => {
            let graph = notation::graph(edges).map_err(argument)?;
            let workload = Workload::new(graph.name.clone(), Platform::identical(1), Vec::new());
            let workload = Workload { graphs: vec![graph], ..workload };
            Ok(Source { workload, position: 0, file: "-g".to_owned() })
        }
        (None, Some(path)) => {
            let (file, workload) = (input::name(path), input::workload(path)?);
            let position = choose(&workload, arguments.graph.as_deref(), &file)?;
            Ok(Source { workload, position, file })
        }
        (None, None) => Err(argument("name a workload, or write edges after -g".to_owned())),
    }
}

/// The position of the graph called `name`, or of the only one.
fn choose(workload: &Workload, name: Option<&str>, file: &str) -> Result<usize, CliError> {
    let names: Vec<String> = workload.graphs.iter().map(|graph| graph.name.clone()).collect();
    let argument = |message| Err(CliError::Argument { message });
    match (name, workload.graphs.as_slice()) {
        (_, []) => argument(format!("{file}: the workload has no graph; add a [[graph]]")),
        (None, [_]) => Ok(0),
        (None, _) => argument(format!("{file}: several graphs; choose one with --graph: {}", names.join(", "))),
        (Some(name), graphs) => match graphs.iter().position(|graph| graph.name == name) {
            Some(position) => Ok(position),
            None => argument(format!("{file}: no graph is called {name}; {}", super::way_out(name, &names, "graph"))),
        },
    }
}

/// What the nodes do, and how Linux schedules them.
fn plan(
    arguments: &Arguments,
    workload: &Workload,
    position: usize,
    (graph, spec): (model::Graph, Spec),
    file: &str,
) -> Result<LivePlan, CliError> {
    if arguments.processes && arguments.scheduling.is_in_kernel() {
        let message = "--processes: nodes are tasks of the scheduler in the kernel as threads of one process, which tell it of each \
                       other's jobs; leave it out, or take --scheduler laxity";
        return Err(CliError::Argument { message: message.to_owned() });
    }
    let cost = |node: &model::Node| node.body.iter().map(Step::cpu_wcet).sum();
    let costs: Vec<Nanos> = graph.nodes.iter().map(cost).collect();
    let nodes = arguments.scheduling.nodes(&spec, &costs);
    let mut nodes = nodes.map_err(|message| CliError::Argument { message })?;
    attributes::check_permission(&nodes).map_err(live)?;
    for (node, options) in graph.nodes.iter().zip(&mut nodes) {
        options.working_set = arguments.load.working_set(&node.name);
    }
    let before = workload.graphs[..position].iter().map(|graph| graph.nodes.len());
    let default = if arguments.jobs.is_some() { Nanos(u64::MAX) } else { Nanos::from_secs(1) };
    let options = GraphOptions {
        graph,
        spec,
        nodes,
        first_task: (workload.tasks.len() + before.sum::<usize>()) as u32,
        seed: arguments.seed,
        duration: arguments.duration.unwrap_or(default),
        jobs: arguments.jobs.unwrap_or(u64::MAX),
        on_time: arguments.on_time,
        laxity: arguments.scheduling.laxity(workload.scheduler),
        in_kernel: arguments.scheduling.is_in_kernel(),
    };
    let refused = |refusal: Refusal| {
        let lines: Vec<String> = refusal.reasons().iter().map(|reason| format!("{file}: {reason}")).collect();
        live(lines.join("\n"))
    };
    let plan = LivePlan::of_graph(workload, &options).map_err(refused)?;
    if !arguments.quiet && !arguments.json {
        plan.notes().iter().for_each(|note| output::warning(format_args!("{file}: {note}")));
        if let Some(others) = others(workload) {
            let name = &workload.graphs[position].name;
            output::note(format_args!(
                "{file}: only graph {name} runs, without {others}; `laxity run` takes whole files"
            ));
        }
    }
    Ok(plan)
}

/// What a workload has beside one graph, if anything.
fn others(workload: &Workload) -> Option<String> {
    let counts = [
        (workload.tasks.len(), "task"),
        (workload.graphs.len() - 1, "other graph"),
        (workload.best_effort.len(), "best-effort task"),
        (workload.platform.devices.len(), "device"),
    ];
    let parts: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|&(count, noun)| counted(count as u64, noun)).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Runs `plan`, whose only graph is `graph`, to its end or until interrupted. Its trace is in its place when this returns.
fn carry_out(
    registry: &Registry,
    arguments: &Arguments,
    plan: &LivePlan,
    graph: &Graph,
    interrupt: &Interrupt,
) -> Result<Outcome, CliError> {
    let (trace, write_failed) = open_trace(arguments, plan)?;
    let records = Rc::new(Cell::new(0));
    let chains = (!plan.header().chains.is_empty()).then(|| Metrics::new(plan.header()));
    let mut sink = (NodeJobs::new(plan.header()), ((trace, chains), Counter(Rc::clone(&records))));
    let processes = arguments.processes.then(|| process_options(registry, arguments, graph, interrupt));
    let start = StartOptions { processes, ..StartOptions::default() };
    let run = Run::start(plan, std::slice::from_ref(graph), start).map_err(live)?;
    let is_quiet = arguments.quiet || (arguments.json && arguments.every.is_none());
    let mut display = Display::new(arguments.every.map(|every| Duration::from_nanos(every.0)), is_quiet);
    let mut progress = Progress::new(graph, limit(arguments));
    let mut is_cut_short = false;
    let mut kept = WallInstant::now();
    let ended = run.carry_on(&mut sink, |run, sink, warnings| {
        warnings.iter().for_each(|warning| display.warn(warning));
        if let Some(trace) = sink.1.0.0.as_mut().filter(|_| kept.elapsed() >= KEEP) {
            trace.flush();
            kept = WallInstant::now();
        }
        if display.is_due() {
            progress.show(&mut display, &sink.0, run.losses(), Nanos(run.seen().0));
        }
        is_cut_short |= !run.is_over() && (interrupt.is_requested() || write_failed.get());
        Next::stop_if(is_cut_short)
    });
    display.clear();
    let Ended { outcome: ended, failed, losses, is_broken, .. } = ended;
    failed.map_err(live)?;
    let (jobs, ((trace, chains), _)) = sink;
    if let (Some(writer), Some(path)) = (trace, &arguments.trace) {
        writer.finish().map_err(|source| CliError::Write { path: path.clone(), source })?.commit()?;
    }
    // Threads that handle interrupts come after the nodes.
    let nodes = jobs.nodes().iter().enumerate().take(graph.spec().graph().nodes.len());
    let nodes = nodes.map(|(node, measured)| NodeOutcome {
        completed: graph.status(node).completed,
        losses: losses.get(node).copied().unwrap_or_default(),
        measured: measured.clone(),
    });
    let nodes: Vec<NodeOutcome> = nodes.collect();
    let lost = nodes.iter().map(|node| node.completed.saturating_sub(node.measured.completed)).sum();
    Ok(Outcome {
        ran: ended.reached - Instant::ZERO,
        is_cut_short,
        nodes,
        chains: chains.map(|metrics| metrics.finish(ended.reached).chains).unwrap_or_default(),
        is_broken,
        lost: if ended.is_whole { 0 } else { lost },
        records: arguments.trace.is_some().then(|| records.get()),
    })
}

/// How long the run is to take, if that is limited.
fn limit(arguments: &Arguments) -> Option<Nanos> {
    arguments.duration.or(arguments.jobs.is_none().then_some(Nanos::from_secs(1)))
}

/// A process of this program for each node.
fn process_options(registry: &Registry, arguments: &Arguments, graph: &Graph, interrupt: &Interrupt) -> ProcessOptions {
    let (folder, name) = (registry.directory().to_owned(), graph.spec().graph().name.clone());
    let command_folder = folder.clone();
    let command = move |node: &str| {
        let mut command = Command::new("/proc/self/exe");
        command.arg0("laxity").arg("graph").arg("--folder").arg(&command_folder).arg("member");
        command.arg(format!("--graph={name}")).arg(format!("--node={node}"));
        command.arg(format!("--parent={}", std::process::id()));
        command
    };
    let interrupt = interrupt.clone();
    ProcessOptions {
        command: Box::new(command),
        folder,
        restarts: arguments.restart,
        is_interrupted: Box::new(move || interrupt.is_requested()),
    }
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

/// Counts records.
struct Counter(Rc<Cell<u64>>);

impl Sink for Counter {
    fn record(&mut self, _at: Instant, _event: Event) {
        self.0.set(self.0.get() + 1);
    }
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

/// An interruption, a loss or missed deadlines, where those are failures.
fn conclude(arguments: &Arguments, outcome: &Outcome) -> Result<(), CliError> {
    let (missed, released) = (outcome.missed(), outcome.jobs());
    if outcome.is_cut_short {
        let of = arguments.duration.map_or(String::new(), |duration| format!(" of {}", short(duration)));
        let reached = format!("after {}{of}, {}", short(outcome.ran), counted(released, "job"));
        return Err(CliError::Interrupted { reached });
    }
    if outcome.lost > 0 {
        let (ran, jobs) = (short(outcome.ran), counted(outcome.lost, "job"));
        return Err(live(format_args!(
            "{jobs} after {ran} could not be collected in time; give the machine a CPU more than the nodes need"
        )));
    }
    if outcome.is_broken {
        return Err(live(format_args!("a node was lost, and the graph ended after {}", counted(released, "job"))));
    }
    let outputs: u64 = outcome.chains.iter().map(|chain| chain.missed).sum();
    if arguments.fail_on_miss && missed + outputs > 0 {
        return Err(CliError::Missed { outputs, missed, released });
    }
    Ok(())
}
