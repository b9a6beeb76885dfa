//! Tokens between threads: which jobs may run, which wait, and how it ends.

mod support;

use std::thread;
use std::time::Duration;

use laxity_graph::{ClaimError, Graph, Node, Spec, SpecError, WaitError};
use laxity_model::{DataObject, Edge, Instant, Nanos, Replicas};
use laxity_policy::graph::CompiledGraphError;
use laxity_sys::clock::now;
use support::{Place, back, edge, graph, spec};

fn claim_all<const N: usize>(graph: &Graph) -> [Node; N] {
    std::array::from_fn(|_| graph.claim_any().expect("one node each"))
}

fn run(node: &mut Node) -> u64 {
    let job = node.try_wait().expect("its tokens are there");
    let index = job.index();
    job.complete();
    index
}

fn waits(node: &mut Node) -> bool {
    matches!(node.try_wait(), Err(WaitError::TimedOut { .. }))
}

/// Edge a -> b: produce 3, consume 2, threshold 4, one token at the start.
///
/// ```text
/// a        .   1       2
/// tokens   1   4   2   5   3   1
/// b                1       2   -  (3 < 4)
/// ```
#[test]
fn produce_consume_threshold_and_initial_tokens_say_which_jobs_may_run() {
    let place = Place::new("rule");
    let edge = Edge { produce: 3, consume: 2, threshold: 4, initial: 1, ..edge(0, 1) };
    let graph = place.create(&spec(&["a", "b"], vec![edge])).expect("the name is free");
    let [mut a, mut b] = claim_all(&graph);
    assert_eq!(graph.tokens(0), 1);
    assert!(waits(&mut b));
    run(&mut a);
    assert_eq!(graph.tokens(0), 4);
    assert_eq!(run(&mut b), 0);
    assert_eq!(graph.tokens(0), 2);
    assert!(waits(&mut b));
    run(&mut a);
    assert_eq!(graph.tokens(0), 5);
    assert_eq!(run(&mut b), 1);
    assert_eq!(graph.tokens(0), 3);
    assert!(waits(&mut b));
}

/// d joins b and c, and waits for both with one suspension, whichever is last.
#[test]
fn a_join_runs_when_the_last_of_its_producers_is_done() {
    let place = Place::new("join");
    let edges = vec![edge(0, 1), edge(0, 2), edge(1, 3), edge(2, 3)];
    let graph = place.create(&spec(&["a", "b", "c", "d"], edges)).expect("the name is free");
    let [mut a, mut b, mut c, mut d] = claim_all(&graph);
    thread::scope(|scope| {
        let sink = scope.spawn(move || {
            for index in 0..200 {
                let job = d.wait().expect("producers go on");
                assert_eq!(job.index(), index);
                job.complete();
            }
        });
        for round in 0..200 {
            run(&mut a);
            let (first, second) = if round % 2 == 0 { (&mut b, &mut c) } else { (&mut c, &mut b) };
            run(first);
            run(second);
        }
        sink.join().expect("no panic");
    });
}

/// a --> b, and back with 2 tokens at the start: a is never more than 2 jobs ahead.
#[test]
fn a_back_edge_holds_its_consumer_back() {
    let place = Place::new("back");
    let graph = place.create(&spec(&["a", "b"], vec![edge(0, 1), back(1, 0, 2)])).expect("the name is free");
    let [mut a, mut b] = claim_all(&graph);
    assert_eq!((run(&mut a), run(&mut a)), (0, 1));
    assert!(waits(&mut a));
    run(&mut b);
    assert_eq!(run(&mut a), 2);
    assert!(waits(&mut a));
}

