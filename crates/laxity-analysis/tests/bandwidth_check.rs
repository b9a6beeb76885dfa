//! `check` under the bandwidth lock, on workloads small enough to work out by hand.

use laxity_analysis::Limits;
use laxity_analysis::bwlock::{BwlockTask, response_times};
use laxity_analysis::check::{Options, Report, Status, Term, check};
use laxity_model::{
    GpuArbitration, InterruptHandling, Nanos, OverheadCosts, OverheadProfile, ThreadPriority, Workload,
};

fn workload(tasks: &str, rest: &str) -> Workload {
    let text = format!(
        r#"laxity = 1
name = "w"
scheduler = "P-FP"
{rest}
[platform]
cpus = 4
[platform.memory]
contention = [["0 B/s", 1.0], ["100 MB/s", 2.0]]
[[platform.gpu]]
name = "gpu"
bandwidth = "1 GB/s"
interrupt_cpus = "0"
[gpu_management]
arbitration = "driver_spinning"
bandwidth_lock = {{ call = "10 us", budget = "1 MB/s" }}
{tasks}
"#
    );
    Workload::from_toml(&text, "w.toml").unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

fn task(name: &str, priority: u32, period: &str, body: &str) -> String {
    format!("[[task]]\nname = \"{name}\"\ncluster = 0\npriority = {priority}\nperiod = \"{period}\"\nbody = [{body}]\n")
}

fn checked(workload: &Workload) -> Report {
    check(workload, &workload.scheduler, &Options { scaling: false, ..Options::default() })
}

fn micros(report: &Report) -> Vec<u64> {
    let bound =
        |task: &laxity_analysis::check::TaskReport| task.response_time.map_or(0, |it| it.time.as_nanos() / 1_000);
    report.tasks.iter().map(bound).collect()
}

/// Equation 4 by hand. Each synchronous operation is a section of its own; of the low task, five launches and one wait are
/// one section, which blocks: 10 us for each of six calls and 5 ms, not the longest kernel.
#[test]
fn the_longest_span_of_the_lock_blocks_and_not_the_longest_kernel() {
    let launches = r#"{ kernel = "1 ms", asynchronous = true, interrupts = 0 }, "#.repeat(4);
    let low = format!(r#"{{ cpu = "1 ms" }}, {launches}{{ kernel = "1 ms", interrupts = 0 }}"#);
    let high = r#"{ cpu = "1 ms" }, { kernel = "2 ms", interrupts = 0 }, { cpu = "1 ms" }"#;
    let tasks = task("high", 1, "20 ms", high) + &task("low", 2, "50 ms", &low);
    let report = checked(&workload(&tasks, ""));
    assert_eq!(report.refusals, []);
    assert_eq!(report.hard.status, Status::Schedulable);
    let (section, execution) = (5_060, 4_020);
    assert_eq!(report.tasks[0].terms.expect("an accounting").get(Term::Blocking), Nanos::from_micros(section));
    assert_eq!(micros(&report), [execution + section, 1_000 + section + execution]);
}

/// The function of equation 4 alone is the witness of the published form, where every segment is one operation.
#[test]
fn without_overheads_check_agrees_with_equation_4_as_published() {
    let body = |cpu: &str, kernel: &str| format!(r#"{{ cpu = "{cpu}" }}, {{ kernel = "{kernel}", interrupts = 0 }}"#);
    let tasks = task("a", 1, "20 ms", &body("1 ms", "2 ms"))
        + &task("b", 2, "30 ms", &body("2 ms", "1 ms"))
        + &task("c", 3, "60 ms", &body("3 ms", "4 ms"));
    let report = checked(&workload(&tasks, ""));
    let published = |cpu: u64, segment: u64, period: u64| BwlockTask {
        cpu: cpu * 1_000,
        segments: vec![segment * 1_000],
        period: period * 1_000,
        suspends: false,
    };
    let limits = Limits { points: 1_000, rounds: 1_000, steps: 1_000 };
    let bounds = response_times(&[published(1, 2, 20), published(2, 1, 30), published(3, 4, 60)], 10, &limits);
    let expected: Vec<u64> =
        bounds.expect("it applies").iter().map(|bound| bound.response_time.expect("it converges")).collect();
    assert_eq!(micros(&report), expected);
}

/// One hog of 100 MB/s makes the kernel take twice as long. Protected: half of the first period is lost, and of each of n
/// periods half of 10 us: R = 4 + 0.5 + 5 * 0.005 ms.
#[test]
fn protected_operations_are_lengthened_by_formula_9_and_others_by_formula_7() {
    let kernel = r#"{ cpu = "1 ms" }, { kernel = "4 ms", interrupts = 0, memory = 1.0 }"#;
    let hog = "[[best_effort]]\nname = \"hog\"\ncpu = 1\nmemory_demand = \"100 MB/s\"\n";
    let mut workload = workload(&(task("rt", 1, "50 ms", kernel) + hog), "");
    let protected = micros(&checked(&workload))[0];
    assert!((5_545..=5_546).contains(&protected), "{protected} us: 1,000 and two calls, 4,500 and 25");
    workload.gpu_management.bandwidth_lock = None;
    let unprotected = micros(&checked(&workload))[0];
    assert!((9_000..=9_001).contains(&unprotected), "{unprotected} us");
    workload.best_effort.clear();
    assert_eq!(micros(&checked(&workload)), [5_000], "without traffic nothing is slowed down");
}

#[test]
fn a_task_that_is_bound_nowhere_counts_on_every_other_cpu() {
    let kernel = r#"{ cpu = "1 ms" }, { kernel = "4 ms", interrupts = 0, memory = 1.0 }"#;
    let hog = "[[best_effort]]\nname = \"hog\"\nmemory_demand = \"100 MB/s\"\n";
    let mut workload = workload(&(task("rt", 1, "50 ms", kernel) + hog), "");
    let free = micros(&checked(&workload))[0];
    workload.best_effort[0].cpu = Some(1);
    assert!(free > micros(&checked(&workload))[0]);
}

#[test]
fn what_equation_4_does_not_cover_is_refused_by_name() {
    let kernel = r#"{ cpu = "1 ms" }, { kernel = "1 ms", interrupts = 0 }"#;
    let refused = |change: &dyn Fn(&mut Workload), body: &str, words: &str| {
        let mut workload = workload(&(task("a", 1, "20 ms", kernel) + &task("b", 2, "50 ms", body)), "");
        change(&mut workload);
        let report = checked(&workload);
        let reasons: Vec<String> = report.refusals.iter().map(|it| format!("{}: {}", it.subject, it.reason)).collect();
        // The GPU's own waits may be refused, too.
        assert!(reasons.first().is_some_and(|first| first.contains(words)), "`{words}` is not in {reasons:?}");
    };
    refused(&|w| w.gpu_management.arbitration = GpuArbitration::Driver, kernel, "take \"driver_spinning\"");
    refused(&|w| w.tasks[1].cluster = Some(1), kernel, "tasks that use GPUs on one CPU");
    refused(&|w| w.scheduler = "P-FP/CQm".parse().expect("a name"), kernel, "choose an event-driven scheduler");
    refused(&|w| w.platform.memory.regulator.interrupt = Nanos(1), kernel, "interrupts of the regulator");
    let asynchronous = r#"{ kernel = "1 ms", asynchronous = true, interrupts = 0 }"#;
    let suspends = format!(r#"{{ cpu = "1 ms" }}, {asynchronous}, {{ suspend = "1 ms" }}"#);
    refused(&|_| {}, &suspends, "task \"b\": it suspends while it holds");
    let interrupts = r#"{ cpu = "1 ms" }, { kernel = "1 ms" }"#;
    let costly = |w: &mut Workload| {
        w.platform.overheads = OverheadProfile::named("elliott2012-klmirqd", &w.scheduler).expect("a profile");
    };
    refused(&costly, interrupts, "let the operations raise none");
}

/// Of `urgent`, which executes 1 ms and waits for a section of the task below at most, whose calls take `call`.
fn blocking(below: &str, call: Nanos) -> Nanos {
    let tasks = task("urgent", 1, "50 ms", r#"{ cpu = "1 ms" }"#) + &task("low", 2, "100 ms", below);
    let mut workload = workload(&tasks, "");
    workload.gpu_management.bandwidth_lock.as_mut().expect("it has one").call = call;
    let report = checked(&workload);
    assert_eq!(report.refusals, [], "{below}");
    report.tasks[0].terms.expect("an accounting").get(Term::Blocking)
}

/// A job that unlocks and locks again at one instant is not preempted in between.
#[test]
fn operations_without_cpu_time_between_block_for_their_sum() {
    let kernel = r#"{ kernel = "2 ms", interrupts = 0 }"#;
    let cpu = r#"{ cpu = "1 ms" }"#;
    let empty = r#"{ cpu = "1 ms", actual = { uniform = ["0 ms", "1 ms"] } }"#;
    let section = r#"{ nonpreemptive = "3 ms" }"#;
    let grouped = r#"{ gpu_section = [{ kernel = "2 ms", interrupts = 0 }] }"#;
    let launch = r#"{ kernel = "2 ms", interrupts = 0, asynchronous = true }"#;
    let ms = |steps: &[&str]| blocking(&steps.join(", "), Nanos::ZERO).as_nanos() / 1_000_000;
    assert_eq!(ms(&[cpu, kernel, cpu, kernel, cpu]), 2, "with time between");
    assert_eq!(ms(&[cpu, kernel, kernel, kernel, kernel, cpu]), 8);
    assert_eq!(ms(&[cpu, grouped, grouped]), 4);
    assert_eq!(ms(&[cpu, kernel, empty, kernel]), 5, "it may take no time");
    assert_eq!(ms(&[cpu, section, kernel, cpu]), 5, "the lock is taken where a section ends");
    assert_eq!(ms(&[cpu, kernel, r#"{ suspend = "1 ms" }"#, kernel]), 2, "others run meanwhile");
    assert_eq!(ms(&[cpu, kernel, launch, cpu, kernel]), 7, "launches until the wait, behind a kernel");
    let with_calls = blocking(&[cpu, kernel, kernel].join(", "), Nanos::from_millis(1));
    assert_eq!(with_calls, Nanos::from_millis(4), "calls before the lock is held are time between");
}

/// `low` is to lock for its last section at 9.5 ms, and is preempted in the call that does: it is complete at 16.5 ms.
#[test]
fn the_call_before_the_lock_is_held_may_be_preempted() {
    let tasks = task("urgent", 1, "10 ms", r#"{ cpu = "4 ms" }"#)
        + &task("low", 2, "100 ms", r#"{ cpu = "5.5 ms" }, { kernel = "1 ms", interrupts = 0 }"#);
    let mut workload = workload(&tasks, "");
    workload.gpu_management.bandwidth_lock.as_mut().expect("it has one").call = Nanos::from_millis(1);
    assert_eq!(micros(&checked(&workload)), [7_000, 16_500]);
}

/// The GPU's user has a utilization of 1/20 of CPU time and is the only one on CPU 1, as the scheduler has it; by the length of
/// its section it would be on CPU 0, and the node `a` on CPU 1.
#[test]
fn nodes_of_graphs_stay_where_the_scheduler_puts_them() {
    let text = r#"
laxity = 1
name = "beside a graph"
scheduler = "P-DM"
platform = { cpus = 2, gpu = [{ name = "g", bandwidth = "1 GB/s" }] }
gpu_management = { arbitration = "driver_spinning", bandwidth_lock = { budget = "100 MB/s" } }
[[task]]
name = "user"
period = "20 ms"
body = [{ cpu = "1 ms" }, { kernel = "8 ms" }]
[[graph]]
name = "G"
edge = ["a -> b"]
node = [{ name = "a", period = "20 ms", wcet = "5 ms" }, { name = "b", wcet = "3 ms", deadline = "5 ms" }]
"#;
    let workload = Workload::from_toml(text, "w.toml").expect("a valid workload");
    let report = checked(&workload);
    assert_eq!(report.refusals, []);
    let clusters: Vec<usize> = report.tasks.iter().map(|task| task.cluster).collect();
    assert_eq!(clusters, [1, 0, 1], "user, a and b");
    assert_eq!(report.hard.status, Status::NotProven, "b waits for 8 ms of the section, and has 5 ms");
}

#[test]
fn interrupts_of_a_holder_are_refused_where_anything_may_delay_them() {
    let tasks = task("a", 1, "20 ms", r#"{ cpu = "1 ms" }, { kernel = "1 ms" }"#);
    let refusals = |change: &dyn Fn(&mut Workload)| {
        let mut workload = workload(&tasks, "");
        change(&mut workload);
        let refused =
            |workload: &Workload| checked(workload).refusals.iter().any(|it| it.reason.contains("interrupts = 0"));
        let with_interrupts = refused(&workload);
        let quiet = tasks.replace(r#""1 ms" }]"#, r#""1 ms", interrupts = 0 }]"#);
        assert_ne!(quiet, tasks);
        workload.tasks = self::workload(&quiet, "").tasks;
        assert!(!refused(&workload), "without interrupts");
        with_interrupts
    };
    let low = InterruptHandling::PreemptRt(ThreadPriority::Low);
    let high = InterruptHandling::PreemptRt(ThreadPriority::High);
    let klmirqd = InterruptHandling::Klmirqd { threads: None };
    assert!(!refusals(&|_| {}), "where they arrive, at no cost");
    for handling in [low, high, klmirqd, InterruptHandling::ProcessAware] {
        assert!(refusals(&|workload| workload.gpu_management.handling = handling), "{handling:?}");
    }
    let costs = |change: fn(&mut OverheadCosts)| {
        let mut costs = OverheadCosts::default();
        change(&mut costs);
        refusals(&|workload| workload.platform.overheads = OverheadProfile::constant("o", costs))
    };
    assert!(costs(|costs| costs.scheduling = Nanos(1)));
    assert!(costs(|costs| costs.context_switch = Nanos(1)));
    assert!(costs(|costs| costs.cache_preemption = Nanos(1)));
    assert!(costs(|costs| costs.top_half = Nanos(1)));
}

#[test]
fn a_lock_that_follows_a_resource_at_once_is_refused() {
    let body = |between: &str| {
        let critical = r#"{ critical = "r", body = [{ cpu = "1 ms" }] }"#;
        let body = format!(r#"{critical}, {between} {{ kernel = "1 ms", interrupts = 0 }}"#);
        let tasks = task("a", 1, "20 ms", critical) + &task("b", 2, "50 ms", &body);
        let mut workload = workload(&tasks, "resource = [{ name = \"r\" }]");
        workload.gpu_management.bandwidth_lock.as_mut().expect("it has one").call = Nanos::ZERO;
        checked(&workload).refusals.iter().map(|it| it.reason.clone()).collect::<Vec<_>>()
    };
    assert!(body("").iter().all(|reason| reason.contains("the resource which it unlocked")) && !body("").is_empty());
    assert!(!body(r#"{ cpu = "1 ms", actual = { constant = "0 ms" } },"#).is_empty(), "which may take no time");
    assert_eq!(body(r#"{ cpu = "1 us" },"#), [] as [String; 0]);
}

/// A job that unlocks goes on until its CPU hears of the other one, and keeps it if it has locked again by then.
#[test]
fn cpu_time_between_operations_counts_where_it_is_longer_than_the_notice_of_a_cpu() {
    let blocking = |between: &str, call: u64| {
        let low = format!(
            r#"{{ cpu = "1 ms" }}, {{ kernel = "2 ms", interrupts = 0 }}, {between} {{ kernel = "2 ms", interrupts = 0 }}"#
        );
        let tasks = task("urgent", 1, "50 ms", r#"{ cpu = "1 ms" }"#) + &task("low", 2, "100 ms", &low);
        let mut workload = workload(&tasks, "");
        workload.gpu_management.bandwidth_lock.as_mut().expect("it has one").call = Nanos(call);
        let costs = OverheadCosts { ipi_latency: Nanos::from_micros(5), ..OverheadCosts::default() };
        workload.platform.overheads = OverheadProfile::constant("o", costs);
        let report = checked(&workload);
        assert_eq!(report.refusals, []);
        report.tasks[0].terms.expect("an accounting").get(Term::Blocking).as_nanos() / 1_000
    };
    assert_eq!(blocking("", 0), 4_010, "each unlocking counts a notice");
    assert_eq!(blocking(r#"{ cpu = "5 us" },"#, 0), 4_015);
    assert_eq!(blocking(r#"{ cpu = "3 us" }, { cpu = "3 us" },"#, 0), 2_005);
    assert_eq!(blocking("", 5_000), 4_030, "four calls");
    assert_eq!(blocking("", 6_000), 2_017);
    assert_eq!(blocking(r#"{ cpu = "5 us" }, { nonpreemptive = "1 ms" }, { cpu = "6 us" },"#, 0), 3_010);
}
