//! What a run shows while it goes on.

use laxity_graph::Graph;
use laxity_model::Nanos;
use laxity_trace::metrics::{NodeJobs, NodeSpans};

use super::super::display::Display;
use super::super::view::{self, History, Look, Times};
use crate::quantity::{counted, short};
use crate::style::{RESET, STRONG};

/// What a run shows while it goes on.
pub struct Progress<'a> {
    graph: &'a Graph,
    history: History,
    duration: Option<Nanos>,
}

impl Progress<'_> {
    /// Of `graph`, which runs for `duration` if that is limited.
    pub fn new(graph: &Graph, duration: Option<Nanos>) -> Progress<'_> {
        let mut history = History::default();
        history.add(&Look::at(graph));
        Progress { graph, history, duration }
    }

    /// Shows what `jobs` were like, and how often each node was lost, `ran` after the start.
    pub fn show(&mut self, display: &mut Display, jobs: &NodeJobs, losses: &[u64], ran: Nanos) {
        let look = Look::at(self.graph);
        self.history.add(&look);
        let spec = self.graph.spec();
        let response = |node: &NodeSpans| node.response.summary().map(|(_, all)| (all.p50, all.max));
        let times = jobs.nodes().iter().map(|node| Times { missed: Some(node.missed), response: response(node) });
        let times: Vec<Times> = times.collect();
        let reached = self.reached(ran);
        let rate = self.history.rate_of_all().map_or(String::new(), |rate| format!(" ({}/s)", view::tenths(rate)));
        let (missed, lost) = (jobs.nodes().iter().map(|node| node.missed).sum::<u64>(), losses.iter().sum::<u64>());
        let count = counted(look.jobs(), "job");
        let mut line =
            format!("{STRONG}{}{RESET}: {reached}, {count}{rate}, {missed} late, {lost} lost", spec.graph().name);
        for (node, spans) in spec.graph().nodes.iter().zip(jobs.nodes()) {
            let Some((_, all)) = spans.end_to_end.as_ref().and_then(|spans| spans.summary()) else { continue };
            line += &format!("; {} end to end {} median, {} max", node.name, short(all.p50), short(all.max));
        }
        let rows = display.rows();
        let history = &self.history;
        display.show(&line, |width| view::table(spec, &look, history, losses, &times, rows).render(width));
    }

    /// How far it is, to the tenth of a second: digits that race by tell nothing.
    fn reached(&self, ran: Nanos) -> String {
        let ran = short(Nanos(ran.0 / 100_000_000 * 100_000_000));
        match self.duration {
            None => ran,
            Some(duration) => format!("{ran} of {}", short(duration)),
        }
    }
}
