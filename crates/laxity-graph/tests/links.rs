//! Edges through channels of Linux: named pipes, message queues and TCP connections carry what rings carry, by the same
//! rules, and none of the faults that PGM^RT's have by construction is there.

mod support;

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileTypeExt;
use std::thread;

use laxity_graph::{
    Channel, ChannelKind, ClaimError, MessageError, NoChannel, Node, RegistryError, Spec, SpecError, WaitError,
};
use laxity_model::{Edge, Nanos};
use laxity_sys::clock;
use support::{Place, back, edge, graph};

const LINKS: &[ChannelKind] = &[ChannelKind::Fifo, ChannelKind::Queue, ChannelKind::Stream];
/// Long enough for any machine: reached only by what hangs.
const HANG: Nanos = Nanos::from_secs(20);

fn linked(nodes: &[&str], edges: Vec<Edge>, channel: Channel) -> Spec {
    let channels = vec![channel; edges.len()];
    Spec::with_channels(graph(nodes, edges), channels).expect("a graph that can be")
}

fn number(message: &[u8]) -> u64 {
    u64::from_le_bytes(message[..8].try_into().expect("eight bytes"))
}

fn write(node: &mut Node, message: &[u8]) {
    let mut job = node.wait_for(HANG).expect("there is room");
    job.messages().1.write(0, 0, message).expect("it fits");
    job.complete();
}

fn read(node: &mut Node) -> Result<Vec<u8>, MessageError> {
    let mut job = node.wait_for(HANG).expect("a message");
    let message = job.input(0, 0).map(<[u8]>::to_vec);
    job.complete();
    message
}

#[test]
fn messages_come_as_they_were_sent_whatever_the_kind() {
    for &kind in LINKS {
        let place = Place::new(&format!("sent-{kind}"));
        let graph = place.create(&linked(&["a", "b"], vec![edge(0, 1)], kind.channel(8, 2))).expect("the name is free");
        let (mut b, mut a) = (graph.claim("b").expect("free"), graph.claim("a").expect("free"));
        for message in [&b"12345678"[..], b"", b"abc"] {
            write(&mut a, message);
            assert_eq!(read(&mut b).as_deref(), Ok(message), "{kind}");
        }
        a.wait_for(HANG).expect("there is room").complete();
        assert_eq!(read(&mut b).as_deref(), Ok(&b""[..]), "{kind}: not written is empty and not stale");
        let mut job = a.wait_for(HANG).expect("there is room");
        let too_long = MessageError::TooLong { edge: 0, length: 9, longest: 8 };
        assert_eq!(job.messages().1.write(0, 0, b"123456789"), Err(too_long));
        assert_eq!(job.output(0, 1), Err(MessageError::NoMessage { edge: 0, number: 1, count: 1 }));
        assert_eq!(job.input(0, 0), Err(MessageError::NoRing { edge: 0 }), "it leads the other way");
    }
}

/// Produce 3, consume 2, threshold 5, 4 at the start, 11 fit.
#[test]
fn a_window_of_messages_slides_over_what_was_sent() {
    const JOBS: u64 = 300;
    for &kind in LINKS {
        let place = Place::new(&format!("window-{kind}"));
        let capacity = if kind == ChannelKind::Queue { 7 } else { 11 };
        let edges = vec![Edge { produce: 3, consume: 2, threshold: 5, initial: 4, ..edge(0, 1) }];
        let graph = place.create(&linked(&["a", "b"], edges, kind.channel(8, capacity))).expect("the name is free");
        let (mut a, mut b) = (graph.claim("a").expect("free"), graph.claim("b").expect("free"));
        let producer = thread::spawn(move || {
            for index in 0..JOBS {
                let mut job = a.wait_for(HANG).expect("the consumer goes on");
                for i in 0..3 {
                    let token = 4 + index * 3 + u64::from(i);
                    job.output(0, i).expect("three messages").copy_from_slice(&token.to_le_bytes());
                }
                job.complete();
            }
            a.terminate();
        });
        let mut jobs = 0;
        while let Ok(mut job) = b.wait_for(HANG) {
            let first = job.index() * 2;
            for i in 0..5 {
                let token = first + u64::from(i);
                let expected = if token < 4 { 0 } else { token };
                assert_eq!(number(job.input(0, i).expect("five messages")), expected, "{kind}, initial ones are zero");
            }
            assert!(matches!(job.input(0, 5), Err(MessageError::NoMessage { count: 5, .. })));
            // Not completed at first: the next wait answers with the same job and the same messages.
            if jobs % 3 != 1 {
                job.complete();
            } else {
                let mut job = b.wait_for(HANG).expect("the same job");
                assert_eq!(number(job.input(0, 4).expect("it is still there")), first + 4);
                job.complete();
            }
            jobs += 1;
        }
        producer.join().expect("no panic");
        assert_eq!(jobs, (4 + 3 * JOBS - 5) / 2 + 1, "{kind}");
    }
}

