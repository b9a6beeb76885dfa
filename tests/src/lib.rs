//! What the cross-crate tests share.

use laxity_model::{Instant, Scheduler, Workload};
use laxity_sim::Setup;
use laxity_trace::{Record, TraceHeader};

pub mod systems;

/// Simulates `workload` under `scheduler` up to `end` with `seed`.
///
/// Panics if the simulator refuses the workload.
pub fn simulate(workload: &Workload, scheduler: &Scheduler, end: Instant, seed: u64) -> (TraceHeader, Vec<Record>) {
    let setup = Setup::new(workload, scheduler, seed).unwrap_or_else(|refusal| panic!("{refusal}"));
    let mut simulator = setup.start(Vec::new());
    simulator.run_until(end);
    (setup.header().clone(), simulator.finish())
}
