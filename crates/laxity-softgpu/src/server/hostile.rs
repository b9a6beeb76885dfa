//! The server against processes that do not behave as its library does.

use std::thread;

use laxity_model::{Engine, Nanos};
use laxity_sys::packets::{Packets, Received};

use super::{Server, address};
use crate::config::Config;
use crate::message::{Issue, PACKET_MAX, Reply, Request};

/// More than any process may leave unheard.
const OPERATIONS: u64 = 100_000;

#[test]
fn who_says_that_it_did_what_it_never_heard_is_turned_out() {
    let name = format!("hostile-{}", std::process::id());
    let config = Config { linger: Nanos::ZERO, ..Config::default() };
    let server = Server::new(&name, config).expect("nobody else has the name");
    let serving = thread::spawn(|| server.run());

    let process = Packets::connect(&address(&name)).expect("it listens");
    let mut packet = [0; PACKET_MAX];
    process.send(&Request::Hello(config).encode()).expect("it is there");
    let (welcome, descriptors) = process.receive_with(&mut packet);
    assert!(matches!(welcome, Received::Packet(_)));
    // The memory, and where each engine's thread would hear.
    assert_eq!(descriptors.len(), 1 + Engine::ALL.len());
    process.send(&Request::Stream("s".to_owned()).encode()).expect("it is there");
    let Received::Packet(length) = process.receive(&mut packet) else { panic!("no answer") };
    let Some(Reply::Stream(stream)) = Reply::decode(&packet[..length]) else { panic!("no stream") };

    let end = (0..OPERATIONS).find(|&operation| {
        let (engine, duration) = (Engine::Execution, Nanos::ZERO);
        let issue = Issue { operation, stream, job: None, engine, duration, has_work: true };
        let said = [Request::Issue(issue), Request::Worked(operation)].map(|request| process.send(&request.encode()));
        // It takes its interrupts.
        said.iter().any(Result::is_err) || process.receive(&mut packet) == Received::End
    });
    assert!(end.is_some(), "{OPERATIONS} times the server kept what the process did not hear");
    drop(process);
    serving.join().expect("it ends without clients");
}
