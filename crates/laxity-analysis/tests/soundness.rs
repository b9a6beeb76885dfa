//! Analysis against simulation: no test accepts a set that misses, no bound is exceeded (I1, I2, I3).

mod common;

use common::simulator::{Rank, response_times, synchronous, worst_seen};
use laxity_analysis::fixed_priority;
use laxity_analysis::gedf::{
    HardMode, bak_any_deadline, demand_bound, gfb, hard, run_test, uniprocessor_edf, uniprocessor_edf_interrupts,
};
use laxity_analysis::overheads::InterruptStream;
use laxity_analysis::soft::{PriorityPoints, check_bounded, compliant_vector, devi_anderson, tardiness};
use laxity_analysis::{AnalysisTask, Limits, Outcome, TaskSet, Test};
use laxity_model::rng::SplitMix64;

/// The tests that must be sound, one by one, and not only in combination.
const SOUND: [Test; 10] = [
    Test::Trivial,
    Test::Gfb,
    Test::Bak,
    Test::Bcl,
    Test::BclIterative,
    Test::Rta,
    Test::RtaSlack,
    Test::FfDbf,
    Test::Bar,
    Test::BarDense,
];

/// Checks every test on one set against the worst responses seen; returns whether one accepts.
fn check_hard(set: &TaskSet, seen: &[u64], context: &str) -> bool {
    let limits = Limits::default();
    let missed = set.tasks().iter().zip(seen).any(|(task, &response)| response > task.deadline);
    let mut accepted = false;
    for test in SOUND.into_iter().chain([Test::BarLe]) {
        let verdict = run_test(set, test, &limits);
        if !verdict.is_schedulable() {
            continue;
        }
        accepted = true;
        assert!(!missed, "{context}: {test} accepts {set:?}, which responds in {seen:?}");
        if let Some(bounds) = verdict.response_times() {
            let within = bounds.iter().zip(seen).all(|(bound, seen)| seen <= bound);
            assert!(within, "{context}: {test} bounds {bounds:?} of {set:?}, which responds in {seen:?}");
        }
    }
    accepted
}

/// Checks the tardiness bounds on a set against the worst responses seen.
fn check_soft(set: &TaskSet, seen: &[u64], context: &str) {
    let late = |index: usize| seen[index].saturating_sub(set.tasks()[index].deadline);
    let vector = compliant_vector(set, PriorityPoints::Edf).expect("bounded");
    let mut bounds = vec![vector.tardiness_ticks(), tardiness(set, &Limits::default()).expect("bounded").bounds];
    if let Ok(bound) = devi_anderson(set) {
        bounds.push(set.tasks().iter().map(|task| bound.tardiness(task.wcet)).collect());
    }
    for bounds in bounds {
        for (index, &bound) in bounds.iter().enumerate() {
            assert!(late(index) <= bound, "{context}: task {index} of {set:?} is {} late, bound {bound}", late(index));
        }
    }
}

fn random_task(rng: &mut SplitMix64, period_max: u64, constrained: bool) -> AnalysisTask {
    let period = rng.between(1, period_max);
    let deadline = if constrained { rng.between(1, period) } else { period };
    AnalysisTask::new(rng.between(1, deadline), period, deadline)
}

fn random_set(rng: &mut SplitMix64, constrained: bool) -> TaskSet {
    let cpus = rng.between(2, 4) as u32;
    let period_max = [5, 10, 16][rng.below(3) as usize];
    let count = u64::from(cpus) + rng.between(1, 4);
    let tasks = (0..count).map(|_| random_task(rng, period_max, constrained)).collect();
    TaskSet::new(cpus, tasks).expect("in range")
}

/// Sets within the machine's capacity that are tried; nothing is claimed about the others.
const RANDOM_SETS: u32 = 100_000;

