//! What was measured of a run, for people and for programs.

use laxity_graph::Spec;
use laxity_model::Nanos;
use serde::Serialize;

use super::measure::{Latency, Measurement};
use crate::quantity::{TimeUnit, counted, short};
use crate::style::{RESET, STRONG};
use crate::table::{Cell, Table};

/// A row for each node.
pub fn text(spec: &Spec, measured: &Measurement, width: Option<usize>) -> String {
    let rows = || spec.graph().nodes.iter().zip(&measured.nodes);
    let longest = rows().map(|(_, node)| node.tardiness_max.max(node.end_to_end.map_or(Nanos::ZERO, |all| all.max)));
    let unit = TimeUnit::for_longest(longest.max().unwrap_or_default());
    let mut table = Table::of("node")
        .group("jobs", &["completed", "missed"])
        .group(&format!("tardiness, {}", unit.name), &["max"])
        .group(&format!("end-to-end latency, {}", unit.name), &["min", "median", "p99", "max"]);
    for (node, result) in rows() {
        let tardiness = match result.tardiness_max {
            Nanos::ZERO => Cell::faint(unit.show(Nanos::ZERO)),
            tardiness => Cell::bad(unit.show(tardiness)),
        };
        let mut cells =
            vec![node.name.clone().into(), result.jobs.to_string().into(), Cell::mishaps(result.missed), tardiness];
        if let Some(Latency { min, p50, p99, max, .. }) = result.end_to_end {
            cells.extend([min, p50, p99, max].map(|span| Cell::from(unit.show(span))));
        }
        table.row(cells);
    }
    table.total(vec!["total".into(), measured.jobs().to_string().into(), Cell::mishaps(measured.missed())]);
    let graph = spec.graph();
    let nodes = counted(graph.nodes.len() as u64, "node");
    let interrupted = if measured.is_cut_short { ": interrupted" } else { "" };
    let heading = format!("{STRONG}{}{RESET}: {nodes}, ran for {}{interrupted}\n\n", graph.name, short(measured.ran));
    heading + &table.render(width)
}

/// The fields are described in `docs/reference/json.md` and are stable.
pub fn json(spec: &Spec, measured: &Measurement) -> String {
    #[derive(Serialize)]
    struct JsonRun<'a> {
        laxity: &'static str,
        graph: &'a str,
        ran_ns: u64,
        interrupted: bool,
        nodes: Vec<JsonNode<'a>>,
    }
    #[derive(Serialize)]
    struct JsonNode<'a> {
        name: &'a str,
        completed: u64,
        missed: u64,
        tardiness_max_ns: u64,
        end_to_end: Option<JsonLatency>,
    }
    #[derive(Serialize)]
    struct JsonLatency {
        count: u64,
        min_ns: u64,
        p50_ns: u64,
        p99_ns: u64,
        max_ns: u64,
    }
    let latency = |Latency { count, min, p50, p99, max }| JsonLatency {
        count,
        min_ns: min.0,
        p50_ns: p50.0,
        p99_ns: p99.0,
        max_ns: max.0,
    };
    let nodes = spec.graph().nodes.iter().zip(&measured.nodes).map(|(node, result)| JsonNode {
        name: &node.name,
        completed: result.jobs,
        missed: result.missed,
        tardiness_max_ns: result.tardiness_max.0,
        end_to_end: result.end_to_end.map(latency),
    });
    super::super::pretty(&JsonRun {
        laxity: env!("CARGO_PKG_VERSION"),
        graph: &spec.graph().name,
        ran_ns: measured.ran.0,
        interrupted: measured.is_cut_short,
        nodes: nodes.collect(),
    })
}
