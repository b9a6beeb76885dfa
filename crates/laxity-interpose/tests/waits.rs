//! Threads of a program that wait: one that waits for the last of many operations is not woken by each, and one that waits
//! in the driver is let go when its program exits.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use laxity_gpu::{Config, Registry};
use laxity_interpose::{LiveStream, Operation, Process};
use laxity_policy::program::{OperationId, Order, Policy, Work};
use laxity_testing::{Directory, until};

/// The variable by which this test runs itself as the program.
const PROGRAM: &str = "LAXITY_TEST_PROGRAM";

/// An operation that its test completes.
#[derive(Default)]
struct Held {
    is_open: AtomicBool,
}

impl Operation for Held {
    fn open(&self) {
        self.is_open.store(true, Ordering::Release);
    }

    fn is_complete(&self) -> bool {
        false
    }

    fn is_ready(&self) -> bool {
        true
    }
}

/// Runs this test again as a program under an arbitration that no other program uses.
fn run_as_program(test: &str) {
    let directory = Directory::new(test);
    let _arbitration = Registry::at(directory.path()).create("waits", &Config::new(1, 1)).expect("created");
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.args([test, "--exact", "--nocapture"]).env(PROGRAM, "yes").env("LAXITY_GPU_ARBITRATION", "waits");
    assert!(command.env("LAXITY_GPU_FOLDER", directory.path()).status().expect("it starts").success());
}

fn is_program() -> bool {
    std::env::var_os(PROGRAM).is_some()
}

fn stream() -> (Arc<Process>, LiveStream<Held>) {
    let process = Arc::new(Process::start("test"));
    assert!(process.is_arbitrating());
    let stream = LiveStream::new(&process, Policy::default(), Order::InOrder, 0);
    (process, stream)
}

/// Issues a kernel that was never seen before, so that it shares its engine with no other.
fn issue(stream: &LiveStream<Held>, key: u64) -> (OperationId, Arc<Held>) {
    let ticket = stream.begin(Work::Kernel { key }, true, || None).expect("arbitrated");
    let (id, is_gated, operation) = (ticket.id, ticket.is_gated, Arc::<Held>::default());
    operation.is_open.store(!is_gated, Ordering::Release);
    ticket.attach(operation.clone());
    (id, operation)
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
            until("it is opened", || operation.is_open.load(Ordering::Acquire));
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
    until("it has its engine", || first_operation.is_open.load(Ordering::Acquire));
    let (waits, is_waiting) = mpsc::channel();
    let (other, held_back) = (stream.clone(), second.clone());
    let waiter = thread::spawn(move || {
        let waiting = other.wait_in_driver();
        waits.send(()).expect("it is awaited");
        until("the driver may run what it waits for", || held_back.is_open.load(Ordering::Acquire));
        drop(waiting);
    });
    is_waiting.recv().expect("it is sent");
    assert!(!second.is_open.load(Ordering::Acquire), "its engine is the first one's");
    process.exit();
    // As a destructor would.
    waiter.join().expect("it is let go");
    // What waits later is let go, too, and nothing is granted any more.
    drop(stream.wait_in_driver());
    stream.complete(first);
}
