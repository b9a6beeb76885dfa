//! The workload file: TOML or JSON text to a validated [`Workload`] and back.
//!
//! ```text
//! TOML --toml--\                                               /--write--> TOML
//!               tree --decode--> Workload --validate--> Workload --encode--
//! JSON --json--/      findings with offsets and paths          \--write--> JSON
//! ```
//!
//! The format is described in `docs/reference/workload-file.md` and `schema/laxity-workload-1.schema.json`.

mod alone;
mod cpu_list;
mod decode;
mod encode;
mod json;
mod measurement;
mod quantity;
mod reader;
mod span;
mod toml;
mod tree;
mod write;

use std::collections::BTreeSet;

use crate::error::{ErrorKind, FieldPath, Finding, Findings, PathSegment, Position, WorkloadError, WorkloadErrors};
use crate::{
    BestEffortRule, EngineOrder, Factor, GpuArbitration, GpuSync, InterruptHandling, Invocation, LockHeed,
    MigrationPath, PriorityRule, Quanta, ReadyQueueKind, RegulatorPhase, ReleaseInterrupts, ResourceProtocol, Scope,
    ServerKind, ThreadPriority, TokenHold, Workload, validate,
};
use tree::{Lines, Node, SyntaxError};

pub use alone::{ParseDistributionError, parse_cpus, parse_rate, parse_size, write_rate};
pub(crate) use quantity::parse_picos;
pub use span::ParseNanosError;

/// The words of a file and what they stand for.
type Words<T> = &'static [(&'static str, T)];

const RULES: Words<PriorityRule> = &[
    ("EDF", PriorityRule::Edf),
    ("RM", PriorityRule::RateMonotonic),
    ("DM", PriorityRule::DeadlineMonotonic),
    ("FP", PriorityRule::Given),
    ("CFS", PriorityRule::Fair),
];
const SCOPES: Words<Scope> =
    &[("global", Scope::Global), ("clustered", Scope::Clustered), ("partitioned", Scope::Partitioned)];
const INVOCATIONS: Words<Invocation> =
    &[("event-driven", Invocation::EventDriven), ("quantum-driven", Invocation::QuantumDriven)];
const QUANTA: Words<Quanta> = &[("aligned", Quanta::Aligned), ("staggered", Quanta::Staggered)];
const INTERRUPTS: Words<ReleaseInterrupts> =
    &[("global", ReleaseInterrupts::Global), ("dedicated", ReleaseInterrupts::Dedicated)];
const READY_QUEUES: Words<ReadyQueueKind> = &[
    ("coarse", ReadyQueueKind::Coarse),
    ("fine", ReadyQueueKind::Fine),
    ("hierarchical", ReadyQueueKind::Hierarchical),
];
const PROTOCOLS: Words<ResourceProtocol> = &[
    ("priority-inheritance", ResourceProtocol::PriorityInheritance),
    ("fifo", ResourceProtocol::Fifo),
    ("priority-ceiling", ResourceProtocol::PriorityCeiling),
];
pub(crate) const ARBITRATIONS: Words<GpuArbitration> = &[
    (GpuArbitration::Driver.name(), GpuArbitration::Driver),
    (GpuArbitration::DriverSpinning.name(), GpuArbitration::DriverSpinning),
    (GpuArbitration::Semaphore.name(), GpuArbitration::Semaphore),
    (K_FMLP.name(), K_FMLP),
    (GpuArbitration::GpuSync(GpuSync::DEFAULT).name(), GpuArbitration::GpuSync(GpuSync::DEFAULT)),
];
const K_FMLP: GpuArbitration = GpuArbitration::KFmlp { length_aware: false };
const ENGINE_ORDERS: Words<EngineOrder> = &[("fifo", EngineOrder::Fifo), ("priority", EngineOrder::Priority)];
const TOKEN_HOLDS: Words<TokenHold> = &[("job", TokenHold::Job), ("section", TokenHold::Section)];
const MIGRATION_PATHS: Words<MigrationPath> = &[("peer", MigrationPath::Peer), ("host", MigrationPath::Host)];
pub(crate) const HANDLINGS: Words<InterruptHandling> = &[
    (InterruptHandling::Linux.name(), InterruptHandling::Linux),
    (LOW.name(), LOW),
    (HIGH.name(), HIGH),
    (InterruptHandling::ProcessAware.name(), InterruptHandling::ProcessAware),
    (KLMIRQD.name(), KLMIRQD),
];
const LOW: InterruptHandling = InterruptHandling::PreemptRt(ThreadPriority::Low);
const HIGH: InterruptHandling = InterruptHandling::PreemptRt(ThreadPriority::High);
const KLMIRQD: InterruptHandling = InterruptHandling::Klmirqd { threads: None };
const PHASES: Words<RegulatorPhase> = &[("aligned", RegulatorPhase::Aligned), ("staggered", RegulatorPhase::Staggered)];
const HEEDS: Words<LockHeed> = &[("period", LockHeed::Period), ("at_once", LockHeed::AtOnce)];
const BEST_EFFORT_RULES: Words<BestEffortRule> =
    &[(BestEffortRule::Cfs.name(), BestEffortRule::Cfs), (TFS.name(), TFS)];
