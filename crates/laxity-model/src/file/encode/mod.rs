//! A workload to the outline that is written as TOML or JSON. The inverse of `decode`: fields at their defaults are
//! left out, and what is left reads back exactly.

mod device;
mod management;
mod memory;
mod own_code;

use super::decode::FORMAT;
use super::quantity::{write_picos, write_rate, write_size};
use super::write::Outline::{self, Boolean, Decimal, Inline, Integer, Lines, List, Section, Sections, Text};
use super::{ARRIVALS, AUTOMATIC, PROTOCOLS, SERVERS, Words, cpu_list};
use crate::{
    Arrival, BestEffortTask, Chain, CopyDirection, CpuId, DataObject, Distribution, Edge, ExecutionTime, Factor, Gpu,
    GpuOperation, GpuWork, Graph, LatestEdge, Nanos, Node, OverheadKind, OverheadProfile, OverheadTable, Platform,
    Replicas, Resource, Scheduler, ServerKind, Step, Task, TaskServer, Waiting, Workload,
};

/// The fields of a table, in the order in which they are written.
type Fields = Vec<(&'static str, Outline)>;

/// The names that references are written as.
struct Names<'w> {
    workload: &'w Workload,
}

/// The outline of a whole file.
pub(super) fn workload(workload: &Workload) -> Fields {
    let names = Names { workload };
    let mut fields = vec![
        ("laxity", Integer(FORMAT)),
        ("name", Text(workload.name.clone())),
        ("platform", Section(platform(&workload.platform))),
        ("scheduler", Section(scheduler(&workload.scheduler))),
    ];
    let management = management::gpu_management(&workload.gpu_management);
    if !management.is_empty() {
        fields.push(("gpu_management", Section(management)));
    }
    let scheduler = workload.best_effort_scheduler;
    unless(&mut fields, "best_effort_scheduler", scheduler, Default::default(), |it| {
        memory::best_effort_scheduler(&it)
    });
    let mut list = |key, sections: Vec<Fields>| {
        if !sections.is_empty() {
            fields.push((key, Sections(sections)));
        }
    };
    list("resource", workload.resources.iter().map(resource).collect());
    list("task", workload.tasks.iter().map(|it| task(it, &names)).collect());
    list("best_effort", workload.best_effort.iter().map(best_effort).collect());
    list("graph", workload.graphs.iter().map(|it| graph(it, &names)).collect());
    list("chain", workload.chains.iter().map(|it| chain(it, workload)).collect());
    fields
}

fn span(span: Nanos) -> Outline {
    Text(span.to_string())
}

fn word<T: PartialEq>(words: Words<T>, value: &T) -> Outline {
    let (word, _) = words.iter().find(|(_, meaning)| meaning == value).expect("every value has its word");
    Text((*word).to_owned())
}

/// Adds a field unless it has its default value.
fn unless<T: PartialEq>(fields: &mut Fields, key: &'static str, value: T, default: T, outline: impl Fn(T) -> Outline) {
    if value != default {
        fields.push((key, outline(value)));
    }
}

fn cpus(cpus: &[CpuId]) -> Outline {
    match cpu_list::write(cpus) {
        Some(list) => Text(list),
        None => List(cpus.iter().map(|cpu| Integer(u64::from(cpu.0))).collect()),
    }
}

fn platform(platform: &Platform) -> Fields {
    let mut fields = vec![("cpus", Integer(platform.cpus as u64))];
    // Not `Platform::identical`: an invalid platform may claim any number of CPUs.
    let is_one_cluster = match platform.clusters.as_slice() {
        [all] => all.len() == platform.cpus && all.iter().enumerate().all(|(index, cpu)| cpu.index() == index),
        _ => false,
    };
    if !is_one_cluster {
        fields.push(("clusters", List(platform.clusters.iter().map(|cluster| cpus(cluster)).collect())));
    }
    fields.push(("tick", span(platform.tick)));
    fields.push(("quantum", span(platform.quantum)));
    fields.push(("overheads", overheads(&platform.overheads)));
    let memory = memory::memory(&platform.memory);
    if !memory.is_empty() {
        fields.push(("memory", Section(memory)));
    }
    if !platform.gpus.is_empty() {
        fields.push(("gpu", Sections(platform.gpus.iter().map(|it| gpu(it, platform)).collect())));
    }
    if !platform.devices.is_empty() {
        fields.push(("device", Sections(platform.devices.iter().map(|it| device::device(it, platform)).collect())));
    }
    fields
}

