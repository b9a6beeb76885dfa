//! Logs that tests write by hand, and the trace that is made of them.

use laxity_model::{Instant, JobId, Nanos, TaskId, Workload};
use laxity_trace::check::{LegalityCheck, Report};
use laxity_trace::{Event, Record, Sink, TraceHeader};

use super::{Collector, Streams};
use crate::gpus::Gpus;
use crate::log::{Entry, JobStep, log};
use crate::{LinuxScheduler, LivePlan, Options};

/// The trace of a run of 10 ms in which the threads noted `entries`: at which microsecond, the number of the log, the CPU of
/// the workload, and the step of its first job. Nothing where this machine cannot run the workload, which is noted.
pub(super) fn trace(
    workload: &str,
    linux: LinuxScheduler,
    entries: &[(u64, usize, usize, JobStep)],
) -> Option<(TraceHeader, Vec<Record>)> {
    let workload = Workload::from_toml(workload, "test").expect("a workload");
    let scheduler = workload.scheduler;
    let options = Options { scheduler, linux: Some(linux), seed: 1, duration: Nanos::from_millis(10) };
    let plan = match LivePlan::new(&workload, &options) {
        Ok(plan) => plan,
        Err(refusal) => {
            laxity_testing::skip(refusal);
            return None;
        }
    };
    let (_writers, readers): (Vec<_>, Vec<_>) = (0..plan.logs()).map(|_| log()).unzip();
    let start = Instant(1_000_000_000);
    let mut collector = Collector::new(&plan, start, readers, Gpus::default(), &Streams::Numbered(Vec::new()));
    for &(at, log, cpu, step) in entries {
        let at = start.saturating_add(Nanos::from_micros(at));
        collector.sources[log].entries.push_back(Entry { at, cpu: plan.placement.linux[cpu], index: 0, step });
    }
    let mut records = Vec::new();
    collector.finish(Instant::ZERO.saturating_add(Nanos::from_millis(10)), &mut records);
    Some((plan.header().clone(), records))
}

/// What no scheduler may do.
pub(super) fn judge((header, records): &(TraceHeader, Vec<Record>)) -> Report {
    let mut check = LegalityCheck::new(header);
    records.iter().for_each(|record| check.record(record.at, record.event));
    check.finish()
}

/// Which jobs got CPUs, and when in microseconds.
pub(super) fn dispatched((_, records): &(TraceHeader, Vec<Record>)) -> Vec<(u64, u32, u16)> {
    let of = |record: &Record| match record.event {
        Event::Dispatch { cpu, job: JobId { task: TaskId(task), .. } } => Some((record.at.0 / 1_000, task, cpu.0)),
        _ => None,
    };
    records.iter().filter_map(of).collect()
}
