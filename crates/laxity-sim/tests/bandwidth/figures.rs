//! Figures 4 and 6 of paper 004.

use laxity_model::{BestEffortRule, Factor, Instant, Workload};

use crate::{Run, read, simulate};

/// Table II: a real-time task that is protected while it executes, a memory intensive task and a CPU intensive one on the
/// other core; a tick and a period of 1 ms; the budget is a third of what the memory intensive task uses.
fn figure_4(rule: BestEffortRule) -> Workload {
    let mut workload = read(
        r#"laxity = 1
name = "figure 4"
scheduler = "P-FP"
best_effort_scheduler = { rule = "CFS", latency = "1 ms", min_granularity = "500 us" }
[platform]
cpus = 2
[[platform.gpu]]
name = "gpu"
bandwidth = "1 GB/s"
[gpu_management]
arbitration = "driver_spinning"
bandwidth_lock = { budget = "100 MB/s" }
[[task]]
name = "rt"
period = "15 ms"
cluster = 0
priority = 1
body = [{ cpu = "1 us" }, { kernel = "4.5 ms", interrupts = 0 }]
[[best_effort]]
name = "cpu"
cpu = 1
work = "4 ms"
[[best_effort]]
name = "mem"
cpu = 1
work = "4 ms"
memory_demand = "300 MB/s"
"#,
    );
    workload.best_effort_scheduler.rule = rule;
    workload
}

const fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Fig. 4(a): throttled at 1.33 ms; the memory intensive task has caught up at 4 ms, when the core has been throttled for
/// two thirds of 3 ms. A third of 100,000 B is used up in the first nanosecond after 1.333333 ms.
#[test]
fn cfs_gives_a_throttled_task_every_period_until_it_has_caught_up() {
    let run = simulate(&figure_4(BestEffortRule::Cfs), ms(5));
    let expected = [
        "cpu 0..1000000",
        "mem 1000000..1333334",
        "mem 2000000..2333334",
        "mem 3000000..3333334",
        "cpu 4000000..5000000",
    ];
    assert_eq!(run.schedule(1), expected);
    assert_eq!(run.virtual_times[run.task("mem").index()], Some(3 * 333_334));
    let summary = run.summary().memory.expect("best-effort tasks");
    let mem = &summary.best_effort[1];
    assert_eq!((mem.throttled.as_nanos(), mem.throttled_periods), (3 * 666_666, 3));
    assert_eq!(mem.lost_virtual_time.as_nanos(), 0);
}

/// Fig. 4(c): with a punishment of 3 it is at 7/3 ms of virtual time at 2 ms, and executes again at 4 ms, when the other is
/// at 3 ms.
#[test]
fn tfs_charges_the_time_lost_and_lets_the_other_task_execute_meanwhile() {
    let workload = figure_4(BestEffortRule::Tfs { punishment: Factor::whole(3) });
    let run = simulate(&workload, Instant(4_300_000));
    let expected = ["cpu 0..1000000", "mem 1000000..1333334", "cpu 2000000..4000000", "mem 4000000..4300000"];
    assert_eq!(run.schedule(1), expected);
    let mem = &run.summary().memory.expect("best-effort tasks").best_effort[1];
    // 7/3 ms but for the third of a nanosecond that the budget outlasts 1/3 ms.
    assert_eq!((mem.throttled.as_nanos(), mem.lost_virtual_time.as_nanos()), (666_666, 1_999_998));
    let at_2_ms = simulate(&workload, Instant(2_000_001));
    assert_eq!(at_2_ms.virtual_times[at_2_ms.task("mem").index()], Some(333_334 + 1_999_998));
}

/// Fig. 6: which of two tasks of equal weight uses how many of 1,000 regulated periods. The paper states 750 and 250 under
/// CFS, roughly equal numbers with a punishment of 1, and fewer for the memory intensive task with 3. It uses three times
/// its budget. Linux's defaults for 4 CPUs and a tick of 4 ms (`CONFIG_HZ` of 250).
fn periods_used(rule: BestEffortRule) -> [u64; 2] {
    let mut workload = read(
        r#"laxity = 1
name = "figure 6"
scheduler = "P-FP"
[platform]
cpus = 4
tick = "4 ms"
[[platform.gpu]]
name = "gpu"
bandwidth = "1 GB/s"
[gpu_management]
arbitration = "driver_spinning"
bandwidth_lock = { budget = "100 MB/s" }
[[task]]
name = "rt"
period = "10 s"
cluster = 0
priority = 1
body = [{ cpu = "1 us" }, { kernel = "3 s", interrupts = 0 }]
[[best_effort]]
name = "mem"
cpu = 1
memory_demand = "300 MB/s"
[[best_effort]]
name = "cpu"
cpu = 1
"#,
    );
    workload.best_effort_scheduler.rule = rule;
    // The figure shows 1,000 periods long after the start.
    let used = |run: &Run| {
        let summary = run.summary().memory.expect("best-effort tasks");
        [0, 1].map(|task| summary.best_effort[task].periods_used)
    };
    let [before, after] = [1_000, 2_000].map(|end| used(&simulate(&workload, ms(end))));
    [after[0] - before[0], after[1] - before[1]]
}

#[test]
fn of_1000_periods_cfs_gives_the_throttled_task_750_and_tfs_fewer() {
    let tfs = |punishment| BestEffortRule::Tfs { punishment: Factor::whole(punishment) };
    for (rule, expected) in [(BestEffortRule::Cfs, 750), (tfs(1), 500), (tfs(3), 300)] {
        let [mem, cpu] = periods_used(rule);
        // Formula 5 of docs/reference/bandwidth-model.md: 1 / (1 + beta + rho (1 - beta)) with beta = 1/3.
        assert!(mem.abs_diff(expected) <= 10, "{rule:?}: {mem} and {cpu}, where {expected} were expected");
        assert!((mem + cpu).abs_diff(1_000) <= 260, "{rule:?}: a period may be used by both, {mem} and {cpu}");
    }
}
