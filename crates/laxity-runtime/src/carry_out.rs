//! A run from its start to its end: started, collected from several times a second, stopped when asked to, finished.

use std::thread;
use std::time::Duration;

use laxity_graph::{Registry, RegistryError};
use laxity_trace::Sink;

use crate::plan::LivePlan;
use crate::run::{Outcome, Run, StartOptions};

/// How often what happened is collected.
const COLLECT: Duration = Duration::from_millis(20);

/// Whether a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It goes on.
    GoOn,
    /// All jobs end where they are.
    Stop,
}

impl Next {
    /// To stop if `condition` holds.
    pub fn stop_if(condition: bool) -> Next {
        if condition { Next::Stop } else { Next::GoOn }
    }
}

/// A run that is over.
#[derive(Debug)]
pub struct Ended {
    /// When its trace ends, and whether it is whole.
    pub outcome: Outcome,
    /// Why a worker could not go on, if one could not. The trace is whole up to there all the same.
    pub failed: Result<(), String>,
    /// Whether code of the user crashed. Its thread stays where it was, with whatever locks it held.
    pub has_crashed: bool,
    /// What no trace has: periods in which no CPU could be throttled.
    pub remarks: Vec<String>,
    /// For each task how often its process was killed.
    pub losses: Vec<u64>,
    /// Whether a node was lost for good, and its graph therefore ended.
    pub is_broken: bool,
}

impl LivePlan {
    /// Creates the graphs of this plan, starts its workers, and hands to `sink` what they do until all jobs are done or `look`
    /// stops them; `look` is called as [`Run::carry_on`] says.
    ///
    /// # Errors
    /// That the start is refused, of which task or graph, and the way out. Later failures are in [`Ended`].
    pub fn carry_out<S: Sink>(
        &self,
        options: StartOptions,
        sink: &mut S,
        look: impl FnMut(&Run, &mut S, Vec<String>) -> Next,
    ) -> Result<Ended, String> {
        let registry = Registry::default();
        let graphs = self.create_graphs(&registry).map_err(refused)?;
        let ended = Run::start(self, &graphs, options).map(|run| run.carry_on(sink, look));
        if ended.as_ref().map_or(true, |ended| ended.failed.is_err()) {
            // A thread that is stuck in code of the user holds them.
            self.unlink_graphs(&registry);
        }
        ended
    }
}

/// Why there can be no graph. A run makes its graphs, and attaches to none.
fn refused(error: RegistryError) -> String {
    match error {
        RegistryError::Exists { name } => format!(
            "graph {name}: another run or program has one of this name; wait until that ends, or give this one another \
             name, which other processes find it by"
        ),
        other => other.to_string(),
    }
}

impl Run {
    /// Hands to `sink` what the workers do until all jobs are done or `look` stops them, and ends. Some fifty times a second,
    /// the last time when the run is over, `look` has the run, the sink with all that happened so far, and warnings to the
    /// user; it answers whether the run goes on.
    pub fn carry_on<S: Sink>(mut self, sink: &mut S, mut look: impl FnMut(&Run, &mut S, Vec<String>) -> Next) -> Ended {
        let mut next = Next::GoOn;
        loop {
            // In this order: what is collected of a run that is over is all there is.
            let is_over = self.is_over();
            let warnings = self.collect(sink);
            let wanted = look(&self, sink, warnings);
            if is_over {
                break;
            }
            if wanted == Next::Stop && next == Next::GoOn {
                next = Next::Stop;
                self.stop();
            }
            thread::sleep(COLLECT);
        }
        let (remarks, losses, is_broken) = (self.remarks(), self.losses().to_vec(), self.is_broken());
        let watches = self.watches();
        let (outcome, failed) = self.finish(sink);
        let has_crashed = watches.iter().any(|watch| watch.crashed().is_some());
        Ended { outcome, failed, has_crashed, remarks, losses, is_broken }
    }
}