#[test]
fn threads_that_take_turns_never_lose_one() {
    let place = Place::new("turns");
    let graph = place.create(&spec(&["a", "b"], vec![edge(0, 1), back(1, 0, 1)])).expect("the name is free");
    let threads = ["a", "b"].map(|name| {
        let mut node = graph.claim(name).expect("it is free");
        thread::spawn(move || (0..5000).for_each(|_| node.wait().expect("the other goes on").complete()))
    });
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    assert_eq!((graph.status(0).completed, graph.status(1).completed), (5000, 5000));
}

/// Whether or not both threads get a CPU of their own: spinning changes when a wait ends, never how.
#[test]
fn threads_that_spin_take_turns_as_well() {
    let place = Place::new("spin");
    let graph = place.create(&spec(&["a", "b"], vec![edge(0, 1), back(1, 0, 1)])).expect("the name is free");
    let threads = ["a", "b"].map(|name| {
        let mut node = graph.claim(name).expect("it is free");
        node.spin_for(Nanos::from_micros(20));
        thread::spawn(move || (0..2000).for_each(|_| node.wait().expect("the other goes on").complete()))
    });
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    let mut a = graph.claim("a").expect("it was released");
    a.spin_for(Nanos::from_micros(20));
    run(&mut a);
    assert!(matches!(a.wait_for(Nanos::from_micros(50)), Err(WaitError::TimedOut { .. })));
}

#[test]
fn a_wait_ends_at_its_deadline_and_loses_nothing() {
    let place = Place::new("deadline");
    let graph = place.create(&spec(&["a", "b"], vec![edge(0, 1)])).expect("the name is free");
    let [mut a, mut b] = claim_all(&graph);
    let deadline = now().saturating_add(Nanos::from_millis(3));
    assert!(matches!(b.wait_until(deadline), Err(WaitError::TimedOut { node, .. }) if node == "b"));
    assert!(now() >= deadline);
    assert!(b.wait_for(Nanos(1)).is_err());
    run(&mut a);
    assert_eq!(run(&mut b), 0);
}

/// Signals end a wait of the original with an error.
#[test]
fn a_signal_does_not_end_a_wait() {
    // SIGSTOP and SIGCONT interrupt system calls even where no handler is installed.
    let place = Place::new("signal");
    let graph = place.create(&spec(&["a", "b"], vec![edge(0, 1)])).expect("the name is free");
    let [mut a, mut b] = claim_all(&graph);
    let waiting = thread::spawn(move || b.wait().map(|job| job.index()));
    let pid = std::process::id().to_string();
    for _ in 0..3 {
        let signals = format!("kill -STOP {pid}; kill -CONT {pid}");
        let status = std::process::Command::new("sh").args(["-c", &signals]).status().expect("a shell");
        assert!(status.success());
    }
    thread::sleep(Duration::from_millis(2));
    assert!(!waiting.is_finished(), "it still waits");
    run(&mut a);
    assert_eq!(waiting.join().expect("no panic"), Ok(0));
}

#[test]
fn a_job_that_is_not_completed_is_given_again() {
    let place = Place::new("again");
    let graph = place.create(&spec(&["a", "b"], vec![edge(0, 1)])).expect("the name is free");
    let [mut a, mut b] = claim_all(&graph);
    assert_eq!(a.wait().expect("a source").index(), 0);
    assert!(waits(&mut b), "nothing was produced");
    assert_eq!(run(&mut a), 0);
    assert_eq!(b.wait().expect("one token").index(), 0);
    assert_eq!(run(&mut b), 0, "the token is still there");
    assert!(waits(&mut b));
}

#[test]
fn a_node_has_one_owner_at_a_time() {
    let place = Place::new("owner");
    let graph = place.create(&spec(&["a", "b"], vec![edge(0, 1)])).expect("the name is free");
    let other = place.attach("g").expect("it is there");
    let mut a = graph.claim("a").expect("it is free");
    let pid = std::process::id();
    assert_eq!(other.claim("a").expect_err("a is taken"), ClaimError::Claimed { node: "a".to_owned(), pid });
    run(&mut a);
    a.release();
    let mut a = other.claim("a").expect("it was released");
    assert_eq!((a.interrupted(), run(&mut a)), (None, 1), "it goes on where the other stopped");
    let _b = graph.claim_any().expect("b is free");
    assert_eq!(other.claim_any().expect_err("none is left"), ClaimError::NoneFree);
}

