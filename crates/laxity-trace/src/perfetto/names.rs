//! Names that are written once and referred to by number.

use laxity_model::OverheadKind;

use super::messages::{InternedData, InternedName};

/// The name of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    Release,
    Deadline,
    DeadlineMissed,
    Suspended,
    NonPreemptive,
    LockWait,
    IpiSent,
    IpiReceived,
    Overhead(OverheadKind),
}

/// The category of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    Job,
    Deadline,
    Overhead,
}

/// The name of an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    Job,
    ArrivalNs,
    DeadlineNs,
    ResponseTimeNs,
    LatenessNs,
    ExecutedNs,
    Preemptions,
    Migrations,
    Missed,
    DurationNs,
    Cpu,
}

impl Name {
    const SINGLE: [(Name, &'static str); 8] = [
        (Name::Release, "release"),
        (Name::Deadline, "deadline"),
        (Name::DeadlineMissed, "deadline missed"),
        (Name::Suspended, "suspended"),
        (Name::NonPreemptive, "non-preemptive"),
        (Name::LockWait, "lock wait"),
        (Name::IpiSent, "IPI sent"),
        (Name::IpiReceived, "IPI received"),
    ];

    /// The number; never 0.
    pub const fn iid(self) -> u64 {
        match self {
            Name::Release => 1,
            Name::Deadline => 2,
            Name::DeadlineMissed => 3,
            Name::Suspended => 4,
            Name::NonPreemptive => 5,
            Name::LockWait => 6,
            Name::IpiSent => 7,
            Name::IpiReceived => 8,
            Name::Overhead(kind) => 16 + kind as u64,
        }
    }
}

impl Category {
    const ALL: [(Category, &'static str); 3] =
        [(Category::Job, "job"), (Category::Deadline, "deadline"), (Category::Overhead, "overhead")];

    /// The number; never 0.
    pub const fn iid(self) -> u64 {
        self as u64 + 1
    }
}

impl Fact {
    const ALL: [(Fact, &'static str); 11] = [
        (Fact::Job, "job"),
        (Fact::ArrivalNs, "arrival_ns"),
        (Fact::DeadlineNs, "deadline_ns"),
        (Fact::ResponseTimeNs, "response_time_ns"),
        (Fact::LatenessNs, "lateness_ns"),
        (Fact::ExecutedNs, "executed_ns"),
        (Fact::Preemptions, "preemptions"),
        (Fact::Migrations, "migrations"),
        (Fact::Missed, "missed"),
        (Fact::DurationNs, "duration_ns"),
        (Fact::Cpu, "cpu"),
    ];

    /// The number; never 0.
    pub const fn iid(self) -> u64 {
        self as u64 + 1
    }
}

/// All names with their numbers, for the first packet.
pub fn interned() -> InternedData {
    let entry = |iid: u64, name: String| InternedName { iid: Some(iid), name: Some(name) };
    let overheads = OverheadKind::ALL.map(|kind| entry(Name::Overhead(kind).iid(), kind.name().replace('_', " ")));
    InternedData {
        event_categories: Category::ALL.map(|(category, name)| entry(category.iid(), name.to_owned())).to_vec(),
        event_names: Name::SINGLE
            .iter()
            .map(|(name, text)| entry(name.iid(), (*text).to_owned()))
            .chain(overheads)
            .collect(),
        debug_annotation_names: Fact::ALL.map(|(fact, name)| entry(fact.iid(), name.to_owned())).to_vec(),
    }
}
