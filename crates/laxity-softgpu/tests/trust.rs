//! A soft GPU is one user's, and its server keeps no descriptor of the process that started it.

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use laxity_softgpu::{OpenError, look};
use laxity_sys::packets::{self, Listener};

use support::{PATIENCE, config, given, name, try_open};

/// The address for [`impostor`] to listen at.
const ADDRESS: &str = "LAXITY_TEST_ADDRESS";
/// An unprivileged user.
const OTHER: u32 = 65534;

/// Not a test by itself: listens at an address that another user's processes connect to.
#[test]
fn impostor() {
    let Ok(address) = std::env::var(ADDRESS) else { return };
    let _listener = Listener::bind(&address).expect("the address is free");
    println!("listens");
    std::thread::sleep(PATIENCE);
}

/// Another user could read and change all device memory. Needs root to become another user.
#[test]
fn the_server_of_another_user_is_refused() {
    if packets::user() != 0 {
        return println!("skipped: not root, so no process can run as another user");
    }
    let name = name("impostor");
    let mut impostor = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "impostor", "--nocapture", "--test-threads=1"])
        .env(ADDRESS, format!("laxity-softgpu/0/{name}"))
        .uid(OTHER)
        .gid(OTHER)
        .stdout(Stdio::piped())
        .spawn()
        .expect("another user may execute the test");
    let output = BufReader::new(impostor.stdout.take().expect("it was asked for"));
    assert!(output.lines().map_while(Result::ok).any(|line| line.contains("listens")), "see above");

    let refused = try_open(&name, config()).expect_err("it is not this user's");
    let looked = look(&name).expect_err("it is not this user's");
    impostor.kill().expect("it is ours");
    impostor.wait().expect("it is ours");
    let OpenError::System { error, .. } = &refused else { panic!("{refused}") };
    assert!(error.to_string().contains("user 65534"), "{error}");
    assert_eq!([error.kind(), looked.kind()], [std::io::ErrorKind::PermissionDenied; 2]);
}

/// Not a test by itself: starts a server, with a descriptor that its own program left open across `exec`.
#[test]
fn start_server() {
    let Some(gpu) = given() else { return };
    let process = gpu.server().expect("Linux knows");
    let targets = |process: &str| -> Vec<PathBuf> {
        let folder = fs::read_dir(Path::new("/proc").join(process).join("fd")).expect("it runs");
        folder.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok()).collect()
    };
    let kept = Path::new("/proc/version").to_owned();
    assert!(targets("self").contains(&kept), "the shell left it open");
    let servers = targets(&process.to_string());
    assert!(!servers.contains(&kept), "{servers:?}");
}

/// A lock file or the end of a pipe that outlives its process keeps others waiting.
#[test]
fn the_server_keeps_no_descriptor_of_the_process_that_started_it() {
    let program = std::env::current_exe().expect("this program");
    let status = Command::new("sh")
        .args(["-c", "exec 9</proc/version; exec \"$0\" --exact start_server --nocapture --test-threads=1"])
        .arg(program)
        .env(support::NAME, name("descriptors"))
        .stdout(Stdio::null())
        .status()
        .expect("a shell");
    assert!(status.success(), "see above");
}
