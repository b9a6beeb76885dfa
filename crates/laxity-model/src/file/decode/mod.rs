//! A tree to a workload. An unreadable field is reported and gets a placeholder, so that one pass finds every
//! mistake; the placeholders never leave this crate.

mod body;
mod chain;
mod device;
mod graph;
mod management;
mod memory;
mod own_code;
mod platform;
mod scheduler;
mod task;

pub(super) use body::distribution;
pub(super) use platform::own_overheads;

use super::reader::{Fields, Item};
use super::tree::Node;
use crate::error::{ErrorKind, FieldPath, Findings};
use crate::suggest;
use crate::{Graph, Resource, ResourceProtocol, Workload};

/// The version of the format that this crate reads and writes.
pub(crate) const FORMAT: u64 = 1;

/// The fields of each table, in the order in which they are written. The schema lists the same.
pub(crate) mod fields {
    pub const WORKLOAD: &[&str] = &[
        "laxity",
        "name",
        "platform",
        "scheduler",
        "gpu_management",
        "best_effort_scheduler",
        "resource",
        "task",
        "best_effort",
        "graph",
        "chain",
    ];
    pub const PLATFORM: &[&str] = &["cpus", "clusters", "tick", "quantum", "overheads", "memory", "gpu", "device"];
    pub const MEMORY: &[&str] = &["contention", "regulator"];
    pub const REGULATOR: &[&str] = &["period", "latency", "interrupt", "phase", "heed"];
    pub const GPU: &[&str] = &["name", "cluster", "copy_engines", "bandwidth", "latency", "interrupt_cpus"];
    pub const DEVICE: &[&str] =
        &["name", "cluster", "arrival", "gap", "period", "top_half", "bottom_half", "interrupt_cpus", "server"];
    pub const SERVER: &[&str] = &["kind", "budget", "period", "priority"];
    pub const TASK_SERVER: &[&str] = &["kind", "budget", "period"];
    pub const OVERHEADS: &[&str] = &[
        "name",
        "release",
        "scheduling",
        "context_switch",
        "ipi_latency",
        "tick",
        "timer_rearming",
        "cache_preemption",
        "cache_migration",
        "top_half",
        "bottom_half",
        "thread_release",
        "pai_enqueue",
        "pai_check",
    ];
    pub const SCHEDULER: &[&str] =
        &["policy", "rule", "scope", "invocation", "quanta", "interrupts", "ready_queue", "coarse_lock"];
    pub const GPU_MANAGEMENT: &[&str] =
        &["arbitration", "handling", "top_half", "bottom_half", "callback", "bandwidth_lock"];
    pub const BANDWIDTH_LOCK: &[&str] = &["call", "budget"];
    pub const CFS: &[&str] = &["rule", "latency", "min_granularity", "wakeup_granularity"];
    pub const TFS: &[&str] = &["rule", "punishment", "latency", "min_granularity", "wakeup_granularity"];
    pub const PROTOCOL_ALONE: &[&str] = &["protocol"];
    pub const K_FMLP: &[&str] = &["protocol", "length_aware"];
    pub const GPUSYNC: &[&str] = &[
        "protocol",
        "tokens",
        "fifo_length",
        "fifo_requests",
        "engine_order",
        "chunk",
        "hold",
        "migration",
        "migration_path",
    ];
    pub const METHOD_ALONE: &[&str] = &["method"];
    pub const KLMIRQD: &[&str] = &["method", "threads"];
    pub const EXECUTION_TIME: &[&str] = &["wcet", "actual"];
    pub const RESOURCE: &[&str] = &["name", "protocol", "replicas"];
    pub const TASK: &[&str] = &[
        "name",
        "arrival",
        "gap",
        "period",
        "deadline",
        "phase",
        "jitter",
        "priority",
        "cluster",
        "working_set",
        "budget",
        "server",
        "memory_demand",
        "memory_budget",
        "wcet",
        "actual",
        "body",
        "run",
    ];
    pub const BEST_EFFORT: &[&str] = &["name", "weight", "memory_demand", "cpu", "work"];
    pub const GRAPH: &[&str] = &["name", "replicas", "latest", "object", "node", "edge"];
    pub const NODE: &[&str] = &[
        "name", "period", "phase", "deadline", "priority", "cluster", "budget", "server", "wcet", "actual", "body",
        "run",
    ];
    pub const EDGE: &[&str] =
        &["from", "to", "produce", "consume", "threshold", "initial", "back_edge", "delay", "message"];
    pub const LATEST: &[&str] = &["from", "to"];
    pub const CHAIN: &[&str] = &["name", "path", "data_age_max", "reaction_time_max"];
    pub const OBJECT: &[&str] = &["name", "nodes", "delay"];
}