/// The original corrupts messages of 4 KiB and more as soon as two FIFOs lead into one node.
#[test]
fn several_edges_with_long_messages_into_one_node_stay_apart() {
    for (kind, length, capacity) in
        [(ChannelKind::Fifo, 65_537, 3), (ChannelKind::Queue, 8_000, 8), (ChannelKind::Stream, 65_537, 3)]
    {
        let place = Place::new(&format!("long-{kind}"));
        let edges = vec![edge(0, 3), edge(1, 3), edge(2, 3)];
        let spec = linked(&["a", "b", "c", "sink"], edges, kind.channel(length, capacity));
        let graph = place.create(&spec).expect("the name is free");
        let producers = ["a", "b", "c"].map(|name| {
            let mut node = graph.claim(name).expect("free");
            thread::spawn(move || {
                let edge = node.position();
                for index in 0..100 {
                    let mut job = node.wait_for(HANG).expect("the consumer goes on");
                    job.output(edge, 0).expect("one message").fill(index as u8 + 50 * edge as u8);
                    job.complete();
                }
            })
        });
        let mut sink = graph.claim("sink").expect("free");
        for index in 0..100 {
            let mut job = sink.wait_for(HANG).expect("the producers go on");
            let (inputs, _) = job.messages();
            for edge in 0..3 {
                let message = inputs.get(edge, 0).expect("one message");
                assert_eq!(message.len(), length as usize);
                assert!(message.iter().all(|&byte| byte == index + 50 * edge as u8), "{kind}");
            }
            job.complete();
        }
        producers.into_iter().for_each(|thread| thread.join().expect("no panic"));
    }
}

/// In the original a full FIFO busy-waits.
#[test]
fn a_full_edge_suspends_its_producer_until_there_is_room_or_its_time_is_over() {
    for &kind in LINKS {
        let place = Place::new(&format!("full-{kind}"));
        let graph = place.create(&linked(&["a", "b"], vec![edge(0, 1)], kind.channel(5000, 2))).expect("free");
        let (mut b, mut a) = (graph.claim("b").expect("free"), graph.claim("a").expect("free"));
        write(&mut a, &[0; 5000]);
        write(&mut a, &[1; 5000]);
        assert!(matches!(a.wait_for(Nanos::from_millis(1)), Err(WaitError::TimedOut { .. })));
        thread::scope(|scope| {
            let producer = scope.spawn(|| {
                let (used, switches) = (clock::thread_cpu_time(), suspensions());
                write(&mut a, &[2; 5000]);
                (clock::thread_cpu_time().saturating_sub(used), suspensions() - switches)
            });
            while !graph.status(0).is_waiting {
                thread::yield_now();
            }
            thread::sleep(std::time::Duration::from_millis(60));
            assert!(!producer.is_finished(), "{kind}");
            assert_eq!(read(&mut b).expect("the first"), [0; 5000]);
            let (used, switches) = producer.join().expect("no panic");
            assert!(used < Nanos::from_millis(30), "{kind}: it ran for {used} while it waited for 60 ms");
            assert!((1..20).contains(&switches), "{kind}: it gave up the CPU {switches} times");
        });
        for expected in [1, 2] {
            assert_eq!(read(&mut b).expect("the others"), [expected; 5000]);
        }
    }
}

