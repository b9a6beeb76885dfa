//! How graphs start, run and end.

mod support;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use laxity_graph::Collector;
use laxity_model::{Instant, Nanos};
use laxity_trace::check::LegalityCheck;
use laxity_trace::{Record, Sink};
use laxity_vx::{
    Action, Array, Bytes, Context, FailureReason, Parameter, SpawnError, SpawnOptions, Status, Value, Verified,
};
use support::{PERIOD, Place, frames};

/// Long enough for any machine: reached only by what hangs.
const HANG: Duration = Duration::from_secs(20);

fn hang() -> Instant {
    laxity_sys::clock::now().saturating_add(Nanos(HANG.as_nanos() as u64))
}

/// first -> second -> third, which call `kernel` with their names and frames.
fn chain(
    context: &Context,
    kernel: impl Fn(&str, u64) -> Result<(), laxity_vx::KernelError> + Send + Sync + 'static,
) -> Verified {
    let kernel = Arc::new(kernel);
    let mut graph = context.graph("chain");
    let [a, b] = ["a", "b"].map(|name| graph.object(name, Value::<u64>::new()));
    let nodes = [
        ("first", vec![Parameter::output(a)]),
        ("second", vec![Parameter::input(a), Parameter::output(b)]),
        ("third", vec![Parameter::input(b)]),
    ];
    for (name, parameters) in nodes {
        let kernel = kernel.clone();
        graph.node(name, parameters, move |job| kernel(name, job.index()));
    }
    graph.verify().expect("a chain can be")
}

#[test]
fn callbacks_are_before_and_behind_all_nodes_of_a_frame_and_move_data() {
    let place = Place::new("callbacks");
    let mut graph = place.context().graph("callbacks");
    let [raw, one, other] = ["raw", "one", "other"].map(|name| graph.object(name, Value::<u64>::new()));
    let calls: Arc<Mutex<Vec<(&str, u64)>>> = Arc::default();
    let note = |name| {
        let calls = calls.clone();
        move |frame| calls.lock().expect("no panic").push((name, frame))
    };
    let called = note("input");
    graph.input([Parameter::output(raw)], move |job| {
        called(job.index());
        *job.write(raw)? = 100 + job.index();
        Ok(Action::Continue)
    });
    for (name, to) in [("one", one), ("other", other)] {
        let called = note(name);
        graph.node(name, [Parameter::input(raw), Parameter::output(to)], move |job| {
            let value = *job.read(raw)?;
            *job.write(to)? = value + 1;
            called(job.index());
            Ok(())
        });
    }
    // It shares no object with another node.
    let called = note("alone");
    graph.node("alone", [], move |job| {
        thread::sleep(Duration::from_micros(300));
        called(job.index());
        Ok(())
    });
    let (called, results): (_, Arc<Mutex<Vec<u64>>>) = (note("output"), Arc::default());
    let seen = results.clone();
    graph.output([Parameter::input(one), Parameter::input(other)], move |job| {
        called(job.index());
        seen.lock().expect("no panic").push(job.read(one)? + job.read(other)?);
        Ok(())
    });
    let graph = graph.verify().expect("it can be");
    let times = graph.spawn(&frames(10)).expect("it can be").wait().expect("no kernel fails");
    assert_eq!((times.begun, times.completed), (10, 10));
    assert_eq!(*results.lock().expect("no panic"), (0..10).map(|frame| 202 + 2 * frame).collect::<Vec<_>>());
    let calls = calls.lock().expect("no panic");
    for frame in 0..10 {
        let of_frame: Vec<_> = calls.iter().filter(|call| call.1 == frame).map(|call| call.0).collect();
        assert_eq!((of_frame[0], of_frame[4], of_frame.len()), ("input", "output", 5), "{of_frame:?}");
    }
}

#[test]
fn frames_are_released_periodically_from_the_start_that_was_asked_for() {
    let place = Place::new("periodic");
    let graph = chain(&place.context(), |_, _| Ok(()));
    let start = laxity_sys::clock::now().saturating_add(Nanos::from_millis(5));
    let options = SpawnOptions { start: Some(start), phase: Nanos(77), ..frames(20) };
    let times = graph.spawn(&options).expect("it can be").wait().expect("no kernel fails");
    assert_eq!(times.first_release, start.saturating_add(Nanos(77)));
    for (index, frame) in times.frames.iter().enumerate() {
        assert_eq!(frame.release, times.first_release.saturating_add(Nanos(PERIOD.0 * index as u64)));
        assert!(frame.completion >= frame.release, "nothing is done before it is released");
    }
    assert_eq!(times.completion_delays().len(), 19);
}

