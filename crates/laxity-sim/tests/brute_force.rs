//! The simulator against a unit-step simulator written separately: every set of two or three tasks with periods up to
//! 6 on up to three CPUs, slot by slot.

mod common;

use std::num::NonZeroU64;

use common::{executions, run};
use laxity_model::{Instant, Nanos, Platform, PriorityRule, Scheduler, Task, Workload};

/// One unit of the brute force, in nanoseconds: large enough that a schedule off the grid would show.
const UNIT: u64 = 1_000;

#[derive(Clone, Copy, Debug)]
struct Unit {
    cost: u64,
    period: u64,
    deadline: u64,
    phase: u64,
}

/// Which tasks run in each slot, and when each job completes, from first principles: at every step look at all jobs.
fn step_by_step(
    tasks: &[Unit],
    cpus: usize,
    slots: u64,
    rule: PriorityRule,
    quantum: NonZeroU64,
) -> (Vec<Vec<usize>>, Vec<Vec<u64>>) {
    let released = |task: &Unit, slot: u64| if slot < task.phase { 0 } else { (slot - task.phase) / task.period + 1 };
    let mut executed = vec![0; tasks.len()];
    let mut completions = vec![Vec::new(); tasks.len()];
    let mut chosen: Vec<usize> = Vec::new();
    let mut schedule = Vec::new();
    for slot in 0..slots {
        let pending = |executed: &[u64], task: usize| executed[task] < released(&tasks[task], slot) * tasks[task].cost;
        if slot % quantum == 0 {
            chosen = (0..tasks.len()).filter(|&task| pending(&executed, task)).collect();
            chosen.sort_by_key(|&task| {
                let job = executed[task] / tasks[task].cost;
                let key = match rule {
                    PriorityRule::Edf => tasks[task].phase + job * tasks[task].period + tasks[task].deadline,
                    PriorityRule::RateMonotonic => tasks[task].period,
                    PriorityRule::DeadlineMonotonic => tasks[task].deadline,
                    PriorityRule::Given | PriorityRule::Fair => unreachable!("not used here"),
                };
                (key, task)
            });
            chosen.truncate(cpus);
            chosen.sort_unstable();
        }
        schedule.push(chosen.clone());
        for task in chosen.clone() {
            executed[task] += 1;
            if executed[task].is_multiple_of(tasks[task].cost) {
                completions[task].push(slot + 1);
                // Within a quantum a CPU whose job ends idles.
                chosen.retain(|&other| other != task);
            }
        }
        if quantum.get() == 1 {
            chosen.clear();
        }
    }
    (schedule, completions)
}

/// The same from the simulator.
fn simulated(
    tasks: &[Unit],
    cpus: usize,
    slots: u64,
    scheduler: &Scheduler,
    quantum: u64,
) -> (Vec<Vec<usize>>, Vec<Vec<u64>>) {
    let model = tasks.iter().enumerate().map(|(index, task)| Task {
        deadline: Nanos(task.deadline * UNIT),
        phase: Nanos(task.phase * UNIT),
        ..Task::periodic(format!("t{index}"), Nanos(task.cost * UNIT), Nanos(task.period * UNIT))
    });
    let mut platform = Platform::identical(cpus);
    platform.quantum = Nanos(quantum * UNIT);
    platform.tick = platform.quantum;
    let workload = Workload::new("brute force", platform, model.collect());
    let records = run(&workload, scheduler, Instant(slots * UNIT), 0);
    let mut schedule = vec![Vec::new(); slots as usize];
    for run in executions(&records) {
        assert!(run.start.0 % UNIT == 0 && run.end.0 % UNIT == 0, "{run:?} is off the grid");
        for slot in run.start.0 / UNIT..run.end.0 / UNIT {
            schedule[slot as usize].push(run.job.task.index());
        }
    }
    schedule.iter_mut().for_each(|tasks| tasks.sort_unstable());
    let mut completions = vec![Vec::new(); tasks.len()];
    for record in &records {
        if let laxity_trace::Event::Complete { job, .. } = record.event {
            completions[job.task.index()].push(record.at.0 / UNIT);
        }
    }
    (schedule, completions)
}

fn assert_same(tasks: &[Unit], cpus: usize, slots: u64, scheduler: &Scheduler, quantum: u64) {
    let expected = step_by_step(tasks, cpus, slots, scheduler.rule, NonZeroU64::new(quantum).expect("not zero"));
    let actual = simulated(tasks, cpus, slots, scheduler, quantum);
    assert_eq!(actual, expected, "{scheduler} on {cpus} CPUs, quantum {quantum}, {tasks:?}");
}

fn implicit_tasks() -> Vec<Unit> {
    let task = |period, cost| Unit { cost, period, deadline: period, phase: 0 };
    (1..=6).flat_map(|period| (1..=period).map(move |cost| task(period, cost))).collect()
}

fn scheduler(name: &str) -> Scheduler {
    name.parse().expect("a scheduler's name")
}

/// Twice the longest hyperperiod of periods up to 6.
const SLOTS: u64 = 120;

#[test]
fn every_pair_of_tasks_with_any_deadline_runs_slot_by_slot_as_brute_force_says() {
    for name in ["G-EDF", "G-DM"] {
        let scheduler = scheduler(name);
        for first in implicit_tasks() {
            for second in implicit_tasks() {
                for deadline in [1, 2, 4, 7, 9] {
                    let tasks = [Unit { deadline, ..first }, second];
                    for cpus in 1..=2 {
                        assert_same(&tasks, cpus, SLOTS, &scheduler, 1);
                    }
                }
            }
        }
    }
}

#[test]
fn every_triple_of_tasks_runs_slot_by_slot_as_brute_force_says() {
    let (edf, rm) = (scheduler("G-EDF"), scheduler("G-RM"));
    let all = implicit_tasks();
    for first in &all {
        for second in &all {
            for third in &all {
                let tasks = [*first, *second, *third];
                for cpus in 1..=3 {
                    assert_same(&tasks, cpus, 60, &edf, 1);
                }
                assert_same(&tasks, 2, 60, &rm, 1);
            }
        }
    }
}

#[test]
fn offset_tasks_run_slot_by_slot_as_brute_force_says() {
    let edf = scheduler("G-EDF");
    for first in implicit_tasks() {
        for second in implicit_tasks() {
            for (phase, deadline) in [(1, 3), (2, 8), (5, 5)] {
                let third = Unit { cost: 2, period: 5, deadline, phase };
                assert_same(&[Unit { phase: 3, ..first }, second, third], 2, SLOTS, &edf, 1);
            }
        }
    }
}

#[test]
fn aligned_quanta_run_slot_by_slot_as_brute_force_says() {
    let quantum_driven = scheduler("CQm");
    for first in implicit_tasks() {
        for second in implicit_tasks() {
            for third in [(2, 3), (5, 6), (4, 4)] {
                let third = Unit { cost: third.0, period: third.1, deadline: third.1, phase: 1 };
                for quantum in 2..=4 {
                    for cpus in 1..=3 {
                        assert_same(&[first, second, third], cpus, SLOTS, &quantum_driven, quantum);
                    }
                }
            }
        }
    }
}
