//! `check` of one CPU under fixed priorities against the simulator: no simulated job exceeds its bound, and how far bounds lie above
//! the worst that was seen.
//!
//! For a campaign, `LAXITY_SYSTEMS=10000 cargo test --release -p laxity-tests --test one_cpu -- --nocapture`;
//! `LAXITY_FIRST_SEED` says where to begin.

use laxity_analysis::Test;
use laxity_analysis::check::{BoundSource, Criterion, Report};
use laxity_model::{Nanos, Step, Workload};
use laxity_tests::features::urgent_last;
use laxity_tests::fixed_priority::{EMPHASES, Emphasis, system};
use laxity_tests::judge::{checked, compare, just_proven, observe};
use laxity_tests::systems::patterns;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a number of systems"))
}

/// Simulates the largest scale that is proven; whether that was by busy periods of a priority, and bounds in thousandths of what was
/// seen are added to `permille`.
fn judge(emphasis: Emphasis, seed: u64, permille: &mut Vec<u64>) -> bool {
    let (workload, scheduler) = system(emphasis, seed);
    let criterion = if seed % 4 == 1 { Criterion::Soft } else { Criterion::Hard };
    let Some((workload, report)) = just_proven(&workload, &scheduler, criterion) else { return false };
    let mut worst = vec![0; report.tasks.len()];
    for (number, pattern) in all_patterns(&workload, seed).iter().enumerate() {
        let context = format!("{emphasis:?}, seed {seed}, pattern {number}, {scheduler}");
        let seen = observe(pattern, &scheduler, seed);
        compare(&report, pattern, &seen, &context);
        for (worst, task) in worst.iter_mut().zip(&seen.0.tasks) {
            *worst = task.jobs.response_time.map_or(0, |times| times.max.0).max(*worst);
        }
    }
    for (task, &worst) in report.tasks.iter().zip(&worst).filter(|&(_, &worst)| worst > 0) {
        permille.extend(task.response_time.map(|bound| bound.time.0.saturating_mul(1_000) / worst));
    }
    let by = report.tasks.iter().filter_map(|task| task.response_time);
    by.into_iter().any(|bound| bound.by == BoundSource::Test(Test::LevelBusyPeriod))
}

/// Arrivals of all kinds, those at which what is below is in the way among them; and the same with worst-case execution times.
fn all_patterns(workload: &Workload, seed: u64) -> Vec<Workload> {
    let mut all = patterns(workload, seed);
    all.extend((0..4).map(|salt| urgent_last(workload, seed ^ salt << 40)));
    let mut longest = all.clone();
    let bodies = longest.iter_mut().flat_map(|workload| &mut workload.tasks).map(|task| &mut task.body);
    bodies.for_each(|body| at_worst(body));
    all.extend(longest);
    all
}

fn at_worst(body: &mut [Step]) {
    for step in body {
        match step {
            Step::Cpu(time) | Step::NonPreemptive(time) => *time = laxity_model::ExecutionTime::constant(time.wcet),
            Step::Critical { body, .. } => at_worst(body),
            _ => {}
        }
    }
}

#[test]
fn no_job_of_one_cpu_exceeds_its_bound() {
    let (first, count) = (number("LAXITY_FIRST_SEED", 0), number("LAXITY_SYSTEMS", 120));
    eprintln!("bound / worst simulated                proven   by levels   median     p90");
    for emphasis in EMPHASES {
        let (mut permille, mut by_levels) = (Vec::new(), 0);
        (first..first + count).for_each(|seed| by_levels += u64::from(judge(emphasis, seed, &mut permille)));
        permille.sort_unstable();
        let at = |percent: usize| permille[permille.len().saturating_sub(1) * percent / 100] as f64 / 1_000.0;
        eprintln!("{emphasis:<36?} {:>8} {by_levels:>11} {:>8.2} {:>7.2}", permille.len(), at(50), at(90));
        assert!(by_levels > count / 4, "{emphasis:?}: {by_levels} systems are too few to tell");
    }
}

fn bounds(report: &Report) -> Vec<Nanos> {
    report.tasks.iter().map(|task| task.response_time.expect("a bound").time).collect()
}

/// Whether deadlines are proven, and the bounds in us, of tasks on one CPU whose resource has that protocol.
fn proven(scheduler: &str, protocol: &str, tasks: &str) -> (bool, Vec<u64>) {
    let text = format!(
        "laxity = 1\nname = \"textbook\"\nscheduler = \"{scheduler}\"\nplatform.cpus = 1\n\
         resource = [{{ name = \"r\", protocol = \"{protocol}\" }}]\ntask = [{tasks}]"
    );
    let workload = Workload::from_toml(&text, "textbook.toml").unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    let report = checked(&workload, &workload.scheduler);
    (report.hard.is_schedulable(), bounds(&report).iter().map(|bound| bound.0.div_ceil(1_000)).collect())
}

/// Audsley et al. 1993 and Tindell, Burns & Wellings 1994: `R = J + w`.
#[test]
fn jitter_is_not_execution() {
    let three = r#"{ name = "a", wcet = "2 ms", period = "5 ms", jitter = "1 ms" },
        { name = "b", wcet = "3 ms", period = "10 ms", jitter = "2 ms" }, { name = "c", wcet = "2 ms", period = "20 ms" }"#;
    assert_eq!(proven("P-RM", "fifo", three), (true, vec![3_000, 9_000, 14_000]));
    let late = r#"{ name = "a", wcet = "4 ms", period = "20 ms", jitter = "10 ms" },
        { name = "b", wcet = "8 ms", period = "40 ms", jitter = "20 ms" },
        { name = "c", wcet = "8 ms", period = "80 ms", jitter = "20 ms" }"#;
    assert_eq!(proven("P-RM", "fifo", late), (true, vec![14_000, 36_000, 56_000]));
}

