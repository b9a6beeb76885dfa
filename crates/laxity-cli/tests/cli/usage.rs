//! Bad usage: each error names what is wrong, in words of the command, and has its exit code.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use laxity_testing::Directory;

use crate::support::{example, fixture, folder, run, trace_of};

#[test]
fn values_with_a_sign_are_judged_by_the_parser_of_the_quantity() {
    let file = example("quickstart.toml").display().to_string();
    let cases: &[(&[&str], &str)] = &[
        (
            &["simulate", &file, "--for", "-1s"],
            "invalid value '-1s' for '--for <DURATION>': \"-1s\" does not begin with",
        ),
        (&["simulate", &file, "--seed", "-1"], "invalid value '-1' for '--seed <NUMBER>': write a whole number"),
        (&["simulate", &file, "--seed", "x"], "invalid value 'x' for '--seed <NUMBER>': write a whole number"),
        (&["gen", "uni-light/short", "cap=2", "--cpus", "-1"], "-1 is not in 1..=1024"),
        // Other options still end a list of words, and are no values.
        (&["simulate", &file, "--trace", "--json"], "a value is required for '--trace <OUT>'"),
        (&["simulate", &file, "-x"], "unexpected argument '-x' found"),
    ];
    for (words, expected) in cases {
        let (code, out, err) = run(*words);
        assert_eq!((code, out.as_str()), (2, ""), "{words:?}: {err}");
        assert!(err.contains(expected) && !err.contains("use '-- -1"), "{words:?}: {err}");
    }
}

#[test]
fn a_file_whose_name_promises_another_format_is_not_written() {
    let folder = folder();
    let trace = trace_of("two.toml", "100ms", &folder).display().to_string();
    let file = example("quickstart.toml").display().to_string();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (png, svg, pdf, page) = (path("a.png"), path("a.SVG"), path("b.pdf"), path("b.2.htm"));
    let cases: [(&[&str], &str, Option<&str>); 5] = [
        (
            &["trace", &trace, "gantt", "--svg", &png],
            &png,
            Some("it is written as SVG, not as .png; end the name in .svg"),
        ),
        (&["trace", &trace, "gantt", "--svg", &svg], &svg, None),
        (&["report", &file, "--for", "20ms", "-o", &pdf], &pdf, Some("it is written as HTML, not as .pdf")),
        (&["report", &file, "--for", "20ms", "-o", &page], &page, None),
        (
            &["bandwidth", "threshold", "--cpus", "1", "--slowdown", "5", "--plot", &pdf, "--", "true"],
            &pdf,
            Some("it is written as SVG, not as .pdf"),
        ),
    ];
    for (words, path, expected) in cases {
        let (code, _, err) = run(words);
        assert_eq!(
            (code, Path::new(path).exists()),
            (if expected.is_some() { 2 } else { 0 }, expected.is_none()),
            "{err}"
        );
        assert!(expected.is_none_or(|expected| err.contains(expected)), "{err}");
    }
}

#[test]
fn a_window_of_no_time_and_an_impossible_name_are_bad_usage() {
    let folder = folder();
    let trace = trace_of("two.toml", "100ms", &folder).display().to_string();
    let (code, _, err) = run(["trace", &trace, "gantt", "--from", "50ms", "--to", "10ms"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("--from 50 ms --to 10 ms shows no time"), "{err}");
    let commands: [&[&str]; 4] = [
        &["graph", "run", "-g", "A:B", "--rate", "50", "--name", "a/b"],
        &["graph", "show", "a/b"],
        &["graph", "watch", "a/b"],
        &["graph", "terminate", "a/b"],
    ];
    for words in commands {
        let (code, _, err) = run(words);
        assert_eq!(code, 2, "{words:?}: {err}");
        assert!(err.contains("graph name \"a/b\" has 3 bytes"), "{words:?}: {err}");
    }
}

#[test]
fn help_that_cannot_be_written_is_a_failure() {
    use std::os::unix::fs::FileTypeExt;
    if !fs::metadata("/dev/full").is_ok_and(|full| full.file_type().is_char_device()) {
        return laxity_testing::skip("no /dev/full");
    }
    for words in [&["--help"] as &[&str], &["--version"], &["simulate", "--help"]] {
        let full = fs::File::options().write(true).open("/dev/full").expect("Linux has it");
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("laxity"));
        let output = command.args(words).stdout(full).stderr(Stdio::piped()).output().expect("runs");
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(err, "error: cannot write to standard output: no space left on device\n", "{words:?}");
        assert_eq!(output.status.code(), Some(1), "{words:?}");
    }
}

#[test]
fn a_folder_of_names_that_is_not_there_is_named() {
    for verb in [&["gpu", "list"] as &[&str], &["graph", "list"], &["sched", "list"]] {
        let (code, _, err) = run(verb.iter().chain(&["--folder", "/no/such/folder"]));
        assert_eq!(code, 1, "{err}");
        assert!(err.contains("cannot list the names in /no/such/folder: "), "{err}");
    }
}

#[test]
fn the_way_out_of_a_scheduler_of_linux_that_cannot_is_one_that_can() {
    let file = example("quickstart.toml").display().to_string();
    for class in ["fifo", "deadline"] {
        let words = ["run", &file, "--cpus", "1", "--policy", "P-EDF", "--for", "10ms", "--scheduler", class];
        let (code, _, err) = run(words);
        assert_eq!(code, 1, "{err}");
        assert!(err.contains("take --scheduler laxity") && !err.contains("--scheduler other"), "{err}");
    }
}

#[test]
fn check_warns_of_options_without_effect_as_simulate_does() {
    let file = fixture("two.toml").display().to_string();
    for verb in ["check", "simulate"] {
        let (_, _, err) = run([verb, &file, "--arbitration", "k_fmlp", "--handling", "all"]);
        assert!(err.contains("without a GPU, --arbitration changes nothing"), "{verb}: {err}");
        assert!(err.contains("without a GPU or another device, --handling changes nothing"), "{verb}: {err}");
    }
}

#[test]
fn a_layer_that_is_named_and_not_there_is_not_looked_for_beside_the_command() {
    let place = Directory::new("usage-layer");
    let folder = place.path().to_str().expect("UTF-8");
    let (code, _, err) =
        run(["gpu", "--folder", folder, "exec", "--layer", "nofile", "--only", "opencl", "--", "true"]);
    assert_eq!(code, 2);
    assert!(err.contains("no OpenCL layer: nofile is no file") && !err.contains("beside"), "{err}");
}
