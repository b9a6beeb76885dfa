//! `laxity gpu exec` and `laxity gpu trace`: programs that know nothing of Laxity.

use std::fs;
use std::path::{Path, PathBuf};

use laxity_testing::Directory;

use crate::support::{folder, laxity, run};

/// `laxity gpu exec`, with arbitrations in `place`.
fn exec(place: &Directory, words: &[&str]) -> (i32, String, String) {
    let path = place.path().to_str().expect("UTF-8");
    run(["gpu", "--folder", path, "exec"].iter().chain(words))
}

/// A file that can stand for a layer where no loader loads it: the command itself, which is a shared object by its header.
const NO_LAYER: &str = "/proc/self/exe";

#[test]
fn a_program_that_uses_no_gpu_is_not_taken_for_an_arbitrated_one() {
    let place = Directory::new("exec-none");
    let (code, out, err) = exec(&place, &["--layer", NO_LAYER, "--", "echo", "hello"]);
    assert_eq!((code, out.as_str()), (1, "hello\n"));
    assert!(err.contains("echo ran without a layer: it uses neither CUDA nor OpenCL"), "{err}");
    let (code, out, err) = exec(&place, &["--layer", NO_LAYER, "--optional", "--", "echo", "hello"]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "hello\n", ""));
    assert!(place.is_empty(), "the arbitration ended with the last program: {:?}", place.files());
}

#[test]
fn the_exit_code_of_the_program_is_passed_on_and_so_is_a_signal() {
    let place = Directory::new("exec-codes");
    let said = |script: &str| exec(&place, &["--layer", NO_LAYER, "--optional", "--", "sh", "-c", script]);
    let (code, _, err) = said("exit 7");
    assert_eq!(code, 7);
    assert!(err.contains("sh ended with exit code 7"), "{err}");
    let (code, _, err) = said("kill -9 $$");
    assert_eq!(code, 137);
    assert!(err.contains("signal 9"), "{err}");
}

#[test]
fn wrong_settings_and_missing_things_are_bad_usage() {
    let place = Directory::new("gpu-exec-usage");
    let cases: &[(&[&str], &str)] = &[
        (&["--layer", NO_LAYER, "--priority", "100", "--", "true"], "--priority: priority = \"100\" is not 1 to 99"),
        (&["--layer", NO_LAYER, "--job-period", "often", "--", "true"], "a period such as 33 ms"),
        (&["--layer", NO_LAYER, "--gpu", "5", "--", "true"], "--gpu: there is no GPU 5: arbitration programs has 1"),
        (&["--layer", "/etc/passwd", "--", "true"], "no OpenCL layer: /etc/passwd is no shared library"),
        (&["--layer", "/none.so", "--", "true"], "no OpenCL layer: /none.so is no file"),
        (&["--cuda-layer", "/none.so", "--only", "cuda", "--", "true"], "no CUDA layer: /none.so is no file"),
        (&["--layer", NO_LAYER, "--name", "car", "--", "true"], "arbitration car: does not exist"),
        (&["--layer", NO_LAYER, "--", "/no/such/program"], "cannot start /no/such/program"),
    ];
    for (words, expected) in cases {
        let (code, _, err) = exec(&place, words);
        assert_eq!(code, 2, "{words:?}: {err}");
        assert!(err.contains(expected), "{words:?}: {err}");
    }
    for (text, expected) in [
        ("[program.\"cl.py\"]\nprioritty = 3\n", "there is no setting prioritty"),
        ("[program.\"cl.py\"]\ngpu = 5\n", "program \"cl.py\": there is no GPU 5: arbitration programs has 1"),
    ] {
        let files = Directory::new("exec-policies");
        let policies = files.path().join("p.toml");
        std::fs::write(&policies, text).expect("written");
        let words = ["--layer", NO_LAYER, "--policies", policies.to_str().expect("UTF-8"), "--", "echo", "hello"];
        let (code, out, err) = exec(&place, &words);
        assert_eq!((code, out.as_str()), (2, ""), "it starts nothing: {err}");
        assert!(err.contains(expected), "{err}");
    }
    let path = place.path().to_str().expect("UTF-8");
    let words = ["gpu", "--folder", path, "exec", "--layer", NO_LAYER];
    let of_environment = |options: &[&str]| {
        let mut command = laxity();
        command.args(words).args(options).args(["--", "echo", "hello"]).env("LAXITY_GPU_PRIORITY", "urgent");
        command.output().expect("it starts")
    };
    let output = of_environment(&[]);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && output.stdout.is_empty(), "it starts nothing: {err}");
    assert!(err.contains("LAXITY_GPU_PRIORITY: priority = \"urgent\" is not 1 to 99"), "{err}");
    let output = of_environment(&["--priority", "3"]);
    assert_eq!(output.stdout, b"hello\n", "the option counts: {}", String::from_utf8_lossy(&output.stderr));
    let empty = folder();
    let path = empty.path().to_str().expect("UTF-8");
    let (code, _, err) = run(["gpu", "trace", path, "-o", "/dev/null"]);
    assert_eq!(code, 1);
    assert!(err.contains("no log of a program"), "{err}");
}

