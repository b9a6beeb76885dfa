//! Laxity's scheduler, where this user may have `SCHED_FIFO`: its live traces follow the policy as simulated ones do, with no
//! tolerance, and its links come in the simulated order.

use std::collections::BTreeMap;

use laxity_model::{Instant, JobId, Nanos, Workload};
use laxity_runtime::{LinuxScheduler, LivePlan, Options};
use laxity_testing::skip;
use laxity_trace::check::PolicyCheck;
use laxity_trace::{Event, Record, Sink};

use crate::harness::{SEED, completions, grants, live_by, ms, replicas, simulated, workload};

/// The live records of `workload`, after the policy's checker has seen them.
pub fn followed(workload: &Workload, duration: Nanos) -> Option<Vec<Record>> {
    let records = live_by(workload, duration, LinuxScheduler::Laxity)?;
    let options = Options { scheduler: workload.scheduler, linux: Some(LinuxScheduler::Laxity), seed: SEED, duration };
    let plan = LivePlan::new(workload, &options).expect("it ran");
    assert!(plan.header().is_linked, "its links are recorded");
    let mut check = PolicyCheck::new(plan.header());
    records.iter().for_each(|record| check.record(record.at, record.event));
    let report = check.finish();
    assert!(report.is_clean(), "{}: {:?}", workload.scheduler, report.violations);
    let links = records.iter().filter(|record| matches!(record.event, Event::Link { job: Some(_), .. }));
    assert!(links.count() >= completions(&records).len().min(1), "jobs were linked");
    Some(records)
}

/// The jobs in the order in which they were linked for the first time.
fn linked(records: &[Record]) -> Vec<JobId> {
    let mut order = Vec::new();
    for record in records {
        if let Event::Link { job: Some(job), .. } = record.event
            && !order.contains(&job)
        {
            order.push(job);
        }
    }
    order
}

/// Tasks whose deadlines are their periods, and of which the later ones are longer: (phase, cost, period) in ms.
fn tasks(policy: &str, cpus: usize, tasks: &[(u64, u64, u64)]) -> Workload {
    let mut text = format!("scheduler = \"{policy}\"\n[platform]\ncpus = {cpus}\n");
    for (index, (phase, cost, period)) in tasks.iter().enumerate() {
        text += &format!(
            "[[task]]\nname = \"t{index}\"\nphase = \"{phase} ms\"\nwcet = \"{cost} ms\"\nperiod = \"{period} ms\"\n\
             priority = {index}\n"
        );
    }
    workload(&text)
}

#[test]
fn twenty_workloads_are_linked_live_in_the_simulated_order_and_follow_their_policies() {
    let cpus = std::thread::available_parallelism().expect("CPUs").get().min(2);
    // Releases are 7 ms apart or more, except where phases are equal.
    let sets: [&[(u64, u64, u64)]; 5] = [
        &[(0, 20, 200), (7, 5, 100), (14, 10, 150)],
        &[(0, 30, 300), (8, 30, 120), (16, 5, 60), (24, 5, 240)],
        &[(0, 10, 100), (30, 10, 100), (60, 10, 100)],
        &[(0, 40, 400), (10, 20, 200), (20, 10, 100), (40, 5, 50)],
        &[(0, 15, 90), (9, 15, 180), (18, 30, 360)],
    ];
    let policies = ["G-EDF", "P-EDF", "G-RM", "G-FP"];
    for policy in policies {
        for set in sets {
            let workload = tasks(policy, cpus, set);
            let duration = ms(220);
            let expected = linked(&simulated(&workload, duration));
            let is_same = (0..4).find_map(|_| {
                let records = followed(&workload, duration)?;
                let found = linked(&records);
                // On a busy machine a job may be late by more than releases are apart.
                let late = latest(&records);
                (found.starts_with(&expected) || late < ms(3)).then_some((found, late))
            });
            let Some((found, late)) = is_same else {
                skip(format_args!(
                    "{policy} {set:?}: not permitted, or this machine is too busy for an order of links"
                ));
                continue;
            };
            let count = expected.len().min(found.len());
            assert_eq!(found[..count], expected[..count], "{policy} {set:?}: nothing was later than {late}");
        }
    }
}

