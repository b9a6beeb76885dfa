//! What must hold of every simulation, whatever the workload.

mod common;

use std::collections::BTreeMap;

use common::{executions, run};
use laxity_model::rng::SplitMix64;
use laxity_model::{Instant, JobId, Nanos, Platform, Scheduler, Task, Workload};
use laxity_trace::{Event, Record};
use proptest::prelude::*;

const UNIT: u64 = 1_000;

/// A random set of tasks with integer parameters in units, possibly overloaded.
fn tasks(max_tasks: usize, max_period: u64) -> impl Strategy<Value = Vec<Task>> {
    let task = (1..=max_period).prop_flat_map(move |period| {
        (1..=period, Just(period), 1..=2 * period, 0..=2 * period).prop_map(|(cost, period, deadline, phase)| Task {
            deadline: Nanos(deadline * UNIT),
            phase: Nanos(phase * UNIT),
            ..Task::periodic("t", Nanos(cost * UNIT), Nanos(period * UNIT))
        })
    });
    prop::collection::vec(task, 1..=max_tasks)
}

fn workload(cpus: usize, tasks: Vec<Task>) -> Workload {
    Workload::new("self-check", Platform::identical(cpus), tasks)
}

fn edf() -> Scheduler {
    Scheduler::GLOBAL_EDF
}

fn completions(records: &[Record]) -> BTreeMap<JobId, Instant> {
    let complete = |record: &Record| match record.event {
        Event::Complete { job, .. } => Some((job, record.at)),
        _ => None,
    };
    records.iter().filter_map(complete).collect()
}

