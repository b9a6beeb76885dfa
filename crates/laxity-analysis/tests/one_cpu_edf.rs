//! EDF on one CPU against schedules tick by tick, over all offsets: response times are exact, and with sections never exceeded.

use laxity_analysis::edf::{Blocking, Load, Section, demand, response_times};
use laxity_analysis::{AnalysisTask, Limits, TaskSet};
use laxity_model::rng::SplitMix64;

/// A task, its release jitter, and how much of each job cannot be preempted once it begins.
#[derive(Clone, Copy, Debug)]
struct Timed {
    task: AnalysisTask,
    jitter: u64,
    section: u64,
}

struct Job {
    arrival: i64,
    release: i64,
    done: u64,
}

/// The longest response of task `measured` if the first job of each is released at `releases` and arrived `late` before, and the
/// others arrive a period apart. Of jobs that are due together its own are last.
fn longest(tasks: &[Timed], measured: usize, releases: &[u64], late: &[u64], end: i64) -> u64 {
    let first = |task: usize| releases[task] as i64 - late[task] as i64;
    let mut jobs: Vec<Vec<Job>> = (0..tasks.len())
        .map(|task| {
            let arrivals = (0..).map(|job| first(task) + job * tasks[task].task.period as i64);
            let job = |arrival: i64| Job { arrival, release: arrival.max(releases[task] as i64), done: 0 };
            let mut all: Vec<Job> = arrivals.take_while(|&arrival| arrival < end).map(job).collect();
            all.reverse();
            all
        })
        .collect();
    let (mut worst, mut inside) = (0, None);
    for now in 0..end {
        let ready = |task: &usize| jobs[*task].last().is_some_and(|job| job.release <= now);
        let key = |task: &usize| {
            let due = jobs[*task].last().map_or(0, |job| job.arrival) + tasks[*task].task.deadline as i64;
            (due, *task == measured, *task)
        };
        let Some(task) = inside.or_else(|| (0..tasks.len()).filter(ready).min_by_key(key)) else { continue };
        let Timed { task: AnalysisTask { wcet, .. }, section, .. } = tasks[task];
        let job = jobs[task].last_mut().expect("it is ready");
        job.done += 1;
        // The section is the last part of the job.
        inside = (job.done < wcet && job.done > wcet - section).then_some(task);
        if job.done == wcet {
            if task == measured {
                worst = worst.max((now + 1 - job.arrival) as u64);
            }
            jobs[task].pop();
        }
    }
    worst
}

/// The longest over all offsets, and for the measured task all that its first job may be late.
fn longest_of_all(tasks: &[Timed], measured: usize) -> u64 {
    let hyperperiod = tasks.iter().fold(1, |all, one| all / gcd(all, one.task.period) * one.task.period);
    let mut worst = 0;
    let mut late: Vec<u64> = tasks.iter().map(|task| task.jitter).collect();
    for own in 0..=tasks[measured].jitter {
        late[measured] = own;
        let mut releases = vec![0; tasks.len()];
        loop {
            worst = worst.max(longest(tasks, measured, &releases, &late, 2 * hyperperiod as i64 + 40));
            let next = (0..tasks.len()).find(|&task| releases[task] + 1 < tasks[task].task.period);
            let Some(next) = next else { break };
            releases[..next].fill(0);
            releases[next] += 1;
        }
    }
    worst
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

fn random(rng: &mut SplitMix64, with_jitter: bool, with_sections: bool) -> Vec<Timed> {
    let count = rng.between(1, 3);
    let task = |rng: &mut SplitMix64| {
        let period: u64 = [2, 3, 4, 5, 6, 8][rng.below(6) as usize];
        let wcet = rng.between(1, period.div_ceil(count).max(2).min(period));
        let task = AnalysisTask::new(wcet, period, rng.between(wcet, 2 * period));
        let jitter = if with_jitter { rng.below(task.deadline.min(4)) } else { 0 };
        let section = if with_sections { rng.between(0, wcet) } else { 0 };
        Timed { task, jitter, section }
    };
    (0..count).map(|_| task(rng)).collect()
}

/// Bounds, and whether deadlines are found to be met.
fn analysed(tasks: &[Timed]) -> Option<(Vec<u64>, bool)> {
    let set = TaskSet::new(1, tasks.iter().map(|timed| timed.task).collect()).expect("in range");
    let jitter: Vec<u64> = tasks.iter().map(|timed| timed.jitter).collect();
    let section = |timed: &Timed| Section { from: 0, until: timed.task.deadline - timed.jitter, time: timed.section };
    let blocking = Blocking::new(&tasks.iter().map(section).collect::<Vec<_>>(), &[]);
    let load = Load { set: &set, jitter: &jitter, blocking: &blocking, streams: &[] };
    if set.compare_utilization_to_cpus() == std::cmp::Ordering::Greater {
        return None;
    }
    let found = response_times(load, &Limits::default()).ok()?;
    assert!(found.is_complete);
    Some((found.times, demand(load, &Limits::default()).is_schedulable()))
}

/// Whether deadlines are met or not.
#[test]
fn response_times_are_those_of_the_worst_offsets_and_release_jitter() {
    let (mut checked, mut late) = (0, 0);
    for seed in 0..3_000u64 {
        let rng = &mut SplitMix64::new(seed ^ 0x59u64);
        let tasks = random(rng, seed % 2 == 1, false);
        let Some((bounds, is_schedulable)) = analysed(&tasks) else { continue };
        let seen: Vec<u64> = (0..tasks.len()).map(|task| longest_of_all(&tasks, task)).collect();
        assert_eq!(bounds, seen, "seed {seed}: {tasks:?}");
        let meets = tasks.iter().zip(&seen).all(|(timed, &response)| response <= timed.task.deadline);
        assert_eq!(is_schedulable, meets, "seed {seed}: {tasks:?} respond in {seen:?}");
        checked += 1;
        late += u32::from(!meets);
    }
    assert!(checked > 1_000 && late > 50, "{checked} sets, {late} of them late");
}

#[test]
fn no_job_that_finds_a_section_exceeds_its_bound() {
    let (mut checked, mut met, mut attained) = (0, 0, 0);
    for seed in 0..3_000u64 {
        let rng = &mut SplitMix64::new(seed ^ 0x5ec7u64);
        let tasks = random(rng, seed % 3 == 1, true);
        let Some((bounds, is_schedulable)) = analysed(&tasks) else { continue };
        let seen: Vec<u64> = (0..tasks.len()).map(|task| longest_of_all(&tasks, task)).collect();
        for (timed, (&bound, &seen)) in tasks.iter().zip(bounds.iter().zip(&seen)) {
            assert!(seen <= bound, "seed {seed}: {timed:?} of {tasks:?} responds in {seen}, bound {bound}");
            assert!(!is_schedulable || seen <= timed.task.deadline, "seed {seed}: {tasks:?}");
            // A section began a tick before at the latest.
            attained += u32::from(seen + 1 >= bound);
        }
        checked += 1;
        met += u32::from(is_schedulable);
    }
    assert!(checked > 1_000 && met > 500 && attained > checked, "{checked} sets, {met} met, {attained} attained");
}
