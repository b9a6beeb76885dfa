//! Processes that are killed with SIGKILL, at any instruction: the others hear of it, lose nothing but what was in
//! flight, and go on; nothing is left behind.
//!
//! The processes are this test program, started again for the test `child`.

#[path = "support/relay.rs"]
mod relay;
mod support;

use std::fs;
use std::thread;
use std::time::Duration;

use laxity_graph::{
    ChannelKind, ClaimError, Collector, Graph, MessageError, Node, Ownership, Registry, Spec, WaitError,
};
use laxity_model::{Instant, Nanos};
use laxity_sys::channel::wait_readable;
use laxity_sys::clock::now;
use laxity_testing::{HANG, Process, Random, role, skip, soon, until};
use laxity_trace::{Event, Record};
use relay::{LENGTH, exchange, one_job, pipeline};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use support::{Place, back, edge, graph, ringed, spec};

/// The folder of core dumps, and how long they are at least.
const DUMPS: &str = "LAXITY_TEST_DUMPS";
const DUMPED: usize = 192 << 20;

/// Not a test by itself: what the processes do that tests start.
#[test]
fn child() {
    let Some((role, place)) = role() else { return };
    let registry = Registry::at(place);
    match role.split_once(' ') {
        Some(("hold", node)) => hold(&registry, node),
        Some(("pass", node)) => pass(&registry, node),
        Some(("dump", node)) => dump(&registry, node),
        Some(("note", node)) => note(&registry, node),
        Some(("create", _)) => create(&registry),
        _ => panic!("no such role: {role}"),
    }
}

/// Attaches, claims `node`, completes one job, begins the next if it can, and does nothing more.
fn hold(registry: &Registry, node: &str) {
    let graph = registry.attach("g").expect("it was created");
    let mut node = graph.claim(node).expect("it is free");
    node.wait().expect("its tokens").complete();
    let _job = node.wait_until(Instant::NEVER);
    loop {
        thread::park();
    }
}

/// As [`hold`], with messages.
fn pass(registry: &Registry, node: &str) {
    let graph = registry.attach("g").expect("it was created");
    let mut node = graph.claim(node).expect("it is free");
    one_job(&mut node);
    let _job = node.wait_until(Instant::NEVER).map(|mut job| exchange(&mut job));
    loop {
        thread::park();
    }
}

/// As [`hold`], and leaves a large core dump in the working directory when it is aborted.
fn dump(registry: &Registry, node: &str) {
    let limit = getrlimit(Resource::Core);
    setrlimit(Resource::Core, Rlimit { current: limit.maximum, ..limit }).expect("up to the maximum");
    std::env::set_current_dir(std::env::var_os(DUMPS).expect("the test says where")).expect("it is there");
    let memory = vec![1_u8; DUMPED];
    hold(registry, node);
    drop(memory);
}

/// Writes user data of `node`, for ever.
fn note(registry: &Registry, node: &str) {
    let graph = registry.attach("g").expect("it was created");
    let data = graph.node_data(graph.node(node).expect("it has one"));
    for number in 0_u64.. {
        data.write(&number.to_le_bytes().repeat(data.len() / 8)).expect("as many bytes");
    }
}

fn create(registry: &Registry) {
    loop {
        drop(registry.create(&pipeline()).expect("the name is free"));
    }
}

#[test]
fn a_consumer_that_waits_hears_which_producer_was_killed_on_which_edge() {
    let place = Place::new("producer");
    let graph = place.create(&spec(&["a", "b"], vec![edge(0, 1), back(1, 0, 2)])).expect("the name is free");
    let mut b = graph.claim("b").expect("it is free");
    let mut process = Process::start(&place, "hold a");
    b.wait_for(HANG).expect("a completes one job").complete();
    let pid = process.id();
    let waiting = thread::spawn(move || {
        let error = b.wait_for(HANG).map(|_| ()).expect_err("a completes no more");
        (error, now(), b)
    });
    thread::sleep(Duration::from_millis(5));
    let killed = now();
    process.kill();
    let (error, heard, mut b) = waiting.join().expect("no panic");
    let edge = ("a".to_owned(), "b".to_owned());
    assert_eq!(error, WaitError::Lost { node: "a".to_owned(), edge, pid });
    assert!(heard.saturating_since(killed) < HANG, "woken by the death and not by the deadline");
    println!("heard of the death after {}", heard.saturating_since(killed));
    assert!(matches!(b.wait_for(Nanos::from_millis(1)), Err(WaitError::TimedOut { .. })), "each loss is told once");
    assert_eq!(graph.status(0).ownership, Ownership::Lost);
    let mut a = graph.claim("a").expect("the process is gone");
    assert_eq!(a.interrupted(), Some(1), "the job that a had begun");
    a.wait().expect("its tokens are still there").complete();
    b.wait().expect("a goes on").complete();
}

