//! The server against processes that do not behave as its library does.

use std::os::fd::OwnedFd;
use std::thread::{self, JoinHandle};

use laxity_model::rng::SplitMix64;
use laxity_model::{Engine, Nanos};
use laxity_sys::clock;
use laxity_sys::packets::{Packets, Received};

use super::{Server, address};
use crate::config::Config;
use crate::message::{Issue, Message, PACKET_MAX, Reply, Request, VERSION};

/// More than the server lets any process leave unheard.
const OPERATIONS: u64 = 100_000;
/// The variable of the environment that has packets mutated for longer.
const SECONDS: &str = "LAXITY_FUZZ_SECONDS";
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

#[test]
fn mutated_packets_harm_neither_the_server_nor_another_process() {
    let server = Serving::serve("mutated");
    let (careful, _engines) = server.welcome();
    let own = stream(&careful);
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut rng = SplitMix64::new(seed);
    let seconds = std::env::var(SECONDS).ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(0);
    let end = clock::now().saturating_add(Nanos::from_secs(seconds));
    for operation in (0..).take_while(|&operation| operation < 200 || clock::now() < end) {
        // Every second process gets past the hello.
        let hostile = if rng.below(2) == 0 { server.welcome().0 } else { server.connect() };
        let _sent = (0..PACKETS).take_while(|_| hostile.send(&packet(&mut rng)).is_ok()).count();
        drop(hostile);
        // The engine goes on: the interrupt of this process's operation comes.
        let done = ask(&careful, &issue(operation, own, false));
        assert_eq!(done, Some(Reply::Complete(operation)));
    }
    let freed = (0..OPERATIONS).any(|_| match ask(&careful, &Request::Look(VERSION)) {
        Some(Reply::Seen(usage)) => (usage.streams, usage.used, usage.processes) == (1, 0, 1),
        reply => panic!("{reply:?}"),
    });
    assert!(freed, "streams and memory of disconnected processes are released");
    drop(careful);
    server.end();
}