#[test]
fn the_input_callback_ends_the_graph_and_no_frame_is_lost() {
    let place = Place::new("end");
    let mut graph = place.context().graph("end");
    let items = graph.object("items", Array::<u32>::new(3));
    graph.input([Parameter::output(items)], move |job| {
        let frame = job.index() as u32;
        let mut items = job.write(items)?;
        assert!(items.items().is_empty(), "whatever earlier frames left there");
        (0..frame % 4).for_each(|item| assert!(items.push(item)));
        Ok(if frame == 9 { Action::End } else { Action::Continue })
    });
    let lengths: Arc<Mutex<Vec<usize>>> = Arc::default();
    let seen = lengths.clone();
    graph.node("count", [Parameter::input(items)], move |job| {
        seen.lock().expect("no panic").push(job.read(items)?.len());
        Ok(())
    });
    let graph = graph.verify().expect("it can be");
    let times = graph.spawn(&SpawnOptions::every(PERIOD)).expect("it can be").wait().expect("no kernel fails");
    assert_eq!((times.begun, times.completed), (9, 9));
    assert_eq!(*lengths.lock().expect("no panic"), [0, 1, 2, 3, 0, 1, 2, 3, 0]);
}

/// Also from a deep sleep: the next release is far away.
#[test]
fn stopping_completes_what_was_begun() {
    let place = Place::new("stop");
    let graph = chain(&place.context(), |name, _| {
        if name == "third" {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    });
    let mut run = graph.spawn(&SpawnOptions::every(PERIOD)).expect("it can be");
    assert!(run.wait_for_frames(3, hang()) >= 3);
    run.stop();
    let times = run.wait().expect("no kernel fails");
    assert!(times.begun >= 3 && times.completed == times.begun, "{times:?}");
    drop(run);

    let hours = SpawnOptions::every(Nanos::from_secs(3600));
    let mut run = graph.spawn(&hours).expect("it has ended, and can run again");
    assert!(run.wait_for_frames(1, hang()) == 1, "the first release is the start");
    assert!(!run.has_ended());
    run.stop();
    assert_eq!(run.wait().expect("no kernel fails").completed, 1);
    assert!(run.has_ended());
}

#[test]
fn a_kernel_that_fails_stops_the_graph_and_is_named() {
    let place = Place::new("failure");
    let graph = chain(&place.context(), |name, frame| match (name, frame) {
        ("second", 4) => Err("no such face".into()),
        _ => Ok(()),
    });
    let mut run = graph.spawn(&SpawnOptions::every(PERIOD)).expect("it can be");
    let failure = run.wait().expect_err("it fails");
    assert_eq!(failure.to_string(), "graph chain: node second, frame 4: no such face");
    assert_eq!((failure.node.as_str(), failure.frame, failure.status()), ("second", Some(4), Status::GraphAbandoned));
    assert!(run.times().completed <= 4);
}

#[test]
fn a_kernel_that_panics_stops_the_graph_and_may_run_again() {
    let place = Place::new("panic");
    let is_fatal = Arc::new(AtomicBool::new(true));
    let panics = is_fatal.clone();
    let graph = chain(&place.context(), move |name, frame| {
        assert!(!(panics.load(Ordering::SeqCst) && name == "third" && frame == 2), "as the test wants");
        Ok(())
    });
    let failure = graph.spawn(&SpawnOptions::every(PERIOD)).expect("it can be").wait().expect_err("it panics");
    assert!(matches!(&failure.reason, FailureReason::Panic(text) if text == "as the test wants"));
    is_fatal.store(false, Ordering::SeqCst);
    assert_eq!(graph.spawn(&frames(5)).expect("it has ended").wait().expect("no kernel fails").completed, 5);
}

#[test]
fn what_a_node_does_not_declare_it_cannot_have() {
    let place = Place::new("undeclared");
    let mut graph = place.context().graph("undeclared");
    let [a, b] = ["a", "b"].map(|name| graph.object(name, Bytes(8)));
    graph.node("writer", [Parameter::output(a), Parameter::output(b)], move |job| {
        let (_, mut outputs) = job.objects();
        outputs.write(a)?;
        assert!(outputs.write(a).is_err(), "the second would be the same memory");
        Ok(())
    });
    graph.node("reader", [Parameter::input(a)], move |job| job.write(a).map(drop).map_err(Into::into));
    let graph = graph.verify().expect("it can be");
    let failure = graph.spawn(&frames(1)).expect("it can be").wait().expect_err("it writes");
    assert!(failure.to_string().contains("node reader does not write object a"), "{failure}");
}

#[test]
fn one_run_at_a_time_and_terminating_ends_it() {
    let place = Place::new("once");
    let begun = Arc::new(AtomicU64::new(0));
    let counted = begun.clone();
    let graph = chain(&place.context(), move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        Ok(())
    });
    let run = graph.spawn(&SpawnOptions::every(PERIOD)).expect("it can be");
    let error = graph.spawn(&SpawnOptions::every(PERIOD)).expect_err("it runs");
    assert_eq!(error.status(), Status::GraphScheduled);
    assert!(!place.is_empty());
    run.terminate();
    drop(run);
    assert!(place.is_empty());
    let after = begun.load(Ordering::SeqCst);
    assert_eq!(begun.load(Ordering::SeqCst), after, "its threads have ended");
}

