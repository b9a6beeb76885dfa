//! How the GPU work of one program is arbitrated.

use laxity_model::Nanos;

use super::jobs::JobRule;
use super::work::EngineUse;

/// How the GPU work of one program is arbitrated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Which operations occupy which engine.
    pub engines: EngineUse,
    /// How long a token is kept.
    pub token: TokenRule,
    /// When the program's jobs begin and end.
    pub jobs: JobRule,
    /// The most operations of one hold of an engine, at least 1.
    pub batch: u16,
    /// Operations share a hold only while all of them together are predicted to take no longer than this: so a batch
    /// adds no more than that to the blocking of other programs. Operations of unknown length do not share a hold.
    pub batch_length: Nanos,
    /// As [`Policy::batch_length`], where it is longer, for an in-order stream that is the only client: the first request of a client
    /// that comes waits for so much more, and none after that.
    pub alone_length: Nanos,
    /// An engine is unlocked after this time, complete or not. An operation that takes longer is not arbitrated from
    /// then on. It breaks any deadlock between the locks and what the driver does with operations.
    pub hold_limit: Nanos,
}

/// How long a stream keeps the token of its GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenRule {
    /// For each hold of an engine.
    Hold,
    /// From the first operation of a job to its end (paper 003, section 5.4.3), but never while the stream waits for a
    /// dependency, or is idle while the program waits, or for longer than [`Policy::hold_limit`] without a hold.
    Job,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            engines: EngineUse::Separate { copy_engines: 2 },
            token: TokenRule::Hold,
            jobs: JobRule::EverySync,
            batch: 16,
            batch_length: Nanos::from_micros(200),
            alone_length: Nanos::from_millis(10),
            hold_limit: Nanos::from_secs(2),
        }
    }
}
