//! Programs with the layer and without, on the soft driver or on a real one, under an arbitration that the test has made.
#![allow(dead_code, reason = "each test uses a part")]

#[path = "../../../tests/support/place.rs"]
mod place;
#[path = "../../../softcuda/tests/support/mod.rs"]
mod soft;

use std::path::{Path, PathBuf};
use std::process::Command;

use laxity_trace::{Event, Record};

pub use place::Place;
#[allow(unused_imports, reason = "as above")]
pub use soft::{Reach, bindings, built, compile, is_real, needs_soft_driver, python, run, said, sources, target};

/// The name of arbitrations.
const NAME: &str = "cuda";

/// Has `command` run with the layer.
fn put_layer(command: &mut Command) {
    let layer = soft::built("liblaxity_cuda.so");
    command.env("LD_AUDIT", &layer).env("LD_PRELOAD", &layer);
}

/// The program of these tests.
pub fn program(reach: Reach) -> PathBuf {
    soft::program("program", &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/program.c"), reach)
}

/// `program` on the soft devices of `test`, or on real ones, without the layer.
pub fn plain(program: impl AsRef<std::ffi::OsStr>, test: &str) -> Command {
    let mut command = Command::new(program);
    soft::on_driver(&mut command, test);
    command
}

/// How many operations began on each engine.
pub fn operations(records: &[Record]) -> [usize; 3] {
    let mut counts = [0; 3];
    for record in records {
        if let Event::EngineBegin { engine, .. } = record.event {
            counts[engine.index()] += 1;
        }
    }
    counts
}