/// The longest time from a release to the decision about it.
pub fn latest(records: &[Record]) -> Nanos {
    let mut releases: Vec<(JobId, Instant)> = Vec::new();
    let mut latest = Nanos::ZERO;
    for record in records {
        match record.event {
            Event::Release { job, .. } => releases.push((job, record.at)),
            Event::Ready { job, .. } => {
                let released = releases.iter().find(|(other, _)| *other == job).map(|&(_, at)| at);
                latest = latest.max(released.map_or(Nanos::ZERO, |at| record.at.saturating_since(at)));
            }
            _ => {}
        }
    }
    latest
}

#[test]
fn sections_suspensions_and_locks_follow_the_policy_live() {
    let workload = workload(
        r#"
scheduler = "G-EDF"
[platform]
cpus = 1
[[resource]]
name = "door"
protocol = "priority-inheritance"
[[task]]
name = "sections"
period = "40 ms"
body = [{ cpu = "1 ms" }, { nonpreemptive = "4 ms" }, { cpu = "1 ms" }]
[[task]]
name = "sleeps"
period = "20 ms"
phase = "2 ms"
body = [{ cpu = "1 ms" }, { suspend = "3 ms" }, { cpu = "1 ms" }]
[[task]]
name = "locks"
period = "80 ms"
body = [{ critical = "door", body = [{ cpu = "1 ms" }, { suspend = "2 ms" }, { cpu = "1 ms" }] }]
[[task]]
name = "waits"
period = "40 ms"
phase = "1 ms"
body = [{ critical = "door", body = [{ cpu = "1 ms" }] }]
"#,
    );
    let Some(records) = followed(&workload, ms(400)) else { return };
    assert_eq!(completions(&records).len(), 10 + 20 + 5 + 10);
}

#[test]
fn a_graph_with_deadlines_beyond_its_periods_runs_under_global_edf() {
    let name = format!("scheduled-{}", std::process::id());
    let cpus = std::thread::available_parallelism().expect("CPUs").get().min(2);
    let workload = workload(&format!(
        r#"
scheduler = "G-EDF"
[platform]
cpus = {cpus}
[[graph]]
name = "{name}"
edge = ["a -> b", "b -> c"]
[[graph.node]]
name = "a"
period = "10 ms"
wcet = "1 ms"
[[graph.node]]
name = "b"
wcet = "2 ms"
deadline = "25 ms"
[[graph.node]]
name = "c"
wcet = "1 ms"
deadline = "30 ms"
"#
    ));
    let Some(records) = followed(&workload, ms(300)) else { return };
    assert!(completions(&records).len() >= 3 * 30, "{}", completions(&records).len());
    // The thread of a node counts from when it knows of the tokens, the trace from when they were produced: the trace says by
    // which deadline the scheduler ranked the job, before that has to do with any other job.
    let mut deadlines = BTreeMap::new();
    let mut ranked = BTreeMap::new();
    for record in &records {
        match record.event {
            Event::Release { job, deadline } => drop(deadlines.insert(job, deadline)),
            Event::Priority { job, level, of } if of == job.task => drop(ranked.insert(job, Instant(level))),
            Event::Ready { job, .. } => assert!(ranked[&job] >= deadlines[&job], "{job}: {ranked:?} {deadlines:?}"),
            _ => {}
        }
    }
}

