//! EDF on one CPU against schedules tick by tick, over all offsets: response times are exact, and with sections never exceeded.

use laxity_analysis::edf::{Blocking, Load, Section, demand, response_times};
use laxity_analysis::overheads::InterruptStream;
use laxity_analysis::{AnalysisTask, Limits, Outcome, Precondition, TaskSet};
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

/// The formula of the papers for one task, all of whose jobs that are due by `d` count: the largest `L - a` over all arrivals within
/// `reach` ticks.
fn by_the_papers(load: &Load<'_>, measured: usize, reach: u64) -> u64 {
    let one = load.set.tasks()[measured];
    let response = |due: u64| {
        let mut length = 1;
        loop {
            let window = length + u64::from(one.ends_waiting);
            let of = |(index, (task, &jitter)): (usize, (&AnalysisTask, &u64))| {
                let by_due = (due + jitter).checked_sub(task.deadline).map_or(0, |room| room / task.period + 1);
                let released = (window + jitter).div_ceil(task.period);
                task.wcet * if index == measured { by_due } else { by_due.min(released) }
            };
            let jobs: u64 = load.set.tasks().iter().zip(load.jitter).enumerate().map(of).sum();
            let handlers: u128 = load.streams.iter().map(|stream| stream.time(window)).sum();
            let next = load.blocking.at(due) + jobs + handlers as u64;
            if next <= length {
                return (length + one.deadline).saturating_sub(due);
            }
            length = next;
        }
    };
    (one.deadline - load.jitter[measured]..=reach + one.deadline).map(response).max().expect("one arrival at least")
}

#[test]
fn one_look_at_each_instant_finds_what_the_papers_find_task_by_task() {
    let (mut checked, mut late) = (0, 0);
    for seed in 0..4_000u64 {
        let rng = &mut SplitMix64::new(seed ^ 0x70a9u64);
        let timed = random(rng, seed % 2 == 1, seed % 3 == 1);
        let ending = |timed: &Timed| AnalysisTask { ends_waiting: timed.section % 2 == 1, ..timed.task };
        let set = TaskSet::new(1, timed.iter().map(ending).collect()).expect("in range");
        let jitter: Vec<u64> = timed.iter().map(|timed| timed.jitter).collect();
        // It keeps waiting what is due like the first task at the earliest, which may be as late as its own job.
        let from = if seed % 4 == 1 { timed[0].task.deadline - timed[0].jitter } else { 0 };
        let section = |timed: &Timed| Section { from, until: timed.task.deadline - timed.jitter, time: timed.section };
        let (once, each) = timed.split_at(timed.len() / 2);
        let [once, each] = [once, each].map(|some| some.iter().map(section).collect::<Vec<_>>());
        let blocking = Blocking::new(&once, &each);
        let stream = |rng: &mut SplitMix64| InterruptStream {
            cost: rng.below(2),
            period: rng.between(6, 20),
            ahead: rng.below(20),
        };
        let streams: Vec<InterruptStream> = (0..rng.below(3)).map(|_| stream(rng)).collect();
        let load = Load { set: &set, jitter: &jitter, blocking: &blocking, streams: &streams };
        let Ok(found) = response_times(load, &Limits::default()) else { continue };
        let papers: Vec<u64> = (0..timed.len()).map(|task| by_the_papers(&load, task, 500)).collect();
        assert!(found.is_complete, "seed {seed}");
        assert_eq!(found.times, papers, "seed {seed}: {timed:?} {streams:?}");
        checked += 1;
        late += u32::from(papers.iter().zip(&timed).any(|(&time, timed)| time > timed.task.deadline));
    }
    assert!(checked > 1_000 && late > 300, "{checked} sets, {late} of them late");
}

#[test]
fn a_cpu_in_use_all_the_time_has_no_busy_periods_if_jobs_end_with_a_wait() {
    let task = AnalysisTask { ends_waiting: true, ..AnalysisTask::implicit(2, 4) };
    let set = TaskSet::new(1, vec![task, AnalysisTask::implicit(4, 8)]).expect("in range");
    let load = Load { set: &set, jitter: &[], blocking: &Blocking::default(), streams: &[] };
    let found = response_times(load, &Limits { steps: 1_000, ..Limits::default() });
    assert_eq!(found, Err(Outcome::NotApplicable(Precondition::UtilizationBelowCpus)));
}