/// a -> b -> c with a back-edge c -> a: each works off what is there, then ends; the back-edge ends no node.
#[test]
fn the_end_of_a_node_travels_downstream_behind_its_tokens() {
    let place = Place::new("end");
    let edges = vec![edge(0, 1), edge(1, 2), back(2, 0, 9)];
    let graph = place.create(&spec(&["a", "b", "c"], edges)).expect("the name is free");
    let [mut a, mut b, mut c] = claim_all(&graph);
    run(&mut a);
    run(&mut a);
    a.terminate();
    let ends = |from: &str, to: &str| WaitError::Terminated {
        node: from.to_owned(),
        edge: Some((from.to_owned(), to.to_owned())),
    };
    assert_eq!((run(&mut b), run(&mut b)), (0, 1));
    assert_eq!(run(&mut c), 0);
    assert_eq!(b.wait().map(|_| ()), Err(ends("a", "b")));
    assert_eq!(run(&mut c), 1);
    assert_eq!(c.wait().map(|_| ()), Err(ends("b", "c")));
    assert!([0, 1, 2].iter().all(|&node| graph.status(node).has_terminated));
}

#[test]
fn the_end_of_a_node_does_not_pass_a_back_edge_but_is_told() {
    let place = Place::new("end-back");
    let graph = place.create(&spec(&["a", "b"], vec![edge(0, 1), back(1, 0, 1)])).expect("the name is free");
    let [mut a, b] = claim_all(&graph);
    b.terminate();
    run(&mut a);
    assert!(matches!(a.wait(), Err(WaitError::Terminated { node, .. }) if node == "b"));
    assert!(!graph.status(0).has_terminated, "a decides by itself");
}

#[test]
fn a_waiting_node_hears_of_the_end_also_when_it_comes_from_outside() {
    let place = Place::new("outside");
    let graph = place.create(&spec(&["a", "b"], vec![edge(0, 1)])).expect("the name is free");
    let [_a, mut b] = claim_all(&graph);
    let waiting = thread::spawn(move || b.wait_until(Instant::NEVER).map(|_| ()));
    thread::sleep(Duration::from_millis(2));
    place.attach("g").expect("it is there").terminate(0);
    assert!(matches!(waiting.join().expect("no panic"), Err(WaitError::Terminated { node, .. }) if node == "a"));
}

/// The job is not lost, and no consumer ends before it is used.
#[test]
fn a_node_that_is_ended_in_the_middle_of_a_job_completes_it_before_its_consumer_ends() {
    let place = Place::new("outside-begun");
    let graph = place.create(&spec(&["a", "b"], vec![edge(0, 1)])).expect("the name is free");
    let [mut a, mut b] = claim_all(&graph);
    let job = a.wait().expect("a source");
    graph.terminate(0);
    assert!(matches!(b.wait_for(Nanos::from_millis(1)), Err(WaitError::TimedOut { .. })), "its job goes on");
    job.complete();
    assert_eq!(run(&mut b), 0);
    assert!(matches!(b.wait(), Err(WaitError::Terminated { node, .. }) if node == "a"));
    assert!(matches!(a.wait(), Err(WaitError::Terminated { node, edge: None }) if node == "a"));
}

