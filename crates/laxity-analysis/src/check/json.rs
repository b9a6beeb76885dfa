//! A report as programs see it. Its structs serialize themselves; here are the fields whose JSON has another form.

use std::fmt;

use laxity_model::{GpuArbitration, InterruptHandling, Nanos, OverheadCosts, OverheadKind};
use serde::{Serialize, Serializer};

use super::report::{Bound, ChainBounds, Load, NodeBound, Report, TaskReport};
use super::{Term, Terms};
use crate::Test;

/// A report with the workload's name, for serialization: the JSON that `docs/reference/json.md` describes. The command
/// prints it, and other programs can serialize it likewise. Field names are stable.
#[derive(Serialize)]
pub struct JsonReport<'a> {
    laxity: &'static str,
    workload: &'a str,
    #[serde(flatten)]
    report: &'a Report,
}

impl<'a> JsonReport<'a> {
    /// What `report` says about the workload called `workload`.
    pub fn new(workload: &'a str, report: &'a Report) -> Self {
        JsonReport { laxity: env!("CARGO_PKG_VERSION"), workload, report }
    }
}

impl Serialize for Terms {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(term, time): (Term, Nanos)| (term.name(), time)))
    }
}

impl Serialize for Test {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Serialize for Load {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Fields {
            before: f64,
            after: Option<f64>,
        }
        Fields { before: self.before_f64(), after: self.after_f64() }.serialize(serializer)
    }
}

pub(super) fn text<S: Serializer>(value: &impl fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

pub(super) fn arbitration<S: Serializer>(value: &Option<GpuArbitration>, serializer: S) -> Result<S::Ok, S::Error> {
    value.map(GpuArbitration::name).serialize(serializer)
}

pub(super) fn handling<S: Serializer>(value: &Option<InterruptHandling>, serializer: S) -> Result<S::Ok, S::Error> {
    value.map(InterruptHandling::name).serialize(serializer)
}

pub(super) fn costs<S: Serializer>(costs: &OverheadCosts, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(OverheadKind::ALL.map(|kind| (kind.name(), costs.of(kind))))
}

/// Each task with its number.
pub(super) fn numbered<S: Serializer>(tasks: &[TaskReport], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Numbered<'a> {
        task: usize,
        #[serde(flatten)]
        report: &'a TaskReport,
    }
    serializer.collect_seq(tasks.iter().enumerate().map(|(task, report)| Numbered { task, report }))
}

/// Two fields, both `null` where there is no bound.
pub(super) fn bound<S: Serializer>(bound: &Option<Bound>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Fields {
        response_time_ns: Option<Nanos>,
        response_time_by: Option<&'static str>,
    }
    let (time, by) = bound.map(|bound| (bound.time, bound.by.name())).unzip();
    Fields { response_time_ns: time, response_time_by: by }.serialize(serializer)
}

/// The number, or `null` if it is not known.
pub(super) fn replicas<S: Serializer>(
    replicas: &Option<Result<u32, String>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    replicas.as_ref().and_then(|replicas| replicas.as_ref().ok()).serialize(serializer)
}

/// The reason why there are no bounds, and the bounds.
pub(super) fn nodes<S: Serializer>(nodes: &Result<Vec<NodeBound>, String>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Fields<'a> {
        reason: Option<&'a str>,
        nodes: &'a [NodeBound],
    }
    let reason = nodes.as_ref().err().map(String::as_str);
    Fields { reason, nodes: nodes.as_deref().unwrap_or_default() }.serialize(serializer)
}

/// The bounds, both `null` where there are none, and the reason for that.
pub(super) fn chain<S: Serializer>(bounds: &Result<ChainBounds, String>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Fields<'a> {
        data_age_ns: Option<Nanos>,
        reaction_time_ns: Option<Nanos>,
        reason: Option<&'a str>,
    }
    let (data_age_ns, reaction_time_ns) = bounds.as_ref().ok().map(|it| (it.data_age, it.reaction_time)).unzip();
    Fields { data_age_ns, reaction_time_ns, reason: bounds.as_ref().err().map(String::as_str) }.serialize(serializer)
}
