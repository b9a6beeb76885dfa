//! BWLOCK++ against schedules: response times against a core with non-preemptive sections (I4), and the throttle fair
//! scheduler against what it promises (I30).

mod common;

use common::{array, fraction, vectors};
use laxity_analysis::bwlock::{
    BwlockTask, SliceKind, TfsSchedule, TfsTask, memory_task_share, response_times, schedule,
};
use laxity_analysis::{Limits, Rational, rational};
use laxity_model::rng::SplitMix64;
use proptest::prelude::*;

/// A part of a job: so many ticks, preemptible or not.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    length: u64,
    locked: bool,
}

/// A job of a task: when it arrives and what it executes, in order.
#[derive(Clone, Debug)]
struct Job {
    task: usize,
    arrival: u64,
    chunks: Vec<Chunk>,
}

/// One core, a tick at a time: the first listed task's earliest job runs, but a locked chunk once begun runs to its
/// end. A locked chunk may begin at an instant just before the jobs that arrive at that instant: the worst that
/// continuous time allows. `begins_early` says whether it does. Returns each job's response time.
fn simulate(jobs: &[Job], mut begins_early: impl FnMut() -> bool) -> Vec<u64> {
    let mut left: Vec<Vec<Chunk>> = jobs.iter().map(|job| job.chunks.iter().rev().copied().collect()).collect();
    let mut responses = vec![0; jobs.len()];
    let mut running: Option<usize> = None;
    let mut now = 0;
    while left.iter().any(|chunks| !chunks.is_empty()) {
        let first = |known: &dyn Fn(u64) -> bool| {
            let pending = (0..jobs.len()).filter(|&job| !left[job].is_empty() && known(jobs[job].arrival));
            pending.min_by_key(|&job| (jobs[job].task, jobs[job].arrival))
        };
        let early = first(&|arrival| arrival < now);
        let chosen = match (running, early) {
            (Some(job), _) => Some(job),
            (None, Some(job)) if left[job].last().is_some_and(|chunk| chunk.locked) && begins_early() => Some(job),
            _ => first(&|arrival| arrival <= now),
        };
        now += 1;
        running = None;
        let Some(job) = chosen else { continue };
        let Some(chunk) = left[job].last_mut() else { continue };
        chunk.length -= 1;
        if chunk.length > 0 {
            running = chunk.locked.then_some(job);
            continue;
        }
        left[job].pop();
        if left[job].is_empty() {
            responses[job] = now - jobs[job].arrival;
        }
    }
    responses
}

fn random_tasks(rng: &mut SplitMix64) -> Vec<BwlockTask> {
    let count = rng.between(2, 4);
    let task = |_| BwlockTask {
        cpu: rng.between(2, 4),
        segments: (0..rng.below(3)).map(|_| rng.between(1, 6)).collect(),
        period: rng.between(12, 60),
        suspends: false,
    };
    (0..count).map(task).collect()
}

/// The parts of a job: its segments, each with two system calls, and CPU time around them. With `rng` the CPU time is
/// scattered, else it is one tick first and the rest last.
fn chunks(task: &BwlockTask, syscall: u64, rng: Option<&mut SplitMix64>) -> Vec<Chunk> {
    let mut gaps = vec![0; task.segments.len() + 1];
    match rng {
        Some(rng) => (0..task.cpu).for_each(|_| gaps[rng.below(task.segments.len() as u64 + 1) as usize] += 1),
        None => {
            gaps[0] = 1;
            gaps[task.segments.len()] += task.cpu - 1;
        }
    }
    let mut chunks = vec![Chunk { length: gaps[0], locked: false }];
    for (segment, gap) in task.segments.iter().zip(&gaps[1..]) {
        chunks.push(Chunk { length: segment + 2 * syscall, locked: true });
        chunks.push(Chunk { length: *gap, locked: false });
    }
    chunks.retain(|chunk| chunk.length > 0);
    chunks
}

#[test]
fn no_response_exceeds_the_bandwidth_lock_bound_in_random_arrivals() {
    let (mut checked, mut attained) = (0, 0);
    for seed in 0..600u64 {
        let mut rng = SplitMix64::new(seed);
        let (tasks, syscall) = (random_tasks(&mut rng), rng.below(2));
        let bounds = response_times(&tasks, syscall, &Limits::default()).expect("applies");
        if bounds.iter().all(|bound| bound.response_time.is_none()) {
            continue;
        }
        for _ in 0..6 {
            let mut jobs = Vec::new();
            for (index, task) in tasks.iter().enumerate() {
                let mut arrival = rng.below(task.period);
                while arrival < 240 {
                    jobs.push(Job { task: index, arrival, chunks: chunks(task, syscall, Some(&mut rng)) });
                    arrival += task.period + rng.below(3) / 2 * rng.below(task.period);
                }
            }
            let responses = simulate(&jobs, || rng.below(2) == 0);
            for (job, response) in jobs.iter().zip(responses) {
                if let Some(bound) = bounds[job.task].response_time {
                    assert!(response <= bound, "seed {seed}: {tasks:?}, {job:?} responds in {response}, not {bound}");
                    checked += 1;
                    attained += u32::from(response == bound);
                }
            }
        }
    }
    assert!(checked > 10_000 && attained > 500, "{checked} jobs, {attained} of them at their bound");
}

