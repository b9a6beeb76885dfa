//! Graphs in a directory of their own.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use laxity_model::Nanos;
use laxity_vx::{Context, SpawnOptions};

/// Short enough for tests to be over soon, and nothing depends on it.
pub const PERIOD: Nanos = Nanos::from_micros(200);

/// A directory of shared memory that goes with it.
pub struct Place(PathBuf);

impl Place {
    pub fn new(test: &str) -> Self {
        let path = PathBuf::from(format!("/dev/shm/laxity-vx-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).expect("/dev/shm is writable");
        Place(path)
    }

    pub fn context(&self) -> Context {
        Context::at(&self.0)
    }

    pub fn path(&self) -> &std::path::Path {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        fs::read_dir(&self.0).expect("it exists").next().is_none()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// So many frames.
pub fn frames(frames: u64) -> SpawnOptions {
    SpawnOptions { frames: Some(frames), ..SpawnOptions::every(PERIOD) }
}

/// The soft GPU's server, which is another package's program, built where this test was.
pub fn server() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--package", "laxity-softgpu", "--bin", "laxity-softgpu-server"]);
    build.current_dir(env!("CARGO_MANIFEST_DIR")).env("CARGO_TARGET_DIR", target);
    let output = build.output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    target.join("debug/laxity-softgpu-server")
}
