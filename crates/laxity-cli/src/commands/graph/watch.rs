//! `laxity graph watch`: what a graph of other processes is doing, until it ends.

use std::thread;
use std::time::Duration;

use clap::Args;
use laxity_graph::{Graph, Registry};
use laxity_model::Nanos;
use serde::Serialize;

use super::display::Display;
use super::view::{self, History, Look, NodeLook, State, Times};
use super::{live, parse_interval};
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::quantity::counted;
use crate::style::{RESET, STRONG};

/// Watch what the nodes of a graph are doing, until it ends.
///
/// On a terminal a table is drawn again and again in its place; elsewhere a line goes to standard error every 5 s. In the end the last table is printed. Ctrl-C ends the watch, and nothing else. A graph ends when all its nodes have ended, or no other process is attached any more.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity graph watch camera
  laxity graph watch camera --once
  laxity graph watch camera --json --every 1s | jq '.nodes[] | select(.state == \"lost\").name'

Exit codes: 0 it ended, or Ctrl-C; 1 its processes were killed; 2 bad usage, or no such graph.")]
pub struct Arguments {
    /// The graph
    name: String,
    /// Print one table, or one line of JSON, and end
    #[arg(long)]
    once: bool,
    /// Look every DURATION [default: 250ms on a terminal, else 5s; 1s with --json]
    #[arg(long, value_name = "DURATION", value_parser = parse_interval)]
    every: Option<Nanos>,
    /// Print a line of JSON for each look
    #[arg(long)]
    json: bool,
}

/// How often to look whether it ended.
const LOOK: Duration = Duration::from_millis(20);

/// How often lines of JSON come, unless the command line says.
const JSON_EVERY: Nanos = Nanos::from_secs(1);

/// What was seen so far.
struct Watcher {
    graph: Graph,
    history: History,
    losses: Vec<u64>,
    was_lost: Vec<bool>,
}

/// Shows one graph until it ends.
pub fn run(registry: &Registry, arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    let graph = super::attach(registry, &arguments.name)?;
    let nodes = graph.spec().graph().nodes.len();
    let (history, losses, was_lost) = (History::default(), vec![0; nodes], vec![false; nodes]);
    let mut watcher = Watcher { graph, history, losses, was_lost };
    if arguments.once {
        let look = watcher.look();
        return watcher.print(&look, arguments.json, output);
    }
    let look = watcher.follow(arguments, output)?;
    if !arguments.json {
        watcher.print(&look, false, output)?;
    }
    let lost = look.nodes.iter().filter(|node| State::of(node) == State::Lost).count() as u64;
    if lost > 0 && watcher.graph.is_alone() {
        let left = counted(lost, "node");
        return Err(live(format_args!("graph {}: all its processes have ended, {left} in the middle", arguments.name)));
    }
    Ok(())
}

impl Watcher {
    fn look(&mut self) -> Look {
        let look = Look::at(&self.graph);
        for (node, status) in look.nodes.iter().enumerate() {
            let is_lost = State::of(status) == State::Lost;
            self.losses[node] += u64::from(is_lost && !self.was_lost[node]);
            self.was_lost[node] = is_lost;
        }
        look
    }

    /// Until the graph ends, or Ctrl-C. Answers the last look.
    fn follow(&mut self, arguments: &Arguments, output: &mut Output) -> Result<Look, CliError> {
        let interrupt = Interrupt::watch();
        let every = arguments.every.or(arguments.json.then_some(JSON_EVERY));
        let mut display = Display::new(every.map(|every| Duration::from_nanos(every.0)), false);
        let mut is_first = true;
        loop {
            // In this order: what is seen of a graph that has ended is the last.
            let has_ended = self.graph.is_alone();
            let look = self.look();
            let is_over = has_ended || look.nodes.iter().all(|node| node.has_terminated) || output.is_closed();
            let is_last = is_over || interrupt.is_requested();
            if is_first || is_last || display.is_due() {
                is_first = false;
                self.history.add(&look);
                match arguments.json {
                    true => {
                        self.print(&look, true, output)?;
                        display.wait_again();
                    }
                    false if !is_last => self.show(&look, &mut display),
                    false => {}
                }
            }
            if is_last {
                return Ok(look);
            }
            thread::sleep(LOOK);
        }
    }

    fn show(&self, look: &Look, display: &mut Display) {
        let spec = self.graph.spec();
        let rate = self.history.rate_of_all().map_or(String::new(), |rate| format!(" ({}/s)", view::tenths(rate)));
        let count = |state| look.nodes.iter().filter(|node| State::of(node) == state).count();
        let line = format!(
            "{STRONG}{}{RESET}: {}{rate}; {} of {} ended, {} lost",
            spec.graph().name,
            counted(look.jobs(), "job"),
            count(State::Ended),
            counted(look.nodes.len() as u64, "node"),
            count(State::Lost),
        );
        let rows = display.rows();
        let table = |width| view::table(spec, look, &self.history, &self.losses, &self.times(), rows).render(width);
        display.show(&line, table);
    }

    fn times(&self) -> Vec<Times> {
        (0..self.losses.len()).map(|node| Times::recent(&self.graph, node)).collect()
    }

    fn print(&self, look: &Look, as_json: bool, output: &mut Output) -> Result<(), CliError> {
        if as_json {
            output.line(self.json(look))?;
            return output.finish();
        }
        let (spec, times) = (self.graph.spec(), self.times());
        let table = view::table(spec, look, &self.history, &self.losses, &times, usize::MAX);
        output.print(table.render(output.width()))
    }

    /// The fields are described in `docs/reference/json.md` and are stable.
    fn json(&self, look: &Look) -> String {
        #[derive(Serialize)]
        struct JsonLook<'a> {
            laxity: &'static str,
            graph: &'a str,
            at_ns: u64,
            nodes: Vec<JsonNode<'a>>,
            edges: Vec<JsonEdge<'a>>,
        }
        #[derive(Serialize)]
        struct JsonNode<'a> {
            #[serde(flatten)]
            look: NodeLook<'a>,
            rate_per_s: Option<f64>,
            lost: u64,
            response_p50_ns: Option<u64>,
            response_max_ns: Option<u64>,
        }
        #[derive(Serialize)]
        struct JsonEdge<'a> {
            from: &'a str,
            to: &'a str,
            tokens: u64,
        }
        let graph = self.graph.spec().graph();
        let nodes = look.nodes.iter().zip(self.times()).enumerate().map(|(node, (status, times))| JsonNode {
            look: NodeLook::new(&graph.nodes[node].name, status),
            rate_per_s: self.history.rate(node).map(|tenths| tenths as f64 / 10.0),
            lost: self.losses[node],
            response_p50_ns: times.response.map(|(median, _)| median.0),
            response_max_ns: times.response.map(|(_, max)| max.0),
        });
        let edges = graph.edges.iter().zip(&look.tokens).map(|(edge, &tokens)| JsonEdge {
            from: &graph.nodes[edge.producer].name,
            to: &graph.nodes[edge.consumer].name,
            tokens,
        });
        let look = JsonLook {
            laxity: env!("CARGO_PKG_VERSION"),
            graph: &graph.name,
            at_ns: look.at.0,
            nodes: nodes.collect(),
            edges: edges.collect(),
        };
        serde_json::to_string(&look).expect("numbers, texts and lists are JSON")
    }
}
