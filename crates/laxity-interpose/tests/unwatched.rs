//! Operations of a program that is alone are unwatched, until another client comes or something waits for them.

mod common;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use laxity_gpu::{Arbitration, Base, Config, Registry};
use laxity_interpose::{LiveStream, Operation, Process};
use laxity_model::Nanos;
use laxity_policy::program::{OperationId, Order, Work};
use laxity_testing::until;

use common::{folder, is_program, process};

/// A driver whose test says how many operations are complete.
#[derive(Default)]
struct Driver {
    complete: AtomicU64,
    /// What there are markers behind.
    marked: Mutex<Vec<OperationId>>,
}

impl Driver {
    fn new() -> &'static Driver {
        Box::leak(Box::default())
    }

    fn is_complete(&self, id: OperationId) -> bool {
        id.0 < self.complete.load(Ordering::Acquire)
    }

    fn marked(&self) -> Vec<OperationId> {
        self.marked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All up to this one are complete, and the driver calls back for its marker.
    fn complete(&self, stream: &LiveStream<Issued>, id: OperationId) {
        self.complete.store(id.0 + 1, Ordering::Release);
        if self.marked().contains(&id) {
            stream.complete_until(id, true);
        }
    }
}

/// An operation, or a marker behind it.
struct Issued {
    driver: &'static Driver,
    id: OperationId,
    is_open: AtomicBool,
}

impl Operation for Issued {
    type Place = &'static Driver;

    fn mark(stream: &LiveStream<Self>, driver: &'static Driver, id: OperationId) -> Option<Arc<Self>> {
        driver.marked.lock().unwrap_or_else(PoisonError::into_inner).push(id);
        if driver.is_complete(id) {
            stream.complete_until(id, true);
        }
        Some(Arc::new(Issued { driver, id, is_open: AtomicBool::new(true) }))
    }

    fn open(&self) {
        self.is_open.store(true, Ordering::Release);
    }

    /// As a driver that calls back for all.
    fn is_complete(&self) -> bool {
        self.driver.is_complete(self.id)
    }

    fn is_ready(&self) -> bool {
        true
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Gated,
    Watched,
    Unwatched,
}
use How::{Gated, Unwatched, Watched};

struct Program {
    process: Arc<Process>,
    driver: &'static Driver,
    stream: LiveStream<Issued>,
}

impl Program {
    fn start() -> Program {
        let (process, driver) = (process(), Driver::new());
        let stream = LiveStream::new(&process, process.settings.policy, Order::InOrder, 0, Some(driver));
        Program { process, driver, stream }
    }

    fn issue(&self, key: u64) -> (OperationId, How, Option<Arc<Issued>>) {
        let ticket = self.stream.begin(Work::Kernel { key }, true, || None).expect("arbitrated");
        let id = ticket.id;
        if !ticket.is_watched {
            ticket.leave(name(id));
            return (id, Unwatched, None);
        }
        let is_gated = ticket.is_gated;
        let operation = Arc::new(Issued { driver: self.driver, id, is_open: AtomicBool::new(!is_gated) });
        ticket.attach(operation.clone());
        (id, if is_gated { Gated } else { Watched }, Some(operation))
    }

    /// Issues a short kernel and waits for it.
    fn run(&self) -> How {
        let (id, how, operation) = self.issue(0);
        until("it may run", || operation.as_ref().is_none_or(|operation| operation.is_open.load(Ordering::Acquire)));
        self.driver.complete.store(id.0 + 1, Ordering::Release);
        self.stream.settle(id, false);
        how
    }

    /// Until its thread has seen that it is alone.
    fn warm_up(&self) {
        until("it is alone", || self.run() == Unwatched);
        assert_eq!(self.driver.marked(), []);
    }

