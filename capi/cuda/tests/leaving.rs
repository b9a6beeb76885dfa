//! Programs that crash, are killed, exit without cleaning up, or fork, in the middle of an operation.

mod support;

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::thread;

use laxity_gpu::Base;
use laxity_model::{CopyDirection, EngineOrder};
use laxity_testing::until;
use support::{Place, Reach, plain, program, said};

#[test]
fn nothing_is_held_after_a_program_left_in_whatever_way() {
    let program = program(Reach::ProcAddress);
    for (way, signal) in [("exits", None), ("ends_at_once", None), ("crashes", Some(6)), ("is_killed", Some(9))] {
        let place = Place::new(&format!("leaves-{way}"), EngineOrder::Fifo);
        // A client that wants the GPU as soon as it is free.
        let client = place.arbitration.register("next", Base::Fixed(5)).expect("room");
        let mut command = plain(&program, way);
        let output = place.arbitrate(command.arg(way), &[("batch", "1")]).output().expect("it starts");
        assert_eq!(output.status.signal(), signal, "{way}: {output:?}");
        let token = client.token().expect("whole");
        drop(token.execute_engine().expect("whole"));
        drop(token.copy_engine(CopyDirection::In).expect("whole"));
        drop(token);
        until("no other client is left", || {
            place.arbitration.snapshot().expect("whole").clients.iter().all(|client| client.name == "next")
        });
    }
}

#[test]
fn the_next_client_gets_the_gpu_of_a_program_that_is_killed_while_it_holds_it() {
    let program = program(Reach::ProcAddress);
    let place = Place::new("killed", EngineOrder::Fifo);
    for round in 0..5 {
        let mut command = plain(&program, "killed");
        place.arbitrate(command.arg("loops"), &[]).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("it says");
        assert_eq!(line, "begun\n");
        thread::sleep(std::time::Duration::from_millis(7 * round));
        let look = || place.arbitration.snapshot().expect("whole");
        until("it holds the engine", || look().engines[0][0].is_held());
        child.kill().expect("it runs");
        child.wait().expect("it ended");
        let client = place.arbitration.register("next", Base::Fixed(5)).expect("room");
        drop(client.token().expect("whole").execute_engine().expect("whole"));
    }
    place.trace();
}

#[test]
fn a_child_holds_nothing_of_its_parent() {
    let place = Place::new("forks", EngineOrder::Fifo);
    let text = said(place.arbitrate(plain(program(Reach::ProcAddress), "forks").arg("forks"), &[]));
    assert_eq!(text, "child 3\nend\n");
    assert!(place.is_free());
}
