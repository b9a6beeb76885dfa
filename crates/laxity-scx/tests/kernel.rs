//! The programs of `bpf/` compile for BPF, and the kernel's verifier takes the core: on machines that have clang, and
//! bpftool with the rights to load programs.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use laxity_testing::{Directory, skip};

/// Of the distributions that there are: the newest first.
const CLANGS: &[&str] = &["clang", "clang-21", "clang-20", "clang-19", "clang-18", "clang-17", "clang-16", "clang-14"];

/// As `enum laxity_queue_kind` names them.
const QUEUES: [&str; 3] = ["LAXITY_COARSE", "LAXITY_FINE", "LAXITY_HIERARCHICAL"];

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf")
}

/// The first clang that compiles an empty program for BPF.
fn clang(folder: &Path) -> Option<&'static str> {
    let empty = folder.join("empty.c");
    fs::write(&empty, "int empty;\n").expect("a file");
    let compiles = |&&clang: &&&str| {
        let command =
            Command::new(clang).args(["-target", "bpf", "-c", "-o"]).arg(folder.join("empty.o")).arg(&empty).output();
        command.is_ok_and(|output| output.status.success())
    };
    CLANGS.iter().find(compiles).copied()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// Compiles a program without a warning, with that ready queue if user space names none; the object's path.
fn compiled(clang: &str, name: &str, queue: &str, folder: &Path) -> PathBuf {
    let object = folder.join(name).with_extension("o");
    let output = Command::new(clang)
        .args(["-g", "-O2", "-target", "bpf", "-mcpu=v3", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-c"])
        .arg(format!("-DLAXITY_QUEUE={queue}"))
        .arg(sources().join(name))
        .arg("-o")
        .arg(&object)
        .output()
        .expect("it compiled an empty program");
    assert!(output.status.success(), "{clang}: {}", text(&output));
    object
}

#[test]
fn every_program_compiles_for_bpf_without_a_warning() {
    let folder = Directory::new("scx-compiles");
    let Some(clang) = clang(folder.path()) else {
        return skip("no clang that compiles for BPF: apt-get install clang");
    };
    for name in ["core.bpf.c", "scheduler.bpf.c"] {
        assert!(fs::metadata(compiled(clang, name, QUEUES[0], folder.path())).expect("an object").len() > 0);
    }
}

#[test]
fn the_verifier_of_this_kernel_takes_the_core_with_each_ready_queue() {
    let folder = Directory::new("scx-verifier");
    let Some(clang) = clang(folder.path()) else {
        return skip("no clang that compiles for BPF: apt-get install clang");
    };
    for queue in QUEUES {
        if !takes(&compiled(clang, "core.bpf.c", queue, folder.path()), folder.path()) {
            break;
        }
    }
}

/// Whether the verifier takes an object; it must, unless there is no asking it here, which is said.
fn takes(object: &Path, folder: &Path) -> bool {
    let pins = folder.join("pins");
    fs::create_dir_all(&pins).expect("a folder");
    // What is mounted to pin programs goes with the namespace, and the programs with it.
    let load = "mount -t bpf bpf \"$2\" && echo mounted && bpftool prog loadall \"$1\" \"$2/core\" && ls \"$2/core\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", load, "sh"]).arg(object).arg(&pins);
    let output = match command.output() {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            skip("no unshare");
            return false;
        }
        Err(error) => panic!("{error}"),
    };
    let said = text(&output);
    if !said.contains("mounted") || said.contains("bpftool: not found") {
        skip(format!("no bpftool, or no right to load programs: {said}"));
        return false;
    }
    if said.contains("Operation not permitted") || said.contains("Permission denied") && !said.contains("processed") {
        skip(format!("no right to load programs: {said}"));
        return false;
    }
    assert!(output.status.success(), "the verifier refuses the core: {said}");
    for program in ["begin", "happen", "next", "rank"] {
        assert!(said.contains(&format!("laxity_call_{program}")), "{program} was loaded: {said}");
    }
    true
}
