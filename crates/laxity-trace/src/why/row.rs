//! Accounts for JSON: names beside numbers.

use laxity_model::JobId;
use serde::Serialize;

use super::{Account, Blame, Cause, Part, job_name};
use crate::{Outsider, OutsiderKind, TraceHeader};

/// An account. Times are in ns since the start of the trace, spans in ns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AccountRow<'a> {
    /// The job: `camera#17`.
    pub job: String,
    /// Its task.
    pub task: &'a str,
    /// Which job of the task; the first is 0.
    pub index: u32,
    /// When it arrived.
    pub arrival_ns: u64,
    /// When it became eligible to run.
    pub release_ns: u64,
    /// Its absolute deadline; null of a best-effort job, which has none.
    pub deadline_ns: Option<u64>,
    /// When it completed; null if it was pending when the trace ended.
    pub completion_ns: Option<u64>,
    /// From the arrival to the completion, or to the end of the trace: the sum of the parts, and of the pieces.
    pub time_ns: u64,
    /// Completion, or the end of the trace, minus deadline; null without a deadline.
    pub lateness_ns: Option<i64>,
    /// Its time by blame, the largest first.
    pub parts: Vec<PartRow>,
    /// Its time in order.
    pub pieces: Vec<PieceRow>,
}

/// All that is to blame on one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartRow {
    /// What the job did: see [`cause_name`].
    pub cause: &'static str,
    /// In words.
    pub description: String,
    /// How long in all.
    pub time_ns: u64,
    /// In how many pieces.
    pub pieces: u64,
    /// The longest of them.
    pub longest_ns: u64,
}

/// A span of the job's life.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PieceRow {
    /// When it began.
    pub from_ns: u64,
    /// When it ended.
    pub to_ns: u64,
    /// Its causes, which share it.
    pub causes: Vec<CauseRow>,
}

/// A cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CauseRow {
    /// What the job did: see [`cause_name`].
    pub cause: &'static str,
    /// In words.
    pub description: String,
    /// The CPU that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u16>,
    /// The other job that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_job: Option<String>,
    /// Its share.
    pub time_ns: u64,
}

/// The account with names.
pub fn row<'a>(header: &'a TraceHeader, account: &Account) -> AccountRow<'a> {
    let Account { job, arrival, release, deadline, to, completed, .. } = *account;
    let has_deadline = !header.has_made_up_deadlines(job.task);
    AccountRow {
        job: job_name(header, job),
        task: header.tasks.get(job.task.index()).map_or("", |task| task.name.as_str()),
        index: job.index,
        arrival_ns: arrival.0,
        release_ns: release.0,
        deadline_ns: has_deadline.then_some(deadline.0),
        completion_ns: completed.then_some(to.0),
        time_ns: account.time().0,
        lateness_ns: has_deadline.then_some(account.lateness().0),
        parts: account.parts().iter().map(|part| part_row(header, part)).collect(),
        pieces: account.pieces.iter().map(|piece| piece_row(header, piece)).collect(),
    }
}

fn part_row(header: &TraceHeader, part: &Part) -> PartRow {
    PartRow {
        cause: cause_name(part.blame),
        description: part.blame.describe(header),
        time_ns: part.time.0,
        pieces: part.pieces,
        longest_ns: part.longest.0,
    }
}

fn piece_row(header: &TraceHeader, piece: &super::Piece) -> PieceRow {
    let cause = |(cause, share): (Cause, laxity_model::Nanos)| CauseRow {
        cause: cause_name(cause.blame()),
        description: cause.blame().describe(header),
        cpu: cause.cpu().map(|cpu| cpu.0),
        other_job: cause.other_job().map(|job: JobId| job_name(header, job)),
        time_ns: share.0,
    };
    PieceRow { from_ns: piece.from.0, to_ns: piece.to.0, causes: piece.shares().map(cause).collect() }
}

/// The name in JSON.
const fn cause_name(blame: Blame) -> &'static str {
    match blame {
        Blame::Execution => "execution",
        Blame::CacheRefill(_) => "cache_refill",
        Blame::Task(..) => "other_job",
        Blame::Lock(..) => "lock",
        Blame::Operation(..) => "gpu_operation",
        Blame::Engine(..) => "engine",
        Blame::WakeUp(_) => "wake_up",
        Blame::Suspension => "suspension",
        Blame::Throttled => "budget",
        Blame::Unoccupied => "unoccupied",
        Blame::BottomHalf(_) => "bottom_half",
        Blame::Overhead(_) => "overhead",
        Blame::SchedulerLock => "scheduler_lock",
        Blame::Tokens(_) => "tokens",
        Blame::Predecessor => "predecessor",
        Blame::Release => "release",
        Blame::Jitter => "jitter",
        Blame::Stolen => "stolen",
        Blame::Outside(Outsider { kind: OutsiderKind::Thread, .. }) => "other_thread",
        Blame::Outside(_) => "interrupt",
    }
}