/// On one CPU under EDF, in ms:
///
/// ```text
///                  0    10   20   30   40   50   60
///   holder (800)   HHHHHH.........HH...................h     H: holds the door
///   waiter (400)        w...........ww                       requests it at 10
///   urgent (200)             uuuuu                           released at 20
///   middle (600)              ........mmmmm                  released at 25
/// ```
///
/// The holder has the waiter's deadline: `urgent` goes before it, and `middle` after it.
#[test]
fn a_holder_is_as_urgent_as_its_waiter_and_no_more() {
    for protocol in ["priority-inheritance", "priority-ceiling", "fifo"] {
        let task = |name: &str, phase: u32, deadline: u32, body: &str| {
            format!(
                "[[task]]\nname = \"{name}\"\nperiod = \"2 s\"\nphase = \"{phase} ms\"\ndeadline = \"{deadline} ms\"\n\
                 body = [{body}]\n"
            )
        };
        let door =
            |cpu: u32| format!("{{ critical = \"door\", body = [{{ cpu = \"{cpu} ms\" }}] }}, {{ cpu = \"2 ms\" }}");
        let workload = workload(
            &[
                format!(
                    "scheduler = \"G-EDF\"\n[platform]\ncpus = 1\n[[resource]]\nname = \"door\"\n\
                     protocol = \"{protocol}\"\n"
                ),
                task("holder", 0, 800, &door(40)),
                task("waiter", 10, 400, &door(3)),
                task("urgent", 20, 200, "{ cpu = \"5 ms\" }"),
                task("middle", 25, 600, "{ cpu = \"5 ms\" }"),
            ]
            .concat(),
        );
        let duration = ms(300);
        let simulation = simulated(&workload, duration);
        let expected = (completed(&simulation), grants(&simulation));
        assert_eq!(expected.0, [2, 1, 3, 0], "urgent, waiter, middle, holder");
        let is_same = (0..4).find_map(|_| {
            let records = followed(&workload, duration)?;
            let found = (completed(&records), grants(&records));
            (found == expected || latest(&records) < ms(2)).then_some((found, records))
        });
        let Some((found, records)) = is_same else {
            skip(format_args!("{protocol}: not permitted, or this machine is too busy for an order of completions"));
            continue;
        };
        assert_eq!(found, expected, "{protocol}");
        // Holders are lifted at other instants than simulated, but to the same deadlines.
        if protocol != "priority-ceiling" {
            assert_eq!(priorities(&records), priorities(&simulation), "{protocol}");
            assert_eq!(priorities(&records)[0], (0, ms(410).0, 1), "the holder has the waiter's deadline");
        }
    }
}

/// Resources with two replicas and in FIFO order, by tasks of two clusters of one CPU each, or of one if there is but one.
#[test]
fn replicas_and_fifo_order_are_granted_live_as_simulated() {
    let cpus = std::thread::available_parallelism().expect("CPUs").get().min(2);
    let mut text = format!(
        "scheduler = \"P-EDF\"\n[platform]\ncpus = {cpus}\n\
         [[resource]]\nname = \"pair\"\nprotocol = \"priority-inheritance\"\nreplicas = 2\n\
         [[resource]]\nname = \"queue\"\nprotocol = \"fifo\"\n"
    );
    // Each sleeps in its sections, so that the order of requests is that of the phases; the later the more urgent.
    for (index, deadline) in [900u32, 800, 700, 600].into_iter().enumerate() {
        text += &format!(
            "[[task]]\nname = \"t{index}\"\nperiod = \"2 s\"\nphase = \"{} ms\"\ndeadline = \"{deadline} ms\"\n\
             cluster = {}\nbody = [{{ critical = \"pair\", body = [{{ suspend = \"{} ms\" }}] }}, {{ cpu = \"100 us\" }}, \
             {{ critical = \"queue\", body = [{{ suspend = \"50 ms\" }}] }}]\n",
            20 * index,
            index % cpus,
            100 + 10 * index,
        );
    }
    let workload = workload(&text);
    let duration = ms(700);
    let expected = replicas(&simulated(&workload, duration));
    assert_eq!(expected.len(), 8);
    let is_same = (0..4).find_map(|_| {
        let records = followed(&workload, duration)?;
        let found = replicas(&records);
        (found == expected || latest(&records) < ms(3)).then_some(found)
    });
    let Some(found) = is_same else {
        return skip("not permitted, or this machine is too busy for an order of grants");
    };
    assert_eq!(found, expected);
}

/// The tasks in the order in which their jobs completed.
pub fn completed(records: &[Record]) -> Vec<u32> {
    let completion = |record: &Record| match record.event {
        Event::Complete { job, .. } => Some(job.task.0),
        _ => None,
    };
    records.iter().filter_map(completion).collect()
}

/// Which task has which level, and from which task, in the order of the records.
pub fn priorities(records: &[Record]) -> Vec<(u32, u64, u32)> {
    let priority = |record: &Record| match record.event {
        Event::Priority { job, level, of } => Some((job.task.0, level, of.0)),
        _ => None,
    };
    records.iter().filter_map(priority).collect()
}