#[test]
fn a_signal_does_not_end_a_wait_for_room() {
    for &kind in LINKS {
        let place = Place::new(&format!("signal-{kind}"));
        let graph = place.create(&linked(&["a", "b"], vec![edge(0, 1)], kind.channel(8, 1))).expect("the name is free");
        let (mut b, mut a) = (graph.claim("b").expect("free"), graph.claim("a").expect("free"));
        write(&mut a, b"first");
        let waiting = thread::spawn(move || write(&mut a, b"second"));
        // SIGSTOP and SIGCONT interrupt system calls even where no handler is installed.
        let signals = format!("kill -STOP {0}; kill -CONT {0}", std::process::id());
        for _ in 0..3 {
            let status = std::process::Command::new("sh").args(["-c", &signals]).status().expect("a shell");
            assert!(status.success());
        }
        assert!(!waiting.is_finished(), "{kind}: it still waits");
        assert_eq!(read(&mut b).as_deref(), Ok(&b"first"[..]));
        waiting.join().expect("no error");
        assert_eq!(read(&mut b).as_deref(), Ok(&b"second"[..]));
    }
}

/// How often this thread gave up its CPU by itself.
fn suspensions() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("procfs");
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).expect("since 2.6.23");
    line.trim().parse().expect("a number")
}

#[test]
fn one_node_waits_for_edges_of_all_kinds_at_once() {
    let place = Place::new("mixed");
    let mut names = ChannelKind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>();
    let count = names.len();
    names.push("sum");
    let edges = (0..count).map(|producer| edge(producer, count)).collect();
    let channels = ChannelKind::ALL.iter().map(|kind| kind.channel(8, 2)).collect::<Vec<_>>();
    let spec = Spec::with_channels(graph(&names, edges), channels).expect("a graph that can be");
    let graph = place.create(&spec).expect("the name is free");
    let mut sum = graph.claim("sum").expect("free");
    let mut producers = names[..count].iter().map(|name| graph.claim(name).expect("free")).collect::<Vec<_>>();
    for round in 0..20u64 {
        for producer in 0..count {
            assert!(sum.try_wait().is_err(), "{} is missing", names[producer]);
            let node = &mut producers[(producer + round as usize) % count];
            let edge = node.position();
            let mut job = node.wait_for(HANG).expect("there is room");
            if let Ok(message) = job.output(edge, 0) {
                message.copy_from_slice(&(round * 10 + edge as u64).to_le_bytes());
            }
            job.complete();
        }
        let mut job = sum.try_wait().expect("all are there");
        for edge in 1..count {
            assert_eq!(number(job.input(edge, 0).expect("one message")), round * 10 + edge as u64);
        }
        job.complete();
    }
}

#[test]
fn what_a_producer_leaves_when_it_ends_comes_after_it_is_gone() {
    for &kind in LINKS {
        let place = Place::new(&format!("left-{kind}"));
        let graph = place.create(&linked(&["a", "b"], vec![edge(0, 1)], kind.channel(8, 3))).expect("the name is free");
        let mut b = graph.claim("b").expect("free");
        for message in [&b"first"[..], b"second"] {
            let producers = place.attach("g").expect("it is there");
            write(&mut producers.claim("a").expect("free"), message);
        }
        assert_eq!(read(&mut b).as_deref(), Ok(&b"first"[..]), "{kind}");
        write(&mut graph.claim("a").expect("free"), b"third");
        assert_eq!(read(&mut b).as_deref(), Ok(&b"second"[..]), "{kind}");
        assert_eq!(read(&mut b).as_deref(), Ok(&b"third"[..]), "{kind}");
        drop((b, graph));
        assert!(place.files().is_empty(), "{kind}");
    }
}

