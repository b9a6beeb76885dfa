//! `laxity graph record`: the trace of a graph that other processes run, or ran before they were killed.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::Args;
use laxity_graph::{Collected, Graph, Registry};
use laxity_model::{Instant, Nanos};
use laxity_sys::clock;
use serde::Serialize;

use super::recording::{Recording, flaw};
use super::{live, not_found};
use crate::commands::simulate::parse_duration;
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::output::{self, Output};
use crate::quantity::{counted, short};

/// Write what a graph does to a trace, until it ends.
///
/// The trace begins with the last jobs that each node remembers (256, unless its creator said otherwise) and is read by `laxity trace`. Ctrl-C ends the recording and nothing else. A graph ends when all its nodes have ended, or no other process is attached any more. Of one whose processes were killed, what its nodes remember is written; it stays as it is.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity graph record camera camera.lxt
  laxity graph record camera camera.lxt --for 10s
  laxity trace camera.lxt check

Exit codes: 0 it was recorded, up to Ctrl-C if that came; 1 the trace cannot be written, or jobs were forgotten before
they were read; 2 bad usage, or no such graph.")]
pub struct Arguments {
    /// The graph
    name: String,
    /// The trace to write
    #[arg(value_name = "OUT")]
    path: PathBuf,
    /// Record for DURATION, as in 10s or "2 min" [default: until the graph ends]
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    duration: Option<Nanos>,
    /// Print JSON instead of a line
    #[arg(long)]
    json: bool,
    /// Print nothing but errors and, with --json, the JSON
    #[arg(long, short)]
    quiet: bool,
}

/// How often to look: a node of 50 kHz does not forget a job in between.
const LOOK: Duration = Duration::from_millis(5);

/// Records one graph.
pub fn run(registry: &Registry, arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    let name = &arguments.name;
    let was_left = !registry.is_in_use(name).map_err(|error| not_found(registry, error))?;
    let graph = registry.attach(name).map_err(|error| not_found(registry, error))?;
    let recorded = record(&graph, arguments);
    if was_left {
        // The last process that leaves removes the graph. It was left by the killed, and by us as by them, for `laxity graph gc`.
        std::mem::forget(graph);
    }
    let (collected, lasted) = recorded?;
    print(arguments, collected, lasted, output)?;
    let way_out = "make the graph with a deeper recorder";
    flaw(&arguments.path, collected, way_out).map_or(Ok(()), |flaw| Err(live(flaw)))
}

/// Records `graph` until it ends. Answers how long that took, too.
fn record(graph: &Graph, arguments: &Arguments) -> Result<(Collected, Nanos), CliError> {
    let interrupt = Interrupt::watch();
    let begin = clock::now();
    let end = arguments.duration.map_or(Instant::NEVER, |duration| begin.saturating_add(duration));
    let mut recording = Recording::begin(graph, &arguments.path)?;
    loop {
        // In this order: what is read of a graph that has ended is all there is.
        let is_over = graph.is_alone() || has_ended(graph) || clock::now() >= end || interrupt.is_requested();
        if is_over || recording.has_failed() {
            return Ok((recording.end()?, clock::now().saturating_since(begin)));
        }
        recording.go_on();
        thread::sleep(LOOK);
    }
}

fn has_ended(graph: &Graph) -> bool {
    (0..graph.spec().graph().nodes.len()).all(|node| graph.status(node).has_terminated)
}

/// The fields of the JSON are described in `docs/reference/json.md` and are stable.
fn print(arguments: &Arguments, collected: Collected, lasted: Nanos, output: &mut Output) -> Result<(), CliError> {
    #[derive(Serialize)]
    struct JsonRecorded<'a> {
        laxity: &'static str,
        graph: &'a str,
        lasted_ns: u64,
        records: u64,
        missed: u64,
        lost: u64,
        late: u64,
    }
    let Arguments { name, path, .. } = arguments;
    let Collected { records, missed, lost, late } = collected;
    if arguments.json {
        let (laxity, lasted_ns) = (env!("CARGO_PKG_VERSION"), lasted.0);
        return output.print(super::pretty(&JsonRecorded {
            laxity,
            graph: name,
            lasted_ns,
            records,
            missed,
            lost,
            late,
        }));
    }
    if arguments.quiet {
        return Ok(());
    }
    if missed > 0 {
        output::note(format_args!("the trace begins after {}, which no node remembers", counted(missed, "job")));
    }
    let records = counted(records, "record");
    output.line(format_args!("{name}: recorded for {}, {records} in {}", short(lasted), path.display()))
}
