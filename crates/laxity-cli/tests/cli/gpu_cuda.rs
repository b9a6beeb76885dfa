//! `laxity gpu exec` with a CUDA program that knows nothing of Laxity, on the soft driver.

use std::path::{Path, PathBuf};
use std::process::Command;

use laxity_testing::Directory;

use crate::support::{folder, run};

#[path = "../../../../capi/softcuda/tests/support/mod.rs"]
mod soft;

/// The layer, and the program of its tests; `None`: cargo built no layer beside this test, which is noted.
fn layer_and_program() -> Option<(PathBuf, PathBuf)> {
    let folder = Path::new(assert_cmd::cargo::cargo_bin!("laxity")).parent().expect("a folder").to_owned();
    let is_built = |name: &str| folder.join(name).exists() || folder.join("deps").join(name).exists();
    if !is_built("liblaxity_cuda.so") || !is_built("liblaxity_softcuda.so") {
        laxity_testing::skip(
            "no CUDA layer or soft driver beside the command: cargo build -p laxity-cuda -p laxity-softcuda",
        );
        return None;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../capi/cuda/tests/c/program.c");
    Some((soft::built("liblaxity_cuda.so"), soft::program("program", &source, soft::Reach::ProcAddress)))
}

/// `laxity gpu exec` of the program, with arbitrations in `place`, on soft devices of its own.
fn exec(place: &Directory, layer: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("laxity"));
    soft::on_soft(&mut command, "exec").args(["gpu", "--folder"]).arg(place.path());
    command.args(["exec", "--only", "cuda", "--cuda-layer"]).arg(layer).args(words);
    command
}

#[test]
fn a_cuda_program_computes_the_same_under_an_arbitration_and_leaves_a_legal_trace() {
    let Some((layer, program)) = layer_and_program() else { return };
    let place = Directory::new("exec-cuda");
    let results = folder();
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let (log, name) = (text(&results.path().join("log")), text(&program));
    let without = soft::said(soft::on_soft(&mut Command::new(&program), "plain"));
    let options = ["--priority", "50", "--bandwidth", "64 MB/s", "--log", &log, "--", &name];
    assert_eq!(soft::said(&mut exec(&place, &layer, &options)), without);
    assert!(place.is_empty(), "the arbitration ended with its last program: {:?}", place.files());
    let trace = text(&results.path().join("run.lxt"));
    let (code, out, err) = run(["gpu", "trace", &log, "-o", &trace]);
    assert_eq!(code, 0, "{out}{err}");
    let (code, out, err) = run(["trace", &trace, "check"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("yes  a legal schedule"), "{out}");
    let (code, out, err) = run(["trace", &trace, "export", "--table", "intervals", "--format", "csv", "-o", "-"]);
    assert_eq!(code, 0, "{out}{err}");
    let kernels = out.lines().filter(|line| line.contains(",operation,") && line.contains(",EE,"));
    let mut kernels = kernels.filter(|line| line.split(',').any(|field| field == "affine"));
    assert!(kernels.next().is_some(), "operations have the names of kernels: {out}");
}

#[test]
fn how_a_cuda_program_ended_is_passed_on_and_nothing_is_left() {
    let Some((layer, program)) = layer_and_program() else { return };
    let place = Directory::new("exec-cuda-ends");
    let name = program.to_str().expect("UTF-8");
    for (way, expected) in [("exits", 0), ("crashes", 134), ("is_killed", 137)] {
        let output = exec(&place, &layer, &["--", name, way]).output().expect("it starts");
        assert_eq!(output.status.code(), Some(expected), "{way}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(place.is_empty(), "{way}: {:?}", place.files());
    }
}