/// b needs two tokens and gets one more.
#[test]
fn a_node_that_waits_for_the_last_job_of_another_hears_of_the_end_if_that_does_not_suffice_or_is_given_up() {
    for is_completed in [true, false] {
        let place = Place::new(&format!("outside-short-{is_completed}"));
        let edges = vec![Edge { consume: 2, threshold: 2, ..edge(0, 1) }];
        let graph = place.create(&spec(&["a", "b"], edges)).expect("the name is free");
        let [mut a, mut b] = claim_all(&graph);
        let job = a.wait().expect("a source");
        graph.terminate(0);
        let waiting = thread::spawn(move || b.wait_until(Instant::NEVER).map(|_| ()));
        thread::sleep(Duration::from_millis(2));
        if is_completed {
            job.complete();
        } else {
            // The job with it.
            a.release();
        }
        assert!(matches!(waiting.join().expect("no panic"), Err(WaitError::Terminated { node, .. }) if node == "a"));
    }
}

/// Whenever a node is ended, each of its jobs that it completes is used.
#[test]
fn a_consumer_uses_all_that_a_producer_completed_whenever_that_is_ended() {
    let place = Place::new("outside-any");
    for round in 0..300 {
        let graph = place.create(&spec(&["a", "b"], vec![edge(0, 1), back(1, 0, 2)])).expect("the name is free");
        let count = |name: &str| -> u64 {
            let mut node = graph.claim(name).expect("it is free");
            node.spin_for(Nanos::from_micros(round % 3 * 20));
            let mut jobs = 0;
            while let Ok(job) = node.wait() {
                job.complete();
                jobs += 1;
            }
            jobs
        };
        let (produced, used) = thread::scope(|scope| {
            let threads = ["a", "b"].map(|name| scope.spawn(|| count(name)));
            while graph.status(1).completed < round % 7 {
                thread::yield_now();
            }
            graph.terminate(0);
            let [a, b] = threads.map(|thread| thread.join().expect("no panic"));
            (a, b)
        });
        assert_eq!(used, produced, "round {round}");
    }
}

/// a -> b -> c share an object of which there are two replicas: c must be done with one before a writes to it again,
/// though a and b are free to go on by their tokens.
#[test]
fn feedback_keeps_a_replica_until_its_last_reader_is_done() {
    let place = Place::new("feedback");
    let mut graph = graph(&["a", "b", "c"], vec![edge(0, 1), edge(1, 2)]);
    graph.objects = vec![DataObject { name: "image".to_owned(), accessors: vec![0, 2], delay: 0 }];
    graph.replicas = Replicas::Count(2);
    let graph = place.create(&Spec::new(graph).expect("it can be pipelined")).expect("the name is free");
    let [mut a, mut b, mut c] = claim_all(&graph);
    let replica = |job| graph.spec().plan().replica(job);
    assert_eq!([run(&mut a), run(&mut a)].map(replica), [0, 1]);
    assert_eq!([run(&mut b), run(&mut b)].map(replica), [0, 1]);
    assert!(waits(&mut a), "c may read both");
    assert_eq!(replica(run(&mut c)), 0);
    assert_eq!(replica(run(&mut a)), 0);
    assert!(waits(&mut a));
}

#[test]
fn rates_are_checked_when_the_graph_is_made() {
    let mut two = graph(&["a", "b", "c"], vec![edge(0, 2), edge(1, 2)]);
    two.nodes[1].period = Some(Nanos::from_millis(20));
    assert!(matches!(Spec::new(two), Err(SpecError::Graph(CompiledGraphError::Mismatch { node, .. })) if node == "c"));
    let looped = graph(&["a", "b"], vec![edge(0, 1), edge(1, 0)]);
    assert!(matches!(Spec::new(looped), Err(SpecError::Graph(CompiledGraphError::Cycle { .. }))));
    let stuck = graph(&["a", "b"], vec![edge(0, 1), back(1, 0, 0)]);
    assert!(matches!(Spec::new(stuck), Err(SpecError::Graph(CompiledGraphError::Deadlock { .. }))));
    let mut never = graph(&["a"], vec![]);
    never.nodes[0].period = Some(Nanos::ZERO);
    assert!(matches!(Spec::new(never), Err(SpecError::Span { .. })));
}
