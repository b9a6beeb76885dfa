//! `laxity graph run`: a graph of a workload on this machine.

mod body;
mod measure;
mod notation;
mod report;
mod threads;

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use laxity_graph::{Channel, Registry, Spec};
use laxity_model::{Edge, Graph, Nanos, Workload};

use self::body::Body;
use self::measure::Measurement;
use self::notation::Setting;
use super::live;
use crate::commands::simulate::parse_duration;
use crate::error::CliError;
use crate::input;
use crate::interrupt::Interrupt;
use crate::output::{self, Output};
use crate::progress::Progress;
use crate::quantity::{counted, short};

/// Run a graph, and measure deadlines and end-to-end latencies.
///
/// The graph is one of a workload file, or written as edges FROM[.PRODUCE]:TO[.CONSUME[.THRESHOLD]] after -g. A thread for each node, scheduled by Linux as any other. Sources are released by time, all other nodes when their
/// tokens are there; each job uses the CPU for as long as is said there. All releases before the end are carried out,
/// however late, and all that they led to. Ctrl-C ends the run at once; what was measured is printed.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity graph run car.toml
  laxity graph run car.toml --for 10s --json
  laxity graph run car.toml --edges ring:4096      messages of 4096 bytes instead of events
  laxity graph run car.toml --no-work              what the graph itself costs
  laxity graph run -g camera:detector,detector.2:planner.4 --period 33ms --cost 9ms

Exit codes: 0 it ran; 1 it cannot, or jobs missed deadlines (--fail-on-miss);
2 bad usage or a bad workload; 130 interrupted.")]
pub struct Arguments {
    /// The workload, TOML or JSON; - reads standard input
    #[arg(required_unless_present = "notation")]
    file: Option<PathBuf>,
    /// Run the graph with these edges instead, as in A:B.2.3,B.5:C
    #[arg(short = 'g', value_name = "EDGES", conflicts_with = "file")]
    notation: Option<String>,
    /// With -g: period of the sources, or of one; can be repeated
    #[arg(long, value_name = "[NODE=]DURATION", requires = "notation")]
    period: Vec<Setting>,
    /// With -g: CPU time of each job, or of those of one node; can be repeated
    #[arg(long, value_name = "[NODE=]DURATION", requires = "notation")]
    cost: Vec<Setting>,
    /// Which graph, where the workload has several
    #[arg(long, value_name = "NAME", conflicts_with = "notation")]
    graph: Option<String>,
    /// Call it NAME while it runs [default: what the file calls it; "graph" with -g]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Run for DURATION, as in 10s or "2 min"
    #[arg(long = "for", value_name = "DURATION", default_value = "1s", value_parser = parse_duration)]
    duration: Nanos,
    /// What edges carry: counter (events), ring (messages of 64 bytes) or ring:BYTES
    #[arg(long, value_name = "KIND", default_value = "counter")]
    edges: EdgeKind,
    /// Complete each job at once, whatever the file says it takes
    #[arg(long)]
    no_work: bool,
    /// Seed of random execution times
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    seed: u64,
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

/// What `--edges` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EdgeKind {
    Counter,
    Ring { message: u32 },
}

impl FromStr for EdgeKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':').unwrap_or((text, "64")) {
            ("counter", _) if text == "counter" => Ok(EdgeKind::Counter),
            ("ring", bytes) => match bytes.parse() {
                Ok(message) => Ok(EdgeKind::Ring { message }),
                Err(_) => Err(format!("a message has 0 to {} bytes, as in ring:4096", u32::MAX)),
            },
            _ => Err("write counter, ring or ring:BYTES".to_owned()),
        }
    }
}

impl EdgeKind {
    /// The channel of `edge`: a ring with room for twice what its two nodes need at least, so that neither waits for
    /// the other to the message.
    fn channel(self, edge: &Edge) -> Channel {
        match self {
            EdgeKind::Counter => Channel::Counter,
            EdgeKind::Ring { message } => {
                let needed = edge.threshold.saturating_add(edge.produce).max(edge.initial);
                Channel::Ring { message, capacity: needed.saturating_mul(2) }
            }
        }
    }
}

