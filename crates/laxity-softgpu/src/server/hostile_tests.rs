//! The server against processes that do not behave as its library does.

use std::os::fd::OwnedFd;
use std::thread::{self, JoinHandle};

use laxity_model::rng::SplitMix64;
use laxity_model::{Engine, Nanos};
use laxity_sys::packets::{Packets, Received};

use super::{Server, address};
use crate::config::Config;
use crate::message::{Issue, Message, PACKET_MAX, Reply, Request, VERSION};

/// More than the server lets any process leave unheard.
const OPERATIONS: u64 = 100_000;
/// Packets of one hostile process, if the server does not disconnect it before.
const PACKETS: u64 = 40;

struct Serving {
    name: String,
    serving: JoinHandle<()>,
}

impl Serving {
    fn serve(test: &str) -> Serving {
        let name = format!("hostile-{}-{test}", std::process::id());
        // It must not end between two processes of a test.
        let config = Config { linger: Nanos::from_millis(200), ..Config::default() };
        let server = Server::new(&name, config).expect("the name is free");
        Serving { name, serving: thread::spawn(|| server.run()) }
    }

    fn connect(&self) -> Packets {
        Packets::connect(&address(&self.name)).expect("it listens")
    }

    /// A process that said hello, and the descriptors that it got: the memory, and where each engine's thread would hear.
    fn welcome(&self) -> (Packets, Vec<OwnedFd>) {
        let process = self.connect();
        process.send(&Request::Hello(VERSION).encode()).expect("it is there");
        let (welcome, descriptors) = process.receive_with(&mut [0; PACKET_MAX]);
        assert!(matches!(welcome, Received::Packet(_)));
        assert_eq!(descriptors.len(), 1 + Engine::ALL.len());
        (process, descriptors)
    }

    /// It ends by itself once all processes have left.
    fn end(self) {
        self.serving.join().expect("the server does not panic");
    }
}

fn ask(process: &Packets, request: &Request) -> Option<Reply> {
    let mut packet = [0; PACKET_MAX];
    process.send(&request.encode()).ok()?;
    match process.receive(&mut packet) {
        Received::Packet(length) => Reply::decode(&packet[..length]),
        Received::Nothing | Received::End => None,
    }
}

fn stream(process: &Packets) -> u32 {
    match ask(process, &Request::Stream("s".to_owned())) {
        Some(Reply::Stream(stream)) => stream,
        reply => panic!("no stream but {reply:?}"),
    }
}

fn issue(operation: u64, stream: u32, has_work: bool) -> Request {
    let (engine, duration) = (Engine::Execution, Nanos::ZERO);
    Request::Issue(Issue { operation, stream, job: None, engine, duration, has_work })
}

#[test]
fn a_process_that_reports_work_it_was_never_given_is_disconnected() {
    let server = Serving::serve("work");
    // Its engine connections are open, and no thread takes packets from them.
    let (process, _engines) = server.welcome();
    let stream = stream(&process);
    let mut packet = [0; PACKET_MAX];
    let end = (0..OPERATIONS).find(|&operation| {
        let requests = [issue(operation, stream, true), Request::Worked(operation)];
        let sent = requests.map(|request| process.send(&request.encode()));
        // It takes its interrupts.
        sent.iter().any(Result::is_err) || process.receive(&mut packet) == Received::End
    });
    assert!(end.is_some(), "the server kept {OPERATIONS} packets for engine threads that take none");
    drop(process);
    server.end();
}

#[test]
fn a_stream_is_released_by_its_owner_once_its_operations_are_complete() {
    let server = Serving::serve("release");
    let [owner, stranger] = [(); 2].map(|()| server.welcome().0);
    let stream_of_owner = stream(&owner);
    assert_eq!(ask(&stranger, &Request::Release(stream_of_owner)), None, "another's stream: disconnected");
    owner.send(&issue(0, stream_of_owner, true).encode()).expect("it is there");
    assert_eq!(ask(&owner, &Request::Release(stream_of_owner)), None, "a pending operation: disconnected");
    let (careful, _engines) = server.welcome();
    let stream = stream(&careful);
    careful.send(&Request::Release(stream).encode()).expect("it is there");
    let Some(Reply::Seen(usage)) = ask(&careful, &Request::Look(VERSION)) else { panic!("disconnected") };
    assert_eq!((usage.streams, usage.processes), (0, 1));
    drop((owner, stranger, careful));
    server.end();
}

