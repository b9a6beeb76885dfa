//! Process scheduling by hand-drawn schedules: non-preemptive sections, suspensions, cache-related delay, the coarse
//! lock, ticks, staggered quanta, shared timers, and links that change while a switch is under way.

mod common;

use common::{draw, executions, run, simulate};
use laxity_model::{
    BestEffortTask, ExecutionTime, Instant, Nanos, OverheadCosts, OverheadKind, OverheadProfile, Platform, Scheduler,
    Step, Task, Workload,
};
use laxity_trace::{Event, Record};

const MS: u64 = 1_000_000;

fn ms(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

fn us(micros: u64) -> Nanos {
    Nanos::from_micros(micros)
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// A task that releases one job within the window of interest.
fn once(phase_ms: u64, deadline_ms: u64, body: Vec<Step>) -> Task {
    Task { phase: ms(phase_ms), deadline: ms(deadline_ms), body, ..Task::periodic("t", ms(1), ms(1_000)) }
}

fn cpu(millis: u64) -> Step {
    Step::Cpu(ExecutionTime::constant(ms(millis)))
}

fn workload(cpus: usize, tasks: Vec<Task>) -> Workload {
    Workload::new("drawn by hand", Platform::identical(cpus), tasks)
}

fn with_costs(mut workload: Workload, costs: OverheadCosts) -> Workload {
    workload.platform.overheads = OverheadProfile::constant("test", costs);
    workload
}

fn events(records: &[Record], pick: impl Fn(&Event) -> Option<String>) -> Vec<String> {
    records.iter().filter_map(|record| Some(format!("{} {}", record.at.0 / 1_000, pick(&record.event)?))).collect()
}

#[test]
fn a_job_without_a_cpu_is_preempted_by_the_earlier_deadline_and_goes_on_afterwards() {
    // t0 # # . . # #       release 0, deadline 9
    // t1     # #           release 2, deadline 5
    let tasks = vec![once(0, 9, vec![cpu(4)]), once(2, 3, vec![cpu(2)])];
    let records = simulate(&workload(1, tasks), "G-EDF", at(8));
    assert_eq!(draw(&records, 1, MS, 8), "cpu0 001100..");
}

#[test]
fn a_job_resumes_on_the_cpu_that_has_its_cache_if_that_is_idle() {
    // T1 runs on cpu1, suspends from 1 to 3, and finds both CPUs idle: cpu1 again, though cpu0 comes first.
    let suspend = Step::Suspend(ExecutionTime::constant(ms(2)));
    let tasks = vec![once(0, 20, vec![cpu(2)]), once(0, 30, vec![cpu(1), suspend, cpu(1)])];
    let records = simulate(&workload(2, tasks), "G-EDF", at(5));
    assert_eq!(draw(&records, 2, MS, 5), "cpu0 00...\ncpu1 1..1.");
}

#[test]
fn a_non_preemptive_section_defers_the_switch_but_not_the_link() {
    // T0 (deadline 20) is non-preemptive from 1 to 4; T1 (deadline 8) arrives at 2 and waits for its end.
    let section = Step::NonPreemptive(ExecutionTime::constant(ms(3)));
    let tasks = vec![once(0, 20, vec![cpu(1), section, cpu(1)]), once(2, 6, vec![cpu(2)])];
    let records = simulate(&workload(1, tasks), "G-EDF", at(9));
    assert_eq!(draw(&records, 1, MS, 9), "cpu0 0000110..");
    let links = events(&records, |event| match event {
        Event::Link { job: Some(job), .. } => Some(format!("link {job}")),
        Event::NonPreemptiveBegin { .. } => Some("begin".to_owned()),
        Event::NonPreemptiveEnd { .. } => Some("end".to_owned()),
        _ => None,
    });
    assert_eq!(links, ["0 link T0.0", "1000 begin", "2000 link T1.0", "4000 end", "6000 link T0.0"]);
}

#[test]
fn a_preempted_job_in_a_non_preemptive_section_is_never_linked_elsewhere() {
    // Both CPUs busy; T0 on cpu1 is non-preemptive from 0 to 5 and loses its link to T2 at 1. At 2 cpu0 falls idle:
    // T0 is the most urgent ready job, but its process is on cpu1, so it is linked there again and T2 starts on cpu0.
    let section = Step::NonPreemptive(ExecutionTime::constant(ms(5)));
    let tasks = vec![once(0, 30, vec![section]), once(0, 3, vec![cpu(2)]), once(1, 7, vec![cpu(2)])];
    let records = simulate(&workload(2, tasks), "G-EDF", at(6));
    assert_eq!(draw(&records, 2, MS, 6), "cpu0 1122..\ncpu1 00000.");
    let preemptions = records.iter().filter(|record| matches!(record.event, Event::Preempt { .. })).count();
    assert_eq!(preemptions, 0);
}

#[test]
fn a_suspended_job_frees_its_cpu_and_competes_again_when_it_resumes() {
    // t0 # . . # #      1 ms, suspends 2 ms, 2 ms; deadline 8
    // t1   # # . . #    3 ms; deadline 20
    let suspend = Step::Suspend(ExecutionTime::constant(ms(2)));
    let tasks = vec![once(0, 8, vec![cpu(1), suspend, cpu(2)]), once(0, 20, vec![cpu(3)])];
    let records = simulate(&workload(1, tasks), "G-EDF", at(7));
    assert_eq!(draw(&records, 1, MS, 7), "cpu0 011001.");
}

#[test]
fn a_body_may_begin_and_end_with_a_suspension() {
    let suspend = |millis| Step::Suspend(ExecutionTime::constant(ms(millis)));
    let tasks = vec![once(0, 20, vec![suspend(1), suspend(2), cpu(1), suspend(3)])];
    let records = simulate(&workload(1, tasks), "G-EDF", at(10));
    let story = events(&records, |event| match event {
        Event::Suspend { .. } => Some("suspend".to_owned()),
        Event::Resume { .. } => Some("resume".to_owned()),
        Event::Complete { .. } => Some("complete".to_owned()),
        _ => None,
    });
    let expected =
        ["0 suspend", "1000 resume", "1000 suspend", "3000 resume", "4000 suspend", "7000 resume", "7000 complete"];
    assert_eq!(story, expected);
}

#[test]
fn a_preempted_job_pays_for_its_cache_once_where_it_resumes() {
    let costs = OverheadCosts { cache_preemption: us(100), cache_migration: us(300), ..OverheadCosts::default() };
    // One CPU: T0 is preempted at 2 and resumes on the same CPU at 4: 4 ms + 0.1 ms.
    let tasks = vec![once(0, 20, vec![cpu(4)]), once(2, 3, vec![cpu(2)])];
    let records = simulate(&with_costs(workload(1, tasks), costs), "G-EDF", at(9));
    let delays = |records: &[Record]| {
        events(records, |event| match event {
            Event::CacheDelay { cpu, job, kind, duration } => Some(format!("{cpu} {job} {} {duration}", kind.name())),
            Event::Complete { job, .. } => Some(format!("{job} completes")),
            _ => None,
        })
    };
    assert_eq!(
        delays(&records),
        ["4000 T1.0 completes", "4000 cpu0 T0.0 cache_preemption 100 us", "6100 T0.0 completes"]
    );

    // Two CPUs: T0 is preempted on cpu1 at 2, cpu0 falls idle at 3: it migrates.
    let tasks = vec![once(0, 20, vec![cpu(4)]), once(0, 3, vec![cpu(3)]), once(2, 5, vec![cpu(4)])];
    let records = simulate(&with_costs(workload(2, tasks), costs), "G-EDF", at(9));
    assert_eq!(
        delays(&records),
        ["3000 T1.0 completes", "3000 cpu0 T0.0 cache_migration 300 us", "5300 T0.0 completes", "6000 T2.0 completes"]
    );
}

#[test]
fn the_coarse_lock_makes_handlers_wait_in_turn() {
    let costs = OverheadCosts { release: us(10), scheduling: us(20), ..OverheadCosts::default() };
    let mut workload = with_costs(workload(2, vec![once(0, 20, vec![cpu(1)]), once(0, 30, vec![cpu(1)])]), costs);
    workload.tasks[1].phase = Nanos(5_000); // its release interrupt hits cpu1 while cpu0 holds the lock
    let story = |workload: &Workload, coarse_lock| {
        let scheduler = Scheduler { coarse_lock, ..Scheduler::GLOBAL_EDF };
        events(&run(workload, &scheduler, at(1), 0), |event| match event {
            Event::LockWait { cpu, duration } => Some(format!("{cpu} waits {duration}")),
            Event::Overhead { cpu, kind, .. } => Some(format!("{cpu} {}", kind.name())),
            Event::Dispatch { cpu, job } => Some(format!("{cpu} runs {job}")),
            _ => None,
        })
    };
    assert_eq!(
        story(&workload, false),
        [
            "0 cpu0 release",
            "5 cpu1 release",
            "10 cpu0 scheduling",
            "15 cpu1 scheduling",
            "30 cpu0 runs T0.0",
            "35 cpu1 runs T1.0"
        ]
    );
    assert_eq!(
        story(&workload, true),
        [
            "0 cpu0 release",
            "5 cpu1 waits 5 us",
            "10 cpu1 release",
            "10 cpu0 waits 10 us",
            "20 cpu0 scheduling",
            "20 cpu1 waits 20 us",
            "40 cpu1 scheduling",
            "40 cpu0 runs T0.0",
            "60 cpu1 runs T1.0"
        ],
        "FIFO: cpu1's release, then cpu0's scheduling, then cpu1's"
    );
}

#[test]
fn coinciding_releases_share_one_timer_interrupt() {
    let costs = OverheadCosts { release: us(10), ..OverheadCosts::default() };
    let task = |period| Task::periodic("t", us(100), ms(period));
    let workload = with_costs(workload(2, vec![task(10), task(20), task(30)]), costs);
    let records = simulate(&workload, "G-EDF", at(60));
    let interrupts = events(&records, |event| match event {
        Event::Overhead { kind: OverheadKind::Release, .. } => Some("release".to_owned()),
        _ => None,
    });
    // 6 + 3 + 2 jobs at the instants 0, 10, 20, 30, 40, 50.
    assert_eq!(interrupts.len(), 6);
}

#[test]
fn the_cpu_that_completes_a_job_takes_the_next_release_of_its_task() {
    // T1 is more urgent and takes cpu0, so T0 completes on cpu1, which armed the timer for T0's release at 7 ms.
    let costs = OverheadCosts { release: us(10), ..OverheadCosts::default() };
    let tasks = vec![Task::periodic("t", ms(1), ms(7)), Task::periodic("t", ms(1), ms(5))];
    let records = simulate(&with_costs(workload(2, tasks), costs), "G-EDF", at(8));
    let interrupts = events(&records, |event| match event {
        Event::Overhead { cpu, kind: OverheadKind::Release, .. } => Some(cpu.to_string()),
        _ => None,
    });
    assert_eq!(interrupts, ["0 cpu0", "5000 cpu0", "7000 cpu1"]);
}

#[test]
fn going_on_with_the_next_job_of_the_same_task_needs_no_context_switch() {
    let costs = OverheadCosts { scheduling: us(100), context_switch: us(500), ..OverheadCosts::default() };
    let tasks = vec![Task { deadline: ms(40), ..Task::periodic("t", ms(12), ms(10)) }];
    let records = simulate(&with_costs(workload(1, tasks), costs), "G-EDF", at(30));
    let runs: Vec<_> = executions(&records).iter().map(|run| (run.start.0 / 1_000, run.end.0 / 1_000)).collect();
    assert_eq!(runs, [(600, 12_600), (12_700, 24_700), (24_800, 30_000)], "one switch in, then scheduling only");
}

#[test]
fn partitioned_tasks_have_a_timer_each_cpu_and_never_migrate() {
    let costs = OverheadCosts { release: us(10), ..OverheadCosts::default() };
    let tasks = (0..4).map(|_| Task::periodic("t", ms(4), ms(10))).collect();
    let records = simulate(&with_costs(workload(2, tasks), costs), "P-EDF", at(100));
    let mut cpu_of = std::collections::BTreeMap::new();
    let mut interrupts = 0;
    for record in &records {
        match record.event {
            Event::Dispatch { cpu, job } => assert_eq!(*cpu_of.entry(job.task).or_insert(cpu), cpu),
            Event::Overhead { kind: OverheadKind::Release, .. } => interrupts += 1,
            _ => {}
        }
    }
    assert_eq!(cpu_of.len(), 4);
    assert_eq!(interrupts, 2 * 10, "one a CPU and instant");
}

#[test]
fn staggered_quanta_begin_one_after_the_other() {
    // Four CPUs, Q = 4 ms: boundaries at 0, 1, 2, 3 ms and every 4 ms after. Four jobs of 3 ms released at 0.5 ms:
    // taken by the next boundaries, cpu1 at 1, cpu2 at 2, cpu3 at 3, cpu0 at 4.
    let tasks = (0..4).map(|index| Task { phase: us(500), ..once(0, 20 + index, vec![cpu(3)]) }).collect();
    let mut workload = workload(4, tasks);
    workload.platform.quantum = ms(4);
    workload.platform.tick = ms(4);
    let records = simulate(&workload, "S-CQm", at(8));
    assert_eq!(draw(&records, 4, MS, 8), "cpu0 ....333.\ncpu1 .000....\ncpu2 ..111...\ncpu3 ...222..");
}

#[test]
fn a_late_tick_handler_of_an_aligned_quantum_does_not_decide_again() {
    // T0 arrives at 1 ms on cpu0, whose tick handler runs after the release (1.05 to 1.06 ms). By then the quantum was
    // decided by cpu1 (1.01 ms), so T0 waits for the next one.
    let costs = OverheadCosts { release: us(50), tick: us(10), ..OverheadCosts::default() };
    let records = simulate(&with_costs(workload(2, vec![once(1, 20, vec![cpu(1)])]), costs), "CQm", at(5));
    let links = events(&records, |event| match event {
        Event::Ready { cpu, .. } => Some(format!("ready on {cpu}")),
        Event::Link { cpu, .. } => Some(format!("link to {cpu}")),
        _ => None,
    });
    assert_eq!(links, ["1050 ready on cpu0", "2010 link to cpu0"]);
}

#[test]
fn ticks_cost_every_cpu_even_the_dedicated_one() {
    let costs = OverheadCosts { tick: us(10), ..OverheadCosts::default() };
    let records = simulate(&with_costs(workload(3, vec![once(0, 20, vec![cpu(2)])]), costs), "CE1", at(2));
    let ticks = events(&records, |event| match event {
        Event::Overhead { cpu, kind: OverheadKind::Tick, .. } => Some(cpu.to_string()),
        _ => None,
    });
    assert_eq!(ticks, ["0 cpu0", "0 cpu1", "0 cpu2", "1000 cpu0", "1000 cpu1", "1000 cpu2"]);
    let runs: Vec<(u64, u64)> =
        executions(&records).iter().map(|run| (run.start.0 / 1_000, run.end.0 / 1_000)).collect();
    assert_eq!(runs, [(10, 1_000), (1_010, 2_000)], "the tick at 0 ends before the job starts; the one at 1 stops it");
}

#[test]
fn a_link_that_changes_during_a_context_switch_makes_the_scheduler_run_again() {
    // The switch to T0 lasts from 0 to 2 ms; T1, more urgent, arrives at 1 ms and is noticed when the switch is over.
    let costs = OverheadCosts { context_switch: ms(2), ..OverheadCosts::default() };
    let tasks = vec![once(0, 30, vec![cpu(1)]), once(1, 10, vec![cpu(1)])];
    let records = simulate(&with_costs(workload(1, tasks), costs), "G-EDF", at(12));
    let runs: Vec<_> = executions(&records).iter().map(|run| (run.start.0 / MS, run.job.task.0)).collect();
    assert_eq!(runs, [(4, 1), (7, 0)], "T0 was switched in and out without executing");
    let preemptions = records.iter().filter(|record| matches!(record.event, Event::Preempt { .. })).count();
    assert_eq!(preemptions, 0, "what never ran was not preempted");
}

#[test]
fn a_tardy_job_does_not_move_later_releases_and_its_successor_follows_at_once() {
    // 12 ms of work every 10 ms: releases stay at 0, 10, 20; executions are back to back.
    let task = Task { deadline: ms(40), ..Task::periodic("t", ms(12), ms(10)) };
    let records = simulate(&workload(1, vec![task]), "G-EDF", at(36));
    let story = events(&records, |event| match event {
        Event::Release { job, .. } => Some(format!("release {}", job.index)),
        Event::Complete { job, .. } => Some(format!("complete {}", job.index)),
        _ => None,
    });
    let expected = [
        "0 release 0",
        "10000 release 1",
        "12000 complete 0",
        "20000 release 2",
        "24000 complete 1",
        "30000 release 3",
        "36000 complete 2",
    ];
    assert_eq!(story, expected, "a completion at the very end counts");
}

#[test]
fn what_the_simulator_cannot_run_is_refused_by_name() {
    let mut workload = workload(1, vec![once(0, 9, vec![cpu(1)])]);
    workload.best_effort.push(BestEffortTask::endless("log"));
    let fair: Scheduler = "G-CFS".parse().expect("a name");
    let error = laxity_plan::Plan::new(&workload, &fair, 0).expect_err("one class for all").to_string();
    assert!(error.contains("best-effort task \"log\" under G-CFS") && error.contains("leave it out"), "{error}");
    workload.best_effort.pop();
    let dedicated: Scheduler = "CE1".parse().expect("a name");
    let error = laxity_plan::Plan::new(&workload, &dedicated, 0).expect_err("no CPU left");
    assert!(error.to_string().contains("leaves none for jobs"), "{error}");
}

#[test]
fn random_draws_depend_on_seed_task_and_job_but_not_on_the_scheduler() {
    let uniform = laxity_model::Distribution::Uniform { min: us(100), max: ms(3) };
    let task = |period| Task {
        jitter: us(700),
        arrival: laxity_model::Arrival::Sporadic {
            gap: laxity_model::Distribution::Uniform { min: Nanos::ZERO, max: ms(2) },
        },
        body: vec![Step::Cpu(ExecutionTime { wcet: ms(3), actual: uniform.clone() })],
        ..Task::periodic("t", ms(3), ms(period))
    };
    let workload = workload(2, (5..11).map(task).collect());
    let facts = |scheduler: &str, seed| {
        let records = common::simulate_seeded(&workload, scheduler, at(500), seed);
        let releases = events(&records, |event| match event {
            Event::Release { job, deadline } => Some(format!("{job} {deadline}")),
            _ => None,
        });
        let mut executed = std::collections::BTreeMap::new();
        for run in executions(&records) {
            *executed.entry(run.job).or_insert(0) += run.end.0 - run.start.0;
        }
        executed.retain(|job, _| job.index < 30); // certainly complete
        (releases, executed)
    };
    assert_eq!(facts("G-EDF", 1), facts("P-RM", 1));
    assert_ne!(facts("G-EDF", 1), facts("G-EDF", 2));
}
