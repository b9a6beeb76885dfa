//! Programs that crash, are killed, exit without cleaning up, or fork, in the middle of an operation.

mod support;

use std::os::unix::process::ExitStatusExt;

use laxity_model::EngineOrder;
use support::{Place, build, plain, program, said};

#[test]
fn nothing_is_held_after_a_program_left_in_whatever_way() {
    let Some(leaves) = program("leaves", "leaves.c") else { return };
    for (way, signal) in [("exit", None), ("ends_at_once", None), ("crashes", Some(6)), ("is_killed", Some(9))] {
        let place = Place::new(&format!("leaves-{way}"), EngineOrder::Fifo);
        place.passes_to_the_next(|| {
            let mut command = plain(&leaves);
            let output = place.arbitrate(command.arg(way), &[("batch", "1")]).output().expect("it starts");
            assert_eq!(output.status.signal(), signal, "{way}: {output:?}");
        });
        place.trace();
    }
}

#[test]
fn the_next_client_gets_the_gpu_of_a_program_that_is_killed_while_it_holds_it() {
    let Some(leaves) = program("killed", "leaves.c") else { return };
    let place = Place::new("killed", EngineOrder::Fifo);
    for round in 0..10 {
        let mut command = plain(&leaves);
        place.kill_while_it_holds(place.arbitrate(command.arg("loops"), &[]), 7 * round);
    }
    place.trace();
}

/// The code that began the copies is gone, and the loader of OpenCL with it: the layer is not.
#[test]
fn code_that_is_unloaded_in_the_middle_of_a_copy_leaves_nothing_held() {
    let Some(library) = build("plugin.so", "plugin.c", &["-shared", "-fPIC", "-lOpenCL"]) else { return };
    let Some(host) = build("host", "host.c", &[]) else { return };
    let expected = said(plain(&host).arg(&library));
    assert_eq!(expected, "unloaded\nend\n");
    for settings in [&[][..], &[("chunk", "1 MiB"), ("batch", "1")]] {
        let place = Place::new("unloads", EngineOrder::Fifo);
        place.passes_to_the_next(|| {
            assert_eq!(said(place.arbitrate(plain(&host).arg(&library), settings)), expected);
        });
        place.trace();
    }
}

#[test]
fn a_child_holds_nothing_of_its_parent() {
    let Some(leaves) = program("forks", "leaves.c") else { return };
    let place = Place::new("forks", EngineOrder::Fifo);
    assert_eq!(said(place.arbitrate(plain(&leaves).arg("forks"), &[])), "child 5\nend\n");
    assert!(place.is_free());
}

/// A kernel takes longer than its program may hold an engine.
#[test]
fn an_operation_that_holds_its_engine_too_long_loses_it_and_is_named() {
    let Some(leaves) = program("late", "leaves.c") else { return };
    let place = Place::new("late", EngineOrder::Fifo);
    let output = support::run(place.arbitrate(plain(&leaves).arg("forks"), &[("hold_limit", "1 ms")]));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "child 5\nend\n");
    let notices: Vec<String> = place.reports().into_iter().map(|report| report.text).collect();
    assert!(notices.iter().any(|text| text.contains("spin was not complete after 1 ms")), "{notices:?}");
    assert!(place.is_free());
    place.trace();
}