/// Packets that a library could send, in any order, with bytes changed, cut off and added.
fn packet(rng: &mut SplitMix64) -> Vec<u8> {
    let small = rng.below(4);
    let request = match rng.below(11) {
        0 => Request::Hello(VERSION),
        1 => Request::Look(VERSION),
        2 => Request::Stream("x".repeat(rng.below(80) as usize)),
        3 => Request::Release(small as u32),
        4 => Request::Name(small as u32),
        5 => Request::Allocate(rng.next_u64() >> rng.below(64)),
        6 => Request::Free(small * 4096),
        7 => Request::Worked(small),
        8 => Request::History(small),
        _ => issue(small, rng.below(3) as u32, rng.below(2) == 0),
    };
    let mut bytes = request.encode();
    if rng.below(2) == 0 {
        return bytes;
    }
    match rng.below(3) {
        0 => bytes.truncate(1 + rng.below(bytes.len() as u64) as usize),
        1 => bytes.extend((0..=rng.below(2 * PACKET_MAX as u64)).map(|_| rng.next_u64() as u8)),
        _ => {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] = rng.next_u64() as u8;
        }
    }
    bytes
}

/// Sends what `packet` gives, through a connection that got past the hello or not, and leaves; then asks, for another
/// process, whether the engine goes on.
fn attack(server: &Serving, careful: &Packets, own: u32, operation: u64, packets: impl Iterator<Item = Vec<u8>>) {
    let mut packets = packets.peekable();
    let is_welcome = packets.peek().is_none_or(|first| first.len() % 2 == 0);
    let hostile = if is_welcome { server.welcome().0 } else { server.connect() };
    let _sent = packets.take_while(|packet| hostile.send(packet).is_ok()).count();
    drop(hostile);
    let done = ask(careful, &issue(operation, own, false));
    assert_eq!(done, Some(Reply::Complete(operation)), "the interrupt of the other process's operation comes");
}

/// Waits until the server has released what disconnected processes had.
fn freed(careful: &Packets) {
    let is_freed = (0..OPERATIONS).any(|_| match ask(careful, &Request::Look(VERSION)) {
        Some(Reply::Seen(usage)) => (usage.streams, usage.used, usage.processes) == (1, 0, 1),
        reply => panic!("{reply:?}"),
    });
    assert!(is_freed, "streams and memory of disconnected processes are released");
}

#[test]
fn mutated_packets_harm_neither_the_server_nor_another_process() {
    let server = Serving::serve("mutated");
    let (careful, _engines) = server.welcome();
    let own = stream(&careful);
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut rng = SplitMix64::new(seed);
    for operation in 0..200 {
        attack(&server, &careful, own, operation, (0..PACKETS).map(|_| packet(&mut rng)));
    }
    freed(&careful);
    drop(careful);
    server.end();
}

mod fuzz {
    use std::panic::AssertUnwindSafe;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// The packets that `input` is: each a byte that says how long it is, and then itself.
    fn packets(mut input: &[u8]) -> impl Iterator<Item = Vec<u8>> {
        std::iter::from_fn(move || {
            let (&length, rest) = input.split_first()?;
            let (packet, rest) = rest.split_at(rest.len().min(usize::from(length)));
            input = rest;
            // None of these can be sent.
            Some(if packet.is_empty() { vec![0] } else { packet.to_vec() })
        })
    }

    /// The protocol of soft GPUs, guided by coverage under `make fuzz`. Each input is one hostile process.
    #[test]
    fn packets_of_a_hostile_process() {
        let server = Serving::serve("fuzz");
        let (careful, _engines) = server.welcome();
        let (own, operations) = (stream(&careful), AtomicU64::new(0));
        // A panic ends the test, so that no later input sees what it left.
        let shared = AssertUnwindSafe((&server, &careful));
        bolero::check!().with_iterations(100).for_each(|input: &[u8]| {
            let (server, careful) = *shared;
            let operation = operations.fetch_add(1, Ordering::Relaxed);
            attack(server, careful, own, operation, packets(input).take(64));
            freed(careful);
        });
        drop(careful);
        server.end();
    }
}
