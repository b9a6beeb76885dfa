//! Streams of one program that want the GPU of one another, and a program that is stopped.

mod common;

use std::path::Path;
use std::process::Child;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use laxity_gpu::{Base, Config, Registry};
use laxity_policy::program::Work;
use laxity_sys::process;
use laxity_testing::until;

use common::{folder, is_program, issue, stream};

/// No hold ends by itself.
const FOREVER: (&str, &str) = ("hold_limit", "1 h");

fn one_gpu() -> Config {
    Config::new(1, 1)
}

/// A job ends when the program waits, which it does not.
#[test]
fn a_stream_that_becomes_idle_keeps_no_token_that_another_one_waits_for() {
    if !is_program() {
        let settings = [FOREVER, ("token", "job")];
        let test = "a_stream_that_becomes_idle_keeps_no_token_that_another_one_waits_for";
        return common::run_as_program(test, &one_gpu(), &settings, |_, _| {});
    }
    let process = common::process();
    let (first, second) = (stream(&process), stream(&process));
    for round in 0..20 {
        let (id, operation) = issue(&first, 3 * round);
        until("the first stream has its engine", || operation.is_open());
        let (next, held_back) = issue(&second, 3 * round + 1);
        assert!(!held_back.is_open(), "the first one's operation goes on");
        // The second stream's thread is about to wait, or waits already.
        thread::sleep(Duration::from_millis(round % 4));
        let (last, operation) = issue(&first, 3 * round + 2);
        first.complete_and_go_on(id);
        until("the first stream has its engine again", || operation.is_open() || held_back.is_open());
        if operation.is_open() {
            first.complete_and_go_on(last);
        }
        until("the second stream has its engine", || held_back.is_open());
        second.complete_and_go_on(next);
        until("the first stream has had its engine", || operation.is_open());
        first.complete_and_go_on(last);
    }
    process.exit();
}

/// The token of an idle stream is free for a call of the same program, which needs no gate then.
#[test]
fn a_call_that_waits_has_the_token_of_an_idle_stream() {
    if !is_program() {
        let settings = [FOREVER, ("token", "job"), ("calls", "block")];
        let test = "a_call_that_waits_has_the_token_of_an_idle_stream";
        return common::run_as_program(test, &one_gpu(), &settings, |_, _| {});
    }
    let process = common::process();
    let streams = [stream(&process), stream(&process)];
    for round in 0..20 {
        let stream = &streams[round % 2];
        let ticket = stream.begin(Work::Kernel { key: round as u64 }, true, || None);
        let ticket = ticket.expect("arbitrated");
        // The very first call comes before the stream's thread has registered it.
        assert!(!ticket.is_gated || round < 2, "round {round}");
        let id = ticket.id;
        ticket.attach(Arc::default());
        stream.wait_for_turn(id);
        stream.complete_and_go_on(id);
    }
    process.exit();
}

/// As in a callback of the driver's, which the operation of the first stream waits for.
#[test]
fn a_call_does_not_wait_for_what_another_stream_of_its_program_holds() {
    if !is_program() {
        let settings = [FOREVER, ("calls", "block")];
        let test = "a_call_does_not_wait_for_what_another_stream_of_its_program_holds";
        return common::run_as_program(test, &one_gpu(), &settings, |_, _| {});
    }
    let process = common::process();
    let (first, second) = (stream(&process), stream(&process));
    // From then on both have threads that have registered them.
    for stream in [&first, &second] {
        let (id, operation) = issue(stream, 0);
        until("it has its engine", || operation.is_open());
        stream.complete_and_go_on(id);
        stream.synchronized();
    }
    let (id, operation) = issue(&first, 1);
    until("it has its engine", || operation.is_open());
    let (says, said) = mpsc::channel();
    let (called_back, ends) = (second.clone(), first.clone());
    thread::spawn(move || {
        let issued = issue(&called_back, 2);
        ends.complete_and_go_on(id);
        says.send(issued).expect("it is awaited");
    });
    let (last, held_back) = said.recv_timeout(Duration::from_secs(60)).expect("the call waits for its own caller");
    until("it has its engine", || held_back.is_open());
    second.complete_and_go_on(last);
    process.exit();
}

