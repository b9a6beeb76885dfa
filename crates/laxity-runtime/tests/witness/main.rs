//! The simulator as a witness: the same jobs, the same order of grants, and legal traces.
//!
//! Nothing here bounds how long anything takes: the machine may be busy, and jobs late.

mod bandwidth;
mod best_effort;
mod budgets;
mod devices;
mod fairness;
mod gpus;
mod graphs;
mod harness;
mod outside;
mod programs;
mod scheduled;
mod scheduled_gpus;
mod schedulers;
mod supervised;

use harness::{completions, grants, live, live_by, ms, releases, simulated, start, uniform};
use laxity_model::{
    Arrival, Distribution, ExecutionTime, Nanos, Platform, Resource, ResourceProtocol, Scheduler, Step, Task, Workload,
};
use laxity_runtime::{LinuxScheduler, LivePlan, Options};
use laxity_trace::check::LegalityCheck;
use laxity_trace::{Event, Record, Sink};

/// One CPU each, alone there: the simulated response time of a job is then what it needs, sleep included.
#[test]
fn live_jobs_are_the_simulated_ones_and_take_no_less_than_they_need() {
    let mut steady = Task::periodic("steady", ms(2), ms(20));
    steady.body =
        vec![Step::Cpu(uniform(ms(1), ms(2))), Step::Suspend(uniform(ms(1), ms(3))), Step::Cpu(uniform(ms(1), ms(2)))];
    let mut wild = Task::periodic("wild", ms(1), ms(15));
    wild.arrival = Arrival::Sporadic { gap: Distribution::Uniform { min: Nanos::ZERO, max: ms(9) } };
    wild.phase = ms(5);
    wild.jitter = ms(4);
    // A second suspension in a row is drawn for another place in the list than it has in the file.
    let sleep = Step::Suspend(uniform(ms(1), ms(3)));
    wild.body = vec![sleep.clone(), sleep, Step::Cpu(uniform(Nanos(1), ms(1)))];
    let alone = |task: &Task| Workload::new("alone", Platform::identical(1), vec![task.clone()]);
    let duration = ms(150);
    for task in [&steady, &wild] {
        let workload = alone(task);
        // Long enough for what is released before the end to be complete.
        let model = simulated(&workload, ms(400));
        let live = live(&workload, duration);
        let expected = releases(&simulated(&workload, duration));
        assert_eq!(releases(&live), expected, "{}", task.name);
        let completed = completions(&live);
        assert_eq!(completed.len(), expected.len(), "all are carried out, however late");
        for ((job, at), (same, earliest)) in completed.into_iter().zip(completions(&model)) {
            assert!(job == same && at >= earliest, "{job} at {at}, and by itself it needs until {earliest}");
        }
    }
}

/// Both others wait while the first sleeps in its critical section; the one that came earlier is also the more urgent one.
#[test]
fn a_contended_lock_is_granted_in_the_simulated_order() {
    let section = |span| Step::Critical {
        resource: 0,
        body: vec![Step::Cpu(ExecutionTime::constant(Nanos(1_000))), Step::Suspend(ExecutionTime::constant(span))],
    };
    let task = |name: &str, phase, span| {
        let mut task = Task::periodic(name, Nanos(1_000), ms(1_000));
        task.phase = phase;
        task.body = vec![Step::Cpu(ExecutionTime::constant(Nanos(1_000))), section(span)];
        task
    };
    let tasks =
        vec![task("second", ms(200), ms(5)), task("first", Nanos::ZERO, ms(600)), task("third", ms(400), ms(5))];
    let mut workload = Workload::new("turns", Platform::identical(1), tasks);
    workload.scheduler = "P-RM".parse::<Scheduler>().expect("a policy");
    let protocol = ResourceProtocol::PriorityInheritance;
    workload.resources = vec![Resource { name: "door".to_owned(), protocol, replicas: 1 }];
    let expected = grants(&simulated(&workload, ms(1_000)));
    let tasks: Vec<u32> = expected.iter().map(|(job, _)| job.task.0).collect();
    assert_eq!(tasks, [1, 0, 2]);
    assert_eq!(grants(&live(&workload, ms(500))), expected);
}