/// The name alone where it stands for exactly these numbers.
fn overheads(profile: &OverheadProfile) -> Outline {
    let published = OverheadProfile::named(&profile.name, &Scheduler::default());
    if published.is_ok_and(|published| published == *profile) {
        return Text(profile.name.clone());
    }
    Section(own_overheads(profile))
}

/// The numbers, whatever the name.
pub(super) fn own_overheads(profile: &OverheadProfile) -> Fields {
    let mut fields = vec![("name", Text(profile.name.clone()))];
    for (kind, table) in OverheadKind::ALL.iter().zip(&profile.tables) {
        match table {
            OverheadTable::Constant(Nanos::ZERO) => {}
            OverheadTable::Constant(cost) => fields.push((kind.name(), span(*cost))),
            OverheadTable::Points(points) => {
                let point = |&(tasks, picos): &_| List(vec![Integer(u64::from(tasks)), Text(write_picos(picos))]);
                fields.push((kind.name(), List(points.iter().map(point).collect())));
            }
        }
    }
    fields
}

fn gpu(gpu: &Gpu, platform: &Platform) -> Fields {
    let mut fields = vec![("name", Text(gpu.name.clone()))];
    unless(&mut fields, "cluster", gpu.cluster, 0, |cluster| Integer(cluster as u64));
    unless(&mut fields, "copy_engines", gpu.copy_engines, 1, |engines| Integer(u64::from(engines)));
    fields.push(("bandwidth", Text(write_rate(gpu.bandwidth))));
    unless(&mut fields, "latency", gpu.latency, Nanos::ZERO, span);
    interrupt_cpus(&gpu.interrupt_cpus, gpu.cluster, platform, &mut fields);
    fields
}

/// By default those of the `cluster` that the device belongs to.
fn interrupt_cpus(list: &[CpuId], cluster: usize, platform: &Platform, fields: &mut Fields) {
    let default = platform.clusters.get(cluster).map(Vec::as_slice).unwrap_or_default();
    unless(fields, "interrupt_cpus", list, default, cpus);
}

fn scheduler(scheduler: &Scheduler) -> Fields {
    let mut fields = vec![("policy", Text(scheduler.to_string()))];
    unless(&mut fields, "coarse_lock", scheduler.coarse_lock, false, Boolean);
    fields
}

fn resource(resource: &Resource) -> Fields {
    let mut fields = vec![("name", Text(resource.name.clone())), ("protocol", word(PROTOCOLS, &resource.protocol))];
    unless(&mut fields, "replicas", resource.replicas, 1, |replicas| Integer(u64::from(replicas)));
    fields
}

fn task(task: &Task, names: &Names<'_>) -> Fields {
    let mut fields = vec![("name", Text(task.name.clone()))];
    arrival(&task.arrival, task.period, &mut fields);
    unless(&mut fields, "deadline", task.deadline, task.period, span);
    unless(&mut fields, "phase", task.phase, Nanos::ZERO, span);
    unless(&mut fields, "jitter", task.jitter, Nanos::ZERO, span);
    placement(task.priority, task.cluster, &mut fields);
    fields.extend(task.working_set.map(|bytes| ("working_set", Text(write_size(bytes)))));
    fields.extend(task.server.map(|it| server(&it)));
    unless(&mut fields, "memory_demand", task.memory_demand, 0, |demand| Text(write_rate(demand)));
    fields.extend(task.memory_budget.map(|budget| ("memory_budget", Text(write_rate(budget)))));
    body(&task.body, names, &mut fields);
    fields.extend(task.run.as_ref().map(|run| ("run", own_code::own_code(run))));
    fields
}

/// The short form where there is one.
fn server(server: &TaskServer) -> (&'static str, Outline) {
    let TaskServer { kind, budget, period } = *server;
    if (kind, period) == (ServerKind::CbsHard, None) {
        return ("budget", span(budget));
    }
    let mut fields = vec![("kind", word(SERVERS, &kind)), ("budget", span(budget))];
    fields.extend(period.map(|period| ("period", span(period))));
    ("server", Inline(fields))
}

fn arrival(arrival: &Arrival, period: Nanos, fields: &mut Fields) {
    if let Arrival::Sporadic { gap } = arrival {
        fields.push(("arrival", word(ARRIVALS, &true)));
        fields.extend(distribution(gap).map(|gap| ("gap", gap)));
    }
    fields.push(("period", span(period)));
}