    fn arbitration(&self) -> Arbitration {
        Registry::at(folder()).attach("alone").expect("it is there")
    }
}

fn name(id: OperationId) -> usize {
    1_000 + id.0 as usize
}

fn run_as_program(test: &str, settings: &[(&str, &str)]) -> bool {
    if !is_program() {
        common::run_as_program(test, &Config::new(1, 1), settings, |_: &Path, _| {});
    }
    is_program()
}

#[test]
fn another_client_is_seen_with_the_next_operation() {
    if !run_as_program("another_client_is_seen_with_the_next_operation", &[]) {
        return;
    }
    let program = Program::start();
    program.warm_up();
    let hows: Vec<How> = (0..18).map(|_| program.issue(0).1).collect();
    assert_eq!(
        (hows[..16].to_vec(), &hows[16..]),
        (vec![Unwatched; 16], &[Watched, Unwatched][..]),
        "one in a while is"
    );
    let (last, ..) = program.issue(0);
    program.stream.settle(last, false);
    program.warm_up();
    let (first, ..) = program.issue(0);
    let (second, ..) = program.issue(0);
    assert_eq!(program.stream.left_as(name(first)), Some(first));
    assert_eq!(program.stream.last_given(), Some(second));
    let arbitration = program.arbitration();
    let other = arbitration.register("other", Base::Background).expect("room");
    let (third, how, operation) = program.issue(0);
    assert_ne!(how, Unwatched);
    assert_eq!(program.driver.marked(), [second], "what is behind it needs no marker, as it is watched");
    program.driver.complete(&program.stream, second);
    assert_eq!((program.stream.left_as(name(first)), program.stream.left_as(name(second))), (None, None));
    until("the third may run", || operation.as_ref().expect("watched").is_open.load(Ordering::Acquire));
    program.stream.complete_until(third, true);
    assert!(!arbitration.snapshot().expect("whole").engines[0][0].is_held());
    drop(other);
    program.process.exit();
}

/// How long a kernel takes is not known before it has run once.
#[test]
fn what_has_a_gate_waits_for_a_marker_behind_what_is_unwatched() {
    if !run_as_program("what_has_a_gate_waits_for_a_marker_behind_what_is_unwatched", &[]) {
        return;
    }
    let program = Program::start();
    program.warm_up();
    for round in 0..5 {
        program.issue(0);
        let (before, how, _) = program.issue(0);
        assert_eq!(how, Unwatched);
        let (id, how, operation) = program.issue(7 + round);
        let operation = operation.expect("watched");
        assert_eq!((how, program.driver.marked().last()), (Gated, Some(&before)));
        assert!(!operation.is_open.load(Ordering::Acquire));
        program.driver.complete(&program.stream, before);
        assert!(operation.is_open.load(Ordering::Acquire), "the thread that learns of the marker goes on");
        program.driver.complete(&program.stream, id);
        program.stream.complete_until(id, true);
    }
    assert!(!program.arbitration().snapshot().expect("whole").engines[0][0].is_held());
    program.process.exit();
}

/// The program issues, waits for nothing and computes.
#[test]
fn the_engine_of_a_quiet_program_is_unlocked_after_a_while() {
    if !run_as_program("the_engine_of_a_quiet_program_is_unlocked_after_a_while", &[("hold_limit", "1 h")]) {
        return;
    }
    let program = Program::start();
    let arbitration = program.arbitration();
    let is_held = || arbitration.snapshot().expect("whole").engines[0][0].is_held();
    // Complete before there is a marker; the driver calls back for the marker; it does not, as some do not for what failed.
    for when in ["before", "calls back", "silent"] {
        until("it is alone", || program.run() == Unwatched);
        let marked = program.driver.marked().len();
        program.issue(0);
        let (id, how, _) = program.issue(0);
        assert_eq!((how, is_held()), (Unwatched, true));
        if when == "before" {
            program.driver.complete(&program.stream, id);
        }
        until("there is a marker", || program.driver.marked().len() > marked);
        match when {
            "before" => {}
            "calls back" => {
                assert!(is_held());
                program.driver.complete(&program.stream, id);
            }
            _ => program.driver.complete.store(id.0 + 1, Ordering::Release),
        }
        until("the engine is free", || !is_held());
    }
    program.process.exit();
}

#[test]
fn what_is_unwatched_has_a_marker_when_its_program_gives_the_stream_up_or_exits() {
    if !run_as_program("what_is_unwatched_has_a_marker_when_its_program_gives_the_stream_up_or_exits", &[]) {
        return;
    }
    let program = Program::start();
    program.warm_up();
    let (id, how, _) = program.issue(0);
    assert_eq!(how, Unwatched);
    program.stream.close();
    assert_eq!(program.driver.marked(), [id]);
    program.driver.complete(&program.stream, id);
    let arbitration = program.arbitration();
    until("its thread ended", || arbitration.clients() == 0);

    let other = Program {
        stream: LiveStream::new(
            &program.process,
            program.process.settings.policy,
            Order::InOrder,
            0,
            Some(program.driver),
        ),
        ..program
    };
    other.driver.complete.store(0, Ordering::Release);
    other.driver.marked.lock().expect("no panic").clear();
    other.warm_up();
    let (id, how, _) = other.issue(0);
    assert_eq!(how, Unwatched);
    other.driver.complete.store(id.0 + 1, Ordering::Release);
    other.process.exit();
    assert_eq!(other.driver.marked(), [id]);
    assert!(!arbitration.snapshot().expect("whole").engines[0][0].is_held(), "the exit waited for it");
}

/// It shows what an engine is used for now.
#[test]
fn each_operation_is_watched_while_a_user_looks() {
    if !run_as_program("each_operation_is_watched_while_a_user_looks", &[]) {
        return;
    }
    let program = Program::start();
    program.warm_up();
    let look = |span| Registry::at(folder()).watch("alone", span).expect("it is there");
    look(Nanos::from_secs(3_600));
    assert!((0..20).all(|_| program.run() != Unwatched));
    look(Nanos::ZERO);
    program.warm_up();
    program.process.exit();
}

fn never_unwatched(test: &str, settings: &[(&str, &str)]) {
    if !run_as_program(test, settings) {
        return;
    }
    let program = Program::start();
    for round in 0..40 {
        assert_ne!(program.run(), Unwatched, "round {round}");
        thread::sleep(Duration::from_millis(2));
    }
    program.process.exit();
}

#[test]
fn a_program_whose_threads_are_suspended_is_told_of_each_operation() {
    let settings = [("wait", "suspend")];
    never_unwatched("a_program_whose_threads_are_suspended_is_told_of_each_operation", &settings);
}

#[test]
fn cpus_are_regulated_for_no_longer_than_an_engine_is_used() {
    let settings = [("bandwidth", "64 MB/s")];
    never_unwatched("cpus_are_regulated_for_no_longer_than_an_engine_is_used", &settings);
}

#[test]
fn being_alone_need_make_no_difference() {
    never_unwatched("being_alone_need_make_no_difference", &[("alone_length", "0 ms")]);
}

#[test]
fn what_is_complete_is_not_late() {
    never_unwatched("what_is_complete_is_not_late", &[("hold_limit", "100 ms")]);
}

#[test]
fn a_log_has_each_completion() {
    let directory = laxity_testing::Directory::new("unwatched-log");
    let log = directory.path().to_str().expect("UTF-8").to_owned();
    never_unwatched("a_log_has_each_completion", &[("log", &log)]);
}
