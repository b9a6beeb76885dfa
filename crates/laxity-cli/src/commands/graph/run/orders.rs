//! What whoever carries out a node has to know, besides the graph.

use laxity_model::{Instant, Nanos};
use laxity_policy::graph::Plan;
use serde::{Deserialize, Serialize};

use super::attributes::Attributes;
use super::body::Body;

/// What whoever carries out a node has to know, besides the graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orders {
    /// What its jobs do.
    pub body: Body,
    /// Of execution times.
    pub seed: u64,
    /// Bytes that each job goes through.
    pub working_set: u64,
    /// How Linux schedules it.
    pub attributes: Attributes,
    /// How long it is released, if it is a source.
    pub releases: Releases,
    /// Whether its jobs wait for their releases, as those of sources always do.
    pub on_time: bool,
}

/// When the sources end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Releases {
    /// Releases before this time after the start are carried out, in nanoseconds.
    pub duration_ns: u64,
    /// Of these, so many of each source.
    pub jobs: u64,
}

impl Releases {
    /// When job `index` of the source at `node` is released, if it is to be.
    pub fn release(&self, plan: &Plan, start: Instant, node: usize, index: u64) -> Option<Instant> {
        let release = arrival(plan, start, node, index);
        let is_in_time = release < start.saturating_add(Nanos(self.duration_ns));
        (is_in_time && index < self.jobs).then_some(release)
    }
}

/// The arrival of job `index` of a source.
pub fn arrival(plan: &Plan, start: Instant, node: usize, index: u64) -> Instant {
    let node = &plan.nodes()[node];
    start.saturating_add(node.phase).saturating_add(node.period.times(index))
}
