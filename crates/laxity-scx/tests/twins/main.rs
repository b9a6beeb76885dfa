//! The policy core in C and the policies of laxity-policy get the same random events and have the same links after each;
//! and each rule of the core, once broken, is noticed.

mod driver;
mod early;
mod races;
mod setup;

use driver::Twins;
use laxity_scx::native::{CPUS_MAX, Core, Invocation, MUTANTS, Refusal, Rule, TASKS_MAX};
use laxity_testing::Random;
use setup::{clusters, policies};

/// Rules that only threads can show to be broken: see `races.rs`.
const OF_RACES: [u32; 4] = [46, 47, 49, 50];

/// Events until a system is replaced by another.
const OF_A_SYSTEM: u64 = 400;

/// At least `events` random events for systems of every policy in turn; the number of events, or the first difference.
fn run(events: u64, mutant: Option<u32>, random: &mut Random) -> Result<u64, String> {
    let mut seen = 0;
    while seen < events {
        for policy in policies() {
            for (number, cluster) in clusters(policy, random).into_iter().enumerate() {
                let mut twins = Twins::new(cluster, mutant, random.below(2) == 0);
                for step in 0..OF_A_SYSTEM {
                    let at = |difference| format!("{policy:?}, cluster {number}, step {step}: {difference}");
                    seen += u64::from(twins.step(random).map_err(at)?);
                }
            }
        }
    }
    Ok(seen)
}

fn equal(events: u64) {
    let seen = run(events, None, &mut Random::new()).unwrap_or_else(|difference| panic!("{difference}"));
    println!("{seen} events, of {} policies", policies().len());
}

#[test]
fn links_in_c_and_in_rust_are_equal_after_each_event() {
    equal(300_000);
}

#[test]
#[ignore = "seconds to a minute; make test-kernel"]
fn links_are_equal_after_each_of_ten_million_events() {
    equal(10_000_000);
}

#[test]
fn each_broken_rule_is_noticed() {
    let mut random = Random::new();
    run(20_000, Some(0), &mut random).expect("the build for tests has no rule broken of its own accord");
    let noticed = |&mutant: &u32| run(400_000, Some(mutant), &mut random).is_err();
    let (_, missed): (Vec<u32>, Vec<u32>) = (1..=MUTANTS).filter(|it| !OF_RACES.contains(it)).partition(noticed);
    assert!(missed.is_empty(), "nothing noticed that these rules were broken: {missed:?}");
}

#[test]
fn an_event_that_cannot_have_happened_is_refused_and_changes_nothing() {
    let mut core = Core::new(4, 2, Rule::ByJob, Invocation::Staggered).expect("a small system");
    core.release(0, 10).expect("no job is pending");
    core.release(1, 20).expect("no job is pending");
    core.tick(0, 0).expect("the first");
    assert_eq!((core.decide(), core.linked(0)), (1, Some(0)));
    core.switch(0, Some(0)).expect("the CPU is idle");
    core.tick(0, 1).expect("after a decision");
    let before = core.state().to_owned();
    for (refused, expected) in [
        (core.release(4, 1), Refusal::NoSuch),
        (core.release(u32::MAX, 1), Refusal::NoSuch),
        (core.release(0, 1), Refusal::IsPending),
        (core.wake(0, None, (1, 1)), Refusal::IsPending),
        (core.wake(2, Some(2), (1, 1)), Refusal::NoSuch),
        (core.wake(2, Some(4), (1, 1)), Refusal::NoSuch),
        (core.resume(1), Refusal::NotSuspended),
        (core.complete(1, 0), Refusal::Elsewhere),
        (core.complete(2, 0), Refusal::NoSuch),
        (core.complete(0, 2), Refusal::NotPending),
        (core.suspend(0, 2), Refusal::NotPending),
        (core.prioritize(9, (1, 1)), Refusal::NoSuch),
        (core.lead(4, (1, 1)), Refusal::NoSuch),
        (core.switch(1, Some(0)), Refusal::Elsewhere),
        (core.switch(64, None), Refusal::NoSuch),
        (core.enter(1), Refusal::NotPending),
        (core.exit(1).map(drop), Refusal::NotPending),
        (core.tick(0, 2), Refusal::Ticked),
        (core.tick(7, 2), Refusal::NoSuch),
        (core.set_rank(4, 1, 1), Refusal::NoSuch),
    ] {
        assert_eq!(refused, Err(expected));
    }
    assert_eq!(core.state(), before, "a refused event changes nothing");
    assert_eq!((core.next(2), core.linked(2)), (None, None));
}

#[test]
fn systems_of_impossible_sizes_are_refused() {
    for (tasks, cpus) in [(0, 1), (1, 0), (TASKS_MAX + 1, 1), (1, CPUS_MAX + 1), (u32::MAX, u32::MAX)] {
        let refused = Core::new(tasks, cpus, Rule::ByTask, Invocation::EventDriven).err();
        assert_eq!(refused, Some(Refusal::NoSuch), "{tasks} tasks, {cpus} CPUs");
    }
    let mut full = Core::new(TASKS_MAX, CPUS_MAX, Rule::ByTask, Invocation::EventDriven).expect("the largest");
    for task in 0..TASKS_MAX {
        full.set_rank(task, u64::from(TASKS_MAX - task), task).expect("it exists");
        full.release(task, 0).expect("no job is pending");
    }
    assert_eq!(full.decide(), u64::MAX, "all CPUs have a job");
    let mut linked: Vec<u32> = (0..CPUS_MAX).filter_map(|cpu| full.linked(cpu)).collect();
    linked.sort_unstable();
    assert_eq!(linked, (TASKS_MAX - CPUS_MAX..TASKS_MAX).collect::<Vec<u32>>(), "the most urgent levels");
}
