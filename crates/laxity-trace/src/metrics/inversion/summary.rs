//! How long inversions were, in little memory.

use serde::Serialize;

use super::{Collect, Inversion, InversionKind};
use crate::metrics::DistributionSummary;
use crate::metrics::distribution::Distribution;

/// Inversions folded into distributions of their lengths.
#[derive(Clone, Debug, Default)]
pub(in crate::metrics) struct InversionFold {
    all: Distribution,
    by_kind: [Distribution; InversionKind::ALL.len()],
}

/// The lengths of the inversions that bottom halves caused; `None` where there were none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct InversionSummary {
    /// All of them.
    pub all: Option<DistributionSummary>,
    /// See [`InversionKind::WaitingBottomHalf`].
    pub waiting_bottom_half: Option<DistributionSummary>,
    /// See [`InversionKind::BlockedStack`].
    pub blocked_stack: Option<DistributionSummary>,
    /// See [`InversionKind::Overtaken`].
    pub overtaken: Option<DistributionSummary>,
    /// See [`InversionKind::CoScheduled`].
    pub co_scheduled: Option<DistributionSummary>,
}

impl InversionFold {
    /// The results so far.
    pub fn summary(&self) -> InversionSummary {
        let of = |kind: InversionKind| self.by_kind[kind as usize].summary();
        InversionSummary {
            all: self.all.summary(),
            waiting_bottom_half: of(InversionKind::WaitingBottomHalf),
            blocked_stack: of(InversionKind::BlockedStack),
            overtaken: of(InversionKind::Overtaken),
            co_scheduled: of(InversionKind::CoScheduled),
        }
    }
}

impl Collect for InversionFold {
    fn collect(&mut self, inversion: Inversion) {
        self.all.record(inversion.length);
        self.by_kind[inversion.kind as usize].record(inversion.length);
    }
}