/// It is collected from for a second after the stop, in which fifty more jobs would have been due.
#[test]
fn a_run_that_is_stopped_leaves_a_whole_trace_up_to_there() {
    let workload = Workload::new("long", Platform::identical(1), vec![Task::periodic("t", ms(2), ms(20))]);
    let options = Options {
        scheduler: workload.scheduler,
        linux: Some(LinuxScheduler::Other),
        seed: 0,
        duration: Nanos::from_secs(3_600),
    };
    let plan = LivePlan::new(&workload, &options).expect("it can be run");
    let mut records = Vec::new();
    let mut run = start(&plan).expect("threads");
    while run.completed() < 3 {
        run.collect(&mut records);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    run.stop();
    let due = |records: &[Record]| releases(records).len();
    let before = due(&records);
    for _ in 0..10 {
        std::thread::sleep(std::time::Duration::from_millis(100));
        run.collect(&mut records);
    }
    let (outcome, failed) = run.finish(&mut records);
    assert!(failed.is_ok() && outcome.is_whole);
    assert_eq!(records.last().map(|record| record.event), Some(Event::End));
    // Those between the last collection and the stop: many only on a machine that left this thread without a CPU there.
    assert!(due(&records) - before < 25, "{before} jobs before the stop, {} in the trace", due(&records));
    let mut check = LegalityCheck::new(plan.header()).with_all_jobs();
    records.iter().for_each(|record| check.record(record.at, record.event));
    assert!(check.finish().is_clean());
}

#[test]
fn what_cannot_be_run_live_is_refused_by_name() {
    let mut workload = Workload::new("w", Platform::identical(1), vec![Task::periodic("t", ms(1), ms(10))]);
    let options = Options { scheduler: workload.scheduler, linux: None, seed: 0, duration: ms(10) };
    let replicated = Resource { name: "pair".to_owned(), protocol: ResourceProtocol::Fifo, replicas: 2 };
    let mut locks = Workload { resources: vec![replicated], ..workload.clone() };
    let body = vec![Step::Cpu(ExecutionTime::constant(ms(1)))];
    locks.tasks[0].body = vec![Step::Critical { resource: 0, body }];
    let other = Options { linux: Some(LinuxScheduler::Other), ..options };
    let refusal = LivePlan::new(&locks, &other).expect_err("locks of Linux").to_string();
    assert!(refusal.contains("2 replicas") && refusal.contains("first come first served"), "{refusal}");
    assert!(refusal.contains("take --scheduler laxity"), "{refusal}");
    workload.platform = Platform::identical(4_096);
    let refusal = LivePlan::new(&workload, &options).expect_err("so many CPUs");
    assert!(refusal.reasons()[0].contains("for 4096 CPUs"), "{refusal}");
    workload.platform = Platform::identical(1);
    let fifo = Options { linux: Some(LinuxScheduler::Fifo), ..options };
    let refusal = LivePlan::new(&workload, &fifo).expect_err("EDF");
    assert!(refusal.to_string().contains("--policy G-RM"), "{refusal}");
}

/// Ceilings, sections and contention where priorities are real; a low job sleeps in its section while others come.
#[test]
fn sections_and_ceilings_are_legal_under_fixed_priorities() {
    let cpu = |span| Step::Cpu(ExecutionTime::constant(span));
    let section = |resource, span| Step::Critical {
        resource,
        body: vec![cpu(Nanos(1_000)), Step::Suspend(ExecutionTime::constant(span)), cpu(Nanos(1_000))],
    };
    let mut low = Task::periodic("low", ms(1), ms(50));
    low.body = vec![section(0, ms(5)), Step::NonPreemptive(ExecutionTime::constant(ms(1))), section(1, ms(2))];
    let mut high = Task::periodic("high", ms(1), ms(20));
    high.body = vec![cpu(Nanos(1_000)), section(0, Nanos(1_000)), section(1, Nanos(1_000))];
    let mut workload = Workload::new("sections", Platform::identical(1), vec![low, high]);
    workload.scheduler = "G-RM".parse::<Scheduler>().expect("a policy");
    let resource = |name: &str, protocol| Resource { name: name.to_owned(), protocol, replicas: 1 };
    workload.resources = vec![
        resource("inherited", ResourceProtocol::PriorityInheritance),
        resource("ceiling", ResourceProtocol::PriorityCeiling),
    ];
    let Some(records) = live_by(&workload, ms(200), LinuxScheduler::Fifo) else { return };
    assert_eq!(completions(&records).len(), 4 + 10);
    let sections = records.iter().filter(|record| matches!(record.event, Event::NonPreemptiveEnd { .. }));
    assert_eq!(sections.count(), 4);
    assert_eq!(grants(&records).len(), 2 * (4 + 10));
}
