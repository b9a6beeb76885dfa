//! What a job does: steps, execution times, distributions.

use super::{Names, fields, refer};
use crate::error::{ErrorKind, Findings};
use crate::file::reader::{Fields, Item};
use crate::file::tree::Value;
use crate::{Bin, CopyDirection, Distribution, ExecutionTime, GpuOperation, GpuWork, Nanos, Step, Waiting, suggest};

/// The fields of each kind of step; the first says which kind it is.
pub(crate) const STEPS: &[&[&str]] = &[
    &["cpu", "actual"],
    &["nonpreemptive", "actual"],
    &["suspend", "actual"],
    &["critical", "body"],
    &["gpu_section"],
    &["kernel", "actual", "gpu", "asynchronous", "interrupts", "memory"],
    &["copy_in", "time", "actual", "gpu", "asynchronous", "interrupts", "memory"],
    &["copy_out", "time", "actual", "gpu", "asynchronous", "interrupts", "memory"],
];

/// The ways to write a distribution, each a table of one field.
pub(crate) const DISTRIBUTIONS: &[&str] = &["constant", "uniform", "histogram", "recorded"];

/// The body of a task or node: `body`, or `wcet` for a single CPU step.
pub(super) fn body(fields: &Fields<'_>, names: &Names, findings: &mut Findings) -> Vec<Step> {
    match (fields.get("wcet"), fields.get("body")) {
        (Some(wcet), None) => vec![Step::Cpu(execution(&wcet, fields, findings))],
        (None, Some(body)) => {
            if let Some(actual) = fields.get("actual") {
                let message = "belongs to `wcet`; with `body`, write it into the step it describes";
                actual.report(ErrorKind::Contradiction, message, findings);
            }
            steps(&body, names, findings)
        }
        (Some(wcet), Some(_)) => {
            let message = "and `body` are both there; keep `wcet` for a job of CPU time alone, or else `body`";
            wcet.report(ErrorKind::Contradiction, message, findings);
            Vec::new()
        }
        (None, None) => {
            let message = "`wcet` is missing; write `wcet = \"5 ms\"`, or `body = [...]` for more than CPU time";
            fields.report_missing("wcet", message, findings);
            Vec::new()
        }
    }
}

fn steps(item: &Item<'_>, names: &Names, findings: &mut Findings) -> Vec<Step> {
    let steps = item.list("a list of steps, as in `[{ cpu = \"5 ms\" }]`", findings).unwrap_or_default();
    steps.iter().filter_map(|item| step(item, names, findings)).collect()
}

fn step(item: &Item<'_>, names: &Names, findings: &mut Findings) -> Option<Step> {
    let known = kind_of_step(item, findings)?;
    let fields = item.table(known, "a table", findings)?;
    let action = fields.get(known[0])?;
    Some(match known[0] {
        "cpu" => Step::Cpu(execution(&action, &fields, findings)),
        "nonpreemptive" => Step::NonPreemptive(execution(&action, &fields, findings)),
        "suspend" => Step::Suspend(execution(&action, &fields, findings)),
        "critical" => Step::Critical {
            resource: refer(&action, &names.resources, "resource", findings)?,
            body: steps(&fields.require("body", "`body = [...]`", findings)?, names, findings),
        },
        "gpu_section" => Step::GpuSection { body: steps(&action, names, findings) },
        "kernel" => {
            let time = execution(&action, &fields, findings);
            Step::Gpu(gpu_operation(GpuWork::Kernel(time), &fields, names, findings))
        }
        "copy_in" => copy(CopyDirection::In, &action, &fields, names, findings),
        _ => copy(CopyDirection::Out, &action, &fields, names, findings),
    })
}

