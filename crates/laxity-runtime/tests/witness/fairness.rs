//! The Throttle Fair Scheduler in a run: best-effort tasks have the shares of equations 1 and 2 of paper 004, by a checker
//! that recomputes virtual time from the trace alone.

use laxity_model::{BestEffortRule, Factor, Nanos, Workload};
use laxity_runtime::{LinuxScheduler, LivePlan, Options};
use laxity_testing::{on_a_calm_machine, skip};
use laxity_trace::check::{FairnessCheck, Report};
use laxity_trace::metrics::{MemorySummary, Metrics};
use laxity_trace::{Record, Sink, TraceHeader};

use crate::harness::{SEED, live_by, ms, workload};

/// A memory-bound and a computing task that share CPU 1, where the memory-bound one has a third of what it asks for; the
/// computing task is the heavier one. The lock is held for four fifths of the time.
fn shared(punishment: u32) -> Workload {
    let mut workload = workload(
        r#"
scheduler = "P-FP"
best_effort_scheduler = { rule = "TFS" }
[platform]
cpus = 2
clusters = ["0", "1"]
[platform.memory]
contention = [["0 B/s", 1.0], ["900 MB/s", 3.3]]
[[platform.gpu]]
name = "integrated"
bandwidth = "10 GB/s"
[gpu_management]
arbitration = "driver_spinning"
bandwidth_lock = { budget = "100 MB/s" }
[[task]]
name = "detect"
period = "100 ms"
cluster = 0
priority = 1
body = [{ cpu = "100 us" }, { kernel = "80 ms", memory = 1.0, interrupts = 0 }]
[[best_effort]]
name = "memory"
cpu = 1
memory_demand = "300 MB/s"
[[best_effort]]
name = "compute"
cpu = 1
weight = 1277
"#,
    );
    workload.best_effort_scheduler.rule = BestEffortRule::Tfs { punishment: Factor::whole(punishment) };
    workload
}

fn header(workload: &Workload) -> TraceHeader {
    let linux = Some(LinuxScheduler::Fifo);
    let options = Options { scheduler: workload.scheduler, linux, seed: SEED, duration: ms(1) };
    LivePlan::new(workload, &options).expect("it ran").header().clone()
}

/// What the feedback on niceness keeps the tasks within: it looks every 50 ms, and lets one be 300 ms ahead.
const SLICE: Nanos = Nanos::from_millis(400);

fn judge(header: &TraceHeader, records: &[Record]) -> Report {
    let mut check = FairnessCheck::new(header, SLICE);
    records.iter().for_each(|record| check.record(record.at, record.event));
    check.finish()
}

fn memory(header: &TraceHeader, records: &[Record]) -> MemorySummary {
    let mut metrics = Metrics::new(header);
    records.iter().for_each(|record| metrics.record(record.at, record.event));
    metrics.finish(records.last().expect("the end").at).memory.expect("best-effort tasks")
}

/// How much of what the two had together the memory-bound task had, with the time for which it was throttled.
fn share(memory: &MemorySummary) -> f64 {
    let had = |task: usize| (memory.best_effort[task].execution.0 + memory.best_effort[task].throttled.0) as f64;
    had(0) / (had(0) + had(1))
}

#[test]
fn throttled_tasks_have_the_shares_of_the_throttle_fair_scheduler() {
    if std::thread::available_parallelism().expect("CPUs").get() < 2 {
        return skip("a protected workload needs two CPUs");
    }
    let punished = shared(3);
    let header_of_punished = header(&punished);
    on_a_calm_machine(|| {
        let run = |workload: &Workload| live_by(workload, ms(2_500), LinuxScheduler::Fifo);
        let (Some(punished), Some(fair)) = (run(&punished), run(&shared(0))) else { return Ok(()) };
        let [with, without] = [&punished, &fair].map(|records| memory(&header_of_punished, records));
        assert!(with.best_effort[0].throttled_periods > 0, "it asks for thrice its budget: {with:?}");
        assert_eq!(with.best_effort[1].throttled_periods, 0, "it causes no traffic: {with:?}");
        let [report, other] = [&punished, &fair].map(|records| judge(&header_of_punished, records));
        let seen = format!("{report}; shares {:.3} and {:.3} without punishment", share(&with), share(&without));
        println!("{seen}");
        // The same checker finds fault with the same tasks where no punishment is carried out.
        if report.is_clean() && !other.is_clean() {
            assert!(share(&with) < share(&without), "{seen}");
            return Ok(());
        }
        Err(seen.into())
    });
}
