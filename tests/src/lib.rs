//! What the cross-crate tests share.

use laxity_model::{Instant, Scheduler, Workload};
use laxity_plan::Plan;
use laxity_sim::Simulator;
use laxity_trace::{Record, TraceHeader};

mod beyond;
pub mod budgets;
pub mod coarse;
pub mod features;
pub mod fixed_priority;
pub mod graphs;
pub mod judge;
mod one_cpu;
mod protected;
mod queues;
pub mod servers;
pub mod systems;

/// Simulates `workload` under `scheduler` up to `end` with `seed`.
///
/// Panics if the simulator refuses the workload.
pub fn simulate(workload: &Workload, scheduler: &Scheduler, end: Instant, seed: u64) -> (TraceHeader, Vec<Record>) {
    let plan = Plan::new(workload, scheduler, seed).unwrap_or_else(|refusal| panic!("{refusal}"));
    let mut simulator = Simulator::new(&plan, Vec::new());
    simulator.run_until(end);
    (plan.header.clone(), simulator.finish())
}