/// The recorder outlives its writers: the job that was complete, and that another had begun.
#[test]
fn what_a_process_recorded_before_it_was_killed_is_in_the_trace() {
    let place = Place::new("recorded");
    let graph = place.create(&spec(&["a", "b"], vec![edge(0, 1)])).expect("the name is free");
    let mut process = Process::start(&place, "hold a");
    until("a has begun its second job", || graph.status(0).started == 2);
    process.kill();
    let mut records: Vec<Record> = Vec::new();
    let collected = Collector::new(&graph).expect("it has a recorder").finish(&mut records);
    assert_eq!((collected.lost, collected.missed), (0, 0));
    let seen = |is_it: fn(&Event) -> Option<u32>| -> Vec<u32> {
        records.iter().filter_map(|record| is_it(&record.event)).collect()
    };
    let dispatched = |event: &Event| if let Event::Dispatch { job, .. } = event { Some(job.index) } else { None };
    let completed = |event: &Event| if let Event::Complete { job, .. } = event { Some(job.index) } else { None };
    assert_eq!((seen(dispatched), seen(completed)), (vec![0, 1], vec![0]));
}

#[test]
fn a_producer_that_waits_for_room_hears_that_its_consumer_was_killed() {
    let place = Place::new("consumer");
    let graph = place.create(&ringed(&["a", "b"], vec![edge(0, 1)], 8, 1)).expect("the name is free");
    let mut a = graph.claim("a").expect("it is free");
    let mut process = Process::start(&place, "hold b");
    a.wait().expect("there is room").complete();
    a.wait_for(HANG).expect("b completes its first job").complete();
    let waiting = thread::spawn(move || (a.wait_for(HANG).map(|_| ()), a));
    thread::sleep(Duration::from_millis(5));
    let killed = now();
    process.kill();
    let (result, mut a) = waiting.join().expect("no panic");
    assert!(matches!(result, Err(WaitError::Lost { node, .. }) if node == "b"));
    assert!(now().saturating_since(killed) < HANG, "woken by the death and not by the deadline");
    let mut b = graph.claim("b").expect("the process is gone");
    b.wait().expect("the message that it did not complete").complete();
    a.wait().expect("there is room").complete();
}

/// Messages that a dead process did not publish are not seen, and those it did are seen once.
#[test]
fn a_job_is_complete_or_was_never_begun() {
    let place = Place::new("job");
    let graph = place.create(&ringed(&["a", "b"], vec![edge(0, 1)], 8, 4)).expect("the name is free");
    let mut process = Process::start(&place, "hold a");
    until("a began its second job", || graph.status(0).started == 2);
    process.kill();
    let mut b = graph.claim("b").expect("it is free");
    b.wait_for(HANG).expect("the complete job").complete();
    assert!(matches!(b.wait_for(HANG), Err(WaitError::Lost { .. })), "the job that was begun is not there");
    assert_eq!(graph.tokens(0), 0);
}

#[test]
fn a_node_dropped_in_the_middle_of_a_job_is_lost_as_well() {
    let place = Place::new("dropped");
    let graph = place.create(&spec(&["a", "b"], vec![edge(0, 1)])).expect("the name is free");
    let (mut a, mut b) = (graph.claim("a").expect("it is free"), graph.claim("b").expect("it is free"));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| b.wait_for(HANG).map(|_| ()));
        assert_eq!(a.wait().expect("a source").index(), 0);
        a.release();
        assert!(matches!(waiting.join().expect("no panic"), Err(WaitError::Lost { node, .. }) if node == "a"));
    });
    assert_eq!(graph.claim("a").expect("it was released").interrupted(), Some(0));
}

