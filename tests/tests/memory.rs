//! Memory does not grow with simulated time when no trace is kept.

use laxity_model::{Instant, Nanos, OverheadCosts, OverheadProfile, Platform, Scheduler, Task, Workload};
use laxity_plan::Plan;
use laxity_sim::Simulator;
use laxity_trace::metrics::Metrics;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

#[test]
fn a_simulation_without_a_trace_allocates_nothing_once_it_is_under_way() {
    let costs = OverheadCosts {
        release: Nanos::from_micros(5),
        scheduling: Nanos::from_micros(3),
        context_switch: Nanos::from_micros(2),
        ipi_latency: Nanos::from_micros(1),
        tick: Nanos::from_micros(1),
        ..OverheadCosts::default()
    };
    let tasks =
        (0..40).map(|index| Task::periodic("t", Nanos::from_micros(900), Nanos::from_micros(5_000 + 317 * index)));
    let mut workload = Workload::new("memory", Platform::identical(8), tasks.collect());
    workload.platform.overheads = OverheadProfile::constant("test", costs);
    let _profiler = dhat::Profiler::builder().testing().build();
    for scheduler in ["G-EDF", "CQ1", "HEm", "P-RM"] {
        let scheduler: Scheduler = scheduler.parse().expect("a name");
        let plan = Plan::new(&workload, &scheduler, 0).expect("CPU steps only");
        let mut simulator = Simulator::new(&plan, Metrics::new(&plan.header));
        simulator.run_until(Instant::from_millis(2_000));
        let warm = dhat::HeapStats::get();
        simulator.run_until(Instant::from_millis(20_000));
        let late = dhat::HeapStats::get();
        assert_eq!(late.curr_bytes, warm.curr_bytes, "{scheduler}: bytes in use after 2 s and after 20 s");
        drop(simulator.finish());
    }
}
