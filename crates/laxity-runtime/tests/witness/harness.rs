//! A workload simulated and run live, and what is compared.

use std::collections::BTreeMap;

use laxity_graph::Registry;
use laxity_model::{Distribution, ExecutionTime, Instant, JobId, LockId, Nanos, ReplicaId, Workload};
use laxity_runtime::{LinuxScheduler, LivePlan, Next, Options, Run, StartOptions};
use laxity_sim::Simulator;
use laxity_testing::{Alone, skip};
use laxity_trace::check::LegalityCheck;
use laxity_trace::{Event, Record, Sink};

/// Of all draws.
pub const SEED: u64 = 7;

pub fn ms(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

pub fn uniform(min: Nanos, max: Nanos) -> ExecutionTime {
    ExecutionTime { wcet: max, actual: Distribution::Uniform { min, max } }
}

/// Runs `workload` live by `SCHED_OTHER`, which is permitted everywhere; its records, after the checker has seen them.
pub fn live(workload: &Workload, duration: Nanos) -> Vec<Record> {
    live_by(workload, duration, LinuxScheduler::Other).expect("permitted everywhere")
}

/// As [`live`], by another class; nothing if that is not permitted here.
pub fn live_by(workload: &Workload, duration: Nanos, linux: LinuxScheduler) -> Option<Vec<Record>> {
    let options = Options { scheduler: workload.scheduler, linux: Some(linux), seed: SEED, duration };
    let _alone = (linux == LinuxScheduler::Laxity).then(Alone::with_the_scheduler);
    let plan = match LivePlan::new(workload, &options) {
        Ok(plan) => plan,
        Err(refusal) if is_about_permission(&refusal.to_string()) => {
            skip(refusal);
            return None;
        }
        Err(refusal) => panic!("{refusal}"),
    };
    let mut records = Vec::new();
    let run = match start(&plan) {
        Ok(run) => run,
        // A machine that is busy with other things may fail the self-test of a regulator.
        Err(refusal) if is_about_permission(&refusal) || refusal.contains("self-test failed") => {
            skip(refusal);
            return None;
        }
        Err(refusal) => panic!("{refusal}"),
    };
    let ended = run.carry_on(&mut records, |_, _, warnings| {
        assert!(warnings.is_empty());
        Next::GoOn
    });
    let (outcome, failed) = (ended.outcome, ended.failed);
    assert_eq!(failed, Ok(()));
    assert!(outcome.is_whole && outcome.reached >= Instant::ZERO + duration);
    assert_eq!(records.last(), Some(&Record { at: outcome.reached, event: Event::End }));
    let mut check = LegalityCheck::new(plan.header()).with_all_jobs();
    records.iter().for_each(|record| check.record(record.at, record.event));
    let report = check.finish();
    assert!(report.is_clean(), "{:?}", report.violations);
    Some(records)
}

/// Starts `plan` with threads that are in memory.
pub fn start(plan: &LivePlan) -> Result<Run, String> {
    let graphs = plan.create_graphs(&Registry::default()).map_err(|error| error.to_string())?;
    // So that a late job is not put down to threads that had no CPU.
    let watches_cpus = matches!(plan.linux(), LinuxScheduler::Fifo | LinuxScheduler::Laxity);
    Run::start(plan, &graphs, StartOptions { locks_memory: true, watches_cpus, ..StartOptions::default() })
}

/// Whether Linux says so, or that others have what is wanted.
fn is_about_permission(refusal: &str) -> bool {
    refusal.contains("is not permitted") || refusal.contains("is not admitted")
}

pub fn simulated(workload: &Workload, duration: Nanos) -> Vec<Record> {
    let plan = laxity_plan::Plan::new(workload, &workload.scheduler, SEED).expect("it can be simulated");
    let mut simulator = Simulator::new(&plan, Vec::new());
    simulator.run_until(Instant::ZERO + duration);
    simulator.finish()
}

/// Releases by task and index, with their times and deadlines.
pub fn releases(records: &[Record]) -> Vec<(JobId, Instant, Instant)> {
    let release = |record: &Record| match record.event {
        Event::Release { job, deadline } => Some((job, record.at, deadline)),
        _ => None,
    };
    let mut releases: Vec<_> = records.iter().filter_map(release).collect();
    releases.sort();
    releases
}

pub fn completions(records: &[Record]) -> Vec<(JobId, Instant)> {
    let completion = |record: &Record| match record.event {
        Event::Complete { job, .. } => Some((job, record.at)),
        _ => None,
    };
    let mut completions: Vec<_> = records.iter().filter_map(completion).collect();
    completions.sort();
    completions
}

pub fn grants(records: &[Record]) -> Vec<(JobId, LockId)> {
    let grant = |record: &Record| match record.event {
        Event::Grant { job, lock, .. } => Some((job, lock)),
        _ => None,
    };
    records.iter().filter_map(grant).collect()
}

/// Grants by job, lock and replica, in their order.
pub fn replicas(records: &[Record]) -> Vec<(JobId, LockId, ReplicaId)> {
    let grant = |record: &Record| match record.event {
        Event::Grant { job, lock, replica } => Some((job, lock, replica)),
        _ => None,
    };
    records.iter().filter_map(grant).collect()
}

/// What each job of a task did about locks and CPUs, in its order. Threads that handle interrupts are no tasks.
pub fn lives(records: &[Record]) -> BTreeMap<JobId, Vec<(&'static str, Option<LockId>)>> {
    let mut lives: BTreeMap<JobId, Vec<_>> = BTreeMap::new();
    for record in records {
        let (job, did) = match record.event {
            Event::Ready { job, .. } => (job, ("begins", None)),
            Event::Request { job, lock } => (job, ("asks for", Some(lock))),
            Event::Grant { job, lock, .. } => (job, ("has", Some(lock))),
            Event::Unlock { job, lock, .. } => (job, ("gives up", Some(lock))),
            Event::Suspend { job, .. } => (job, ("sleeps", None)),
            Event::Resume { job, .. } => (job, ("wakes", None)),
            Event::Complete { job, .. } => (job, ("is complete", None)),
            _ => continue,
        };
        lives.entry(job).or_default().push(did);
    }
    for record in records {
        if let Event::Serve { thread, .. } = record.event {
            lives.remove(&thread);
        }
    }
    lives
}

/// The workload that `text` describes.
pub fn workload(text: &str) -> Workload {
    let text = format!("laxity = 1\nname = \"test\"\n{text}");
    Workload::from_toml(&text, "test.toml").unwrap_or_else(|errors| panic!("{errors}"))
}

/// Runs `workload` live until `facts` about it are those of its simulation.
///
/// The compared order does not depend on the machine as long as nothing is later than half the distance of the
/// workload's events, `slack`. A machine that is busy with other things can be later: a run in which something
/// was is said to be none, and is tried again. If none is undisturbed nothing is known, which is printed.
pub fn same_live<T: PartialEq + std::fmt::Debug>(
    workload: &Workload,
    duration: Nanos,
    slack: Nanos,
    facts: impl Fn(&[Record]) -> T,
) -> Option<Vec<Record>> {
    let simulation = simulated(workload, duration);
    let expected = facts(&simulation);
    for _ in 0..5 {
        let records = live(workload, duration);
        let found = facts(&records);
        if found == expected {
            return Some(records);
        }
        let disturbed = disturbance(&simulation, &records);
        assert!(disturbed > slack, "simulated {expected:?}\nlive {found:?}\nnothing was later than {disturbed}");
        eprintln!("once more: something was {disturbed} later than simulated");
    }
    skip(format_args!("this machine is too busy to say anything about an order of events {slack} apart"));
    None
}

/// By how much any request, release or completion of a simulated job came later live. A job that is missing live says
/// nothing here.
fn disturbance(simulation: &[Record], live: &[Record]) -> Nanos {
    let steps = |records: &[Record]| {
        let mut steps: BTreeMap<JobId, Vec<Instant>> = BTreeMap::new();
        for record in records {
            if let Event::Request { job, .. } | Event::Ready { job, .. } | Event::Complete { job, .. } = record.event {
                steps.entry(job).or_default().push(record.at);
            }
        }
        steps
    };
    let live = steps(live);
    let late = |(job, simulated): (&JobId, &Vec<Instant>)| {
        let spans = simulated.iter().zip(live.get(job)?).map(|(simulated, live)| live.saturating_since(*simulated));
        spans.max()
    };
    steps(simulation).iter().filter_map(late).max().unwrap_or_default()
}
