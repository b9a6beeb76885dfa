//! A run from its start to its end: looking after the crew, measuring, recording, showing.

use std::path::Path;

use laxity_graph::Graph;
use laxity_model::{Instant, Nanos};
use laxity_sys::clock;

use super::super::display::Display;
use super::super::live;
use super::super::recording::Recording;
use super::super::view::{self, History, Look, Times};
use super::crew::Crew;
use super::measure::{Meter, Spans};
use super::orders::Releases;
use super::record::Records;
use super::report::{NodeOutcome, Outcome};
use super::worker::pause;
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::quantity::{counted, short};
use crate::style::{RESET, STRONG};

/// Until the first release: as long as it may take to tell all.
const LEAD: Nanos = Nanos::from_millis(5);

/// A run.
pub struct Conductor<'a> {
    /// The graph that is run.
    pub graph: &'a Graph,
    /// What its jobs write down, for each node.
    pub records: Vec<Records>,
    /// When its sources end.
    pub releases: Releases,
    /// Where its trace goes, if anywhere.
    pub trace: Option<&'a Path>,
    /// Ctrl-C.
    pub interrupt: &'a Interrupt,
}

impl Conductor<'_> {
    /// Lets `crew` begin, and waits until all have ended.
    ///
    /// # Errors
    /// That what was written down cannot be read, or the trace not be written.
    pub fn conduct(mut self, crew: &mut dyn Crew, display: &mut Display) -> Result<Outcome, CliError> {
        let start = self.graph.start(clock::now().saturating_add(LEAD));
        // Before anyone begins, so that it has everything.
        let mut recording = self.trace.map(|path| Recording::begin(self.graph, path)).transpose()?;
        let mut meter = Meter::new(self.graph.spec(), start);
        let mut history = History::default();
        history.add(&Look::at(self.graph));
        let mut is_cut_short = false;
        crew.begin(start);
        loop {
            let is_at_work = crew.look_after(&mut |news| display.warn(&news));
            recording.iter_mut().for_each(|recording| _ = recording.go_on());
            let is_in_vain = recording.as_ref().is_some_and(Recording::has_failed);
            if (self.interrupt.is_requested() || is_in_vain) && !is_cut_short {
                is_cut_short = true;
                crew.stop();
            }
            let look = Look::at(self.graph);
            self.read(&look, &mut meter)?;
            if !is_at_work {
                break;
            }
            if display.is_due() {
                history.add(&look);
                self.show(&look, &history, &meter, crew.losses(), start, display);
            }
            pause();
        }
        let end = clock::now();
        display.clear();
        let nodes = meter.nodes().iter().zip(crew.losses()).enumerate();
        let nodes = nodes.map(|(node, (measured, &losses))| {
            let completed = self.graph.status(node).completed;
            NodeOutcome { completed, losses, measured: measured.clone() }
        });
        let nodes = nodes.collect();
        let trace = recording.map(Recording::end).transpose()?;
        Ok(Outcome { ran: end.saturating_since(start), is_cut_short, nodes, trace })
    }

    /// Measures what is complete. What `look` says is complete was written down before.
    fn read(&mut self, look: &Look, meter: &mut Meter) -> Result<(), CliError> {
        for (node, records) in self.records.iter_mut().enumerate() {
            records.read().map_err(live)?.for_each(|record| meter.note(node, record));
        }
        meter.advance(&look.completed());
        Ok(())
    }

    fn show(
        &self,
        look: &Look,
        history: &History,
        meter: &Meter,
        losses: &[u64],
        start: Instant,
        display: &mut Display,
    ) {
        let spec = self.graph.spec();
        let times = meter
            .nodes()
            .iter()
            .map(|node| (node.missed, node.response.summary().map(|all| (all.p50, all.max))))
            .map(|(missed, response)| Times { missed: Some(missed), response });
        let times: Vec<Times> = times.collect();
        let reached = self.reached(look.at.saturating_since(start));
        let rate = history.rate_of_all().map_or(String::new(), |rate| format!(" ({}/s)", view::tenths(rate)));
        let (missed, lost) = (meter.nodes().iter().map(|node| node.missed).sum::<u64>(), losses.iter().sum::<u64>());
        let jobs = counted(look.jobs(), "job");
        let mut line =
            format!("{STRONG}{}{RESET}: {reached}, {jobs}{rate}, {missed} late, {lost} lost", spec.graph().name);
        for (node, measured) in spec.graph().nodes.iter().zip(meter.nodes()) {
            let Some(all) = measured.end_to_end.as_ref().and_then(Spans::summary) else { continue };
            line += &format!("; {} end to end {} median, {} max", node.name, short(all.p50), short(all.max));
        }
        let rows = display.rows();
        display.show(&line, |width| view::table(spec, look, history, losses, &times, rows).render(width));
    }

    /// How far it is, to the tenth of a second: digits that race by tell nothing.
    fn reached(&self, ran: Nanos) -> String {
        let ran = short(Nanos(ran.0 / 100_000_000 * 100_000_000));
        match self.releases.duration_ns {
            u64::MAX => ran,
            duration => format!("{ran} of {}", short(Nanos(duration))),
        }
    }
}
