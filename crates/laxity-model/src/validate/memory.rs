//! Rules of memory, of its regulator and lock, and of the scheduler of the tasks that are throttled.

use super::{positive_span, span};
use crate::error::{ErrorKind, FieldPath, Findings};
use crate::limits::{FACTOR_MAX, OVERHEAD_MAX};
use crate::{BandwidthLock, BestEffortScheduler, Contention, Factor, Memory, MemoryRegulator, Nanos};

pub(super) fn memory(memory: &Memory, at: &FieldPath, findings: &mut Findings) {
    contention(&memory.contention, &at.key("contention"), findings);
    regulator(&memory.regulator, &at.key("regulator"), findings);
}

/// A curve begins at no traffic with no slowdown, and never falls.
fn contention(contention: &Contention, at: &FieldPath, findings: &mut Findings) {
    let points = &contention.points;
    if points.len() == 1 {
        let message =
            "has one point, which is no curve; write a second, as in `[[\"0 B/s\", 1.0], [\"900 MB/s\", 3.3]]`";
        findings.report(at.clone(), ErrorKind::BadValue, format!("`contention` {message}"));
    }
    if let Some(first) = points.first().filter(|first| first.traffic != 0 || first.factor != Factor::ONE) {
        let message = format!(
            "the first point is {} B/s with factor {}; without traffic nothing slows down, so begin with [\"0 B/s\", 1.0]",
            first.traffic, first.factor
        );
        findings.report(at.index(0), ErrorKind::Contradiction, message);
    }
    for (index, pair) in points.windows(2).enumerate() {
        let [before, point] = pair else { unreachable!("a window of two has two elements") };
        let at = at.index(index + 1);
        if point.traffic <= before.traffic {
            let message = format!(
                "{} B/s come after {} B/s; list the points by ascending traffic",
                point.traffic, before.traffic
            );
            findings.report(at, ErrorKind::Contradiction, message);
        } else if point.factor < before.factor {
            let message = format!(
                "factor {} comes after {}; more traffic slows nothing down less, so raise it",
                point.factor, before.factor
            );
            findings.report(at, ErrorKind::Contradiction, message);
        } else if point.factor > FACTOR_MAX {
            let message = format!("factor {} exceeds {FACTOR_MAX}; write less", point.factor);
            findings.report(at, ErrorKind::BadValue, message);
        }
    }
}

fn regulator(regulator: &MemoryRegulator, at: &FieldPath, findings: &mut Findings) {
    let MemoryRegulator { period, latency, interrupt, phase: _, heed: _ } = *regulator;
    positive_span("period", period, at, findings);
    if period > OVERHEAD_MAX && period <= Nanos::LONGEST {
        let message = format!("`period` {period} exceeds 1 h; no regulator is that slow, so write less");
        findings.report(at.key("period"), ErrorKind::BadValue, message);
    }
    span("latency", latency, at, findings);
    span("interrupt", interrupt, at, findings);
    if interrupt >= period && !period.is_zero() {
        let message = format!(
            "`interrupt` {interrupt} is no shorter than the period {period}, so that nothing else would execute; lower it \
             or extend the period"
        );
        findings.report(at.key("interrupt"), ErrorKind::Contradiction, message);
    }
}

pub(super) fn bandwidth_lock(lock: &BandwidthLock, at: &FieldPath, findings: &mut Findings) {
    if lock.call > OVERHEAD_MAX {
        let message = format!("`call` {} exceeds 1 h; no call takes that long, so write less", lock.call);
        findings.report(at.key("call"), ErrorKind::BadValue, message);
    }
    budget("budget", lock.budget, at, findings);
}

/// What best-effort tasks may use while a lock is held.
pub(super) fn budget(key: &'static str, budget: u64, at: &FieldPath, findings: &mut Findings) {
    if budget == 0 {
        let message = format!("`{key}` is 0 B/s, which no memory access stays below; write at least 1 B/s");
        findings.report(at.key(key), ErrorKind::BadValue, message);
    }
}

pub(super) fn best_effort_scheduler(scheduler: &BestEffortScheduler, at: &FieldPath, findings: &mut Findings) {
    let BestEffortScheduler { rule, latency, min_granularity, wakeup_granularity } = *scheduler;
    if rule.punishment() > FACTOR_MAX {
        let message = format!("`punishment` {} exceeds {FACTOR_MAX}; write less", rule.punishment());
        findings.report(at.key("punishment"), ErrorKind::BadValue, message);
    }
    for (key, value) in [("latency", latency), ("min_granularity", min_granularity)] {
        if let Some(value) = value {
            positive_span(key, value, at, findings);
        }
    }
    if let Some(value) = wakeup_granularity {
        span("wakeup_granularity", value, at, findings);
    }
    if let (Some(latency), Some(slice)) = (latency, min_granularity)
        && slice > latency
    {
        let message = format!(
            "`min_granularity` {slice} exceeds `latency` {latency}, in which every thread has its turn; lower it or extend \
             that"
        );
        findings.report(at.key("min_granularity"), ErrorKind::Contradiction, message);
    }
}
