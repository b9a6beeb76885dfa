//! Data in shared memory: in place, in order, and never the same twice.

mod support;

use std::thread;

use laxity_graph::{Channel, MessageError, Spec, SpecError, WaitError};
use laxity_model::{Edge, Nanos};
use laxity_sys::{clock, scheduling};
use support::{Place, back, edge, graph, ringed};

fn number(message: &[u8]) -> u64 {
    u64::from_le_bytes(message[..8].try_into().expect("eight bytes"))
}

#[test]
fn what_was_written_in_place_is_read_in_place() {
    let place = Place::new("place");
    let graph = place.create(&ringed(&["a", "b"], vec![edge(0, 1)], 100, 2)).expect("the name is free");
    let (mut a, mut b) = (graph.claim("a").expect("free"), graph.claim("b").expect("free"));
    let mut job = a.wait().expect("there is room");
    let message = job.output(0, 0).expect("one message");
    assert_eq!((message.len(), message.as_ptr() as usize % 64), (100, 0), "aligned for vector instructions");
    message.fill(7);
    let written = message.as_ptr();
    job.complete();
    let mut job = b.wait().expect("one message");
    let message = job.input(0, 0).expect("one message");
    assert_eq!(message, [7; 100]);
    assert_eq!(message.as_ptr(), written, "nothing was copied");
}

#[test]
fn lengths_travel_with_messages() {
    let place = Place::new("lengths");
    let graph = place.create(&ringed(&["a", "b"], vec![edge(0, 1)], 8, 1)).expect("the name is free");
    let (mut a, mut b) = (graph.claim("a").expect("free"), graph.claim("b").expect("free"));
    for message in [&b"12345678"[..], b"", b"abc"] {
        let mut job = a.wait().expect("there is room");
        job.messages().1.write(0, 0, message).expect("it fits");
        job.complete();
        let mut job = b.wait().expect("one message");
        assert_eq!(job.input(0, 0).expect("one message"), message);
        job.complete();
    }
    let mut job = a.wait().expect("there is room");
    let too_long = MessageError::TooLong { edge: 0, length: 9, longest: 8 };
    assert_eq!(job.messages().1.write(0, 0, b"123456789"), Err(too_long));
}

/// A full ring of the original is waited for in a loop: on one CPU, under SCHED_FIFO, its consumer then never runs. Here
/// no node spins for a peer on its own CPU, however long it may.
#[test]
fn threads_on_one_cpu_suspend_for_a_full_ring_though_they_may_spin() {
    let place = Place::new("one-cpu");
    let graph = place.create(&ringed(&["a", "b"], vec![edge(0, 1)], 8, 1)).expect("the name is free");
    let spin = Nanos::from_millis(100);
    let run = |name: &str| {
        scheduling::pin(scheduling::usable_cpus().expect("Linux says")[0]).expect("it may use that one");
        // Where this is not allowed they share the CPU all the same.
        let _ = scheduling::set_fifo(1);
        let mut node = graph.claim(name).expect("free");
        node.spin_for(spin);
        let before = clock::thread_cpu_time();
        for _ in 0..100 {
            node.wait().expect("the other goes on").complete();
        }
        clock::thread_cpu_time().saturating_sub(before)
    };
    let run = &run;
    let used = thread::scope(|scope| {
        let both = ["a", "b"].map(|name| scope.spawn(move || run(name)));
        both.map(|thread| thread.join().expect("no panic"))
    });
    assert!(used.iter().all(|&used| used < spin), "{used:?} of CPU time: a node spun");
}

/// Stale data taken for new is what the original delivers after a death.
#[test]
fn a_message_that_was_not_written_is_empty_and_not_an_old_one() {
    let place = Place::new("stale");
    let graph = place.create(&ringed(&["a", "b"], vec![edge(0, 1)], 8, 1)).expect("the name is free");
    let (mut a, mut b) = (graph.claim("a").expect("free"), graph.claim("b").expect("free"));
    for is_written in [true, false] {
        let mut job = a.wait().expect("there is room");
        if is_written {
            job.output(0, 0).expect("one message").fill(9);
        }
        job.complete();
        let mut job = b.wait().expect("one message");
        assert_eq!(job.input(0, 0).expect("one message").len(), if is_written { 8 } else { 0 });
        job.complete();
    }
}

/// Two messages fit: the producer's third job waits for the consumer's first to be complete.
#[test]
fn a_full_ring_suspends_its_producer_until_there_is_room_or_its_time_is_over() {
    let place = Place::new("full");
    let graph = place.create(&ringed(&["a", "b"], vec![edge(0, 1)], 8, 2)).expect("the name is free");
    let (mut a, mut b) = (graph.claim("a").expect("free"), graph.claim("b").expect("free"));
    a.wait().expect("there is room").complete();
    a.wait().expect("there is room").complete();
    assert!(matches!(a.wait_for(Nanos::from_millis(1)), Err(WaitError::TimedOut { .. })));
    let job = b.wait().expect("a message");
    assert!(a.try_wait().is_err(), "it is still read");
    thread::scope(|scope| {
        let producer = scope.spawn(|| a.wait().expect("there is room").complete());
        thread::sleep(std::time::Duration::from_millis(2));
        assert!(!producer.is_finished());
        job.complete();
        producer.join().expect("no panic");
    });
    drop(b);
    graph.terminate(1);
    assert!(matches!(a.wait(), Err(WaitError::Terminated { node, .. }) if node == "b"), "room will not come");
}