#[test]
fn no_test_accepts_a_random_set_that_misses_and_no_response_bound_is_exceeded() {
    let (mut accepted, mut checked, mut seed) = (0, 0, 0u64);
    while checked < RANDOM_SETS {
        let mut rng = SplitMix64::new(seed);
        let set = random_set(&mut rng, seed % 2 == 0);
        if check_bounded(&set).is_ok() {
            let seen = worst_seen(&set, Rank::EarliestDeadline, &mut rng);
            accepted += u32::from(check_hard(&set, &seen, &format!("seed {seed}")));
            check_soft(&set, &seen, &format!("seed {seed}"));
            checked += 1;
        }
        seed += 1;
    }
    assert!(accepted > RANDOM_SETS / 10, "{accepted} of {checked} are accepted: the test tests something");
}

/// All tasks with periods up to 5, in all multisets of two and three, on one to three CPUs.
#[test]
fn no_test_accepts_any_small_set_that_misses_and_the_uniprocessor_test_is_exact() {
    let mut tasks = Vec::new();
    for period in 1..=5 {
        for deadline in 1..=period {
            tasks.extend((1..=deadline).map(|wcet| AnalysisTask::new(wcet, period, deadline)));
        }
    }
    let mut sets: Vec<Vec<AnalysisTask>> = Vec::new();
    for a in 0..tasks.len() {
        for b in a..tasks.len() {
            sets.push(vec![tasks[a], tasks[b]]);
            sets.extend((b..tasks.len()).map(|c| vec![tasks[a], tasks[b], tasks[c]]));
        }
    }
    assert_eq!(sets.len(), 630 + 7_770);
    let mut exact = [0, 0];
    for tasks in sets {
        for cpus in 1..=3 {
            let set = TaskSet::new(cpus, tasks.clone()).expect("in range");
            if check_bounded(&set).is_err() {
                continue;
            }
            // The hyperperiod of periods up to 5 is 60.
            let arrivals = synchronous(&set, 120);
            let seen =
                [false, true].map(|reverse| response_times(&set, &arrivals, Rank::EarliestDeadline, reverse, 120));
            for seen in &seen {
                check_hard(&set, seen, "small sets");
            }
            if cpus == 1 {
                let meets = set.tasks().iter().zip(&seen[0]).all(|(task, &response)| response <= task.deadline);
                let verdict = uniprocessor_edf(&set, &Limits::default());
                assert_eq!(verdict.is_schedulable(), meets, "{set:?}: {verdict}");
                exact[usize::from(meets)] += 1;
            }
        }
    }
    assert!(exact[0] > 100 && exact[1] > 100, "{exact:?}");
}

#[test]
fn deadlines_beyond_the_period_are_never_accepted_wrongly() {
    let mut accepted = [0u32; 4];
    for seed in 0..20_000u64 {
        let mut rng = SplitMix64::new(seed ^ 0x5eed);
        let cpus = rng.between(1, 3) as u32;
        let count = u64::from(cpus) + rng.between(1, 3);
        let task = |rng: &mut SplitMix64| {
            let task = random_task(rng, 10, false);
            AnalysisTask { deadline: rng.between(task.wcet, 3 * task.period), ..task }
        };
        let tasks = (0..count).map(|_| task(&mut rng)).collect();
        let set = TaskSet::new(cpus, tasks).expect("in range");
        if check_bounded(&set).is_err() {
            continue;
        }
        let seen = worst_seen(&set, Rank::EarliestDeadline, &mut rng);
        let missed = set.tasks().iter().zip(&seen).any(|(task, &response)| response > task.deadline);
        let limits = Limits::default();
        let verdicts = [
            gfb(&set).is_schedulable(),
            bak_any_deadline(&set).is_schedulable(),
            uniprocessor_edf(&set, &limits).is_schedulable(),
            hard(&set, HardMode::FirstAcceptance, &limits).verdict.is_schedulable(),
        ];
        for (count, accept) in accepted.iter_mut().zip(verdicts) {
            assert!(!(accept && missed), "seed {seed}: {verdicts:?} for {set:?}, which responds in {seen:?}");
            *count += u32::from(accept);
        }
        check_soft(&set, &seen, &format!("seed {seed}"));
    }
    assert!(accepted.iter().all(|&count| count > 100), "{accepted:?}");
}