/// At the critical instant, the longest lower section has just begun and all higher priorities arrive together; a job
/// that ends with CPU time then responds in exactly R.
#[test]
fn the_bandwidth_lock_bound_is_attained_at_the_critical_instant() {
    let mut attained = [0, 0];
    for seed in 0..600u64 {
        let mut rng = SplitMix64::new(seed ^ 0xc417);
        let (tasks, syscall) = (random_tasks(&mut rng), rng.below(2));
        let bounds = response_times(&tasks, syscall, &Limits::default()).expect("applies");
        for (index, bound) in bounds.iter().enumerate() {
            let Some(response_time) = bound.response_time else { continue };
            let mut jobs = Vec::new();
            for (higher, task) in tasks[..=index].iter().enumerate() {
                let last = if higher == index { 1 } else { response_time };
                let arrivals = (1..=last).step_by(task.period as usize);
                jobs.extend(arrivals.map(|arrival| Job { task: higher, arrival, chunks: chunks(task, syscall, None) }));
            }
            let own = jobs.len() - 1;
            let lower = tasks[index + 1..].iter().flat_map(|task| &task.segments).max();
            if let Some(longest) = lower {
                // One tick of CPU time, so that the section begins when the others arrive.
                let section = Chunk { length: longest + 2 * syscall, locked: true };
                let chunks = vec![Chunk { length: 1, locked: false }, section];
                jobs.push(Job { task: tasks.len(), arrival: 0, chunks });
            }
            let responses = simulate(&jobs, || true);
            assert_eq!(responses[own], response_time, "seed {seed}: task {index} of {tasks:?}");
            attained[usize::from(lower.is_some())] += 1;
        }
    }
    assert!(attained.iter().all(|&count| count > 100), "{attained:?}");
}

fn zero() -> Rational {
    rational(0, 1)
}

fn executed(schedule: &TfsSchedule, task: usize) -> Rational {
    let runs = schedule.slices.iter().filter(|slice| slice.task == task && slice.kind == SliceKind::Run);
    runs.map(|slice| &slice.end - &slice.start).sum()
}

fn any_tfs_tasks() -> impl Strategy<Value = Vec<TfsTask>> {
    let budget = prop::option::of((1u32..4).prop_map(|quarters| rational(quarters, 4)));
    let task = (1u32..40, 1u32..4, budget).prop_map(|(work, weight, budget)| TfsTask {
        work: rational(work, 3),
        weight,
        budget,
    });
    prop::collection::vec(task, 1..5)
}

