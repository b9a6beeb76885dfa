//! Whether a workload makes sense: every rule that the types alone cannot keep.
//!
//! One pass finds every mistake and names fields as the file does. A workload that breaks no rule can be analysed,
//! simulated and written; it may still be overloaded, which is a finding of the analysis and here only a warning.

mod body;
mod chain;
mod device;
mod graph;
mod management;
mod memory;
mod object;
mod own_code;
mod platform;
mod task;
mod warnings;

pub(crate) use body::distribution;
pub(crate) use platform::overheads;
pub use warnings::Warning;

use std::collections::BTreeMap;

use crate::error::{ErrorKind, FieldPath, Findings, PathSegment, WorkloadError, WorkloadErrors};
use crate::limits::{OVERHEAD_MAX, TASKS_MAX};
use crate::{ExecutionTime, Nanos, Workload};

impl Workload {
    /// Checks every rule of a workload; all errors are returned. Call it again after changing the scheduler: what
    /// [`Task::cluster`](crate::Task::cluster) means depends on it.
    pub fn validate(&self) -> Result<(), WorkloadErrors> {
        let mut findings = Findings::default();
        workload(self, &mut findings);
        if findings.list.is_empty() {
            return Ok(());
        }
        let error = |finding| WorkloadError::new(finding, |prefix| name_at(self, prefix));
        Err(WorkloadErrors::new(findings.list.into_iter().map(error).collect()))
    }
}

/// Checks everything.
pub(crate) fn workload(workload: &Workload, findings: &mut Findings) {
    name(&workload.name, &FieldPath::root(), findings);
    platform::platform(workload, findings);
    management::gpu_management(workload, findings);
    let at = FieldPath::root().key("best_effort_scheduler");
    memory::best_effort_scheduler(&workload.best_effort_scheduler, &at, findings);
    count(workload, findings);
    let mut resources = Names::new("resource");
    for (index, resource) in workload.resources.iter().enumerate() {
        let at = FieldPath::item("resource", index);
        resources.add(&resource.name, &at, findings);
        if resource.replicas == 0 {
            findings.report(at.key("replicas"), ErrorKind::BadValue, "`replicas` is 0; let at least 1 job hold it");
        }
    }
    let mut tasks = Names::new("task");
    for (index, task) in workload.tasks.iter().enumerate() {
        let at = FieldPath::item("task", index);
        tasks.add(&task.name, &at, findings);
        task::task(task, workload, &at, findings);
    }
    for (index, task) in workload.best_effort.iter().enumerate() {
        let at = FieldPath::item("best_effort", index);
        tasks.add(&task.name, &at, findings);
        task::best_effort(task, workload, &at, findings);
    }
    let mut graphs = Names::new("graph");
    for (index, graph) in workload.graphs.iter().enumerate() {
        let at = FieldPath::item("graph", index);
        graphs.add(&graph.name, &at, findings);
        graph::graph(graph, workload, &at, findings);
    }
    let mut chains = Names::new("chain");
    for (index, chain) in workload.chains.iter().enumerate() {
        let at = FieldPath::item("chain", index);
        chains.add(&chain.name, &at, findings);
        chain::chain(chain, workload, &at, findings);
    }
}

fn count(workload: &Workload, findings: &mut Findings) {
    let nodes: usize = workload.graphs.iter().map(|graph| graph.nodes.len()).sum();
    let tasks = workload.tasks.len();
    if tasks + nodes > TASKS_MAX {
        let message =
            format!("{tasks} tasks and {nodes} graph nodes are more than {TASKS_MAX} together; split the file");
        let list = if tasks > 0 { "task" } else { "graph" };
        findings.report(FieldPath::root().key(list), ErrorKind::BadValue, message);
    }
}

/// The names taken so far among things that must differ in name.
struct Names<'w> {
    what: &'static str,
    taken: BTreeMap<&'w str, FieldPath>,
}

impl<'w> Names<'w> {
    fn new(what: &'static str) -> Self {
        Names { what, taken: BTreeMap::new() }
    }