/// One that punishes as much as a thread was throttled, unless a file says otherwise.
const TFS: BestEffortRule = BestEffortRule::Tfs { punishment: Factor::ONE };
const SERVERS: Words<ServerKind> = &[
    (ServerKind::CbsHard.name(), ServerKind::CbsHard),
    (ServerKind::CbsSoft.name(), ServerKind::CbsSoft),
    (ServerKind::Sporadic.name(), ServerKind::Sporadic),
];
/// The number of replicas that the analysis computes.
const AUTOMATIC: &str = "auto";
/// Whether arrivals are sporadic.
const ARRIVALS: Words<bool> = &[("periodic", false), ("sporadic", true)];

impl Workload {
    /// Reads and validates a TOML workload. `file` names it in errors; all errors are returned, in file order.
    pub fn from_toml(text: &str, file: &str) -> Result<Workload, WorkloadErrors> {
        read(toml::parse(text), text, file)
    }

    /// Reads and validates a JSON workload, which has the structure of the TOML one. `file` names it in errors.
    pub fn from_json(text: &str, file: &str) -> Result<Workload, WorkloadErrors> {
        read(json::parse(text).map_err(|error| vec![error]), text, file)
    }

    /// Reads and validates a workload as TOML or JSON, whichever the extension of `file` says.
    pub fn from_text(text: &str, file: &str) -> Result<Workload, WorkloadErrors> {
        match file.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).as_deref() {
            Some("toml") => Workload::from_toml(text, file),
            Some("json") => Workload::from_json(text, file),
            _ => {
                let message = "cannot tell TOML from JSON; give the file the extension `.toml` or `.json`".to_owned();
                Err(syntax_errors(vec![SyntaxError { offset: 0, message }], text, file))
            }
        }
    }

    /// The workload as TOML. [`Workload::from_toml`] reads a valid one back exactly.
    ///
    /// An invalid workload is written too; its dangling references become names that no reader accepts.
    pub fn to_toml(&self) -> String {
        write::toml(&encode::workload(self))
    }

    /// The workload as JSON. [`Workload::from_json`] reads a valid one back exactly.
    ///
    /// An invalid workload is written too; its dangling references become names that no reader accepts.
    pub fn to_json(&self) -> String {
        write::json(&encode::workload(self))
    }
}

/// Where the field at `path` stands in `text`, the text of a valid workload in TOML or, if `is_json`, in JSON; of a field
/// that is not there, the place of the table that lacks it. `None` without a text.
fn position(text: &str, is_json: bool, path: &FieldPath) -> Option<Position> {
    if text.is_empty() {
        return None;
    }
    let tree = if is_json { json::parse(text).ok()? } else { toml::parse(text).ok()? };
    Some(Lines::of(text).position(tree.locate(path).offset))
}

