//! A descriptor for event loops: readable when a wait would not time out, in this process and in others.

mod support;

use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use std::time::Duration;

use laxity_graph::{ChannelKind, Graph, Node, Spec, WaitError};
use laxity_model::{Edge, Nanos};
use rustix::event::epoll;
use support::{Place, edge, graph, spec};

/// Long enough for any machine: reached only by what hangs.
const HANG: Nanos = Nanos::from_secs(20);

struct Loop(OwnedFd);

impl Loop {
    fn of(nodes: &mut [&mut Node]) -> Loop {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("a descriptor");
        for (number, node) in nodes.iter_mut().enumerate() {
            let data = epoll::EventData::new_u64(number as u64);
            let descriptor = node.poll_fd().expect("a descriptor");
            epoll::add(&epoll, descriptor, data, epoll::EventFlags::IN).expect("it can be polled");
        }
        Loop(epoll)
    }

    /// Which descriptors are readable, at the latest after `span`.
    fn readable(&self, span: Nanos) -> Vec<usize> {
        let (tv_sec, tv_nsec) = ((span.0 / 1_000_000_000) as i64, (span.0 % 1_000_000_000) as i64);
        let timeout = rustix::event::Timespec { tv_sec, tv_nsec };
        let mut events = Vec::with_capacity(8);
        match epoll::wait(&self.0, rustix::buffer::spare_capacity(&mut events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("{error}"),
        }
        let mut readable: Vec<usize> = events.iter().map(|event| event.data.u64() as usize).collect();
        readable.sort_unstable();
        readable
    }
}

/// A wait that times out makes the descriptor unreadable.
fn is_waiting(node: &mut Node) -> bool {
    matches!(node.try_wait(), Err(WaitError::TimedOut { .. }))
}

fn claim(graph: &Graph, name: &str) -> Node {
    graph.claim(name).expect("it is free")
}

#[test]
fn it_is_readable_unless_a_wait_timed_out_and_nothing_has_come_since() {
    let place = Place::new("readable");
    let graph = place.create(&spec(&["a", "b"], vec![edge(0, 1)])).expect("the name is free");
    let (mut a, mut b) = (claim(&graph, "a"), claim(&graph, "b"));
    let events = Loop::of(&mut [&mut b]);
    assert_eq!(events.readable(Nanos::ZERO), [0], "not asked yet");
    assert!(is_waiting(&mut b));
    assert!(events.readable(Nanos::ZERO).is_empty());
    a.wait().expect("a source").complete();
    a.wait().expect("a source").complete();
    assert_eq!(events.readable(HANG), [0]);
    b.try_wait().expect("a token").complete();
    assert_eq!(events.readable(HANG), [0], "there is another");
    b.try_wait().expect("a token").complete();
    assert!(is_waiting(&mut b));
    assert!(events.readable(Nanos::ZERO).is_empty());
    // A wait in between does not disturb.
    thread::scope(|scope| {
        let waiting = scope.spawn(|| b.wait_for(HANG).expect("a token").complete());
        thread::sleep(Duration::from_millis(2));
        a.wait().expect("a source").complete();
        waiting.join().expect("no panic");
    });
    assert_eq!(events.readable(HANG), [0], "it did not time out");
    assert!(is_waiting(&mut b));
    a.terminate();
    assert_eq!(events.readable(HANG), [0], "an end is news");
    assert!(matches!(b.try_wait(), Err(WaitError::Terminated { .. })));
}

/// A node with two edges is ready when both have a token, and not before.
#[test]
fn the_last_of_two_producers_makes_it_readable() {
    let place = Place::new("last");
    let graph = place.create(&spec(&["a", "b", "c"], vec![edge(0, 2), edge(1, 2)])).expect("the name is free");
    let (mut a, mut b, mut c) = (claim(&graph, "a"), claim(&graph, "b"), claim(&graph, "c"));
    let events = Loop::of(&mut [&mut c]);
    assert!(is_waiting(&mut c));
    a.wait().expect("a source").complete();
    assert!(events.readable(Nanos::from_millis(1)).is_empty());
    b.wait().expect("a source").complete();
    assert_eq!(events.readable(HANG), [0]);
    c.try_wait().expect("both are there").complete();
}

/// Two nodes of one thread, fed by two others over edges of all kinds; each kind of wake-up many times.
#[test]
fn one_loop_serves_two_nodes_and_misses_nothing() {
    const JOBS: u64 = 300;
    for &kind in ChannelKind::ALL {
        let place = Place::new(&format!("loop-{kind}"));
        let edges: Vec<Edge> = vec![edge(0, 2), edge(1, 3)];
        let channels = vec![kind.channel(8, 4); 2];
        let spec = Spec::with_channels(graph(&["a", "b", "c", "d"], edges), channels).expect("a graph that can be");
        let graph = place.create(&spec).expect("the name is free");
        let mut nodes = ["c", "d"].map(|name| claim(&graph, name));
        let producers = ["a", "b"].map(|name| {
            let mut node = claim(&graph, name);
            thread::spawn(move || {
                let edge = node.position();
                for index in 0..JOBS {
                    let mut job = node.wait_for(HANG).expect("the consumer goes on");
                    if let Ok(message) = job.output(edge, 0) {
                        message.copy_from_slice(&index.to_le_bytes());
                    }
                    job.complete();
                    // Often the loop sleeps then, and often it does not.
                    if index % 3 == 0 {
                        thread::yield_now();
                    }
                }
                node.terminate();
            })
        });
        let [c, d] = &mut nodes;
        let events = Loop::of(&mut [c, d]);
        let (mut jobs, mut ended) = ([0u64; 2], [false; 2]);
        while ended != [true; 2] {
            let readable = events.readable(HANG);
            assert!(!readable.is_empty(), "{kind}: a wake-up was lost after {jobs:?} jobs");
            for number in readable {
                match nodes[number].try_wait() {
                    Ok(mut job) => {
                        if kind != ChannelKind::Counter {
                            let message = job.input(number, 0).expect("one message");
                            assert_eq!(message, jobs[number].to_le_bytes(), "{kind}");
                        }
                        job.complete();
                        jobs[number] += 1;
                    }
                    Err(WaitError::TimedOut { .. }) => {}
                    Err(WaitError::Terminated { .. }) => {
                        // It stays readable.
                        epoll::delete(&events.0, nodes[number].poll_fd().expect("made before")).expect("it was added");
                        ended[number] = true;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
        assert_eq!(jobs, [JOBS; 2], "{kind}");
        producers.into_iter().for_each(|thread| thread.join().expect("no panic"));
    }
}

#[test]
fn the_next_owner_of_a_node_has_a_descriptor_of_its_own() {
    let place = Place::new("next");
    let graph = place.create(&spec(&["a", "b"], vec![edge(0, 1)])).expect("the name is free");
    let (mut a, mut b) = (claim(&graph, "a"), claim(&graph, "b"));
    let before = b.poll_fd().expect("a descriptor").as_fd().try_clone_to_owned().expect("a descriptor");
    assert!(is_waiting(&mut b));
    drop(b);
    let mut b = claim(&graph, "b");
    let events = Loop::of(&mut [&mut b]);
    assert!(is_waiting(&mut b));
    a.wait().expect("a source").complete();
    assert_eq!(events.readable(HANG), [0]);
    drop(before);
}
