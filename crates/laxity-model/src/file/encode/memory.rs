//! Memory, its regulator and lock, and the scheduler of the tasks that are throttled.

use super::{Fields, span, unless, word};
use crate::file::quantity::write_rate;
use crate::file::write::Outline::{self, Decimal, Inline, List, Section, Text};
use crate::file::{HEEDS, PHASES};
use crate::{BandwidthLock, BestEffortRule, BestEffortScheduler, ContentionPoint, Memory, MemoryRegulator, Nanos};

/// The table `[platform.memory]`; empty where it is as by default.
pub(super) fn memory(memory: &Memory) -> Fields {
    let Memory { contention, regulator } = memory;
    let mut fields = Vec::new();
    if !contention.points.is_empty() {
        fields.push(("contention", List(contention.points.iter().map(point).collect())));
    }
    let regulator = self::regulator(regulator);
    if !regulator.is_empty() {
        fields.push(("regulator", Section(regulator)));
    }
    fields
}

fn point(point: &ContentionPoint) -> Outline {
    List(vec![Text(write_rate(point.traffic)), Decimal(point.factor)])
}

fn regulator(regulator: &MemoryRegulator) -> Fields {
    let MemoryRegulator { period, latency, interrupt, phase, heed } = *regulator;
    let default = MemoryRegulator::default();
    let mut fields = Vec::new();
    unless(&mut fields, "period", period, default.period, span);
    unless(&mut fields, "latency", latency, default.latency, span);
    unless(&mut fields, "interrupt", interrupt, default.interrupt, span);
    unless(&mut fields, "phase", phase, default.phase, |phase| word(PHASES, &phase));
    unless(&mut fields, "heed", heed, default.heed, |heed| word(HEEDS, &heed));
    fields
}

pub(super) fn bandwidth_lock(lock: &BandwidthLock) -> Outline {
    let mut fields = Vec::new();
    unless(&mut fields, "call", lock.call, Nanos::ZERO, span);
    fields.push(("budget", Text(write_rate(lock.budget))));
    Inline(fields)
}

pub(super) fn best_effort_scheduler(scheduler: &BestEffortScheduler) -> Outline {
    let BestEffortScheduler { rule, latency, min_granularity, wakeup_granularity } = *scheduler;
    let mut fields = vec![("rule", Text(rule.name().to_owned()))];
    if let BestEffortRule::Tfs { punishment } = rule {
        fields.push(("punishment", Decimal(punishment)));
    }
    let tunables =
        [("latency", latency), ("min_granularity", min_granularity), ("wakeup_granularity", wakeup_granularity)];
    fields.extend(tunables.into_iter().filter_map(|(key, value)| value.map(|value| (key, span(value)))));
    Inline(fields)
}