impl WorkloadError {
    /// That `message` is wrong with a field of the `run` of task `number`, counted over tasks and then nodes, of
    /// `workload`, which was read from `text` of the `file`: for what only shows where the code runs.
    pub fn of_own_code(
        workload: &Workload,
        (text, file, is_json): (&str, &str, bool),
        (number, field): (usize, &'static str),
        message: String,
    ) -> WorkloadError {
        let item = validate::path_of(workload, number);
        let path = item.key("run").key(field);
        let finding = Finding { path, offset: None, kind: ErrorKind::BadValue, message };
        let position = position(text, is_json, &finding.path);
        let name = |prefix: &[PathSegment]| validate::name_at(workload, prefix);
        WorkloadError { file: Some(file.to_owned()), position, ..WorkloadError::new(finding, name) }
    }
}

fn read(tree: Result<Node, Vec<SyntaxError>>, text: &str, file: &str) -> Result<Workload, WorkloadErrors> {
    let tree = tree.map_err(|errors| syntax_errors(errors, text, file))?;
    let mut findings = Findings::default();
    let workload = decode::workload(&tree, &mut findings);
    let mut contradictions = Findings::default();
    validate::workload(&workload, &mut contradictions);
    let all = merge(findings, contradictions, &tree);
    if all.is_empty() {
        return Ok(workload);
    }
    let lines = Lines::of(text);
    let error = |(offset, finding): (usize, Finding)| WorkloadError {
        file: Some(file.to_owned()),
        position: Some(lines.position(offset)),
        ..WorkloadError::new(finding, |prefix| tree.name_at(prefix))
    };
    Err(WorkloadErrors::new(all.into_iter().map(error).collect()))
}

fn syntax_errors(errors: Vec<SyntaxError>, text: &str, file: &str) -> WorkloadErrors {
    let lines = Lines::of(text);
    let error = |error: SyntaxError| WorkloadError {
        file: Some(file.to_owned()),
        position: Some(lines.position(error.offset)),
        path: FieldPath::root(),
        subject: String::new(),
        kind: ErrorKind::Syntax,
        message: error.message,
    };
    WorkloadErrors::new(errors.into_iter().map(error).collect())
}

/// What was found while reading and while validating, by offset.
///
/// Where something could not be read, a placeholder stood in for it. Hence validation is not believed about an item
/// that was not read completely, nor about how items fit together when the platform or the scheduler were not.
fn merge(reading: Findings, validating: Findings, tree: &Node) -> Vec<(usize, Finding)> {
    let broken: BTreeSet<String> = reading.list.iter().map(|finding| item_of(&finding.path)).collect();
    let setting_is_broken = broken.iter().any(|item| matches!(item.as_str(), "" | "platform" | "scheduler"));
    let believed = validating.list.into_iter().filter(|finding| {
        let stands_alone = matches!(finding.kind, ErrorKind::BadValue | ErrorKind::Duplicate | ErrorKind::Infeasible);
        !broken.contains(&item_of(&finding.path)) && (stands_alone || !setting_is_broken)
    });
    let offset = |finding: &Finding| finding.offset.unwrap_or_else(|| tree.locate(&finding.path).offset);
    let mut all: Vec<_> = reading.list.into_iter().chain(believed).map(|found| (offset(&found), found)).collect();
    all.sort_by_key(|(offset, _)| *offset);
    all
}

/// The item of a file that a path leads into: `task[3]`, `platform`.
fn item_of(path: &FieldPath) -> String {
    let mut item = String::new();
    for segment in path.segments().iter().take(2) {
        match segment {
            PathSegment::Key(key) if item.is_empty() => item.push_str(key),
            PathSegment::Index(index) => item.push_str(&format!("[{index}]")),
            PathSegment::Key(_) => break,
        }
    }
    item
}