/// A node that reads what it wrote itself, and two that answer each other.
#[test]
fn edges_may_lead_back() {
    for &kind in LINKS {
        let place = Place::new(&format!("back-{kind}"));
        let edges = vec![edge(0, 1), back(1, 0, 1), back(0, 0, 1)];
        let graph = place.create(&linked(&["a", "b"], edges, kind.channel(8, 2))).expect("the name is free");
        let (mut a, mut b) = (graph.claim("a").expect("free"), graph.claim("b").expect("free"));
        let other = thread::spawn(move || {
            while let Ok(mut job) = b.wait_for(HANG) {
                let value = number(job.input(0, 0).expect("one message")) * 2;
                job.output(1, 0).expect("one message").copy_from_slice(&value.to_le_bytes());
                job.complete();
            }
        });
        for round in 0..50u64 {
            let mut job = a.wait_for(HANG).expect("it is answered");
            let (inputs, mut outputs) = job.messages();
            let value = |edge| number(inputs.get(edge, 0).expect("one message"));
            assert_eq!((value(1), value(2)), (round.saturating_sub(1) * 2, round.saturating_sub(1)), "{kind}");
            for edge in [0, 2] {
                outputs.write(edge, 0, &round.to_le_bytes()).expect("it fits");
            }
            job.complete();
        }
        a.terminate();
        other.join().expect("no panic");
    }
}

#[test]
fn pipes_and_queues_come_and_go_with_their_graph() {
    for kind in [ChannelKind::Fifo, ChannelKind::Queue] {
        let place = Place::new(&format!("files-{kind}"));
        let spec = linked(&["a", "b"], vec![edge(0, 1), edge(0, 1)], kind.channel(8, 2));
        let graph = place.create(&spec).expect("the name is free");
        let pipes = || {
            let is_pipe =
                |name: &String| place.directory().join(name).metadata().is_ok_and(|it| it.file_type().is_fifo());
            place.files().into_iter().filter(is_pipe).count()
        };
        assert_eq!(pipes(), if kind == ChannelKind::Fifo { 2 } else { 0 });
        assert_eq!(place.names().expect("readable"), ["g"], "a pipe is no graph");
        let again = place.attach("g").expect("it is there");
        drop(graph);
        assert_eq!(place.files().len(), 1 + pipes(), "someone is still attached");
        let mut a = again.claim("a").expect("free");
        write(&mut a, b"kept");
        drop(a);
        assert_eq!(read(&mut again.claim("b").expect("free")).expect("it is still there"), b"kept");
        drop(again);
        assert!(place.files().is_empty(), "the last one out leaves nothing");
    }
}

#[test]
fn what_linux_does_not_grant_is_refused_before_anyone_waits_for_it() {
    let place = Place::new("limits");
    for &kind in LINKS {
        let spec = linked(&["a", "b"], vec![edge(0, 1)], kind.channel(1 << 20, 3000));
        let error = place.create(&spec).expect_err("3 GiB");
        assert!(matches!(&error, RegistryError::Other(NoChannel { from, to, .. }) if (&**from, &**to) == ("a", "b")));
        let text = error.to_string();
        assert!(text.starts_with(&format!("edge a -> b ({kind}): needs ")), "{text}");
        assert!(
            text.contains("Linux grants") && (text.contains("raise") || text.contains("; ask for fewer")),
            "{text}"
        );
        assert!(place.files().is_empty(), "{kind}");
    }
    let too_small = Spec::with_channels(
        graph(&["a", "b"], vec![Edge { produce: 3, consume: 3, threshold: 3, ..edge(0, 1) }]),
        vec![Channel::Fifo { message: 8, capacity: 4 }],
    );
    assert!(matches!(too_small, Err(SpecError::Capacity { needed: 5, .. })), "as for rings");
}

