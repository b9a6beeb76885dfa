//! Threads of a program that wait: one that waits for the last of many operations is not woken by each, and one that waits
//! in the driver is let go when its program exits.

mod common;

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use laxity_gpu::Config;
use laxity_interpose::{LiveStream, Process};
use laxity_testing::until;

use common::{Held, is_program, issue};

/// Runs this test again as a program under an arbitration that no other program uses.
fn run_as_program(test: &str) {
    common::run_as_program(test, &Config::new(1, 1), &[], |_, _| {});
}

fn stream() -> (Arc<Process>, LiveStream<Held>) {
    let process = common::process();
    let stream = common::stream(&process);
    (process, stream)
}

/// How often the calling thread was suspended.
fn suspensions() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("proc");
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).expect("Linux counts");
    line.trim().parse().expect("a number")
}

#[test]
fn a_thread_that_waits_for_the_last_operation_is_not_woken_by_each() {
    if !is_program() {
        return run_as_program("a_thread_that_waits_for_the_last_operation_is_not_woken_by_each");
    }
    const OPERATIONS: u64 = 60;
    let (process, stream) = stream();
    let operations: Vec<_> = (0..OPERATIONS).map(|key| issue(&stream, key)).collect();
    let last = operations.last().expect("some").0;
    let driver = stream.clone();
    let completes = thread::spawn(move || {
        for (id, operation) in &operations {
            until("it is opened", || operation.is_open());
            // Time to wake, for a thread that is woken.
            thread::sleep(Duration::from_millis(2));
            driver.complete_and_go_on(*id);
        }
    });
    let before = suspensions();
    stream.wait_until_open(last, false);
    let woken = suspensions() - before;
    assert!(woken < OPERATIONS / 3, "woken {woken} times for {OPERATIONS} operations, and waited for the last");
    completes.join().expect("no panic");
    assert_eq!(stream.last(), None);
    process.exit();
}

#[test]
fn a_thread_that_waits_in_the_driver_is_let_go_when_its_program_exits() {
    if !is_program() {
        return run_as_program("a_thread_that_waits_in_the_driver_is_let_go_when_its_program_exits");
    }
    let (process, stream) = stream();
    let (first, first_operation) = issue(&stream, 1);
    let (_, second) = issue(&stream, 2);
    until("it has its engine", || first_operation.is_open());
    let (waits, is_waiting) = mpsc::channel();
    let (other, held_back) = (stream.clone(), second.clone());
    let waiter = thread::spawn(move || {
        let waiting = other.wait_in_driver();
        waits.send(()).expect("it is awaited");
        until("the driver may run what it waits for", || held_back.is_open());
        drop(waiting);
    });
    is_waiting.recv().expect("it is sent");
    assert!(!second.is_open(), "its engine is the first one's");
    process.exit();
    // As a destructor would.
    waiter.join().expect("it is let go");
    // What waits later is let go, too, and nothing is granted any more.
    drop(stream.wait_in_driver());
    stream.complete(first);
}