/// Executions as (start, end, cpu, job), for comparing whole schedules.
fn schedule(records: &[Record]) -> Vec<(u64, u64, u16, JobId)> {
    executions(records).iter().map(|run| (run.start.0, run.end.0, run.cpu.0, run.job)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// At every instant the m ready jobs of earliest deadline run, no CPU idles while a job waits, and every
    /// completed job executed exactly its cost.
    #[test]
    fn the_m_most_urgent_jobs_run_at_every_instant(tasks in tasks(7, 12), cpus in 1usize..5) {
        let end = 200 * UNIT;
        let records = run(&workload(cpus, tasks.clone()), &edf(), Instant(end), 0);
        let runs = executions(&records);
        let finished = completions(&records);
        let mut instants: Vec<u64> = runs.iter().flat_map(|run| [run.start.0, run.end.0]).collect();
        instants.sort_unstable();
        instants.dedup();
        for pair in instants.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            let mut ready: Vec<(u64, usize)> = Vec::new();
            for (index, task) in tasks.iter().enumerate() {
                // The first job of the task that is not complete at `from`, if it is released.
                let done = finished.iter().filter(|(job, at)| job.task.index() == index && at.0 <= from).count() as u64;
                let arrival = task.phase.0 + done * task.period.0;
                if arrival <= from {
                    ready.push((arrival + task.deadline.0, index));
                }
            }
            ready.sort_unstable();
            ready.truncate(cpus);
            let mut expected: Vec<usize> = ready.iter().map(|&(_, task)| task).collect();
            expected.sort_unstable();
            let mut running: Vec<usize> =
                runs.iter().filter(|run| run.start.0 <= from && to <= run.end.0).map(|run| run.job.task.index()).collect();
            running.sort_unstable();
            prop_assert_eq!(running, expected, "in [{}, {})", from, to);
        }
        for (&job, &at) in &finished {
            let executed: u64 = runs.iter().filter(|run| run.job == job).map(|run| run.end.0 - run.start.0).sum();
            prop_assert_eq!(executed, tasks[job.task.index()].wcet().0, "{} completed at {}", job, at);
        }
    }

    /// The same releases and pointwise smaller costs: no job finishes later.
    #[test]
    fn shorter_jobs_never_delay_any_job(tasks in tasks(6, 10), cpus in 1usize..4, seed in any::<u64>()) {
        let end = Instant(150 * UNIT);
        let longer = completions(&run(&workload(cpus, tasks.clone()), &edf(), end, 0));
        let mut rng = SplitMix64::new(seed);
        let shorter_tasks = tasks.into_iter().map(|task| {
            let cost = rng.between(1, task.wcet().0);
            Task { body: Task::periodic("t", Nanos(cost), task.period).body, ..task }
        });
        let shorter = completions(&run(&workload(cpus, shorter_tasks.collect()), &edf(), end, 0));
        for (job, at) in longer {
            prop_assert!(shorter.get(&job).is_some_and(|&earlier| earlier <= at), "{job} due to finish by {at}");
        }
    }

    /// Multiplying all times by a constant scales the schedule.
    #[test]
    fn the_schedule_scales_with_time(tasks in tasks(6, 10), cpus in 1usize..4, factor in 2u64..50) {
        let scaled = |task: &Task| Task {
            deadline: Nanos(task.deadline.0 * factor),
            phase: Nanos(task.phase.0 * factor),
            ..Task::periodic("t", Nanos(task.wcet().0 * factor), Nanos(task.period.0 * factor))
        };
        let small = run(&workload(cpus, tasks.clone()), &edf(), Instant(100 * UNIT), 0);
        let large_tasks = tasks.iter().map(scaled).collect();
        let large = run(&workload(cpus, large_tasks), &edf(), Instant(100 * UNIT * factor), 0);
        let stretched: Vec<_> =
            schedule(&small).iter().map(|&(start, end, cpu, job)| (start * factor, end * factor, cpu, job)).collect();
        prop_assert_eq!(schedule(&large), stretched);
    }

    /// Permuting the tasks together with the tie order (here: no two jobs ever tie) permutes the schedule.
    #[test]
    fn the_order_of_tasks_matters_only_for_ties(tasks in tasks(5, 10), cpus in 1usize..4) {
        // Deadlines distinct by a nanosecond or more a task break every tie the same way in both orders.
        let tasks: Vec<Task> = tasks
            .into_iter()
            .enumerate()
            .map(|(index, task)| Task { deadline: Nanos(task.deadline.0 + index as u64), ..task })
            .collect();
        let reversed: Vec<Task> = tasks.iter().rev().cloned().collect();
        let last = tasks.len() as u32 - 1;
        let end = Instant(150 * UNIT);
        let forward = completions(&run(&workload(cpus, tasks), &edf(), end, 0));
        let backward = completions(&run(&workload(cpus, reversed), &edf(), end, 0));
        let renamed: BTreeMap<JobId, Instant> = backward
            .into_iter()
            .map(|(job, at)| (JobId { task: laxity_model::TaskId(last - job.task.0), index: job.index }, at))
            .collect();
        prop_assert_eq!(forward, renamed);
    }

    /// One more CPU, same releases and costs: no job finishes later.
    #[test]
    fn another_cpu_never_delays_any_job(tasks in tasks(8, 10), cpus in 1usize..4) {
        let end = Instant(150 * UNIT);
        let fewer = completions(&run(&workload(cpus, tasks.clone()), &edf(), end, 0));
        let more = completions(&run(&workload(cpus + 1, tasks), &edf(), end, 0));
        for (job, at) in fewer {
            prop_assert!(more.get(&job).is_some_and(|&earlier| earlier <= at), "{job} finished at {at} before");
        }
    }

    /// With a quantum of one time unit, quantum-driven scheduling is event-driven scheduling.
    #[test]
    fn a_quantum_of_one_unit_gives_the_event_driven_schedule(tasks in tasks(6, 9), cpus in 1usize..4) {
        let mut workload = workload(cpus, tasks);
        workload.platform.quantum = Nanos(UNIT);
        workload.platform.tick = Nanos(UNIT);
        let end = Instant(120 * UNIT);
        let event_driven = run(&workload, &edf(), end, 0);
        let quantum_driven = run(&workload, &"CQm".parse().expect("a name"), end, 0);
        prop_assert_eq!(completions(&quantum_driven), completions(&event_driven));
    }

    /// The three ready queues are interchangeable: the same records, with overheads and any realization.
    #[test]
    fn the_three_ready_queues_give_the_same_schedule(
        tasks in tasks(9, 12),
        cpus in 2usize..5,
        suffix in prop::sample::select(vec!["Em", "E1", "Qm", "Q1"]),
        staggered in any::<bool>(),
        overheads in any::<bool>(),
    ) {
        let mut workload = workload(cpus, tasks);
        workload.platform.quantum = Nanos(3 * UNIT);
        workload.platform.tick = Nanos(3 * UNIT);
        if overheads {
            workload.platform.overheads = common_overheads();
        }
        let prefix = if staggered { "S-" } else { "" };
        let [coarse, fine, hierarchical] = ["C", "F", "H"].map(|queue| {
            let name = format!("{prefix}{queue}{suffix}");
            run(&workload, &name.parse().expect("a name"), Instant(150 * UNIT), 0)
        });
        prop_assert_eq!(&coarse, &fine);
        prop_assert_eq!(&coarse, &hierarchical);
    }

    /// However a simulation is cut into calls, and however often it is repeated, the records are the same.
    #[test]
    fn records_do_not_depend_on_how_the_run_is_cut(tasks in tasks(6, 10), cuts in prop::collection::vec(0u64..150, 0..6)) {
        let mut workload = workload(2, tasks);
        workload.platform.overheads = common_overheads();
        let whole = run(&workload, &edf(), Instant(150 * UNIT), 0);
        let plan = laxity_plan::Plan::new(&workload, &edf(), 0).expect("CPU steps only");
        let mut simulator = laxity_sim::Simulator::new(&plan, Vec::new());
        let mut cuts = cuts;
        cuts.sort_unstable();
        for cut in cuts {
            simulator.run_until(Instant(cut * UNIT));
        }
        simulator.run_until(Instant(150 * UNIT));
        prop_assert_eq!(simulator.finish(), whole);
    }
}