/// What steps may refer to.
pub(super) struct Names {
    gpus: Vec<String>,
    resources: Vec<String>,
}

/// Reads the tree of a whole file.
pub(super) fn workload(root: &Node, findings: &mut Findings) -> Workload {
    let root = Item { node: root, path: FieldPath::root() };
    let Some(fields) = root.table(fields::WORKLOAD, "a table", findings) else {
        return Workload::new("", crate::Platform::identical(1), Vec::new());
    };
    format(&fields, findings);
    let name = fields.name(findings);
    let scheduler = scheduler::scheduler(&fields, findings);
    let platform = platform::platform(&fields, &scheduler, findings);
    let gpu_management = management::gpu_management(&fields, findings);
    let best_effort_scheduler = memory::best_effort_scheduler(&fields, findings);
    let resources: Vec<Resource> =
        fields.tables("resource", findings).iter().map(|item| resource(item, findings)).collect();
    let names = Names {
        gpus: platform.gpus.iter().map(|gpu| gpu.name.clone()).collect(),
        resources: resources.iter().map(|resource| resource.name.clone()).collect(),
    };
    let tasks = fields.tables("task", findings).iter().map(|item| task::task(item, &names, findings)).collect();
    let best_effort =
        fields.tables("best_effort", findings).iter().map(|item| task::best_effort(item, findings)).collect();
    let graphs: Vec<Graph> =
        fields.tables("graph", findings).iter().map(|item| graph::graph(item, &names, findings)).collect();
    let chains = fields.tables("chain", findings).iter().map(|item| chain::chain(item, &graphs, findings)).collect();
    Workload {
        name,
        platform,
        scheduler,
        gpu_management,
        tasks,
        best_effort,
        best_effort_scheduler,
        resources,
        graphs,
        chains,
    }
}

/// The version of the format, in every file.
pub(super) fn format(fields: &Fields<'_>, findings: &mut Findings) {
    let example = format!("`laxity = {FORMAT}`, the version of the file format");
    if let Some(item) = fields.require("laxity", &example, findings)
        && let Some(version) = item.integer(0, u64::MAX, findings)
        && version != FORMAT
    {
        let message = format!("is {version}, but this version of Laxity reads format {FORMAT}; upgrade one of them");
        item.report(ErrorKind::BadValue, message, findings);
    }
}

fn resource(item: &Item<'_>, findings: &mut Findings) -> Resource {
    let default = Resource { name: String::new(), protocol: ResourceProtocol::PriorityInheritance, replicas: 1 };
    let Some(fields) = item.table(fields::RESOURCE, "a table with `name`", findings) else { return default };
    Resource {
        name: fields.name(findings),
        protocol: fields
            .get("protocol")
            .and_then(|item| item.choice(super::PROTOCOLS, findings))
            .unwrap_or(default.protocol),
        replicas: fields.get("replicas").and_then(|item| item.integer_u32(findings)).unwrap_or(default.replicas),
    }
}

/// The place of the thing that `item` names, in the list `names` of things called `what`.
fn refer(item: &Item<'_>, names: &[String], what: &str, findings: &mut Findings) -> Option<usize> {
    let name = item.text(&format!("the name of a {what}"), findings)?;
    look_up(name, item, names, what, findings)
}

