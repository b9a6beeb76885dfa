//! Budgets: a live job is suspended where the simulated one is, and gets the same budgets with the same deadlines.

use std::collections::BTreeMap;

use laxity_model::{Instant, JobId, Nanos, TaskId, Workload};
use laxity_runtime::{LinuxScheduler, LivePlan, Options};
use laxity_trace::check::PolicyCheck;
use laxity_trace::{Event, Record, Sink};

use crate::harness::{SEED, live_by, lives, ms, simulated, workload};

/// Budgets that tasks were given: of which size, and with which deadline.
fn replenished(records: &[Record]) -> BTreeMap<TaskId, Vec<(Nanos, Instant)>> {
    let mut found: BTreeMap<TaskId, Vec<_>> = BTreeMap::new();
    for record in records {
        if let Event::Replenish { task, budget, deadline } = record.event {
            found.entry(task).or_default().push((budget, deadline));
        }
    }
    found
}

/// Runs the first job of each task live and simulated by EDF; answers both, if Linux permits.
fn both(workload: &Workload, linux: LinuxScheduler) -> Option<[Vec<Record>; 2]> {
    let records = live_by(workload, ms(100), linux)?;
    let options = Options { scheduler: workload.scheduler, linux: Some(linux), seed: SEED, duration: ms(100) };
    let plan = LivePlan::new(workload, &options).expect("it ran");
    if plan.header().is_linked {
        let mut check = PolicyCheck::new(plan.header());
        records.iter().for_each(|record| check.record(record.at, record.event));
        let report = check.finish();
        assert!(report.is_clean(), "{linux}: {:?}", report.violations);
    }
    Some([records, simulated(workload, ms(3_000))])
}

/// Needs three budgets: it waits for two of them until the deadline of the one before, and is later due each time.
#[test]
fn a_job_that_needs_more_than_its_budget_waits_for_the_next_as_simulated() {
    let workload = workload(
        r#"
scheduler = "P-EDF"
[platform]
cpus = 1
[[task]]
name = "greedy"
period = "500 ms"
wcet = "25 ms"
budget = "10 ms"
[[task]]
name = "other"
period = "400 ms"
phase = "5 ms"
wcet = "2 ms"
"#,
    );
    for linux in [LinuxScheduler::Other, LinuxScheduler::Laxity] {
        let Some([live, model]) = both(&workload, linux) else { continue };
        let first = JobId { task: TaskId(0), index: 0 };
        let (did, expected) = (lives(&live), lives(&model));
        assert_eq!(did[&first], expected[&first], "{linux}");
        assert_eq!(did[&first].iter().filter(|(did, _)| *did == "sleeps").count(), 2, "{linux}");
        let (given, expected) = (replenished(&live), replenished(&model));
        for ((budget, deadline), (full, same)) in given[&TaskId(0)].iter().zip(&expected[&TaskId(0)]).take(3) {
            assert_eq!(deadline, same, "{linux}");
            assert!(budget <= full, "{linux}: what was used beyond a budget is paid back");
        }
        assert_eq!(given[&TaskId(0)].len(), 3, "{linux}");
    }
}

#[test]
fn a_job_ends_its_section_before_it_waits_for_budget() {
    let workload = workload(
        r#"
scheduler = "P-EDF"
[platform]
cpus = 1
[[resource]]
name = "map"
[[task]]
name = "greedy"
period = "500 ms"
budget = "10 ms"
body = [{ cpu = "5 ms" }, { critical = "map", body = [{ cpu = "15 ms" }] }, { nonpreemptive = "5 ms" }, { cpu = "10 ms" }]
"#,
    );
    for linux in [LinuxScheduler::Other, LinuxScheduler::Laxity] {
        let Some([live, model]) = both(&workload, linux) else { continue };
        let first = JobId { task: TaskId(0), index: 0 };
        assert_eq!(lives(&live)[&first], lives(&model)[&first], "{linux}");
    }
}