/// The layer that was built beside the command.
fn layer() -> Option<PathBuf> {
    let folder = Path::new(assert_cmd::cargo::cargo_bin!("laxity")).parent().expect("a folder").to_owned();
    let places = [folder.join("liblaxity_opencl.so"), folder.join("deps/liblaxity_opencl.so")];
    places.into_iter().find(|path| path.exists())
}

#[test]
fn a_filter_of_ffmpeg_runs_under_an_arbitration_and_leaves_a_legal_trace() {
    let has_driver = std::fs::read_dir("/etc/OpenCL/vendors").is_ok_and(|mut vendors| vendors.next().is_some());
    let (Some(layer), true, true) = (layer(), has_driver, Path::new("/usr/bin/ffmpeg").exists()) else {
        return laxity_testing::skip("no layer beside the command, no OpenCL driver, or no ffmpeg");
    };
    let place = Directory::new("exec-ffmpeg");
    let results = folder();
    let log = results.path().join("log");
    let path = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let layer = path(&layer);
    let words = [
        "--layer",
        &layer,
        "--log",
        &path(&log),
        "--priority",
        "50",
        "--batch",
        "4",
        "--",
        "ffmpeg",
        "-hide_banner",
        "-loglevel",
        "error",
        "-nostdin",
        "-init_hw_device",
        "opencl=gpu:0.0",
        "-filter_hw_device",
        "gpu",
        "-f",
        "lavfi",
        "-i",
        "testsrc=size=64x64:rate=5:duration=1",
        "-vf",
        "format=yuv420p,hwupload,boxblur_opencl=2:1,hwdownload,format=yuv420p",
        "-f",
        "md5",
        "-",
    ];
    let (code, out, err) = exec(&place, &words);
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("MD5="), "{out}");
    let trace = path(&results.path().join("run.lxt"));
    let (code, out, err) = run(["gpu", "trace", &path(&log), "-o", &trace]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("of 2 streams"), "a queue for uploads and one for filters: {out}");
    assert!(!err.contains("within a line"), "{err}");
    let whole = fs::read_dir(&log)
        .expect("the folder")
        .flatten()
        .find(|file| file.path().extension() == Some("jsonl".as_ref()));
    let whole = whole.expect("a log").path();
    let text = fs::read(&whole).expect("a log");
    let place_of_cut = results.path().join("cut");
    fs::create_dir(&place_of_cut).expect("a folder");
    fs::write(place_of_cut.join("cut.jsonl"), &text[..text.len() - 5]).expect("it is written");
    let (code, out, err) = run(["gpu", "trace", &path(&place_of_cut), "-o", &path(&results.path().join("cut.lxt"))]);
    assert!(code == 0 && out.contains("records of"), "{out}{err}");
    assert!(err.contains("cut.jsonl: it ends within a line"), "{err}");
    let (code, out, err) = run(["trace", &trace, "check"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("yes  a legal schedule"), "{out}");
}

const LOG: &str = r#"{"event":"program","program":"p","pid":7,"arbitration":{"name":"a","cpus":2,"gpus":1,"copy_engines":1,"tokens":1,"by_priority":false}}
{"event":"stream","stream":0,"name":"p#0","gpu":0}
{"event":"begins","at":1000000,"stream":0,"job":0,"level":30}
{"event":"requests","at":1000000,"stream":0,"job":0,"engine":0}
{"event":"granted","at":1100000,"stream":0,"token":0}
{"event":"opens","at":1100000,"stream":0,"operation":0,"label":"k"}
{"event":"complete","at":6000000,"stream":0,"operation":0}
{"event":"unlocks","at":6000000,"stream":0}
{"event":"releases","at":6000000,"stream":0}
{"event":"ends","at":6000000,"stream":0,"job":0}
"#;

/// Its deadline was ten years, and its period a nanosecond.
#[test]
fn the_report_of_a_program_without_deadlines_has_none() {
    let place = Directory::new("cli-report-of-program");
    let (logs, trace, page) = (place.path().join("logs"), place.path().join("t.lxt"), place.path().join("page.html"));
    std::fs::create_dir(&logs).expect("a folder");
    std::fs::write(logs.join("p-7.jsonl"), LOG).expect("written");
    laxity().args(["gpu", "trace"]).arg(&logs).arg("-o").arg(&trace).assert().success();
    laxity().arg("report").arg(&trace).arg("-o").arg(&page).assert().success();
    let text = std::fs::read_to_string(&page).expect("a page");
    assert!(text.contains("p#0 (7)#0 took the longest: 5 ms"), "{text}");
    assert!(
        !text.contains("315360000") && !text.contains("31535999") && !text.contains("before its deadline"),
        "{text}"
    );
    assert!(!text.contains("Where the laxity went"), "{text}");
}