/// The same core under plain CFS with throttling, without any notion of punishment: at each boundary and completion
/// the task with the least executed time per weight. Returns the completion instants.
fn fair_completions(tasks: &[TfsTask], regulated_until: u64) -> Vec<Rational> {
    let one = rational(1, 1);
    let mut done = vec![zero(); tasks.len()];
    let mut finish = vec![zero(); tasks.len()];
    let mut now = zero();
    loop {
        let boundary = now.floor() + &one;
        let mut used = vec![zero(); tasks.len()];
        while now < boundary {
            let pending = (0..tasks.len()).filter(|&task| done[task] < tasks[task].work);
            let share = |task: usize| &done[task] / rational(tasks[task].weight, 1);
            let Some(task) = pending.min_by_key(|&task| (share(task), task)) else { return finish };
            let needed = &tasks[task].work - &done[task];
            let mut length = (&boundary - &now).min(needed.clone());
            let regulated = now.floor() < rational(regulated_until, 1);
            if let Some(budget) = tasks[task].budget.as_ref().filter(|_| regulated) {
                length = length.min(budget - &used[task]);
            }
            done[task] += &length;
            used[task] += &length;
            now += &length;
            if length == needed {
                finish[task] = now.clone();
            } else {
                // Out of budget or at the boundary: either way the rest of the period is over for the core.
                now = boundary.clone();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// I30: without punishment, TFS is CFS.
    #[test]
    fn throttling_without_punishment_is_plain_fair_scheduling(tasks in any_tfs_tasks(), until in 0u64..20) {
        let result = schedule(&tasks, &zero(), &rational(1, 1), &rational(until, 1), 10_000).expect("finite");
        prop_assert_eq!(&result.finish, &fair_completions(&tasks, until));
        prop_assert!(result.lost.iter().all(|lost| *lost == zero()));
    }

    /// I30: whatever virtual time is not execution is a punishment, and is what the schedule reports as lost.
    #[test]
    fn virtual_time_is_execution_by_weight_plus_what_was_lost(tasks in any_tfs_tasks(), until in 0u64..20, rho in 0u32..5) {
        let rho = rational(rho, 2);
        let result = schedule(&tasks, &rho, &rational(1, 1), &rational(until, 1), 10_000).expect("finite");
        let (_, last) = result.virtual_times.last().expect("some work");
        for (index, task) in tasks.iter().enumerate() {
            prop_assert_eq!(executed(&result, index), task.work.clone());
            prop_assert_eq!(&last[index] - &task.work / rational(task.weight, 1), result.lost[index].clone());
        }
        prop_assert_eq!(result.lost.iter().sum::<Rational>(), result.throttled() * rho);
    }

    /// I30: a task with work left runs again before long, however it is punished. While it waits, another task runs
    /// only while its virtual time is not beyond the waiting one's, and every period brings it a step closer.
    #[test]
    fn no_task_starves_under_throttling(tasks in any_tfs_tasks(), rho in 0u32..5) {
        let (one, rho) = (rational(1, 1), rational(rho, 1));
        let result = schedule(&tasks, &rho, &one, &rational(1_000_000, 1), 100_000).expect("finite");
        let spread = &one + &rho;
        // The least virtual time that a period of the task costs it.
        let step = |task: &TfsTask| {
            let weight = rational(task.weight, 1);
            task.budget.as_ref().map_or(&one / &weight, |budget| budget / &weight + (&one - budget) * &rho)
        };
        // Two more for the last partial step and where it began; one for each completion, which cuts a period short.
        let periods = |task: &TfsTask| (&spread / step(task)).floor() + rational(3, 1);
        let longest: Rational = tasks.iter().map(periods).sum();
        for index in 0..tasks.len() {
            let mut since = zero();
            for slice in result.slices.iter().filter(|slice| slice.task == index && slice.kind == SliceKind::Run) {
                prop_assert!(&slice.start - &since <= longest, "task {} waits from {} to {}", index, since, slice.start);
                since = slice.end.clone();
            }
            prop_assert_eq!(&since, &result.finish[index]);
        }
    }

    /// I30: the share formula, to within one period.
    #[test]
    fn the_long_run_share_of_a_memory_task_is_that_of_the_formula(quarters in 1u32..4, rho in 0u32..6) {
        let (budget, rho, periods) = (rational(quarters, 4), rational(rho, 2), 400u32);
        let endless = |budget| TfsTask { work: rational(periods, 1), weight: 1, budget };
        let tasks = [endless(Some(budget.clone())), endless(None)];
        let end = rational(periods, 1);
        let result = schedule(&tasks, &rho, &rational(1, 1), &rational(10 * periods, 1), 10_000).expect("finite");
        let memory = result.slices.iter().filter(|slice| {
            slice.task == 0 && slice.kind == SliceKind::Run && slice.start < end
        });
        let expected = memory_task_share(&budget, &rho) * &end;
        let difference = rational(memory.count() as u64, 1) - expected;
        prop_assert!(difference <= rational(1, 1) && difference >= rational(-1, 1), "off by {}", difference);
    }
}

/// I30: on the worked example, the more a task is punished the less the core idles.
#[test]
fn the_core_is_throttled_less_the_more_it_punishes_in_figure_4() {
    let vectors = vectors();
    let case = &array(&vectors["bwlock"]["tfs"])[0];
    let budget = |task: &serde_json::Value| (!task["budget"].is_null()).then(|| fraction(&task["budget"]));
    let task = |task: &serde_json::Value| TfsTask { work: fraction(&task["work"]), weight: 1, budget: budget(task) };
    let tasks: Vec<TfsTask> = array(&case["tasks"]).iter().map(task).collect();
    let throttled: Vec<Rational> = (0..=24)
        .map(|eighths| {
            let rho = rational(eighths, 8);
            schedule(&tasks, &rho, &rational(1, 1), &rational(4, 1), 100).expect("finite").throttled()
        })
        .collect();
    assert!(throttled.is_sorted_by(|a, b| a >= b), "{throttled:?}");
    assert_eq!([&throttled[0], &throttled[8], &throttled[24]], [&rational(2, 1), &rational(4, 3), &rational(2, 3)]);
}
