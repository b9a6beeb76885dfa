//! Judges of schedules, simulated or live: is it legal, does it follow the policy it names, were deadlines met?
//!
//! Each checker is a [`Sink`], so it can watch a simulation as it runs; the functions here feed it a
//! recorded trace. A checker shares nothing with the policies it judges.

mod deadlines;
mod fairness;
mod legality;
mod life;
mod parts;
mod policy;
mod problem;
mod report;
mod violation;

pub use deadlines::DeadlineCheck;
pub use fairness::FairnessCheck;
pub use legality::LegalityCheck;
pub use life::{Act, Phase};
pub use parts::BudgetProblem;
pub use policy::PolicyCheck;
pub use problem::{Problem, Urgency};
pub use report::Report;
pub use violation::Violation;

use laxity_model::{JobId, Nanos};

use crate::{Record, Sink, TraceHeader};

/// Is this a legal schedule? See [`LegalityCheck`]. Where `cost` knows what a job needed, it must have executed for
/// exactly that long.
pub fn legality(header: &TraceHeader, records: &[Record], cost: impl Fn(JobId) -> Option<Nanos>) -> Report {
    let mut check = LegalityCheck::new(header).with_costs(cost);
    feed(&mut check, records);
    check.finish()
}

/// Does the schedule follow the scheduler that its header names? See [`PolicyCheck`].
pub fn policy(header: &TraceHeader, records: &[Record]) -> Report {
    let mut check = PolicyCheck::new(header);
    feed(&mut check, records);
    check.finish()
}

/// Did every job meet its deadline? See [`DeadlineCheck`].
pub fn deadlines(header: &TraceHeader, records: &[Record]) -> Report {
    let mut check = DeadlineCheck::new(header);
    feed(&mut check, records);
    check.finish()
}

fn feed(check: &mut impl Sink, records: &[Record]) {
    for record in records {
        check.record(record.at, record.event);
    }
}
