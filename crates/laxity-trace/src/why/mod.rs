//! Why a job took as long as it took: every nanosecond from its arrival to its completion has a [`Cause`].
//!
//! ```text
//!   arrival                                                            completion
//!      |jitter|release|lidar has the CPU|executes|waits for the lock|executes|
//!      '----------------------- response time = the sum of the pieces -------'
//! ```
//!
//! [`Explainer`] observes the one replay of the records: between two records the state does not change but
//! for overheads that end, and so each span between them has one cause. Some waits are explained only later: a suspended
//! job whose operation then begins on an engine was waiting for that engine. Such pieces are drafts until the record that
//! explains them.
//!
//! Where a job may run on several CPUs and other jobs have all of them, each of those jobs gets an equal share of the
//! blame; but if one of them is less urgent than the job, or a CPU runs nothing, that alone is the cause, as the job would
//! run there if the scheduler had decided or been able to act.

mod cause;
mod draft;
mod explainer;
mod line;
mod names;
mod row;
mod worst;

use std::collections::BTreeMap;

use laxity_model::{Instant, JobId, Nanos, SignedNanos};

pub use cause::{Blame, Cause, Standing};
pub use explainer::Explainer;
pub use line::{Line, line};
pub use names::{UnknownJob, Wanted, job_name, wanted};
pub use row::{AccountRow, row};
pub use worst::{Candidate, worst, worth_explaining};

use crate::intervals::TrackError;
use crate::{Record, TraceHeader};

/// All of a job's life, by cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The job.
    pub job: JobId,
    /// Its arrival. An early release, as that of a node whose tokens came soon, may lie before it.
    pub arrival: Instant,
    /// When it became eligible to run.
    pub release: Instant,
    /// Its absolute deadline.
    pub deadline: Instant,
    /// Its completion, or the end of the trace if it was pending then.
    pub to: Instant,
    /// Whether it completed.
    pub completed: bool,
    /// From the arrival to [`to`](Account::to) without a gap; empty if the job completed before it arrived. No two
    /// neighbours have the same causes.
    pub pieces: Vec<Piece>,
}

/// A span of a job's life. Never empty: `from < to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// When it began.
    pub from: Instant,
    /// When it ended.
    pub to: Instant,
    /// Its cause; several share it in equal parts. Never empty.
    pub causes: Vec<Cause>,
}

/// All that is to blame on one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The thing.
    pub blame: Blame,
    /// How long in all.
    pub time: Nanos,
    /// In how many pieces.
    pub pieces: u64,
    /// The longest piece.
    pub longest: Nanos,
}

impl Account {
    /// How long the job took so far: completion minus arrival, once it is complete. The sum of the pieces and of the parts.
    pub fn time(&self) -> Nanos {
        self.to.saturating_since(self.arrival)
    }

    /// Completion (or the end of the trace) minus deadline, negative where early.
    pub fn lateness(&self) -> SignedNanos {
        self.to.signed_since(self.deadline)
    }

    /// The job's time by blame, the largest part first. The parts sum to [`time`](Account::time) exactly.
    pub fn parts(&self) -> Vec<Part> {
        parts([self])
    }
}

/// The time of several jobs by blame, the largest part first.
pub fn parts<'a>(accounts: impl IntoIterator<Item = &'a Account>) -> Vec<Part> {
    let mut parts: BTreeMap<Blame, Part> = BTreeMap::new();
    for piece in accounts.into_iter().flat_map(|account| &account.pieces) {
        for (cause, time) in piece.shares() {
            let blame = cause.blame();
            let none = Part { blame, time: Nanos::ZERO, pieces: 0, longest: Nanos::ZERO };
            let part = parts.entry(blame).or_insert(none);
            part.time = Nanos(part.time.0.saturating_add(time.0));
            part.pieces += 1;
            part.longest = part.longest.max(time);
        }
    }
    let mut parts: Vec<Part> = parts.into_values().collect();
    parts.sort_by_key(|part| (std::cmp::Reverse(part.time), part.blame));
    parts
}

impl Piece {
    /// How long it lasted.
    pub fn duration(&self) -> Nanos {
        self.to.saturating_since(self.from)
    }

    /// The causes and their shares, which sum to the duration: the first get the nanoseconds that cannot be divided.
    pub fn shares(&self) -> impl Iterator<Item = (Cause, Nanos)> + '_ {
        let (span, count) = (self.duration().0, self.causes.len() as u64);
        let share = move |index: usize| Nanos(span / count + u64::from((index as u64) < span % count));
        self.causes.iter().enumerate().map(move |(index, &cause)| (cause, share(index)))
    }
}

/// Explains the jobs of a whole trace that `wanted` says yes to, in the order in which they completed; those that did not
/// follow at the end. Jobs without a release in the trace are left out.
///
/// Errors: [`TrackError`], at the first record that names what the header lacks, or goes back in time.
pub fn explain(
    header: &TraceHeader,
    records: &[Record],
    wanted: impl Fn(JobId) -> bool,
) -> Result<Vec<Account>, TrackError> {
    let mut explainer = Explainer::new(header, wanted);
    let mut accounts = Vec::new();
    for record in records {
        accounts.extend(explainer.follow(record)?);
    }
    accounts.extend(explainer.finish());
    Ok(accounts)
}
