//! Every system call fails, with every error that Linux documents for it, at every occurrence in turn, while a process
//! creates or attaches to a graph, claims a node, polls, waits, completes a job and leaves. After each: the process that
//! was there before has what it had, no lock is held, no descriptor or file is left, and an error says what failed.
//!
//! The other process is this test program, started again for the test `child`.
#![cfg(debug_assertions)]

mod support;

use std::fs;

use laxity_graph::{Channel, ChannelKind, Graph, Ownership, Registry, Spec};
use laxity_testing::{HANG, Process, each_call_fails, role, until};
use support::{Place, edge, graph};

/// Not a test by itself: a process that has node a and completes its jobs.
#[test]
fn child() {
    let Some((_, directory)) = role() else { return };
    let graph = Registry::at(directory).create(&spec("g")).expect("the name is free");
    let mut a = graph.claim("a").expect("it is free");
    loop {
        if let Ok(job) = a.wait_for(HANG) {
            job.complete();
        }
    }
}

/// Two nodes with an edge of each kind.
fn spec(name: &str) -> Spec {
    let mut graph = graph(&["a", "b"], vec![edge(0, 1); 4]);
    graph.name = name.to_owned();
    let kinds = [ChannelKind::Ring, ChannelKind::Fifo, ChannelKind::Queue, ChannelKind::Stream];
    let channels: Vec<Channel> = kinds.iter().map(|kind| kind.channel(8, 2)).collect();
    Spec::with_channels(graph, channels).expect("a graph that can be")
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Takes part in the graph of the other process: one job of node b.
fn attach(registry: &Registry) -> Result<(), String> {
    one_job(&registry.attach("g").map_err(text)?, "b")
}

/// Waits for a graph that is there, with a graph of its own beside it.
fn create(registry: &Registry) -> Result<(), String> {
    let own = registry.create(&spec("h")).map_err(text)?;
    own.claim("a").map_err(text)?.poll_fd().map_err(text)?;
    registry.attach_until("g", laxity_sys::clock::now()).map(drop).map_err(text)
}

fn one_job(graph: &Graph, node: &str) -> Result<(), String> {
    let mut node = graph.claim(node).map_err(text)?;
    node.poll_fd().map_err(text)?;
    node.wait_for(HANG).map_err(text)?.complete();
    Ok(())
}

/// What an error says instead of Linux's words for it.
const MEANINGS: &[(i32, &str)] = &[
    (libc::ENOENT, "does not exist"),
    (libc::EEXIST, "exists"),
    (libc::ENOSPC, "needs"),
    (libc::EFBIG, "needs"),
    (libc::EMFILE, "needs"),
];

/// What the first member's slot says: 64 bytes after the header and the epoch.
fn first_slot(place: &Place) -> Vec<u8> {
    fs::read(AsRef::<std::path::Path>::as_ref(place).join("laxity-graph.g")).expect("it is there")[128..192].to_vec()
}

#[test]
fn a_system_call_that_fails_harms_no_other_process() {
    let place = Place::new("faults");
    let process = Process::start(&place, "hold");
    let pid = process.id();
    until("the other process has its node", || {
        place.attach("g").is_ok_and(|graph| graph.status(0).ownership == Ownership::Claimed { pid })
    });
    type Scenario = fn(&Registry) -> Result<(), String>;
    let mut injected = 0;
    for (name, scenario) in [("attach", attach as Scenario), ("create", create)] {
        let (slot, files) = (first_slot(&place), place.files());
        injected += each_call_fails(
            name,
            || scenario(&place),
            MEANINGS,
            |failed, what| {
                assert_eq!(first_slot(&place), slot, "{what}: another member was touched");
                // Takes the lock of the memory.
                let graph = place.attach("g").unwrap_or_else(|error| panic!("{what}, and then: {error}"));
                assert_eq!(graph.status(0).ownership, Ownership::Claimed { pid }, "{what}");
                assert_eq!(graph.status(1).ownership, Ownership::Free, "{what}");
                drop(graph);
                // A graph that cannot be removed is left over, for the next collection.
                if ["unlink", "flock"].contains(&failed.call.name) {
                    place.gc().expect("readable");
                }
                assert_eq!(place.files(), files, "{what}");
            },
        );
    }
    println!("{injected} calls failed");
    assert!(injected > 100, "{injected}");
    // All along it went on.
    attach(&place).expect("its tokens come");
}