fn placement(priority: Option<u32>, cluster: Option<usize>, fields: &mut Fields) {
    fields.extend(priority.map(|priority| ("priority", Integer(u64::from(priority)))));
    fields.extend(cluster.map(|cluster| ("cluster", Integer(cluster as u64))));
}

fn best_effort(task: &BestEffortTask) -> Fields {
    let mut fields = vec![("name", Text(task.name.clone())), ("weight", Integer(u64::from(task.weight)))];
    unless(&mut fields, "memory_demand", task.memory_demand, 0, |demand| Text(write_rate(demand)));
    fields.extend(task.cpu.map(|cpu| ("cpu", Integer(cpu as u64))));
    fields.extend(task.work.map(|work| ("work", span(work))));
    fields
}

fn body(body: &[Step], names: &Names<'_>, fields: &mut Fields) {
    match body {
        [Step::Cpu(time)] => execution("wcet", time, fields),
        steps => fields.push(("body", Lines(steps.iter().map(|it| step(it, names)).collect()))),
    }
}

fn execution(key: &'static str, time: &ExecutionTime, fields: &mut Fields) {
    fields.push((key, span(time.wcet)));
    fields.extend(distribution(&time.actual).map(|actual| ("actual", actual)));
}

/// An execution time that has no table of its own to share with its `actual`.
fn execution_time(time: &ExecutionTime) -> Outline {
    if time.actual == Distribution::WorstCase {
        return span(time.wcet);
    }
    let mut fields = Vec::new();
    execution("wcet", time, &mut fields);
    Inline(fields)
}

/// Nothing for the worst case, which is what a reader assumes.
pub(super) fn distribution(distribution: &Distribution) -> Option<Outline> {
    Some(match distribution {
        Distribution::WorstCase => return None,
        Distribution::Constant(value) => span(*value),
        Distribution::Uniform { min, max } => Inline(vec![("uniform", List(vec![span(*min), span(*max)]))]),
        Distribution::Histogram(bins) => {
            let bin = |bin: &crate::Bin| {
                Inline(vec![("min", span(bin.min)), ("max", span(bin.max)), ("weight", Integer(bin.weight))])
            };
            Inline(vec![("histogram", List(bins.iter().map(bin).collect()))])
        }
        Distribution::Recorded(values) => {
            Inline(vec![("recorded", List(values.iter().map(|&value| span(value)).collect()))])
        }
    })
}

fn step(step: &Step, names: &Names<'_>) -> Outline {
    let mut fields = Vec::new();
    match step {
        Step::Cpu(time) => execution("cpu", time, &mut fields),
        Step::NonPreemptive(time) => execution("nonpreemptive", time, &mut fields),
        Step::Suspend(time) => execution("suspend", time, &mut fields),
        Step::Critical { resource, body } => {
            fields.push(("critical", Text(names.resource(*resource))));
            fields.push(("body", List(body.iter().map(|inner| self::step(inner, names)).collect())));
        }
        Step::GpuSection { body } => {
            fields.push(("gpu_section", List(body.iter().map(|inner| self::step(inner, names)).collect())));
        }
        Step::Gpu(operation) => gpu_operation(operation, names, &mut fields),
    }
    Inline(fields)
}

fn gpu_operation(operation: &GpuOperation, names: &Names<'_>, fields: &mut Fields) {
    match &operation.work {
        GpuWork::Kernel(time) => execution("kernel", time, fields),
        GpuWork::Copy { direction, bytes, time } => {
            let key = if *direction == CopyDirection::In { "copy_in" } else { "copy_out" };
            fields.push((key, Text(write_size(*bytes))));
            if let Some(time) = time {
                execution("time", time, fields);
            }
        }
    }
    fields.extend(operation.gpu.map(|gpu| ("gpu", Text(names.gpu(gpu)))));
    unless(fields, "asynchronous", operation.waiting == Waiting::Asynchronous, false, Boolean);
    unless(fields, "interrupts", operation.interrupts, 1, |interrupts| Integer(u64::from(interrupts)));
    unless(fields, "memory", operation.memory, Factor::ZERO, Decimal);
}