#[test]
fn what_all_processes_left_by_being_killed_is_continued_or_collected_or_replaced() {
    let place = Place::new("left");
    let spec = spec(&["a", "b"], vec![edge(0, 1), back(1, 0, 1)]);
    let leave = || {
        let graph = place.create(&spec).expect("the name is free, or what has it is not in use");
        let mut process = Process::start(&place, "hold a");
        until("a completed a job", || graph.status(0).completed == 1);
        drop(graph);
        assert_eq!(place.gc().expect("readable"), Vec::<String>::new(), "it is in use");
        process.kill();
        assert_eq!(place.files().len(), 1);
    };
    leave();
    let graph = place.attach("g").expect("it is whole");
    graph.claim("b").expect("it is free").wait().expect("the token of a").complete();
    assert_eq!(graph.claim("a").expect("its process is gone").interrupted(), None, "a waited for b");
    drop(graph);
    assert!(place.files().is_empty(), "the last one out leaves nothing");
    leave();
    leave();
    assert_eq!(place.gc().expect("readable"), ["g"]);
    assert!(place.files().is_empty());
}

#[test]
fn a_creator_that_is_killed_leaves_a_whole_graph_or_none() {
    let place = Place::new("creator");
    let mut random = Random::new();
    for _ in 0..40 {
        let mut process = Process::start(&place, "create it");
        random.pause(4000);
        process.kill();
        if let Ok(names) = place.names() {
            assert!(names.len() <= 1);
            for name in names {
                assert_eq!(place.attach(&name).expect("it is whole").spec(), &pipeline());
            }
        }
        assert!(place.files().is_empty(), "nothing is left that has no owner");
    }
}

#[test]
fn user_data_is_whole_though_its_writers_are_killed() {
    let place = Place::new("data");
    let spec = spec(&["a", "b"], vec![edge(0, 1)]).with_node_data("a", 4096).expect("it is there");
    let graph = place.create(&spec).expect("the name is free");
    let data = graph.node_data(0);
    let is_whole = |bytes: &[u8]| bytes.chunks(8).all(|chunk| chunk == &bytes[..8]);
    let mut random = Random::new();
    for _ in 0..30 {
        let mut writer = Process::start(&place, "note a");
        let before = data.version();
        until("it was written", || data.version() > before);
        random.pause(2000);
        writer.kill();
        assert!(is_whole(&data.read()), "of two values");
        data.write(&[7; 4096]).expect("the dead hold nothing up");
        assert_eq!(data.read(), [7; 4096]);
    }
}

const LINKS: &[ChannelKind] = &[ChannelKind::Fifo, ChannelKind::Queue, ChannelKind::Stream];

/// What the original's FIFO and sockets answer after this: success and stale data, without end.
#[test]
fn a_killed_producer_is_an_error_on_edges_of_any_kind_and_what_it_completed_comes() {
    for &kind in LINKS {
        let place = Place::new(&format!("producer-{kind}"));
        let spec = Spec::with_channels(graph(&["a", "b"], vec![edge(0, 1)]), vec![kind.channel(LENGTH as u32, 3)]);
        let graph = place.create(&spec.expect("a graph that can be")).expect("the name is free");
        let mut b = graph.claim("b").expect("it is free");
        let mut process = Process::start(&place, "pass a");
        until("a began its second job", || graph.status(0).started == 2);
        process.kill();
        assert_eq!(one_job(&mut b), (0, 0), "{kind}: sent and complete");
        assert!(matches!(b.wait_for(HANG), Err(WaitError::Lost { node, .. }) if node == "a"), "{kind}");
        let mut a = graph.claim("a").expect("its process is gone");
        assert_eq!((a.interrupted(), one_job(&mut a)), (Some(1), (1, 0)));
        assert_eq!(one_job(&mut b), (1, 0), "{kind}: they go on");
    }
}