/// Produce 3, consume 2, threshold 5, 4 at the start, 11 fit: numbers come out as they went in, seen `threshold` at a
/// time.
#[test]
fn a_window_of_messages_slides_over_what_was_written() {
    const JOBS: u64 = 2000;
    let place = Place::new("window");
    let edges = vec![Edge { produce: 3, consume: 2, threshold: 5, initial: 4, ..edge(0, 1) }];
    let graph = place.create(&ringed(&["a", "b"], edges, 8, 11)).expect("the name is free");
    let (mut a, mut b) = (graph.claim("a").expect("free"), graph.claim("b").expect("free"));
    let producer = thread::spawn(move || {
        for index in 0..JOBS {
            let mut job = a.wait().expect("the consumer goes on");
            for i in 0..3 {
                let token = 4 + index * 3 + u64::from(i);
                job.output(0, i).expect("three messages").copy_from_slice(&token.to_le_bytes());
            }
            job.complete();
        }
        a.terminate();
    });
    let mut jobs = 0;
    while let Ok(mut job) = b.wait() {
        let first = job.index() * 2;
        for i in 0..5 {
            let token = first + u64::from(i);
            let expected = if token < 4 { 0 } else { token };
            assert_eq!(number(job.input(0, i).expect("five messages")), expected);
        }
        assert!(matches!(job.input(0, 5), Err(MessageError::NoMessage { count: 5, .. })));
        job.complete();
        jobs += 1;
    }
    producer.join().expect("no panic");
    assert_eq!(jobs, (4 + 3 * JOBS - 5) / 2 + 1);
}

/// Two FIFO edges into one node corrupt messages of 4 KiB and more in the original.
#[test]
fn several_large_messages_into_one_node_stay_apart() {
    const LENGTH: u32 = 100_000;
    let place = Place::new("large");
    let graph = place.create(&ringed(&["a", "b", "c"], vec![edge(0, 2), edge(1, 2)], LENGTH, 3)).expect("free");
    let producers = ["a", "b"].map(|name| {
        let mut node = graph.claim(name).expect("free");
        thread::spawn(move || {
            for index in 0..100 {
                let mut job = node.wait().expect("the consumer goes on");
                let edge = usize::from(name == "b");
                job.output(edge, 0).expect("one message").fill(index as u8 + 100 * edge as u8);
                job.complete();
            }
        })
    });
    let mut sink = graph.claim("c").expect("free");
    for index in 0..100 {
        let mut job = sink.wait().expect("the producers go on");
        let (inputs, _) = job.messages();
        for edge in 0..2 {
            let message = inputs.get(edge, 0).expect("one message");
            assert!(message.len() == LENGTH as usize && message.iter().all(|&byte| byte == index + 100 * edge as u8));
        }
        job.complete();
    }
    producers.into_iter().for_each(|thread| thread.join().expect("no panic"));
}

/// A node mixes an event counter with a ring, and a ring leads from a node to itself: its state.
#[test]
fn a_node_mixes_kinds_of_edges_and_may_keep_its_state_in_one() {
    let place = Place::new("mixed");
    let edges = vec![edge(0, 2), edge(1, 2), back(2, 2, 1)];
    let ring = Channel::Ring { message: 8, capacity: 2 };
    let spec = Spec::with_channels(graph(&["event", "data", "sum"], edges), vec![Channel::Counter, ring, ring]);
    let graph = place.create(&spec.expect("a graph that can be")).expect("the name is free");
    let [mut event, mut data, mut sum] = ["event", "data", "sum"].map(|name| graph.claim(name).expect("free"));
    let mut total = 0;
    for value in 1..50u64 {
        let mut job = data.wait().expect("there is room");
        job.output(1, 0).expect("a ring").copy_from_slice(&value.to_le_bytes());
        job.complete();
        assert!(sum.try_wait().is_err(), "the event is missing");
        event.wait().expect("a source").complete();
        let mut job = sum.wait().expect("both are there");
        assert_eq!(job.input(0, 0), Err(MessageError::NoRing { edge: 0 }));
        let (inputs, mut outputs) = job.messages();
        let before = number(inputs.get(2, 0).expect("the state"));
        assert_eq!(before, total, "initial messages are zero");
        total = before + number(inputs.get(1, 0).expect("the value"));
        outputs.write(2, 0, &total.to_le_bytes()).expect("it fits");
        assert!(outputs.get(1, 0).is_err(), "that one leads here");
        job.complete();
    }
    assert_eq!(total, 49 * 50 / 2);
}

#[test]
fn a_ring_too_small_for_its_edge_is_refused() {
    let edges = vec![Edge { produce: 3, consume: 2, threshold: 5, ..edge(0, 1) }];
    let spec =
        |capacity| Spec::with_channels(graph(&["a", "b"], edges.clone()), vec![Channel::Ring { message: 8, capacity }]);
    let error = SpecError::Capacity { from: "a".to_owned(), to: "b".to_owned(), capacity: 6, needed: 7 };
    assert_eq!(spec(6), Err(error));
    assert!(spec(7).is_ok());
    let place = Place::new("huge");
    let channels = vec![Channel::Ring { message: u32::MAX, capacity: u32::MAX }];
    let huge = Spec::with_channels(graph(&["a", "b"], vec![edge(0, 1)]), channels).expect("only memory is missing");
    let error = place.create(&huge).expect_err("it is");
    assert!(error.to_string().contains("enlarge that file system"), "{error}");
    assert!(place.files().is_empty());
}
