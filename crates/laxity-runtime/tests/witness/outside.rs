//! Other threads of the machine, as Linux records them, beside what those threads say themselves.

use std::thread::{self, JoinHandle};

use laxity_graph::Registry;
use laxity_model::{Nanos, Platform, Task, Workload};
use laxity_runtime::{LinuxScheduler, LivePlan, Next, Options, Run, StartOptions, threads_refused};
use laxity_sys::{clock, scheduling};
use laxity_testing::skip;
use laxity_trace::check::LegalityCheck;
use laxity_trace::intervals::{Activity, Timeline};
use laxity_trace::why::{Blame, explain};
use laxity_trace::{Outsider, OutsiderKind, Sink};

use crate::harness::ms;

/// A thread above all jobs, which soon has `cpu` for 3 ms eight times; it answers how long it computed, and how long that took.
fn thief(cpu: usize) -> JoinHandle<(Nanos, Nanos)> {
    let body = move || {
        let ready = scheduling::pin(cpu).and_then(|()| scheduling::set_fifo(98));
        let (mut computed, mut took) = (Nanos::ZERO, Nanos::ZERO);
        // It begins some 40 ms after time 0.
        thread::sleep(std::time::Duration::from_millis(60));
        for _ in 0..8 {
            thread::sleep(std::time::Duration::from_millis(17));
            ready.as_ref().expect("jobs may be real-time threads, too");
            let (from, before) = (clock::now(), clock::thread_cpu_time());
            while clock::thread_cpu_time().0 - before.0 < 3_000_000 {}
            computed += clock::thread_cpu_time().saturating_sub(before);
            took += clock::now().saturating_since(from);
        }
        (computed, took)
    };
    thread::Builder::new().name("thief".to_owned()).spawn(body).expect("a thread")
}

/// A thread that takes the CPU from jobs for 3 ms at a time is named, with about that time; the rest of each job is still
/// accounted for, and its execution is what it computed.
#[test]
fn a_thread_that_takes_the_cpu_from_jobs_is_named_with_its_time() {
    if let Some(refusal) = threads_refused() {
        return skip(refusal);
    }
    let workload = Workload::new("robbed", Platform::identical(1), vec![Task::periodic("victim", ms(20), ms(50))]);
    let linux = Some(LinuxScheduler::Fifo);
    let options = Options { scheduler: "P-RM".parse().expect("a scheduler"), linux, seed: 7, duration: ms(500) };
    let plan = match LivePlan::new(&workload, &options) {
        Ok(plan) => plan,
        Err(refusal) => return skip(refusal),
    };
    let cpu = scheduling::usable_cpus().expect("this process has CPUs")[0];
    let graphs = plan.create_graphs(&Registry::default()).expect("there are none");
    let mut records = Vec::new();
    let run = Run::start(&plan, &graphs, StartOptions { watches_threads: true, ..StartOptions::default() });
    let run = run.expect("both are permitted");
    let thief = thief(cpu);
    let ended = run.carry_on(&mut records, |_, _, _| Next::GoOn);
    let (computed, took) = thief.join().expect("it computes");
    assert_eq!((ended.failed, ended.remarks), (Ok(()), Vec::new()), "nothing is lost");
    assert!(ended.outcome.is_whole);
    let mut check = LegalityCheck::new(plan.header()).with_all_jobs();
    records.iter().for_each(|record| check.record(record.at, record.event));
    assert!(check.finish().is_clean(), "checkers take such traces");

    let mut header = plan.header().clone();
    records.iter().for_each(|record| header.learn(&record.event));
    let is_thief = |by: Outsider| {
        by.kind == OutsiderKind::Thread && header.outsiders[usize::from(by.number)].name.starts_with("thief")
    };
    let timeline = Timeline::of(&header, &records).expect("a sound trace");
    let had = timeline.intervals.iter().filter_map(|interval| match interval.activity {
        Activity::Outside { by, .. } if is_thief(by) => Some(interval.duration().0),
        _ => None,
    });
    let had: u64 = had.sum();
    let mut by_name = std::collections::BTreeMap::new();
    for interval in &timeline.intervals {
        if let Activity::Outside { by, .. } = interval.activity {
            let info = &header.outsiders[usize::from(by.number)];
            *by_name.entry((info.name.clone(), by)).or_insert(0) += interval.duration().0;
        }
    }
    // Interrupts count apart, and the way into the thread and out of it counts, too.
    assert!(had >= computed.0 - computed.0 / 10, "{had} ns in the trace of {computed} computed; all: {by_name:?}");
    assert!(had <= took.0 + took.0 / 10, "{had} ns in the trace of {took} between its own looks at the clock");

    let accounts = explain(&header, &records, |_| true).expect("a sound trace");
    let (mut robbed, mut executed) = (0, 0);
    for account in &accounts {
        let parts = account.parts();
        assert_eq!(parts.iter().map(|part| part.time.0).sum::<u64>(), account.time().0);
        for part in parts {
            match part.blame {
                Blame::Outside(by) if is_thief(by) => robbed += part.time.0,
                Blame::Execution => executed += part.time.0,
                _ => {}
            }
        }
    }
    println!("thief: {computed} computed, {had} in the trace, {robbed} from jobs; jobs executed {executed} ns");
    // Jobs are there two fifths of the time.
    assert!(robbed >= had / 10 && robbed <= had, "{robbed} of {had}");
    let needed = accounts.len() as u64 * 20_000_000;
    assert!(executed >= needed - needed / 20, "jobs compute what they need: {executed} of {needed}");
    let named = accounts.iter().flat_map(|account| account.parts()).map(|part| part.blame.describe(&header));
    assert!(named.into_iter().any(|what| what.starts_with("waits for a CPU: thread thief (")));
}