fn graph(graph: &Graph, names: &Names<'_>) -> Fields {
    let mut fields = vec![("name", Text(graph.name.clone()))];
    match graph.replicas {
        Replicas::None => {}
        Replicas::Count(count) => fields.push(("replicas", Integer(u64::from(count)))),
        Replicas::Auto => fields.push(("replicas", Text(AUTOMATIC.to_owned()))),
    }
    if !graph.latest.is_empty() {
        let name = |index: usize| node_name(index, &graph.nodes);
        let edge = |edge: &LatestEdge| Inline(vec![("from", name(edge.producer)), ("to", name(edge.consumer))]);
        fields.push(("latest", Lines(graph.latest.iter().map(edge).collect())));
    }
    if !graph.objects.is_empty() {
        fields.push(("object", Lines(graph.objects.iter().map(|it| object(it, &graph.nodes)).collect())));
    }
    fields.push(("node", Sections(graph.nodes.iter().map(|it| node(it, names)).collect())));
    if !graph.edges.is_empty() {
        fields.push(("edge", Sections(graph.edges.iter().map(|it| edge(it, &graph.nodes)).collect())));
    }
    fields
}

fn node(node: &Node, names: &Names<'_>) -> Fields {
    let mut fields = vec![("name", Text(node.name.clone()))];
    fields.extend(node.period.map(|period| ("period", span(period))));
    unless(&mut fields, "phase", node.phase, Nanos::ZERO, span);
    fields.extend(node.deadline.map(|deadline| ("deadline", span(deadline))));
    placement(node.priority, node.cluster, &mut fields);
    fields.extend(node.server.map(|it| server(&it)));
    body(&node.body, names, &mut fields);
    fields.extend(node.run.as_ref().map(|run| ("run", own_code::own_code(run))));
    fields
}

fn edge(edge: &Edge, nodes: &[Node]) -> Fields {
    let name = |index: usize| node_name(index, nodes);
    let tokens = |count: u32| Integer(u64::from(count));
    let mut fields = vec![("from", name(edge.producer)), ("to", name(edge.consumer))];
    unless(&mut fields, "produce", edge.produce, 1, tokens);
    unless(&mut fields, "consume", edge.consume, 1, tokens);
    unless(&mut fields, "threshold", edge.threshold, edge.consume, tokens);
    unless(&mut fields, "initial", edge.initial, 0, tokens);
    unless(&mut fields, "back_edge", edge.back_edge, false, Boolean);
    unless(&mut fields, "delay", edge.delay, 0, tokens);
    unless(&mut fields, "message", edge.message, 0, |bytes| Text(write_size(bytes.into())));
    fields
}

fn object(object: &DataObject, nodes: &[Node]) -> Outline {
    let accessors = object.accessors.iter().map(|&index| node_name(index, nodes)).collect();
    let mut fields = vec![("name", Text(object.name.clone())), ("nodes", List(accessors))];
    unless(&mut fields, "delay", object.delay, 0, |jobs| Integer(u64::from(jobs)));
    Inline(fields)
}

fn chain(chain: &Chain, workload: &Workload) -> Fields {
    let graph = workload.graphs.get(chain.graph);
    let node = |&index: &usize| {
        let graph_name = name_of(graph.map(|graph| &graph.name), chain.graph);
        let node = graph.and_then(|graph| graph.nodes.get(index));
        Text(format!("{graph_name}/{}", name_of(node.map(|node| &node.name), index)))
    };
    let mut fields = vec![("name", Text(chain.name.clone())), ("path", List(chain.path.iter().map(node).collect()))];
    fields.extend(chain.data_age_max.map(|limit| ("data_age_max", span(limit))));
    fields.extend(chain.reaction_time_max.map(|limit| ("reaction_time_max", span(limit))));
    fields
}

fn node_name(index: usize, nodes: &[Node]) -> Outline {
    Text(name_of(nodes.get(index).map(|node| &node.name), index))
}

impl Names<'_> {
    fn gpu(&self, index: usize) -> String {
        name_of(self.workload.platform.gpus.get(index).map(|gpu| &gpu.name), index)
    }

    fn resource(&self, index: usize) -> String {
        name_of(self.workload.resources.get(index).map(|resource| &resource.name), index)
    }
}

/// A dangling reference becomes a name that cannot be taken: validation refuses line breaks in names.
fn name_of(name: Option<&String>, index: usize) -> String {
    name.cloned().unwrap_or_else(|| format!("number {index},\nwhich does not exist"))
}
