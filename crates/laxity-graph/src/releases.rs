//! When the jobs of a node are released: the rule of `laxity-policy` on the instants that the recorder has.

use laxity_model::Instant;
use laxity_policy::graph::{Arrival, Edge, EdgeKind, Period};
use laxity_sys::clock;

use crate::recorder::Found;
use crate::shared::Shared;

pub use laxity_policy::graph::Releasing;

/// The graph has no recorder and therefore does not know when tokens came. Create it with one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("graph {graph}: it has no recorder and knows neither jobs nor releases; create it with one")]
pub struct NoRecorder {
    /// The graph.
    pub graph: String,
}

/// The releases of one node.
#[derive(Debug)]
pub(crate) struct Releases {
    node: usize,
    period: Period,
    is_source: bool,
    /// The edges whose tokens release a job. Feedback delays it, but not its release (paper 003, footnote 13).
    inbound: Vec<Edge>,
    releasing: Releasing,
    /// The release of the node's last job, if there is one and it is known, and which that is.
    last: Option<(u64, Arrival)>,
}

impl Releases {
    /// Of `node`, going on where its former owner ended.
    pub fn of(shared: &Shared, node: usize) -> Self {
        Releases::before(shared, node, shared.completed(node))
    }

    /// Of `node`, whose job `next` is the next.
    pub fn before(shared: &Shared, node: usize, next: u64) -> Self {
        let plan = shared.spec.plan();
        let rule = plan.nodes()[node];
        let releases = |edge: &&Edge| edge.consumer == node && edge.kind != EdgeKind::Feedback;
        // The job that comes next may have begun: then its release is settled.
        let known = [Some(next), next.checked_sub(1)].into_iter().flatten();
        let mut last = known.filter_map(|index| match shared.recorded_job(node, index) {
            Found::Entry(entry) => Some((index, entry.release)),
            Found::NotYet | Found::Overwritten => None,
        });
        Releases {
            last: last.next(),
            node,
            period: rule.period,
            is_source: rule.is_source,
            inbound: plan.edges().iter().filter(releases).copied().collect(),
            releasing: Releasing::default(),
        }
    }

    pub fn set_releasing(&mut self, shared: &Shared, releasing: Releasing) {
        self.releasing = releasing;
        if self.is_source && releasing == Releasing::OnTime {
            shared.start_at(clock::now());
        }
    }

    /// Whether a job with this release has to wait for it.
    pub fn is_too_early(&self, release: Arrival, now: Instant) -> bool {
        self.releasing == Releasing::OnTime && now < release.at
    }

    /// The release of job `index`, the next, as soon as that is settled: when its tokens are there, and not before it
    /// begins if its program says when that is.
    pub fn settled(&self, shared: &Shared, index: u64) -> Option<Instant> {
        let has_time = !self.is_source || shared.start().is_some();
        let is_there = |edge: &Edge| shared.completed(edge.producer) >= edge.needed(index);
        (has_time && self.inbound.iter().all(is_there)).then(|| self.arrival(shared, index, clock::now()).at)
    }

    /// The release of job `index`, the next, whose tokens are there `now`.
    #[inline]
    pub fn arrival(&self, shared: &Shared, index: u64, now: Instant) -> Arrival {
        let previous = match self.last {
            Some((last, release)) if last == index => return release,
            Some((_, release)) => Some(release),
            None => None,
        };
        let start = shared.start();
        let time = self.is_source.then(|| match start {
            Some(start) => {
                let phase = shared.spec.plan().nodes()[self.node].phase;
                start.saturating_add(phase).saturating_add(self.period.times(index))
            }
            None => now,
        });
        let last_token = self.inbound.iter().filter_map(|edge| {
            let producer_job = edge.needed(index).checked_sub(1)?;
            shared.completion(edge.producer, producer_job)
        });
        // Without either its tokens were there at the start, or are too old to be known: then a period counts, if
        // there was a job before.
        let since = || start.unwrap_or(if previous.is_some() { Instant::ZERO } else { now });
        self.period.next_arrival(previous, last_token.chain(time).max().unwrap_or_else(since))
    }

    /// Job `index` has begun.
    #[inline]
    pub fn begun(&mut self, index: u64, release: Arrival) {
        self.last = Some((index, release));
    }
}
