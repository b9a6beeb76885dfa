//! Memory, its regulator and lock, and the scheduler of the tasks that are throttled.

use super::{fields, management};
use crate::error::{ErrorKind, Findings};
use crate::file::reader::{Fields, Item};
use crate::file::{BEST_EFFORT_RULES, HEEDS, PHASES};
use crate::{
    BandwidthLock, BestEffortRule, BestEffortScheduler, Contention, ContentionPoint, Factor, Memory, MemoryRegulator,
    Nanos,
};

/// The table `[platform.memory]`.
pub(super) fn memory(item: &Item<'_>, findings: &mut Findings) -> Memory {
    let Some(fields) = item.table(fields::MEMORY, "a table", findings) else { return Memory::default() };
    Memory {
        contention: fields.get("contention").map(|item| contention(&item, findings)).unwrap_or_default(),
        regulator: fields.get("regulator").map(|item| regulator(&item, findings)).unwrap_or_default(),
    }
}

fn contention(item: &Item<'_>, findings: &mut Findings) -> Contention {
    let expected = "a list of points, as in `[[\"0 B/s\", 1.0], [\"900 MB/s\", 3.3]]`";
    let points = item.list(expected, findings).unwrap_or_default();
    Contention { points: points.iter().filter_map(|item| point(item, findings)).collect() }
}

fn point(item: &Item<'_>, findings: &mut Findings) -> Option<ContentionPoint> {
    let expected = "traffic and how many times as long GPU work takes, as in `[\"900 MB/s\", 3.3]`";
    let pair = item.list(expected, findings)?;
    let [traffic, factor] = pair.as_slice() else {
        item.report(ErrorKind::WrongType, format_args!("has {} elements; write {expected}", pair.len()), findings);
        return None;
    };
    let (traffic, factor) = (traffic.rate(findings), factor.factor(findings));
    traffic.zip(factor).map(|(traffic, factor)| ContentionPoint { traffic, factor })
}

fn regulator(item: &Item<'_>, findings: &mut Findings) -> MemoryRegulator {
    let default = MemoryRegulator::default();
    let Some(fields) = item.table(fields::REGULATOR, "a table", findings) else { return default };
    let mut span = |key, default| span(&fields, key, findings).unwrap_or(default);
    MemoryRegulator {
        period: span("period", default.period),
        latency: span("latency", default.latency),
        interrupt: span("interrupt", default.interrupt),
        phase: fields.get("phase").and_then(|item| item.choice(PHASES, findings)).unwrap_or(default.phase),
        heed: fields.get("heed").and_then(|item| item.choice(HEEDS, findings)).unwrap_or(default.heed),
    }
}

fn span(fields: &Fields<'_>, key: &'static str, findings: &mut Findings) -> Option<Nanos> {
    fields.get(key).and_then(|item| item.span(findings))
}

/// The table `bandwidth_lock` of `[gpu_management]`.
pub(super) fn bandwidth_lock(item: &Item<'_>, findings: &mut Findings) -> Option<BandwidthLock> {
    let fields = item.table(fields::BANDWIDTH_LOCK, "a table, as in `{ budget = \"64 MB/s\" }`", findings)?;
    let budget = fields.require("budget", "`budget = \"64 MB/s\"`", findings).and_then(|item| item.rate(findings));
    Some(BandwidthLock { call: span(&fields, "call", findings).unwrap_or_default(), budget: budget? })
}

/// The `best_effort_scheduler` of a file; CFS where there is none.
pub(super) fn best_effort_scheduler(file: &Fields<'_>, findings: &mut Findings) -> BestEffortScheduler {
    let default = BestEffortScheduler::default();
    let Some(item) = file.get("best_effort_scheduler") else { return default };
    let parameters = |rule| match rule {
        BestEffortRule::Cfs => fields::CFS,
        BestEffortRule::Tfs { .. } => fields::TFS,
    };
    let Some((named, fields)) = management::named(&item, "rule", BEST_EFFORT_RULES, parameters, findings) else {
        return default;
    };
    let Some(fields) = fields else { return BestEffortScheduler { rule: named, ..default } };
    let punishment = fields.get("punishment").and_then(|item| item.factor(findings)).unwrap_or(Factor::ONE);
    let rule = match named {
        BestEffortRule::Cfs => named,
        BestEffortRule::Tfs { .. } => BestEffortRule::Tfs { punishment },
    };
    BestEffortScheduler {
        rule,
        latency: span(&fields, "latency", findings),
        min_granularity: span(&fields, "min_granularity", findings),
        wakeup_granularity: span(&fields, "wakeup_granularity", findings),
    }
}