#[test]
fn options_that_cannot_be_are_refused_with_the_way_out() {
    let place = Place::new("options");
    let graph = chain(&place.context(), |_, _| Ok(()));
    let refused = |options: SpawnOptions| graph.spawn(&options).expect_err("it cannot be").to_string();
    assert_eq!(refused(SpawnOptions::every(Nanos::ZERO)), "period_ns is 0; use 1 ns to a hundred years");
    let none = SpawnOptions { replicas: Some(0), ..frames(1) };
    assert!(refused(none).contains("replica"));
    let elsewhere = SpawnOptions { cpus: vec![1_000_000], ..frames(1) };
    assert!(refused(elsewhere).contains("CPUs [1000000]"));
    assert!(place.is_empty(), "nothing is left of what was refused");
    assert_eq!(graph.spawn(&frames(1)).expect("it can be").wait().expect("no kernel fails").completed, 1);
}

/// The name of a node, and that of the thread that executes it.
type NodeAndThread = (String, Option<String>);

#[test]
fn every_thread_has_the_name_of_its_node() {
    let place = Place::new("names");
    let names: Arc<Mutex<BTreeSet<NodeAndThread>>> = Arc::default();
    let found = names.clone();
    let graph = chain(&place.context(), move |name, _| {
        let thread = thread::current().name().map(str::to_owned);
        found.lock().expect("no panic").insert((name.to_owned(), thread));
        Ok(())
    });
    graph.spawn(&frames(3)).expect("it can be").wait().expect("no kernel fails");
    let expected = ["first", "second", "third"].map(|name| (name.to_owned(), Some(name.to_owned())));
    assert_eq!(*names.lock().expect("no panic"), BTreeSet::from(expected));
}

/// Also when it ended in the middle of a job, which is then begun and no more.
#[test]
fn a_run_leaves_a_legal_trace() {
    let place = Place::new("trace");
    let graph = chain(&place.context(), |_, _| Ok(()));
    let mut run = graph.spawn(&frames(30)).expect("it can be");
    run.wait().expect("no kernel fails");
    is_legal(&run);
    drop(run);
    let failing = |name: &str, frame| if (name, frame) == ("second", 7) { Err("enough".into()) } else { Ok(()) };
    let graph = chain(&place.context(), failing);
    let mut run = graph.spawn(&frames(30)).expect("it can be");
    run.wait().expect_err("it fails");
    is_legal(&run);
}

fn is_legal(run: &laxity_vx::Run) {
    let collector = Collector::new(run.graph()).expect("it has a recorder");
    let (header, mut records) = (collector.header().clone(), Vec::<Record>::new());
    assert_eq!(collector.finish(&mut records).lost, 0);
    let mut check = LegalityCheck::new(&header).with_all_jobs();
    records.iter().for_each(|record| check.record(record.at, record.event));
    let report = check.finish();
    assert!(report.violations.is_empty(), "{:?}", report.violations);
    assert_eq!(header.tasks.len(), 5, "the nodes, and the callbacks");
}

#[test]
fn a_failed_start_leaves_nothing_and_says_why() {
    let place = Place::new("taken");
    let graph = chain(&place.context(), |_, _| Ok(()));
    let other = chain(&place.context(), |_, _| Ok(()));
    let run = graph.spawn(&SpawnOptions::every(PERIOD)).expect("it can be");
    assert!(matches!(other.spawn(&frames(1)), Err(SpawnError::Scheduled { graph }) if graph == "chain"));
    drop(run);
    assert!(other.spawn(&frames(1)).is_ok());
}