/// With several GPUs only the arbiter grants tokens, and a call may ask it all the same.
#[test]
fn a_free_gpu_of_several_needs_no_thread_that_wakes() {
    if !is_program() {
        let test = "a_free_gpu_of_several_needs_no_thread_that_wakes";
        return common::run_as_program(test, &Config::new(1, 2), &[FOREVER], |_, _| {});
    }
    let process = common::process();
    let stream = stream(&process);
    let mut gated = 0;
    for round in 0..20 {
        let ticket = stream.begin(Work::Kernel { key: round }, true, || None);
        let ticket = ticket.expect("arbitrated");
        gated += u32::from(ticket.is_gated);
        let id = ticket.id;
        ticket.attach(Arc::default());
        stream.wait_for_turn(id);
        stream.complete_and_go_on(id);
        stream.synchronized();
    }
    assert!(gated <= 1, "{gated} of 20 operations waited for the stream's thread, and the first may");
    process.exit();
}

/// What a program holds is not unlocked because of time in which it could not go on.
#[test]
fn time_in_which_a_program_is_stopped_does_not_count_for_its_holds() {
    const STOPPED: Duration = Duration::from_secs(4);
    if !is_program() {
        let settings = [("hold_limit", "3500 ms")];
        let test = "time_in_which_a_program_is_stopped_does_not_count_for_its_holds";
        let stop = |shared: &Path, program: &Child| {
            until("the program holds its engine", || shared.join("holds").exists());
            process::stop(program.id()).expect("it is there");
            thread::sleep(STOPPED);
            std::fs::write(shared.join("goes-on"), "").expect("written");
            process::go_on(program.id()).expect("it is there");
        };
        return common::run_as_program(test, &one_gpu(), &settings, stop);
    }
    let process = common::process();
    let (first, second) = (stream(&process), stream(&process));
    let (id, operation) = issue(&first, 1);
    until("it has its engine", || operation.is_open());
    let (next, held_back) = issue(&second, 2);
    std::fs::write(folder().join("holds"), "").expect("written");
    until("it was stopped and goes on", || folder().join("goes-on").exists());
    // The stream's thread looks at the clock.
    thread::sleep(Duration::from_millis(300));
    assert!(!held_back.is_open(), "the first stream still has its engine");
    first.complete_and_go_on(id);
    until("it has its engine", || held_back.is_open());
    second.complete_and_go_on(next);
    process.exit();
}

#[test]
fn a_program_sees_how_many_clients_there_are() {
    if !is_program() {
        let test = "a_program_sees_how_many_clients_there_are";
        let register = |shared: &Path, _: &Child| {
            until("the program has two", || shared.join("2").exists());
            let arbitration = Registry::at(shared).attach("alone").expect("there");
            let client = arbitration.register("other", Base::Background).expect("room");
            until("the program sees it", || shared.join("3").exists());
            drop(client);
            until("the program sees that it left", || shared.join("1").exists());
        };
        return common::run_as_program(test, &one_gpu(), &[], register);
    }
    let process = common::process();
    let arbitration = process.arbitration().expect("one");
    assert_eq!(arbitration.clients(), 0, "the test is attached, and has no client");
    let streams = [stream(&process), stream(&process)];
    for stream in &streams {
        let (id, operation) = issue(stream, 1);
        until("it has its engine", || operation.is_open());
        stream.complete_and_go_on(id);
    }
    for clients in [2, 3] {
        until("they are as many", || arbitration.clients() == clients);
        std::fs::write(folder().join(clients.to_string()), "").expect("written");
    }
    streams[0].close();
    until("the others left", || arbitration.clients() == 1);
    std::fs::write(folder().join("1"), "").expect("written");
    process.exit();
}
