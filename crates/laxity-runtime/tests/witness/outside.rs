//! Other threads of the machine, as Linux records them, beside what those threads say themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use laxity_graph::Registry;
use laxity_model::{Instant, Nanos, Platform, Task, Workload};
use laxity_runtime::{LinuxScheduler, LivePlan, Next, Options, Run, StartOptions, threads_refused};
use laxity_sys::{clock, scheduling};
use laxity_testing::skip;
use laxity_trace::check::LegalityCheck;
use laxity_trace::intervals::{Activity, Timeline};
use laxity_trace::why::{Blame, explain};
use laxity_trace::{Event, Outsider, OutsiderKind, Sink};

use crate::harness::ms;

/// A thread above all jobs, which has `cpu` for a while now and then; it answers from when to when, and how long it computed.
fn thief(cpu: usize, stop: Arc<AtomicBool>) -> JoinHandle<Vec<(Instant, Instant, Nanos)>> {
    let body = move || {
        let ready = scheduling::pin(cpu).and_then(|()| scheduling::set_fifo(98));
        let mut taken = Vec::new();
        while ready.is_ok() && !stop.load(Ordering::Relaxed) {
            thread::sleep(std::time::Duration::from_millis(17));
            let (from, computed) = (clock::now(), clock::thread_cpu_time());
            while clock::thread_cpu_time().0 - computed.0 < 3_000_000 {}
            taken.push((from, clock::now(), Nanos(clock::thread_cpu_time().0 - computed.0)));
        }
        taken
    };
    thread::Builder::new().name("thief".to_owned()).spawn(body).expect("a thread")
}

/// A thread that takes the CPU from jobs for 3 ms every 20 ms is named, with about that time; the rest of each job is still
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
    let (stop, mut records) = (Arc::new(AtomicBool::new(false)), Vec::new());
    let run = Run::start(&plan, &graphs, StartOptions { watches_threads: true, ..StartOptions::default() });
    let run = run.expect("both are permitted");
    let thief = thief(cpu, Arc::clone(&stop));
    let ended = run.carry_on(&mut records, |_, _, _| Next::GoOn);
    stop.store(true, Ordering::Relaxed);
    let taken = thief.join().expect("it computes");
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
    let end = records.iter().filter(|record| record.event == Event::End).map(|record| record.at.0).next_back();
    // What it took before the trace began, and after it ended, is not there; interrupts count apart.
    let (computed, wall) =
        taken.iter().fold((0, 0), |(computed, wall), (from, to, own)| (computed + own.0, wall + (to.0 - from.0)));
    assert!(end.is_some() && taken.len() >= 5, "{taken:?}");
    let least = computed - 2 * 3_100_000 - computed / 5;
    assert!((least..=wall + wall / 10).contains(&had), "{had} ns in the trace; it computed {computed} in {wall}");

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
    println!("thief: {computed} ns computed, {had} in the trace, {robbed} from jobs; jobs executed {executed} ns");
    // Jobs are there two fifths of the time.
    assert!(robbed >= had / 10 && robbed <= had, "{robbed} of {had}");
    let needed = accounts.len() as u64 * 20_000_000;
    assert!(executed >= needed - needed / 20, "jobs compute what they need: {executed} of {needed}");
    let named = accounts.iter().flat_map(|account| account.parts()).map(|part| part.blame.describe(&header));
    assert!(named.into_iter().any(|what| what.starts_with("waits for a CPU: thread thief (")));
}