    fn add(&mut self, text: &'w str, at: &FieldPath, findings: &mut Findings) {
        name(text, at, findings);
        if text.is_empty() {
            return;
        }
        match self.taken.get(text) {
            Some(first) => {
                let message = format!("the {} name \"{text}\" is taken by `{first}`; rename one of them", self.what);
                findings.report(at.key("name"), ErrorKind::Duplicate, message);
            }
            None => {
                self.taken.insert(text, at.clone());
            }
        }
    }
}

fn name(text: &str, at: &FieldPath, findings: &mut Findings) {
    if text.trim().is_empty() {
        findings.report(at.key("name"), ErrorKind::BadValue, "`name` is empty; give it one");
    } else if text.chars().any(char::is_control) {
        let message = format!("`name` {text:?} contains a control character; remove it");
        findings.report(at.key("name"), ErrorKind::BadValue, message);
    }
}

/// A span from nothing to the longest one.
fn span(key: &'static str, value: Nanos, at: &FieldPath, findings: &mut Findings) {
    if value > Nanos::LONGEST {
        let message = format!("`{key}` {value} exceeds the longest span, {} (10 years); write less", Nanos::LONGEST);
        findings.report(at.key(key), ErrorKind::BadValue, message);
    }
}

/// A span of at least a nanosecond.
fn positive_span(key: &'static str, value: Nanos, at: &FieldPath, findings: &mut Findings) {
    if value.is_zero() {
        let message = format!("`{key}` is 0 ms; write at least 1 ns");
        findings.report(at.key(key), ErrorKind::BadValue, message);
    }
    span(key, value, at, findings);
}

/// The execution time of the top or bottom half of an interrupt.
fn interrupt_half(time: &ExecutionTime, at: &FieldPath, findings: &mut Findings) {
    body::execution("wcet", time, at, findings);
    // Longer spans are reported as such already.
    if time.wcet > OVERHEAD_MAX && time.wcet <= Nanos::LONGEST {
        let message = format!("`wcet` {} exceeds 1 h; no interrupt takes that long, so write less", time.wcet);
        findings.report(at.key("wcet"), ErrorKind::BadValue, message);
    }
}

/// Where task `number` is in the file, counted over tasks and then the nodes of all graphs.
pub(crate) fn path_of(workload: &Workload, number: usize) -> FieldPath {
    let Some(mut node) = number.checked_sub(workload.tasks.len()) else { return FieldPath::item("task", number) };
    for (index, graph) in workload.graphs.iter().enumerate() {
        match node.checked_sub(graph.nodes.len()) {
            None => return FieldPath::item("graph", index).key("node").index(node),
            Some(left) => node = left,
        }
    }
    FieldPath::root()
}

/// The names of the items that messages speak of.
pub(crate) fn name_at(workload: &Workload, prefix: &[PathSegment]) -> Option<String> {
    use PathSegment::{Index, Key};
    let name = match prefix {
        [Key(list), Index(index)] => match list.as_ref() {
            "task" => &workload.tasks.get(*index)?.name,
            "best_effort" => &workload.best_effort.get(*index)?.name,
            "resource" => &workload.resources.get(*index)?.name,
            "graph" => &workload.graphs.get(*index)?.name,
            "chain" => &workload.chains.get(*index)?.name,
            _ => return None,
        },
        [Key(platform), Key(list), Index(index)] if platform == "platform" => match list.as_ref() {
            "gpu" => &workload.platform.gpus.get(*index)?.name,
            "device" => &workload.platform.devices.get(*index)?.name,
            _ => return None,
        },
        [Key(graphs), Index(graph), Key(list), Index(index)] if graphs == "graph" => match list.as_ref() {
            "node" => &workload.graphs.get(*graph)?.nodes.get(*index)?.name,
            "object" => &workload.graphs.get(*graph)?.objects.get(*index)?.name,
            _ => return None,
        },
        _ => return None,
    };
    Some(name.clone())
}
