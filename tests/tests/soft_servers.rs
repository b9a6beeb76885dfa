//! Devices whose bottom halves a soft constant bandwidth server executes: where it was starved it uses one budget after the other, and only
//! busy periods of the machine bound what others lose.

use laxity_analysis::Test;
use laxity_analysis::check::BoundSource;
use laxity_model::{Instant, Nanos, Workload};
use laxity_tests::judge::checked;
use laxity_tests::simulate;
use laxity_trace::metrics::measure;

/// `urgent` starves the server, which then delays `late` by all that came meanwhile.
fn starved(kind: &str) -> Workload {
    let text = format!(
        r#"
laxity = 1
name = "starved"
scheduler = "P-FP"
gpu_management = {{ handling = "klmirqd" }}
[platform]
cpus = 1
overheads = "none"
[[platform.device]]
name = "network"
period = "10 ms"
interrupt_cpus = [0]
top_half = "1 us"
bottom_half = "4 ms"
server = {{ kind = "{kind}", budget = "1 ms", period = "10 ms", priority = 2 }}
[[task]]
name = "urgent"
period = "200 ms"
wcet = "50 ms"
priority = 1
[[task]]
name = "late"
period = "200 ms"
wcet = "5 ms"
priority = 3
"#
    );
    Workload::from_toml(&text, "starved.toml").unwrap_or_else(|errors| panic!("{errors}"))
}

/// The longest response time of `late`: proven, and simulated.
fn of_late(workload: &Workload) -> (Nanos, BoundSource, Nanos) {
    let report = checked(workload, &workload.scheduler);
    assert!(report.refusals.is_empty(), "{:?}", report.refusals);
    let bound = report.tasks[1].response_time.expect("a bound");
    let end = Instant(10_000_000_000);
    let (header, records) = simulate(workload, &workload.scheduler, end, 0);
    let seen = measure(&header, &records, end).tasks[1].jobs.response_time.expect("jobs are complete").max;
    (bound.time, bound.by, seen)
}

#[test]
fn what_a_soft_server_does_after_it_was_starved_is_within_the_busy_period() {
    let (proven, by, simulated) = of_late(&starved("cbs_soft"));
    assert_eq!(by, BoundSource::Test(Test::BusyPeriod));
    // Six interrupts came meanwhile, and more while their bottom halves were executed.
    assert!(simulated > Nanos::from_millis(50 + 6 * 4 + 5), "{simulated}");
    assert!(simulated <= proven && proven <= simulated + Nanos::from_millis(5), "{proven}, and {simulated} simulated");
}

/// Whatever it was starved of: so the tests hold of the one, and must not be asked about the other.
#[test]
fn a_hard_server_delays_others_by_its_bandwidth() {
    let (proven, by, simulated) = of_late(&starved("cbs_hard"));
    assert_ne!(by, BoundSource::Test(Test::BusyPeriod));
    assert!(simulated <= proven, "{proven}, and {simulated} simulated");
    assert!(proven < of_late(&starved("cbs_soft")).2, "{proven}");
}
