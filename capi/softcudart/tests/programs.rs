//! Programs on the runtime, over the soft driver.

#[path = "../../softcuda/tests/support/mod.rs"]
mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use support::{built, compile, needs_soft_driver, on_soft, said, sources, target};

/// The output of a program of these tests on two devices.
#[track_caller]
fn printed(name: &str) -> String {
    let folder = target().join(format!("runtime-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let link = folder.join("libcudart.so.13");
    let _ = fs::remove_file(&link);
    symlink(built("liblaxity_softcudart.so"), link).expect("a link");
    let source = sources().join(format!("../softcudart/tests/c/{name}.c"));
    let folder = folder.display();
    let library = [&format!("-L{folder}"), "-l:libcudart.so.13", &format!("-Wl,-rpath={folder}")];
    let mut command = Command::new(compile(name, &source, &library));
    said(on_soft(&mut command, name).env("LAXITY_SOFTCUDA_DEVICES", "2"))
}

#[test]
fn a_thread_whose_device_was_reset_goes_on_with_that_device() {
    if needs_soft_driver() {
        return;
    }
    assert_eq!(printed("resets"), "end\n");
}
