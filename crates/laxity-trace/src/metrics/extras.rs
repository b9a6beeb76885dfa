//! What is measured only where it exists: devices, locks, graphs.

use laxity_model::Instant;

use super::devices::{Devices, has_devices};
use super::graphs::Graphs;
use super::inversion::{InversionFold, InversionSummary, Inversions};
use super::waits::Waits;
use super::{GraphSummary, WaitSummary};
use crate::{Event, Sink, TraceHeader};

/// The folds that a workload of CPU tasks alone does without.
#[derive(Clone, Debug)]
pub(super) struct Extras {
    pub devices: Option<Devices>,
    inversions: Option<Inversions<InversionFold>>,
    waits: Waits,
    graphs: Option<Graphs>,
}

impl Extras {
    /// `None` if the header knows none of it.
    pub fn new(header: &TraceHeader) -> Option<Box<Self>> {
        let devices = has_devices(header);
        let any = devices || !header.locks.is_empty() || !header.graphs.is_empty();
        any.then(|| {
            Box::new(Extras {
                devices: devices.then(|| Devices::new(header)),
                inversions: devices.then(|| Inversions::new(header, InversionFold::default())),
                waits: Waits::new(header),
                graphs: (!header.graphs.is_empty()).then(|| Graphs::new(header)),
            })
        })
    }

    #[inline(never)]
    pub fn record(&mut self, at: Instant, event: Event) {
        self.waits.record(at, event);
        if let Some(devices) = &mut self.devices {
            devices.record(at, event);
        }
        if let Some(inversions) = &mut self.inversions {
            inversions.record(at, event);
        }
        if let Some(graphs) = &mut self.graphs {
            graphs.record(at, event);
        }
    }

    pub fn waits(&self, task: usize) -> Vec<WaitSummary> {
        self.waits.summary(task)
    }

    pub fn inversions(&self, end: Instant) -> Option<InversionSummary> {
        self.inversions.clone().map(|inversions| inversions.finish(end).summary())
    }

    pub fn graphs(&self) -> Vec<GraphSummary> {
        self.graphs.as_ref().map(Graphs::summary).unwrap_or_default()
    }
}