/// Sha, Rajkumar & Lehoczky 1990: a job waits for one section of each job below at most.
#[test]
fn a_section_below_blocks_once() {
    let two = r#"{ name = "a", period = "90 ms", body = [{ critical = "r", body = [{ cpu = "1 ms" }] }] },
        { name = "c", period = "100 ms", body = [{ critical = "r", body = [{ cpu = "60 ms" }] }] },
        { name = "low", period = "200 ms", wcet = "40 ms" }"#;
    let three = r#"{ name = "a", period = "10 ms", body = [{ cpu = "2 ms" }, { critical = "r", body = [{ cpu = "1 ms" }] }] },
        { name = "b", period = "20 ms", wcet = "6 ms" },
        { name = "c", period = "100 ms", body = [{ critical = "r", body = [{ cpu = "5 ms" }] }, { cpu = "1 ms" }] }"#;
    let four = r#"{ name = "a", period = "20 ms", body = [{ critical = "r", body = [{ cpu = "1 ms" }] }] },
        { name = "b", period = "40 ms", body = [{ critical = "r", body = [{ cpu = "2 ms" }] }] },
        { name = "c", period = "80 ms", body = [{ critical = "r", body = [{ cpu = "3 ms" }] }] }"#;
    for protocol in ["priority-inheritance", "fifo"] {
        assert_eq!(proven("P-RM", protocol, two), (true, vec![61_000, 61_000, 162_000]), "{protocol}");
        assert_eq!(proven("P-RM", protocol, three), (true, vec![8_000, 17_000, 18_000]), "{protocol}");
        assert_eq!(proven("P-RM", protocol, four), (true, vec![6_000, 6_000, 6_000]), "{protocol}");
    }
}

/// George, Rivierre & Spuri 1996; Davis, Burns, Bril & Lukkien 2007, whose third task misses in its second job.
#[test]
fn what_nothing_preempts_keeps_out_what_comes_later() {
    let task = |name: &str, time: &str, period: &str, priority: u32| {
        format!(
            r#"{{ name = "{name}", period = "{period}", priority = {priority}, body = [{{ nonpreemptive = "{time}" }}] }}"#
        )
    };
    let all = |time, periods: [&str; 3]| {
        let tasks = periods
            .iter()
            .zip(["a", "b", "c"])
            .zip(1..)
            .map(|((period, name), priority)| task(name, time, period, priority));
        tasks.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(
        proven("P-FP", "fifo", &all("2 ms", ["5 ms", "7 ms", "7.000001 ms"])),
        (true, vec![4_000, 6_000, 7_000])
    );
    assert_eq!(proven("P-FP", "fifo", &all("1 ms", ["2.5 ms", "3.5 ms", "3.5 ms"])), (true, vec![2_000, 3_000, 3_500]));
}

const fn ms(count: u64) -> Nanos {
    Nanos(count * 1_000_000)
}

/// Three tasks of which the last has sections of 3 ms and 4 ms with `between` between them; the others arrive at `phase`.
fn rows(protocol: &str, phase: &str, between: &str) -> Workload {
    let text = format!(
        r#"
        laxity = 1
        name = "rows"
        scheduler = "P-RM"
        platform.cpus = 1
        resource = [{{ name = "r", protocol = "{protocol}" }}, {{ name = "s", protocol = "{protocol}" }}]
        task = [
            {{ name = "h", period = "10 ms", phase = "{phase}", body = [{{ cpu = "1 ms" }}, {{ critical = "r", body = [{{ cpu = "1 ms" }}] }}] }},
            {{ name = "m", period = "20 ms", phase = "{phase}", body = [{{ cpu = "2 ms" }}, {{ critical = "s", body = [{{ cpu = "1 ms" }}] }}] }},
            {{ name = "l", period = "50 ms", body = [{{ critical = "r", body = [{{ cpu = "3 ms" }}] }}, {between} {{ critical = "s", body = [{{ cpu = "4 ms" }}] }}, {{ cpu = "2 ms" }}] }},
        ]
        "#
    );
    Workload::from_toml(&text, "rows.toml").expect("a valid workload")
}

/// A job that unlocks one resource and asks for the next at once has it before a more urgent one runs: textbooks, where the unlock is
/// the end of its turn, say 9 ms.
#[test]
fn sections_that_follow_one_another_at_once_block_together() {
    for protocol in ["priority-inheritance", "fifo"] {
        let workload = rows(protocol, "1 us", "");
        let scheduler = workload.scheduler;
        let report = checked(&workload, &scheduler);
        assert_eq!(bounds(&report), [ms(5), ms(14), ms(16)], "{protocol}");
        let (summary, _) = observe(&workload, &scheduler, 0);
        let seen: Vec<_> = summary.tasks.iter().map(|task| task.jobs.response_time.expect("jobs").max).collect();
        let late = Nanos(1_000);
        assert_eq!(seen, [ms(5) - late, ms(14) - late, ms(16)], "{protocol}");
    }
}

/// A step that may take no time does not keep the sections apart; one that takes its time does.
#[test]
fn a_step_that_may_take_no_time_lets_sections_follow_one_another_at_once() {
    for (between, m) in
        [(r#"{ cpu = "1 ms", actual = { uniform = ["0 ms", "1 ms"] } },"#, 14), (r#"{ cpu = "1 ms" },"#, 9)]
    {
        let workload = rows("priority-inheritance", "0 ms", between);
        let report = checked(&workload, &workload.scheduler);
        assert_eq!(bounds(&report), [ms(5), ms(m), ms(17)], "{between}");
    }
}
