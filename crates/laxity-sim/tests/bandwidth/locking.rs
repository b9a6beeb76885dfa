//! The bandwidth lock of simulated jobs: when it is held, at which priority, and for which jobs the regulator works.

use laxity_model::{Instant, JobId, Workload};
use laxity_trace::{Event, LockKind, Record};

use crate::{Run, read, simulate};

fn workload(lock: &str, tasks: &str) -> Workload {
    read(&format!(
        r#"laxity = 1
name = "locking"
scheduler = "P-FP"
[platform]
cpus = 2
[platform.memory]
contention = [["0 B/s", 1.0], ["100 MB/s", 2.0]]
[[platform.gpu]]
name = "gpu"
bandwidth = "1 GB/s"
copy_engines = 2
[gpu_management]
arbitration = "driver_spinning"
bandwidth_lock = {lock}
{tasks}
"#
    ))
}

fn task(name: &str, priority: u32, rest: &str) -> String {
    format!("[[task]]\nname = \"{name}\"\nperiod = \"50 ms\"\ncluster = 0\npriority = {priority}\n{rest}\n")
}

const HOG: &str = "[[best_effort]]\nname = \"hog\"\ncpu = 1\nmemory_demand = \"100 MB/s\"\n";

/// From when to when, in microseconds, jobs hold the lock.
fn held(run: &Run) -> Vec<(JobId, u64, u64)> {
    let mut held = Vec::new();
    let is_bandwidth = |lock: laxity_model::LockId| run.header.locks[lock.index()].kind == LockKind::Bandwidth;
    for &Record { at, event } in &run.records {
        match event {
            Event::Grant { job, lock, .. } if is_bandwidth(lock) => held.push((job, at.as_nanos() / 1_000, 0)),
            Event::Unlock { job, lock, .. } if is_bandwidth(lock) => {
                let open = held.iter_mut().rev().find(|(of, ..)| *of == job).expect("only a holder unlocks");
                open.2 = at.as_nanos() / 1_000;
            }
            _ => {}
        }
    }
    held
}

