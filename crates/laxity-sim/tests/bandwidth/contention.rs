//! GPU operations beside memory traffic: exact ends, whatever the traffic does.

use laxity_model::{Engine, GpuId, Instant, Workload};
use laxity_trace::{Event, Record};

use crate::{read, simulate};

fn workload(kernel: &str, best_effort: &str) -> Workload {
    read(&format!(
        r#"laxity = 1
name = "contention"
scheduler = "P-FP"
[platform]
cpus = 4
[platform.memory]
contention = [["0 B/s", 1.0], ["100 MB/s", 2.0], ["300 MB/s", 3.0]]
[[platform.gpu]]
name = "gpu"
bandwidth = "1 GB/s"
[[task]]
name = "rt"
period = "100 ms"
cluster = 0
priority = 1
body = [{{ cpu = "1 ms" }}, {kernel}]
{best_effort}
"#
    ))
}

const KERNEL: &str = r#"{ kernel = "10 ms", memory = 1.0 }"#;

fn hog(cpu: u16, demand: &str, rest: &str) -> String {
    format!("[[best_effort]]\nname = \"hog {cpu}\"\ncpu = {cpu}\nmemory_demand = \"{demand}\"\n{rest}\n")
}

/// The first operation: from when to when.
fn operation(records: &[Record]) -> (u64, u64) {
    let at = |is: fn(&Event) -> bool| {
        records.iter().find(|record| is(&record.event)).map_or(0, |record| record.at.as_nanos())
    };
    (at(|event| matches!(event, Event::EngineBegin { .. })), at(|event| matches!(event, Event::EngineEnd { .. })))
}

fn length(workload: &Workload) -> u64 {
    let (begin, end) = operation(&simulate(workload, Instant::from_millis(90)).records);
    end - begin
}

#[test]
fn without_traffic_an_operation_takes_its_time() {
    assert_eq!(length(&workload(KERNEL, "")), 10_000_000);
    assert_eq!(length(&workload(KERNEL, &hog(1, "0 B/s", ""))), 10_000_000);
}

#[test]
fn beside_steady_traffic_it_takes_as_many_times_as_long_as_the_curve_says() {
    assert_eq!(length(&workload(KERNEL, &hog(1, "100 MB/s", ""))), 20_000_000);
    let three = [1, 2, 3].map(|cpu| hog(cpu, "100 MB/s", "")).concat();
    // Neither a third nor two thirds of a nanosecond are whole numbers of 2^-32, and what is done is rounded down.
    assert_eq!(length(&workload(KERNEL, &three)), 30_000_001);
    let half = r#"{ kernel = "10 ms", memory = 0.5 }"#;
    assert_eq!(length(&workload(half, &hog(1, "100 MB/s", ""))), 15_000_001);
}

/// The hog ends 5 ms after the operation began, which has done half as much by then: 2.5 ms of 10.
#[test]
fn when_traffic_ends_the_rest_goes_on_at_full_rate() {
    let workload = workload(KERNEL, &hog(1, "100 MB/s", "work = \"6 ms\""));
    assert_eq!(length(&workload), 5_000_000 + 7_500_000);
    let rates: Vec<(u64, u64)> = simulate(&workload, Instant::from_millis(90))
        .records
        .iter()
        .filter_map(|record| match record.event {
            Event::EngineRate { gpu: GpuId(0), engine: Engine::Execution, rate } => Some((record.at.as_nanos(), rate)),
            _ => None,
        })
        .collect();
    assert_eq!(rates, [(1_000_000, 1 << 31), (6_000_000, 1 << 32)]);
}

/// A real-time job's traffic counts as well, and only while it executes.
#[test]
fn traffic_of_real_time_jobs_slows_operations_down_while_they_execute() {
    let task = "[[task]]\nname = \"reader\"\nperiod = \"100 ms\"\ncluster = 1\npriority = 2\nmemory_demand = \"100 MB/s\"\n\
                wcet = \"3 ms\"";
    // From 1 ms to 3 ms at half the rate, then 9 ms more.
    assert_eq!(length(&workload(KERNEL, task)), 2_000_000 + 9_000_000);
}

/// Interrupts on the way come at parts of the work, not of the time: a third of 9 ms at half the rate is over after 6 ms.
#[test]
fn interrupts_on_the_way_follow_the_work() {
    let kernel = r#"{ kernel = "9 ms", memory = 1.0, interrupts = 3 }"#;
    let workload = workload(kernel, &hog(1, "100 MB/s", "work = \"7 ms\""));
    let run = simulate(&workload, Instant::from_millis(90));
    let interrupts: Vec<u64> = run
        .records
        .iter()
        .filter(|record| matches!(record.event, Event::Interrupt { .. }))
        .map(|record| record.at.as_nanos())
        .collect();
    assert_eq!(interrupts, [7_000_000, 10_000_000, 13_000_000]);
    let operations = run.summary().memory.expect("a memory").operations;
    assert_eq!((operations[0].time.as_nanos(), operations[0].solo.as_nanos()), (12_000_000, 9_000_000));
}