fn common_overheads() -> laxity_model::OverheadProfile {
    let costs = laxity_model::OverheadCosts {
        release: Nanos(70),
        scheduling: Nanos(40),
        context_switch: Nanos(30),
        ipi_latency: Nanos(25),
        tick: Nanos(15),
        timer_rearming: Nanos(10),
        cache_preemption: Nanos(50),
        cache_migration: Nanos(90),
        ..laxity_model::OverheadCosts::default()
    };
    laxity_model::OverheadProfile::constant("test", costs)
}

/// Periodic tasks with U > m: tardiness grows without bound, linearly.
#[test]
fn tardiness_grows_linearly_under_overload() {
    let task = || Task::periodic("t", Nanos(8 * UNIT), Nanos(10 * UNIT));
    let workload = workload(2, vec![task(), task(), task()]); // U = 2.4 on 2 CPUs
    let records = run(&workload, &edf(), Instant(100_000 * UNIT), 0);
    let tardiness_near = |time: u64| {
        let window = time * UNIT..(time + 100) * UNIT;
        completions(&records)
            .into_iter()
            .filter(|(_, at)| window.contains(&at.0))
            .map(|(job, at)| at.0.saturating_sub((u64::from(job.index) + 1) * 10 * UNIT))
            .max()
            .expect("jobs complete all the time")
    };
    // Work arrives at 2.4 and leaves at 2 units a unit: in the long run a job that completes at t is t/6 late.
    for time in [12_000u64, 48_000, 96_000] {
        let tardiness = tardiness_near(time) / UNIT;
        assert!(tardiness.abs_diff(time / 6) <= 40, "at {time} tardiness is {tardiness}, not about {}", time / 6);
    }
}