#[test]
fn fixed_priority_bounds_are_not_exceeded_and_are_exact_on_one_cpu() {
    let mut proven = [0u32; 2];
    for seed in 0..20_000u64 {
        let mut rng = SplitMix64::new(seed ^ 0xf1ed);
        let cpus = rng.between(1, 3) as u32;
        let count = u64::from(cpus) + rng.between(1, 3);
        let tasks = (0..count).map(|_| random_task(&mut rng, 8, true)).collect();
        let set = TaskSet::new(cpus, tasks).expect("in range");
        let limits = Limits::default();
        let verdict = match cpus {
            1 => fixed_priority::uniprocessor(&set, &[], &limits),
            _ => fixed_priority::global(&set, &limits),
        };
        let seen = worst_seen(&set, Rank::TaskOrder, &mut rng);
        if let Some(bounds) = verdict.response_times() {
            assert!(bounds.iter().zip(&seen).all(|(bound, seen)| seen <= bound), "seed {seed}: {set:?} {bounds:?}");
            if cpus == 1 {
                assert_eq!(bounds, seen, "seed {seed}: the synchronous release is the worst case");
            }
            proven[usize::from(cpus > 1)] += 1;
        } else if let Outcome::Infeasible(_) = verdict.outcome {
            let late = set.tasks().iter().zip(&seen).any(|(task, &response)| response > task.deadline);
            assert!(late, "seed {seed}: {verdict} but {seen:?}");
        }
    }
    assert!(proven.iter().all(|&count| count > 500), "{proven:?}");
}

/// Walking down skips intervals; all of them, one by one, say the same.
#[test]
fn handlers_beside_jobs_are_found_to_be_too_much_in_the_intervals_where_they_are() {
    let mut verdicts = [0u32; 2];
    for seed in 0..20_000u64 {
        let mut rng = SplitMix64::new(seed ^ 0x1dea);
        let tasks = (0..rng.between(1, 3)).map(|_| random_task(&mut rng, 12, seed % 2 == 0)).collect();
        let set = TaskSet::new(1, tasks).expect("in range");
        let streams: Vec<InterruptStream> = (0..rng.between(1, 2))
            .map(|_| InterruptStream { cost: rng.between(1, 2), period: rng.between(4, 20), ahead: rng.below(5) })
            .collect();
        let verdict = uniprocessor_edf_interrupts(&set, &streams, &Limits::default());
        let rate: f64 = set.tasks().iter().map(|task| task.wcet as f64 / task.period as f64).sum::<f64>()
            + streams.iter().map(|stream| stream.cost as f64 / stream.period as f64).sum::<f64>();
        if rate > 0.999 {
            assert!(!verdict.is_schedulable(), "seed {seed}: {set:?} {streams:?} leave no time");
            continue;
        }
        let handlers = |length: u64| streams.iter().map(|stream| stream.time(length)).sum::<u128>();
        let asked = |length: u64| {
            let jobs = |task: &AnalysisTask| u128::from(length.div_ceil(task.period) * task.wcet);
            set.tasks().iter().map(jobs).sum::<u128>() + handlers(length)
        };
        // The CPU is never busy for longer, whatever arrives.
        let busy = (1..).find(|&length| asked(length) <= u128::from(length)).expect("some time is left");
        let is_enough = |interval: u64| {
            let ends = |task: &AnalysisTask| {
                interval >= task.deadline && (interval - task.deadline).is_multiple_of(task.period)
            };
            let jobs: u128 = set.tasks().iter().map(|task| demand_bound(task, interval)).sum();
            !set.tasks().iter().any(ends) || jobs + handlers(interval) <= u128::from(interval)
        };
        let all = (1..busy).all(is_enough);
        assert_eq!(verdict.is_schedulable(), all, "seed {seed}: {set:?} {streams:?}: {verdict}");
        verdicts[usize::from(all)] += 1;
        if let Some(bounds) =
            fixed_priority::uniprocessor_interrupts(&set, &[], &streams, &Limits::default()).response_times()
        {
            let within = set.tasks().iter().zip(bounds).all(|(task, &bound)| bound <= task.deadline);
            let with_handlers = bounds[0] >= set.tasks()[0].wcet + streams[0].cost;
            assert!(within && with_handlers, "seed {seed}: {bounds:?} of {set:?} beside {streams:?}");
        }
    }
    assert!(verdicts.iter().all(|&count| count > 1_000), "{verdicts:?}");
}
