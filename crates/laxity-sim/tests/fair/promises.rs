//! What the fair class promises: equal shares, within what a slice and a tick leave open, and no CPU without work while
//! threads wait.

use laxity_model::{Instant, Nanos, Platform, Scheduler, Task, Workload};
use laxity_policy::cpu::fair::Parameters;
use proptest::prelude::*;

use crate::common::{Run, executions, run};

fn fair() -> Scheduler {
    "SCHED_OTHER".parse().expect("a scheduler")
}

/// Tasks that always want a CPU.
fn busy(count: usize) -> Vec<Task> {
    let one = |index| Task::periodic(format!("busy{index}"), Nanos::from_secs(100), Nanos::from_secs(100));
    (0..count).map(one).collect()
}

fn schedule(tasks: Vec<Task>, cpus: usize, tick: Nanos, end: Instant) -> Vec<Run> {
    let platform = Platform { tick, ..Platform::identical(cpus) };
    executions(&run(&Workload::new("promises", platform, tasks), &fair(), end, 0))
}

/// How long each task executed before `at`.
fn executed(runs: &[Run], tasks: usize, at: Instant) -> Vec<u64> {
    let one = |task| {
        let its = runs.iter().filter(|run| run.job.task.index() == task && run.start < at);
        its.map(|run| run.end.min(at).0 - run.start.0).sum()
    };
    (0..tasks).map(one).collect()
}

#[test]
fn three_busy_threads_have_a_third_of_a_cpu_each() {
    let end = Instant::from_millis(9_000);
    let shares = executed(&schedule(busy(3), 1, Nanos::from_millis(1), end), 3, end);
    assert_eq!(shares, [Nanos::from_secs(3).0; 3]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Slices end at ticks, so that one is longer than its length by a tick at most; a thread that has had a slice more waits
    /// for the others.
    #[test]
    fn busy_threads_of_a_cpu_differ_by_no_more_than_a_slice_and_a_tick(
        threads in 2usize..12,
        tick_us in prop::sample::select(vec![250u64, 1_000, 4_000]),
        at_us in 0u64..400_000,
    ) {
        let (tick, at) = (Nanos::from_micros(tick_us), Instant::ZERO + Nanos::from_micros(at_us));
        let had = executed(&schedule(busy(threads), 1, tick, Instant::from_millis(400)), threads, at);
        let apart = had.iter().max().expect("some") - had.iter().min().expect("some");
        let slice = Parameters::of_linux(1).slice(1024, 1024 * threads as u64, threads);
        prop_assert!(apart <= slice.0 + tick.0, "{apart} ns apart: {had:?}");
    }

    /// A thread that slept long is owed no more than half a latency.
    #[test]
    fn a_long_sleeper_gains_no_more_than_the_credit(asleep_ms in 0u64..2_000) {
        let mut tasks = busy(2);
        tasks[1].phase = Nanos::from_millis(asleep_ms);
        let at = Instant::from_millis(asleep_ms + 50);
        let had = executed(&schedule(tasks, 1, Nanos::from_millis(1), at), 2, at);
        let since = had[0].saturating_sub(Nanos::from_millis(asleep_ms).0);
        let parameters = Parameters::of_linux(1);
        let open = parameters.sleeper_credit().0 + parameters.slice(1024, 2048, 2).0 + Nanos::from_millis(1).0;
        prop_assert!(had[1].abs_diff(since) <= open, "{} and {since} ns since it woke", had[1]);
    }

    #[test]
    fn with_more_busy_threads_than_cpus_no_cpu_ever_idles(threads in 1usize..9, cpus in 1usize..5) {
        let end = Instant::from_millis(300);
        let had = executed(&schedule(busy(threads), cpus, Nanos::from_millis(1), end), threads, end);
        prop_assert_eq!(had.iter().sum::<u64>(), end.0 * threads.min(cpus) as u64);
    }
}

/// Two CPUs with four threads and one: at the 64th tick the one takes over one of the four, and not two.
#[test]
fn a_busy_cpu_takes_from_one_that_has_two_more_and_leaves_it_no_less_than_it_has_itself() {
    let mut tasks = busy(7);
    for (index, task) in tasks.iter_mut().enumerate() {
        // Tasks of even number begin on CPU 0, and stay where they were last when no CPU is idle.
        task.phase = Nanos::from_millis(if index < 2 {
            0
        } else if index % 2 == 0 {
            1
        } else {
            10_000
        });
    }
    let runs = schedule(tasks, 2, Nanos::from_millis(1), Instant::from_millis(128));
    let on_second = |from: u64, to: u64| {
        let within =
            |run: &&Run| run.cpu.0 == 1 && run.end > Instant::from_millis(from) && run.start < Instant::from_millis(to);
        let mut tasks: Vec<u32> = runs.iter().filter(within).map(|run| run.job.task.0).collect();
        tasks.sort_unstable();
        tasks.dedup();
        tasks
    };
    assert_eq!(on_second(0, 64), [1]);
    assert_eq!(on_second(64, 128).len(), 2, "{runs:?}");
}