#[test]
fn a_death_is_news_to_a_node_that_polls() {
    let place = Place::new("polls");
    let graph = place.create(&spec(&["a", "b"], vec![edge(0, 1), back(1, 0, 1)])).expect("the name is free");
    let mut b = graph.claim("b").expect("it is free");
    let mut process = Process::start(&place, "hold a");
    let readable_until = |b: &mut Node, deadline| wait_readable(&[b.poll_fd().expect("a descriptor")], deadline);
    let mut jobs = 0;
    while jobs == 0 {
        assert!(readable_until(&mut b, now().saturating_add(HANG)), "another process makes it readable");
        if let Ok(job) = b.try_wait() {
            job.complete();
            jobs += 1;
        }
    }
    assert!(matches!(b.try_wait(), Err(WaitError::TimedOut { .. })));
    process.kill();
    assert!(readable_until(&mut b, now().saturating_add(HANG)), "so does its death");
    loop {
        match b.try_wait().map(|job| job.index()) {
            Err(WaitError::TimedOut { .. }) => assert!(readable_until(&mut b, now().saturating_add(HANG))),
            Err(WaitError::Lost { node, .. }) => break assert_eq!(node, "a"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_message_that_a_killed_consumer_took_is_an_error_and_the_next_is_not() {
    for &kind in LINKS {
        let place = Place::new(&format!("consumer-{kind}"));
        let spec = Spec::with_channels(graph(&["a", "b"], vec![edge(0, 1)]), vec![kind.channel(LENGTH as u32, 3)]);
        let graph = place.create(&spec.expect("a graph that can be")).expect("the name is free");
        let mut a = graph.claim("a").expect("it is free");
        let mut process = Process::start(&place, "pass b");
        for _ in 0..2 {
            one_job(&mut a);
        }
        until("b began its second job", || graph.status(1).started == 2);
        process.kill();
        let mut b = graph.claim("b").expect("its process is gone");
        one_job(&mut a);
        let mut job = b.wait_for(HANG).expect("it is not complete");
        assert_eq!((job.index(), job.input(0, 0)), (1, Err(MessageError::Lost { edge: 0, token: 1 })), "{kind}");
        job.complete();
        assert_eq!(one_job(&mut b), (2, 0), "{kind}");
    }
}

/// Pipes are empty then, unless a process that another test is starting still has them open; queues are not.
#[test]
fn messages_that_all_processes_left_by_being_killed_are_there_or_an_error() {
    for (kind, lost_max) in [(ChannelKind::Fifo, 1), (ChannelKind::Queue, 0)] {
        let place = Place::new(&format!("all-{kind}"));
        let spec = Spec::with_channels(graph(&["a", "b"], vec![edge(0, 1)]), vec![kind.channel(LENGTH as u32, 3)]);
        let graph = place.create(&spec.expect("a graph that can be")).expect("the name is free");
        let start = |graph: &Graph, started: u64| {
            let process = Process::start(&place, "pass a");
            until("a began its next job", || graph.status(0).started == started);
            process
        };
        let mut process = start(&graph, 2);
        drop(graph);
        process.kill();
        let graph = place.attach("g").expect("it is left over");
        let mut b = graph.claim("b").expect("it is free");
        let (index, lost) = one_job(&mut b);
        assert!(index == 0 && lost <= lost_max, "{kind}: {lost} lost");
        process = start(&graph, 3);
        drop((b, graph));
        process.kill();
        assert_eq!(place.gc().expect("readable"), ["g"]);
        assert!(place.files().is_empty(), "{kind}");
    }
}

/// While Linux writes the dump, the memory of the process is still there, and so is what it claimed.
#[test]
fn a_node_is_claimed_again_once_the_core_dump_of_its_process_is_whole_and_not_before() {
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    if pattern.contains(['|', '/']) || getrlimit(Resource::Core).maximum.is_some_and(|most| most < 2 * DUMPED as u64) {
        return skip("core dumps of this process do not go to its working directory");
    }
    let place = Place::new("dump");
    let graph = place.create(&spec(&["a"], vec![])).expect("the name is free");
    let dumps = std::env::temp_dir().join(format!("laxity-test-dumps-{}", std::process::id()));
    fs::create_dir_all(&dumps).expect("a folder");
    let mut process = Process::start_with(&place, "dump a", &[(DUMPS, dumps.as_os_str())]);
    let pid = process.id();
    until("it is in its second job", || graph.status(0).started == 2);
    kill_process(Pid::from_raw(pid as i32).expect("a number"), Signal::ABORT).expect("it is ours");
    let give_up = soon();
    let mut refused = 0;
    let claimed = loop {
        match graph.claim("a") {
            Ok(node) => break node,
            Err(ClaimError::Claimed { pid: owner, .. } | ClaimError::Ending { pid: owner, .. }) => {
                assert_eq!(owner, pid, "the error names the process that dumps");
                refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
        assert!(now() < give_up, "refused {refused} times, and the dump has no end");
        thread::sleep(Duration::from_millis(1));
    };
    let lengths = fs::read_dir(&dumps).expect("it is there").map(|file| file.and_then(|file| file.metadata()));
    let length: u64 = lengths.map(|file| file.expect("readable").len()).sum();
    println!("refused {refused} times, {length} bytes were dumped");
    drop(claimed);
    process.wait();
    fs::remove_dir_all(&dumps).expect("it is ours");
    assert!(length >= DUMPED as u64, "it was claimed when {length} bytes were dumped");
}
