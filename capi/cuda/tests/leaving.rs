//! Programs that crash, are killed, exit without cleaning up, or fork, in the middle of an operation.

mod support;

use std::os::unix::process::ExitStatusExt;

use laxity_model::EngineOrder;
use support::{Place, Reach, compile, is_real, plain, program, said, sources};

#[test]
fn nothing_is_held_after_a_program_left_in_whatever_way() {
    let program = program(Reach::ProcAddress);
    for (way, signal) in [("exits", None), ("ends_at_once", None), ("crashes", Some(6)), ("is_killed", Some(9))] {
        let place = Place::new(&format!("leaves-{way}"), EngineOrder::Fifo);
        place.passes_to_the_next(|| {
            let mut command = plain(&program, way);
            let output = place.arbitrate(command.arg(way), &[("batch", "1")]).output().expect("it starts");
            assert_eq!(output.status.signal(), signal, "{way}: {output:?}");
        });
    }
}

#[test]
fn the_next_client_gets_the_gpu_of_a_program_that_is_killed_while_it_holds_it() {
    let program = program(Reach::ProcAddress);
    let place = Place::new("killed", EngineOrder::Fifo);
    for round in 0..5 {
        let mut command = plain(&program, "killed");
        place.kill_while_it_holds(place.arbitrate(command.arg("loops"), &[]), 7 * round);
    }
    place.trace();
}

/// How often copies are begun at most until they are in the middle when the code is gone.
const RUNS_MAX: usize = 20;

/// The code that began the copies is gone, with its look-ups of the driver: the layer and the driver are not.
#[test]
fn code_that_is_unloaded_in_the_middle_of_a_copy_leaves_nothing_held() {
    let c = sources().join("../cuda/tests/c");
    // A real GPU copies as fast as it can.
    let copies = if is_real() { "-DCOPIES=64" } else { "-DCOPIES=8" };
    let library = compile("plugin.so", &c.join("plugin.c"), &["-shared", "-fPIC", copies]);
    let host = compile("host", &c.join("host.c"), &[]);
    for (what, settings) in [("waits", &[][..]), ("waits", &[("chunk", "1 MiB")]), ("ends", &[])] {
        let place = Place::new(&format!("unloads-{what}"), EngineOrder::Fifo);
        let run = || {
            let mut command = plain(&host, what);
            command.arg(&library).arg(what).env("LAXITY_SOFTCUDA_COPY_RATE", "256 MiB");
            said(place.arbitrate(&mut command, settings))
        };
        let mut runs = 1;
        place.passes_to_the_next(|| {
            let mut said = run();
            // On a machine with other work the copies may be complete before the program comes to unload the code.
            while said == "unloaded 7\nend\n" && runs < RUNS_MAX {
                (said, runs) = (run(), runs + 1);
            }
            assert_eq!(said, "unloaded 0\nend\n", "{what}, {settings:?}, run {runs}");
        });
        place.assert_attached(runs);
        place.trace();
    }
}

#[test]
fn a_child_holds_nothing_of_its_parent() {
    let place = Place::new("forks", EngineOrder::Fifo);
    let text = said(place.arbitrate(plain(program(Reach::ProcAddress), "forks").arg("forks"), &[]));
    assert_eq!(text, "child 3\nend\n");
    assert!(place.is_free());
}
