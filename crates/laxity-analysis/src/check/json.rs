//! A report as programs see it: the JSON that `docs/reference/json.md` describes. The command prints it, and
//! other programs can serialize it likewise. Field names are stable.

use laxity_model::{GpuArbitration, InterruptHandling, Nanos, OverheadKind};
use serde::{Serialize, Serializer, ser::SerializeMap};

use super::{Failure, Finding, GraphReport, Load, Report, TaskReport, Terms};

/// A report with the workload's name, for serialization.
#[derive(Serialize)]
pub struct JsonReport<'a> {
    laxity: &'static str,
    workload: &'a str,
    scheduler: String,
    arbitration: Option<&'static str>,
    handling: Option<&'static str>,
    overheads: Overheads<'a>,
    accounting: &'static str,
    refused: Vec<Refused<'a>>,
    hard: Answer<'a>,
    soft: Answer<'a>,
    utilization: Utilization,
    scaling: Option<Growth>,
    clusters: Vec<Cluster<'a>>,
    tasks: Vec<Task<'a>>,
    graphs: Vec<Graph<'a>>,
}

#[derive(Serialize)]
struct Overheads<'a> {
    profile: &'a str,
    costs_ns: Named,
}

#[derive(Serialize)]
struct Refused<'a> {
    subject: &'a str,
    reason: &'a str,
}

#[derive(Serialize)]
struct Answer<'a> {
    status: &'static str,
    tests: Vec<&'static str>,
    failures: Vec<Cause<'a>>,
}

#[derive(Serialize)]
struct Cause<'a> {
    cluster: usize,
    test: Option<&'static str>,
    task: Option<usize>,
    interval_ns: Option<u64>,
    message: &'a str,
}

#[derive(Serialize)]
struct Utilization {
    before: f64,
    after: Option<f64>,
}

#[derive(Serialize)]
struct Growth {
    criterion: &'static str,
    permille: Option<u64>,
    is_capped: bool,
}

#[derive(Serialize)]
struct Cluster<'a> {
    cpus: Vec<u16>,
    tasks: &'a [usize],
    utilization: Utilization,
    hard: Answer<'a>,
    soft: Answer<'a>,
}

#[derive(Serialize)]
struct Task<'a> {
    task: usize,
    name: &'a str,
    cluster: usize,
    period_ns: u64,
    deadline_ns: u64,
    wcet_ns: u64,
    inflated_wcet_ns: Option<u64>,
    terms_ns: Option<Named>,
    response_time_ns: Option<u64>,
    response_time_by: Option<&'static str>,
    tardiness_ns: Option<u64>,
    laxity_ns: Option<i64>,
}

#[derive(Serialize)]
struct Graph<'a> {
    name: &'a str,
    end_to_end_ns: Option<u64>,
    reason: Option<&'a str>,
    /// Only if it is left to the analysis; `null` if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    replicas: Option<Option<u32>>,
    nodes: Vec<Node>,
}

#[derive(Serialize)]
struct Node {
    task: usize,
    offset_ns: u64,
    completion_ns: u64,
    is_sink: bool,
}

/// Times by name, in a fixed order.
struct Named(Vec<(&'static str, Nanos)>);

impl<'a> JsonReport<'a> {
    /// What `report` says about the workload called `workload`.
    pub fn new(workload: &'a str, report: &'a Report) -> Self {
        let cost = |kind: OverheadKind| (kind.name(), report.costs.of(kind));
        let refused = |refusal: &'a super::Refusal| Refused { subject: &refusal.subject, reason: &refusal.reason };
        JsonReport {
            laxity: env!("CARGO_PKG_VERSION"),
            workload,
            scheduler: report.scheduler.to_string(),
            arbitration: report.arbitration.map(GpuArbitration::name),
            handling: report.handling.map(InterruptHandling::name),
            overheads: Overheads {
                profile: &report.profile,
                costs_ns: Named(OverheadKind::ALL.into_iter().map(cost).collect()),
            },
            accounting: report.accounting.name(),
            refused: report.refusals.iter().map(refused).collect(),
            hard: answer(&report.hard),
            soft: answer(&report.soft),
            utilization: utilization(&report.load),
            scaling: report.scaling.map(|scaling| Growth {
                criterion: scaling.criterion.name(),
                permille: scaling.permille,
                is_capped: scaling.is_capped,
            }),
            clusters: report.clusters.iter().map(cluster).collect(),
            tasks: report.tasks.iter().enumerate().map(task).collect(),
            graphs: report.graphs.iter().map(graph).collect(),
        }
    }
}

fn answer(finding: &Finding) -> Answer<'_> {
    fn cause(failure: &Failure) -> Cause<'_> {
        Cause {
            cluster: failure.cluster,
            test: failure.test.map(crate::Test::name),
            task: failure.task,
            interval_ns: failure.interval.map(Nanos::as_nanos),
            message: &failure.message,
        }
    }
    Answer {
        status: finding.status.name(),
        tests: finding.tests.iter().map(|test| test.name()).collect(),
        failures: finding.failures.iter().map(cause).collect(),
    }
}

fn utilization(load: &Load) -> Utilization {
    Utilization { before: load.before_f64(), after: load.after_f64() }
}

fn cluster(report: &super::ClusterReport) -> Cluster<'_> {
    Cluster {
        cpus: report.cpus.iter().map(|cpu| cpu.0).collect(),
        tasks: &report.tasks,
        utilization: utilization(&report.load),
        hard: answer(&report.hard),
        soft: answer(&report.soft),
    }
}

fn task((index, report): (usize, &TaskReport)) -> Task<'_> {
    let named = |terms: Terms| Named(terms.iter().map(|(term, time)| (term.name(), time)).collect());
    Task {
        task: index,
        name: &report.name,
        cluster: report.cluster,
        period_ns: report.period.0,
        deadline_ns: report.deadline.0,
        wcet_ns: report.wcet.0,
        inflated_wcet_ns: report.inflated_wcet.map(Nanos::as_nanos),
        terms_ns: report.terms.map(named),
        response_time_ns: report.response_time.map(|bound| bound.time.0),
        response_time_by: report.response_time.map(|bound| bound.by.name()),
        tardiness_ns: report.tardiness.map(Nanos::as_nanos),
        laxity_ns: report.laxity.map(|laxity| laxity.0),
    }
}

fn graph(report: &GraphReport) -> Graph<'_> {
    let node = |node: &super::NodeBound| Node {
        task: node.task,
        offset_ns: node.offset.0,
        completion_ns: node.completion.0,
        is_sink: node.is_sink,
    };
    Graph {
        name: &report.name,
        end_to_end_ns: report.end_to_end.map(Nanos::as_nanos),
        reason: report.nodes.as_ref().err().map(String::as_str),
        replicas: report.replicas.as_ref().map(|replicas| replicas.as_ref().ok().copied()),
        nodes: report.nodes.iter().flatten().map(node).collect(),
    }
}

impl Serialize for Named {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, time) in &self.0 {
            map.serialize_entry(name, &time.0)?;
        }
        map.end()
    }
}