/// Table I of paper 004: two launches and one synchronization are one section; each call costs.
#[test]
fn the_lock_is_held_from_the_first_launch_to_the_synchronization() {
    let body = r#"body = [{ cpu = "1 ms" }, { kernel = "2 ms", asynchronous = true, interrupts = 0 },
        { cpu = "500 us" }, { kernel = "1 ms", interrupts = 0 }, { cpu = "1 ms" }]"#;
    let run =
        simulate(&workload(r#"{ call = "10 us", budget = "1 MB/s" }"#, &task("rt", 1, body)), Instant::from_millis(9));
    let times: Vec<(u64, u64)> = held(&run).into_iter().map(|(_, from, to)| (from, to)).collect();
    // 1 ms and a call; then 2 ms and 1 ms of kernels, the second of which waits for the first; then a call.
    assert_eq!(times, [(1_010, 4_020)]);
    assert_eq!(run.summary().tasks[0].waits, [], "no job waits for the lock");
}

#[test]
fn a_holder_is_preempted_by_no_job_until_it_unlocks() {
    let low = task("low", 2, r#"body = [{ cpu = "1 ms" }, { kernel = "4 ms", interrupts = 0 }, { cpu = "1 ms" }]"#);
    let high = task("high", 1, "wcet = \"1 ms\"\nphase = \"2 ms\"");
    let run = simulate(&workload(r#"{ budget = "1 MB/s" }"#, &(low.clone() + &high)), Instant::from_millis(9));
    assert_eq!(run.schedule(0), ["low 0..5000000", "high 5000000..6000000", "low 6000000..7000000"]);
    let mut unlocked = workload(r#"{ budget = "1 MB/s" }"#, &(low + &high));
    unlocked.gpu_management.bandwidth_lock = None;
    let run = simulate(&unlocked, Instant::from_millis(9));
    assert_eq!(run.schedule(0)[1], "high 2000000..3000000", "without the lock it is preempted while it spins");
}

/// The period that a lock is taken in is not regulated: 0.5 ms at half the rate. Then 0.1 ms of each are.
#[test]
fn a_protected_kernel_is_slowed_down_by_the_budget_alone() {
    let body = r#"body = [{ cpu = "500 us" }, { kernel = "3 ms", memory = 1.0, interrupts = 0 }]"#;
    let tasks = task("rt", 1, body) + HOG;
    let run = simulate(&workload(r#"{ budget = "10 MB/s" }"#, &tasks), Instant::from_millis(9));
    let operations = run.summary().memory.expect("a memory").operations;
    // 0.25 ms done by 1 ms; 0.95 ms in each of two periods; 0.05 ms in 0.1 ms and the rest at full rate.
    assert_eq!(operations[0].time.as_nanos(), 500_000 + 2_000_000 + 100_000 + 800_000);
    let throttled: Vec<u64> = run
        .records
        .iter()
        .filter(|record| matches!(record.event, Event::Throttle { .. }))
        .map(|record| record.at.as_nanos())
        .collect();
    assert_eq!(throttled, [1_100_000, 2_100_000, 3_100_000]);
    assert_eq!(
        run.summary().memory.expect("a memory").cpus[1].throttled.as_nanos(),
        3 * 900_000,
        "until the period ends"
    );
}

#[test]
fn a_task_may_ask_for_a_budget_of_its_own_and_the_least_counts() {
    let one = task(
        "one",
        1,
        "memory_budget = \"20 MB/s\"\nbody = [{ cpu = \"1 us\" }, { kernel = \"4 ms\", interrupts = 0 }]",
    );
    let two = task("two", 2, "body = [{ cpu = \"2 ms\" }, { copy_in = \"2 MB\", interrupts = 0 }]")
        .replace("cluster = 0", "cluster = 1");
    let run = simulate(&workload(r#"{ budget = "10 MB/s" }"#, &(one + &two + HOG)), Instant::from_millis(9));
    let budgets: Vec<(u64, Option<u64>)> = run
        .records
        .iter()
        .filter_map(|record| match record.event {
            Event::Regulate { cpu: laxity_model::CpuId(0), budget } => Some((record.at.as_nanos() / 1_000_000, budget)),
            _ => None,
        })
        .collect();
    let mb = |megabytes: u64| Some(megabytes * 1_000_000);
    assert_eq!(budgets, [(1, mb(20)), (2, mb(10)), (3, mb(10)), (4, mb(10)), (5, None)]);
}

#[test]
fn while_no_lock_is_held_the_regulator_does_nothing() {
    let run = simulate(
        &workload(r#"{ budget = "1 B/s" }"#, &(task("rt", 1, "wcet = \"9 ms\"") + HOG)),
        Instant::from_millis(99),
    );
    let regulates = |event: &Event| matches!(event, Event::Regulate { .. } | Event::Throttle { .. });
    assert!(!run.records.iter().any(|record| regulates(&record.event)));
    assert_eq!(run.schedule(1), ["hog 0..99000000"]);
}

/// A real-time job and a best-effort task that follow one another on the regulated CPU, and cause as much traffic.
///
/// ```text
/// CPU 0   d . [ the kernel, with the lock: 1 ms to 13 ms                    ]
/// CPU 1   h h   rt 3.5 ms to 5.1 ms   h, throttled in each period of 1 ms once more
/// ```
#[test]
fn only_best_effort_traffic_counts_for_the_budget_however_much_a_job_before_it_caused() {
    let section = r#"body = [{ cpu = "1 ms" }, { kernel = "12 ms", interrupts = 0 }]"#;
    let throttles = |demand: &str| {
        let rt = task("rt", 1, &format!("phase = \"3500 us\"\nwcet = \"1600 us\"\nmemory_demand = \"{demand}\""));
        let rt = rt.replace("cluster = 0", "cluster = 1");
        let tasks = task("detect", 1, section) + &rt + HOG;
        let run = simulate(&workload(r#"{ budget = "1 MB/s" }"#, &tasks), Instant::from_millis(20));
        let is_throttle = |record: &&Record| matches!(record.event, Event::Throttle { .. });
        run.records.iter().filter(is_throttle).map(|record| record.at.as_nanos() / 1_000).collect::<Vec<u64>>()
    };
    let unlike = throttles("99 MB/s");
    assert!(unlike.len() > 8, "{unlike:?}");
    assert!(!unlike.iter().any(|at| (3_500..5_100).contains(at)), "{unlike:?}: a real-time job has no budget");
    assert_eq!(throttles("100 MB/s"), unlike);
}
