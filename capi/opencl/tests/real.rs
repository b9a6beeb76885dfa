//! Programs of the distribution, which know nothing of Laxity: bit-equal output with the layer and without.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use laxity_model::EngineOrder;
use support::{Place, has_opencl, operations, plain, said};

/// Runs `command` alone, then under an arbitration: the output must be the same. Answers how many operations ran.
#[track_caller]
fn compare(name: &str, program: &str, settings: &[(&str, &str)], arguments: impl Fn(&mut Command)) -> Option<usize> {
    let path = Path::new("/usr/bin").join(program);
    if !has_opencl() || !path.exists() {
        laxity_testing::skip(format_args!(
            "{program} or an OpenCL driver is not installed: run scripts/opencl.sh as root"
        ));
        return None;
    }
    let command = || {
        let mut command = plain(&path);
        arguments(&mut command);
        command
    };
    let alone = said(&mut command());
    assert!(!alone.is_empty(), "{name} prints its results");
    let place = Place::new(name, EngineOrder::Priority);
    assert_eq!(said(place.arbitrate(&mut command(), settings)), alone, "{name}");
    place.assert_attached(1);
    assert!(place.is_free());
    Some(operations(&place.trace().1))
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python").join(name)
}

fn filter(command: &mut Command, filter: &str) {
    command.args([
        "-hide_banner",
        "-loglevel",
        "error",
        "-init_hw_device",
        "opencl=gpu:0.0",
        "-filter_hw_device",
        "gpu",
    ]);
    command.args(["-f", "lavfi", "-i", "testsrc=size=160x120:rate=10:duration=1", "-f", "md5", "-vf"]);
    command.arg(format!("format=yuv420p,hwupload,{filter},hwdownload,format=yuv420p")).arg("-");
}

#[test]
fn an_opencv_pipeline_has_the_same_frames() {
    let run = |settings, name: &str| {
        compare(name, "python3", settings, |command| {
            command.arg(script("opencv_pipeline.py")).env("OPENCV_OPENCL_DEVICE", ":CPU:");
        })
    };
    if let Some(operations) = run(&[], "opencv") {
        assert!(operations >= 40, "{operations} operations");
        run(&[("batch", "1"), ("chunk", "64 KiB")], "opencv-strict");
    }
}

#[test]
fn pyopencl_waits_for_events_of_its_own() {
    if let Some(operations) = compare("pyopencl", "python3", &[], |command| {
        command.arg(script("pyopencl_events.py"));
    }) {
        assert!(operations >= 100, "{operations} operations");
    }
}

#[test]
fn filters_of_ffmpeg_have_the_same_frames() {
    let filters = ["unsharp_opencl=lx=5:ly=5", "boxblur_opencl=2:1", "deshake_opencl"];
    for (number, name) in filters.into_iter().enumerate() {
        if let Some(operations) = compare(&format!("ffmpeg-{number}"), "ffmpeg", &[], |command| filter(command, name)) {
            assert!(operations >= 10, "{name}: {operations} operations");
        }
    }
}
