//! The checkers: every rule kept, and broken alone.

#[path = "../check_reference/mod.rs"]
mod check_reference;

mod dedicated;
mod gpus;
mod graphs;
mod legality;
mod policy;
mod priorities;
mod quanta;
mod valid;

use check_reference::UNIT;
use check_reference::hand::job;
use laxity_model::{CpuId, JobId, Nanos, OverheadCosts};
use laxity_trace::check::{Problem, Report};

/// Jobs of the first three tasks.
const A: JobId = job(0, 0);
const B: JobId = job(1, 0);
const C: JobId = job(2, 0);

/// What no overhead of these tests exceeds.
fn costs() -> OverheadCosts {
    let most = Nanos(9 * UNIT.0);
    OverheadCosts {
        tick: most,
        release: most,
        scheduling: most,
        context_switch: most,
        cache_preemption: most,
        cache_migration: most,
        ..OverheadCosts::default()
    }
}

/// What the only violation is, and where it is.
fn only(report: &Report) -> (u64, Option<CpuId>, Option<JobId>, Problem) {
    let [violation] = report.violations.as_slice() else { panic!("one violation expected, not\n{report}") };
    (violation.at.0 / UNIT.0, violation.cpu, violation.job, violation.what)
}
