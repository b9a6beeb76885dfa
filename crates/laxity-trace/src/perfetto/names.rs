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
    Interrupt,
    Spins,
    Serves,
    Produces,
    Consumes,
    Replenished,
    Throttled,
    Unthrottled,
    Stolen,
    Rate,
    Reads,
    Overhead(OverheadKind),
}

/// The category of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    Job,
    Deadline,
    Overhead,
    Gpu,
    Interrupt,
    Lock,
    Graph,
    Memory,
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
    Device,
    Owner,
    Edge,
    Tokens,
    Level,
    BudgetNs,
    Task,
    RatePercent,
    Value,
}

impl Name {
    const SINGLE: [(Name, &'static str); 19] = [
        (Name::Release, "release"),
        (Name::Deadline, "deadline"),
        (Name::DeadlineMissed, "deadline missed"),
        (Name::Suspended, "suspended"),
        (Name::NonPreemptive, "non-preemptive"),
        (Name::LockWait, "lock wait"),
        (Name::IpiSent, "IPI sent"),
        (Name::IpiReceived, "IPI received"),
        (Name::Interrupt, "interrupt"),
        (Name::Spins, "spins"),
        (Name::Serves, "serves"),
        (Name::Produces, "produces"),
        (Name::Consumes, "consumes"),
        (Name::Replenished, "replenished"),
        (Name::Throttled, "throttled"),
        (Name::Unthrottled, "unthrottled"),
        (Name::Rate, "rate"),
        (Name::Reads, "reads"),
        (Name::Stolen, "stolen"),
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
            Name::Interrupt => 9,
            Name::Spins => 10,
            Name::Serves => 11,
            Name::Produces => 12,
            Name::Consumes => 13,
            Name::Replenished => 14,
            Name::Throttled => 15,
            Name::Overhead(kind) => 16 + kind as u64,
            Name::Unthrottled => 48,
            Name::Rate => 49,
            Name::Reads => 50,
            Name::Stolen => 51,
        }
    }
}

impl Category {
    const ALL: [(Category, &'static str); 8] = [
        (Category::Job, "job"),
        (Category::Deadline, "deadline"),
        (Category::Overhead, "overhead"),
        (Category::Gpu, "gpu"),
        (Category::Interrupt, "interrupt"),
        (Category::Lock, "lock"),
        (Category::Graph, "graph"),
        (Category::Memory, "memory"),
    ];

    /// The number; never 0.
    pub const fn iid(self) -> u64 {
        self as u64 + 1
    }
}

impl Fact {
    const ALL: [(Fact, &'static str); 20] = [
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
        (Fact::Device, "device"),
        (Fact::Owner, "owner"),
        (Fact::Edge, "edge"),
        (Fact::Tokens, "tokens"),
        (Fact::Level, "level"),
        (Fact::BudgetNs, "budget_ns"),
        (Fact::Task, "task"),
        (Fact::RatePercent, "rate_percent"),
        (Fact::Value, "value"),
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