/// The place of `name`, which `item` contains.
fn look_up(name: &str, item: &Item<'_>, names: &[String], what: &str, findings: &mut Findings) -> Option<usize> {
    let index = names.iter().position(|known| known == name);
    if index.is_none() {
        let way_out = match names {
            [] => format!("the file defines no {what}, so define it or remove the reference"),
            _ => suggest::way_out(name, names.iter().map(String::as_str)),
        };
        item.report(ErrorKind::UnknownName, format_args!("names the unknown {what} \"{name}\"; {way_out}"), findings);
    }
    index
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// The names of the fields that a table of the schema allows.
    fn allowed(table: &Value) -> Vec<&str> {
        assert_eq!(table["additionalProperties"], false, "unknown fields are mistakes");
        table["properties"].as_object().expect("a table has fields").keys().map(String::as_str).collect()
    }

    fn sorted<'f>(fields: &[&'f str]) -> Vec<&'f str> {
        let mut fields = fields.to_vec();
        fields.sort();
        fields
    }

    #[test]
    fn reader_and_schema_know_the_same_fields() {
        let schema = include_str!("../../../../../schema/laxity-workload-1.schema.json");
        let schema: Value = serde_json::from_str(schema).expect("the schema is JSON");
        assert_eq!(allowed(&schema), sorted(fields::WORKLOAD));
        let tables = [
            ("platform", fields::PLATFORM),
            ("gpu", fields::GPU),
            ("device", fields::DEVICE),
            ("server", fields::SERVER),
            ("task_server", fields::TASK_SERVER),
            ("overheads", fields::OVERHEADS),
            ("memory", fields::MEMORY),
            ("regulator", fields::REGULATOR),
            ("bandwidth_lock", fields::BANDWIDTH_LOCK),
            ("scheduler", fields::SCHEDULER),
            ("gpu_management", fields::GPU_MANAGEMENT),
            ("resource", fields::RESOURCE),
            ("task", fields::TASK),
            ("best_effort", fields::BEST_EFFORT),
            ("graph", fields::GRAPH),
            ("node", fields::NODE),
            ("object", fields::OBJECT),
            ("chain", fields::CHAIN),
        ];
        let definitions = &schema["$defs"];
        for (name, known) in tables {
            assert_eq!(allowed(&definitions[name]), sorted(known), "{name}");
        }
        assert_eq!(allowed(&definitions["edge"]["oneOf"][1]), sorted(fields::EDGE));
        assert_eq!(allowed(&definitions["latest"]["oneOf"][1]), sorted(fields::LATEST));
        let alternatives = [
            ("arbitration", 1, fields::PROTOCOL_ALONE),
            ("arbitration", 2, fields::K_FMLP),
            ("arbitration", 3, fields::GPUSYNC),
            ("handling", 1, fields::METHOD_ALONE),
            ("handling", 2, fields::KLMIRQD),
            ("execution_time", 1, fields::EXECUTION_TIME),
            ("best_effort_scheduler", 1, fields::CFS),
            ("best_effort_scheduler", 2, fields::TFS),
        ];
        for (name, alternative, known) in alternatives {
            assert_eq!(allowed(&definitions[name]["oneOf"][alternative]), sorted(known), "{name} {alternative}");
        }
        let sources = definitions["own_code"]["oneOf"].as_array().expect("alternatives");
        for (source, known) in sources.iter().zip(own_code::SOURCES) {
            assert_eq!(allowed(source), sorted(known));
        }
        let steps = definitions["step"]["oneOf"].as_array().expect("alternatives");
        assert_eq!(steps.len(), body::STEPS.len());
        for (step, known) in steps.iter().zip(body::STEPS) {
            assert_eq!(allowed(step), sorted(known));
        }
        let distributions = definitions["distribution"]["oneOf"].as_array().expect("alternatives");
        let tables: Vec<&str> = distributions[1..].iter().flat_map(allowed).collect();
        assert_eq!(tables, body::DISTRIBUTIONS);
    }
}
