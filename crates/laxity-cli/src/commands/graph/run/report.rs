//! What was measured of a run, for people and for programs.

use laxity_graph::Spec;
use laxity_model::Nanos;
use laxity_trace::metrics::{ChainSummary, DistributionSummary, NodeSpans, Spans};
use serde::Serialize;

use crate::quantity::{TimeUnit, counted, short};
use crate::report::chains;
use crate::style::{RESET, STRONG};
use crate::table::{Cell, Table};

/// A run that is over.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// From the first release to the end of the last worker.
    pub ran: Nanos,
    /// Whether it was interrupted.
    pub is_cut_short: bool,
    /// In the order of the graph.
    pub nodes: Vec<NodeOutcome>,
    /// The chains through the graph.
    pub chains: Vec<ChainSummary>,
    /// Whether a node was lost for good.
    pub is_broken: bool,
    /// Jobs that are complete and not measured, as what their threads did could not be collected in time.
    pub lost: u64,
    /// The records of its trace, if there is one.
    pub records: Option<u64>,
}

/// A node of it.
#[derive(Clone, Debug)]
pub struct NodeOutcome {
    /// Jobs that are complete.
    pub completed: u64,
    /// How often its process was killed.
    pub losses: u64,
    /// What its jobs were like.
    pub measured: NodeSpans,
}

/// What is said of spans.
type Summary = (Nanos, DistributionSummary);

impl Outcome {
    /// Jobs that are complete.
    pub fn jobs(&self) -> u64 {
        self.nodes.iter().map(|node| node.completed).sum()
    }

    /// Jobs that missed their deadlines.
    pub fn missed(&self) -> u64 {
        self.nodes.iter().map(|node| node.measured.missed).sum()
    }

    /// How often nodes were lost.
    pub fn losses(&self) -> u64 {
        self.nodes.iter().map(|node| node.losses).sum()
    }
}

impl NodeOutcome {
    fn response(&self) -> Option<Summary> {
        self.measured.response.summary()
    }

    fn end_to_end(&self) -> Option<Summary> {
        self.measured.end_to_end.as_ref().and_then(Spans::summary)
    }

    fn longest(&self) -> Nanos {
        let max = |summary: Option<Summary>| summary.map_or(Nanos::ZERO, |(_, all)| all.max);
        self.measured.tardiness_max.max(max(self.response())).max(max(self.end_to_end()))
    }
}

/// A row for each node.
pub fn text(spec: &Spec, outcome: &Outcome, width: Option<usize>) -> String {
    let unit = TimeUnit::for_longest(outcome.nodes.iter().map(NodeOutcome::longest).max().unwrap_or_default());
    // Where nothing is ever lost, that need not be said.
    let says_losses = outcome.losses() > 0;
    let mut table = Table::of("node")
        .group("jobs", if says_losses { &["completed", "missed", "lost"] } else { &["completed", "missed"] })
        .group(&format!("tardiness, {}", unit.name), &["max"])
        .group(&format!("response time, {}", unit.name), &["median", "max"])
        .group(&format!("end-to-end latency, {}", unit.name), &["min", "median", "p99", "max"]);
    for (node, result) in spec.graph().nodes.iter().zip(&outcome.nodes) {
        let mut cells =
            vec![node.name.clone().into(), result.completed.to_string().into(), Cell::mishaps(result.measured.missed)];
        cells.extend(says_losses.then(|| Cell::mishaps(result.losses)));
        cells.push(match result.measured.tardiness_max {
            Nanos::ZERO => Cell::faint(unit.show(Nanos::ZERO)),
            tardiness => Cell::bad(unit.show(tardiness)),
        });
        let shown = |span: Nanos| Cell::from(unit.show(span));
        let response =
            result.response().map_or([Cell::faint("-"), Cell::faint("-")], |(_, all)| [all.p50, all.max].map(shown));
        cells.extend(response);
        if let Some((min, all)) = result.end_to_end() {
            cells.extend([min, all.p50, all.p99, all.max].map(shown));
        }
        table.row(cells);
    }
    let mut total = vec!["total".into(), outcome.jobs().to_string().into(), Cell::mishaps(outcome.missed())];
    total.extend(says_losses.then(|| Cell::mishaps(outcome.losses())));
    table.total(total);
    let graph = spec.graph();
    let nodes = counted(graph.nodes.len() as u64, "node");
    let interrupted = if outcome.is_cut_short { ": interrupted" } else { "" };
    let heading = format!("{STRONG}{}{RESET}: {nodes}, ran for {}{interrupted}\n\n", graph.name, short(outcome.ran));
    let chains = match outcome.chains.as_slice() {
        [] => String::new(),
        chains => format!("\n{}", chains::table(chains).render(width)),
    };
    heading + &table.render(width) + &chains
}

/// The fields are described in `docs/reference/json.md` and are stable.
pub fn json(spec: &Spec, outcome: &Outcome) -> String {
    #[derive(Serialize)]
    struct JsonRun<'a> {
        laxity: &'static str,
        graph: &'a str,
        ran_ns: u64,
        interrupted: bool,
        nodes: Vec<JsonNode<'a>>,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        chains: &'a [ChainSummary],
        trace: Option<JsonTrace>,
    }
    #[derive(Serialize)]
    struct JsonTrace {
        records: u64,
        lost: u64,
        late: u64,
    }
    #[derive(Serialize)]
    struct JsonNode<'a> {
        name: &'a str,
        completed: u64,
        missed: u64,
        lost: u64,
        tardiness_max_ns: u64,
        response_time: Option<JsonSpans>,
        end_to_end: Option<JsonSpans>,
    }
    #[derive(Serialize)]
    struct JsonSpans {
        count: u64,
        min_ns: u64,
        p50_ns: u64,
        p99_ns: u64,
        max_ns: u64,
    }
    let spans = |(min, all): Summary| JsonSpans {
        count: all.count,
        min_ns: min.0,
        p50_ns: all.p50.0,
        p99_ns: all.p99.0,
        max_ns: all.max.0,
    };
    let nodes = spec.graph().nodes.iter().zip(&outcome.nodes).map(|(node, result)| JsonNode {
        name: &node.name,
        completed: result.completed,
        missed: result.measured.missed,
        lost: result.losses,
        tardiness_max_ns: result.measured.tardiness_max.0,
        response_time: result.response().map(spans),
        end_to_end: result.end_to_end().map(spans),
    });
    super::super::pretty(&JsonRun {
        laxity: env!("CARGO_PKG_VERSION"),
        graph: &spec.graph().name,
        ran_ns: outcome.ran.0,
        interrupted: outcome.is_cut_short,
        nodes: nodes.collect(),
        chains: &outcome.chains,
        trace: outcome.records.map(|records| JsonTrace { records, lost: outcome.lost, late: 0 }),
    })
}