/// The entry of [`STEPS`] that `item` writes.
fn kind_of_step(item: &Item<'_>, findings: &mut Findings) -> Option<&'static [&'static str]> {
    let actions = STEPS.iter().map(|known| known[0]);
    let Value::Table(entries) = &item.node.value else {
        let message = format!("is {}; write a table, as in `{{ cpu = \"5 ms\" }}`", item.node.value);
        item.report(ErrorKind::WrongType, message, findings);
        return None;
    };
    let mut found = STEPS.iter().filter(|known| item.node.field(known[0]).is_some());
    match (found.next(), found.next()) {
        (Some(known), None) => Some(known),
        (Some(one), Some(other)) => {
            let message = format!("does both `{}` and `{}`; make it two steps", one[0], other[0]);
            item.report(ErrorKind::Contradiction, message, findings);
            None
        }
        _ => {
            let near = entries
                .iter()
                .find_map(|entry| suggest::nearest(&entry.key, actions.clone()).map(|near| (entry, near)));
            let message = match near {
                Some((entry, near)) => format!("has the unknown action `{}`; did you mean `{near}`?", entry.key),
                None => format!("says nothing to do; write one of {}", suggest::list(actions)),
            };
            item.report(ErrorKind::MissingField, message, findings);
            None
        }
    }
}

fn copy(
    direction: CopyDirection,
    size: &Item<'_>,
    fields: &Fields<'_>,
    names: &Names,
    findings: &mut Findings,
) -> Step {
    let bytes = size.size(findings).unwrap_or(1);
    let time = fields.get("time").map(|item| execution(&item, fields, findings));
    if let (None, Some(actual)) = (&time, fields.get("actual")) {
        let message = "describes a `time` that is not there; add `time = ...` or remove `actual`";
        actual.report(ErrorKind::Contradiction, message, findings);
    }
    Step::Gpu(gpu_operation(GpuWork::Copy { direction, bytes, time }, fields, names, findings))
}

fn gpu_operation(work: GpuWork, fields: &Fields<'_>, names: &Names, findings: &mut Findings) -> GpuOperation {
    let asynchronous = fields.get("asynchronous").and_then(|item| item.boolean(findings)).unwrap_or(false);
    GpuOperation {
        gpu: fields.get("gpu").and_then(|item| refer(&item, &names.gpus, "GPU", findings)),
        work,
        waiting: if asynchronous { Waiting::Asynchronous } else { Waiting::Synchronous },
        interrupts: fields.get("interrupts").and_then(|item| item.integer_u32(findings)).unwrap_or(1),
        memory: fields.get("memory").and_then(|item| item.factor(findings)).unwrap_or_default(),
    }
}

/// The worst case in `wcet`, with the `actual` beside it.
fn execution(wcet: &Item<'_>, fields: &Fields<'_>, findings: &mut Findings) -> ExecutionTime {
    let actual = fields.get("actual").and_then(|item| distribution(&item, findings));
    ExecutionTime {
        wcet: wcet.span(findings).unwrap_or(Nanos::ZERO),
        actual: actual.unwrap_or(Distribution::WorstCase),
    }
}

/// A worst case alone, or a table of it and `actual`.
pub(super) fn execution_time(item: &Item<'_>, findings: &mut Findings) -> ExecutionTime {
    let unknown = ExecutionTime::constant(Nanos::ZERO);
    if matches!(item.node.value, Value::Text(_)) {
        return item.span(findings).map_or(unknown, ExecutionTime::constant);
    }
    let expected = "a span, as in \"20 us\", or a table, as in `{ wcet = \"1 ms\", actual = \"20 us\" }`";
    let Some(fields) = item.table(fields::EXECUTION_TIME, expected, findings) else { return unknown };
    let wcet = fields.require("wcet", "`wcet = \"1 ms\"`", findings);
    wcet.map_or(unknown, |wcet| execution(&wcet, &fields, findings))
}

/// A span, or a table of one field that says which distribution.
pub(crate) fn distribution(item: &Item<'_>, findings: &mut Findings) -> Option<Distribution> {
    if matches!(item.node.value, Value::Text(_)) {
        return item.span(findings).map(Distribution::Constant);
    }
    let expected = "a span, as in \"5 ms\", or a table of one of `constant`, `uniform`, `histogram`, `recorded`";
    let fields = item.table(DISTRIBUTIONS, expected, findings)?;
    let mut found = DISTRIBUTIONS.iter().filter_map(|key| fields.get(key).map(|item| (*key, item)));
    let (Some((key, value)), None) = (found.next(), found.next()) else {
        item.report(ErrorKind::Contradiction, format_args!("is not one distribution; write {expected}"), findings);
        return None;
    };
    match key {
        "constant" => value.span(findings).map(Distribution::Constant),
        "uniform" => uniform(&value, findings),
        "histogram" => {
            let bins = value.list("a list of bins", findings)?;
            Some(Distribution::Histogram(bins.iter().filter_map(|item| bin(item, findings)).collect()))
        }
        _ => {
            let values = value.list("a list of spans, as in `[\"5 ms\", \"6 ms\"]`", findings)?;
            Some(Distribution::Recorded(values.iter().filter_map(|item| item.span(findings)).collect()))
        }
    }
}

fn uniform(item: &Item<'_>, findings: &mut Findings) -> Option<Distribution> {
    let expected = "the shortest and the longest span, as in `[\"1 ms\", \"5 ms\"]`";
    let ends = item.list(expected, findings)?;
    let [min, max] = ends.as_slice() else {
        item.report(ErrorKind::WrongType, format_args!("has {} elements; write {expected}", ends.len()), findings);
        return None;
    };
    let (min, max) = (min.span(findings), max.span(findings));
    min.zip(max).map(|(min, max)| Distribution::Uniform { min, max })
}

fn bin(item: &Item<'_>, findings: &mut Findings) -> Option<Bin> {
    let expected = "a table, as in `{ min = \"1 ms\", max = \"2 ms\", weight = 3 }`";
    let fields = item.table(&["min", "max", "weight"], expected, findings)?;
    let min = fields.require("min", "`min = \"1 ms\"`", findings).and_then(|item| item.span(findings));
    let max = fields.require("max", "`max = \"2 ms\"`", findings).and_then(|item| item.span(findings));
    let weight = fields.require("weight", "`weight = 3`", findings);
    let weight = weight.and_then(|item| item.integer(0, crate::limits::WEIGHT_MAX, findings));
    Some(Bin { min: min?, max: max?, weight: weight? })
}
