//! Measurements that only some workloads need: of devices, locks, graphs.

use laxity_model::{Instant, TaskId};

use super::chains::Chains;
use super::devices::{Devices, has_devices};
use super::graphs::Graphs;
use super::inversion::{InversionFold, InversionSummary, Search};
use super::waits::Waits;
use super::{ChainSummary, EngineSummary, GraphSummary, WaitSummary};
use crate::replay::{Change, Replay};
use crate::{Event, TraceHeader};

/// The folds that a workload of CPU tasks alone does not need.
#[derive(Clone, Debug)]
pub(super) struct Extras {
    pub devices: Option<Devices>,
    inversions: Option<Search<InversionFold>>,
    waits: Waits,
    graphs: Option<Graphs>,
    chains: Option<Chains>,
}

impl Extras {
    /// `None` if the header knows none of it.
    pub fn new(header: &TraceHeader) -> Option<Box<Self>> {
        let devices = has_devices(header);
        let any = devices || !header.locks.is_empty() || !header.graphs.is_empty() || !header.chains.is_empty();
        any.then(|| {
            Box::new(Extras {
                devices: devices.then(|| Devices::new(header)),
                inversions: devices.then(|| Search::new(header, InversionFold::default())),
                waits: Waits::new(header),
                graphs: (!header.graphs.is_empty()).then(|| Graphs::new(header)),
                chains: (!header.chains.is_empty()).then(|| Chains::new(header)),
            })
        })
    }

    /// Lets the replay apply the event, and observes it before and after.
    #[inline(never)]
    pub fn record(&mut self, at: Instant, event: Event, replay: &mut Replay) -> Change {
        self.waits.record(at, event, replay.details());
        if let Some(devices) = &mut self.devices {
            devices.record(at, event, &replay.details().engines);
        }
        if let Some(graphs) = &mut self.graphs {
            graphs.record(at, event);
        }
        if let Some(chains) = &mut self.chains {
            chains.record(at, event);
        }
        match &mut self.inversions {
            Some(inversions) => inversions.record(at, event, replay),
            None => replay.apply(at, event),
        }
    }

    /// The server that is `task` has a budget; answers whether its job seemed to have suspended itself, and waited for that.
    #[inline(never)]
    pub fn budget_comes(&mut self, task: TaskId, replay: &Replay) -> bool {
        // In a section a job needs no budget, and waits for something else.
        let holds = |job| replay.details().locks.held_by(job).next().is_some();
        !self.waits.suspended(task).is_some_and(holds) && self.waits.budget_comes(task)
    }

    pub fn waits(&self, task: usize) -> Vec<WaitSummary> {
        self.waits.summary(task)
    }

    pub fn engines(&self, end: Instant, replay: &Replay) -> Vec<EngineSummary> {
        let devices = self.devices.as_ref();
        devices.map(|devices| devices.engines(end, &replay.details().engines)).unwrap_or_default()
    }

    pub fn inversions(&self, end: Instant, replay: &Replay) -> Option<InversionSummary> {
        self.inversions.clone().map(|inversions| inversions.finish(end, replay).summary())
    }

    pub fn graphs(&self) -> Vec<GraphSummary> {
        self.graphs.as_ref().map(Graphs::summary).unwrap_or_default()
    }

    pub fn chains(&self) -> Vec<ChainSummary> {
        self.chains.as_ref().map(Chains::summary).unwrap_or_default()
    }
}