/// A process that may write to a pipe, or connect to a port, need not be part of the graph.
#[test]
fn what_strangers_send_is_never_taken_for_a_message() {
    let place = Place::new("strangers");
    let graph = place.create(&linked(&["a", "b"], vec![edge(0, 1)], ChannelKind::Fifo.channel(8, 2))).expect("free");
    let (mut a, mut b) = (graph.claim("a").expect("free"), graph.claim("b").expect("free"));
    let name = place.files().into_iter().find(|name| name.starts_with("laxity-fifo.")).expect("a pipe");
    let mut pipe = std::fs::OpenOptions::new().write(true).open(place.directory().join(name)).expect("our own");
    pipe.write_all(b"good day").expect("there is room");
    for (message, comes) in
        [(b"first", Err(MessageError::Lost { edge: 0, token: 0 })), (b"other", Ok(b"other".to_vec()))]
    {
        write(&mut a, message);
        assert_eq!(read(&mut b), comes, "Linux joined the first to what the stranger wrote");
    }
    drop((a, b, graph));

    let address = free_port();
    let channel = Channel::Stream { message: 8, capacity: 2, address };
    let graph = place.create(&linked(&["a", "b"], vec![edge(0, 1)], channel)).expect("the name is free");
    let mut b = graph.claim("b").expect("free");
    let mut strangers: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(address).expect("b listens")).collect();
    strangers[1].write_all(&[0; 100]).expect("connected");
    strangers[2].write_all(b"laxity 1").expect("connected");
    // Only processes of the graph know its secret number.
    strangers[3].write_all(b"laxity 1a number\0\0\0\0\x01\0\0\0").expect("connected");
    let mut a = graph.claim("a").expect("free");
    write(&mut a, b"message");
    assert_eq!(read(&mut b).expect("it is there"), b"message");
}

/// Of the upper half of ports, which the original cannot use.
fn free_port() -> SocketAddr {
    loop {
        let address = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
        if address.port() > 32767 {
            return address;
        }
    }
}

#[test]
fn a_stream_is_connected_in_any_order_and_at_any_port() {
    for is_any in [true, false] {
        let place = Place::new(&format!("first-{is_any}"));
        let address = if is_any { Channel::LOOPBACK } else { free_port() };
        let channel = Channel::Stream { message: 8, capacity: 2, address };
        let graph = place.create(&linked(&["a", "b"], vec![edge(0, 1)], channel)).expect("the name is free");
        let mut a = graph.claim("a").expect("free");
        assert!(
            matches!(a.wait_for(Nanos::from_millis(1)), Err(WaitError::TimedOut { .. })),
            "the consumer does not listen yet"
        );
        let began = clock::now();
        let producer = thread::spawn(move || {
            write(&mut a, b"first");
            a
        });
        thread::sleep(std::time::Duration::from_millis(5));
        assert!(!producer.is_finished());
        let mut b = graph.claim("b").expect("free");
        let mut a = producer.join().expect("no panic");
        assert!(clock::now().saturating_since(began) < HANG, "woken by the consumer and not by the deadline");
        assert_eq!(read(&mut b).expect("it is there"), b"first");
        // It goes, and what was on its way to it; then it comes back, and the producer does not notice.
        write(&mut a, b"second");
        drop(b);
        let mut b = graph.claim("b").expect("free again");
        write(&mut a, b"third");
        assert_eq!(read(&mut b), Err(MessageError::Lost { edge: 0, token: 1 }));
        assert_eq!(read(&mut b).expect("sent to the new one"), b"third");
        // So does the producer; what it sent is not lost.
        write(&mut a, b"fourth");
        drop(a);
        let mut a = graph.claim("a").expect("free again");
        write(&mut a, b"fifth");
        assert_eq!(read(&mut b).expect("sent before"), b"fourth");
        assert_eq!(read(&mut b).expect("sent after"), b"fifth");
        a.terminate();
        assert!(matches!(b.wait_for(HANG), Err(WaitError::Terminated { .. })));
    }
}

#[test]
fn a_port_that_another_program_has_is_an_error_of_the_claim_and_not_a_wait() {
    let place = Place::new("port");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("bound");
    let channel = Channel::Stream { message: 8, capacity: 2, address };
    let graph = place.create(&linked(&["a", "b"], vec![edge(0, 1)], channel)).expect("the name is free");
    let error = graph.claim("b").expect_err("someone has the port");
    assert!(matches!(error, ClaimError::Listen { .. }));
    assert!(error.to_string().starts_with(&format!("edge a -> b: cannot listen at {address}: ")), "{error}");
    drop(taken);
    graph.claim("b").expect("now it can");
    let twice = Spec::with_channels(support::graph(&["a", "b"], vec![edge(0, 1); 2]), vec![channel; 2]);
    assert!(matches!(twice, Err(SpecError::Address { .. })));
}