/// Creates the graph, runs it, removes it, and prints what was measured.
pub fn run(registry: &Registry, arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    let (mut model, file) = read(arguments)?;
    model.name = arguments.name.clone().unwrap_or(model.name);
    let bodies: Vec<Body> = model.nodes.iter().map(|node| Body::of(&node.body)).collect();
    let quiet = arguments.quiet || arguments.json;
    if !quiet && !arguments.no_work && bodies.iter().any(Body::leaves_out) {
        output::warning(format_args!("{file}: GPU operations are left out, and what resources guard runs unguarded"));
    }
    let channels = model.edges.iter().map(|edge| arguments.edges.channel(edge)).collect();
    let spec = Spec::with_channels(model, channels)
        .map_err(|error| CliError::Argument { message: format!("{file}: {error}") })?;
    let interrupt = Interrupt::watch();
    let graph = registry.create(&spec).map_err(live)?;
    let setup = threads::Setup {
        bodies: if arguments.no_work { vec![Body::default(); bodies.len()] } else { bodies },
        duration: arguments.duration,
        seed: arguments.seed,
    };
    let progress = Progress::new(String::new(), arguments.duration, quiet);
    let recording = threads::carry_out(&graph, &setup, &progress, &interrupt)?;
    progress.finish();
    // Before anything else is written, so that nothing is left even if that fails.
    drop(graph);
    let measurement = Measurement::of(&spec, &recording);
    print(arguments, &spec, &measurement, output)?;
    conclude(arguments, &measurement)
}

/// The graph that is asked for, and what it comes from.
fn read(arguments: &Arguments) -> Result<(Graph, String), CliError> {
    let argument = |message| CliError::Argument { message };
    match (&arguments.notation, &arguments.file) {
        (Some(edges), _) => {
            let graph = notation::graph(edges, &arguments.period, &arguments.cost).map_err(argument)?;
            Ok((graph, "-g".to_owned()))
        }
        (None, Some(path)) => {
            let file = input::name(path);
            let workload = input::workload(path)?;
            Ok((choose(&workload, arguments.graph.as_deref(), &file)?.clone(), file))
        }
        (None, None) => Err(argument("name a workload, or write edges after -g".to_owned())),
    }
}

/// The graph called `name`, or the only one.
fn choose<'w>(workload: &'w Workload, name: Option<&str>, file: &str) -> Result<&'w Graph, CliError> {
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

fn print(arguments: &Arguments, spec: &Spec, measured: &Measurement, output: &mut Output) -> Result<(), CliError> {
    if arguments.json {
        return output.print(report::json(spec, measured));
    }
    if arguments.quiet {
        return Ok(());
    }
    output.print(report::text(spec, measured, output.width()))?;
    output.finish()
}

/// An interruption or missed deadlines, where those are failures.
fn conclude(arguments: &Arguments, measured: &Measurement) -> Result<(), CliError> {
    let (missed, released) = (measured.missed(), measured.jobs());
    if measured.is_cut_short {
        let (ran, asked) = (short(measured.ran), short(arguments.duration));
        let reached = format!("after {ran} of {asked}, {}", counted(released, "job"));
        return Err(CliError::Interrupted { reached });
    }
    if arguments.fail_on_miss && missed > 0 {
        return Err(CliError::Missed { missed, released });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_counters_or_rings_of_some_size() {
        assert_eq!("counter".parse(), Ok(EdgeKind::Counter));
        assert_eq!("ring".parse(), Ok(EdgeKind::Ring { message: 64 }));
        assert_eq!("ring:4096".parse(), Ok(EdgeKind::Ring { message: 4096 }));
        for wrong in ["", "fifo", "counter:64", "ring:", "ring:-1", "ring:4294967296", "Ring"] {
            assert!(wrong.parse::<EdgeKind>().is_err(), "{wrong}");
        }
    }
}
