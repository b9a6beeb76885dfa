//! Arbitrations in a directory of their own, other processes, and chance.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::fs;
use std::ops::Deref;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use laxity_gpu::Registry;
use laxity_model::{Instant, Nanos};
use laxity_sys::clock::now;

pub const ROLE: &str = "LAXITY_TEST_ROLE";
pub const PLACE: &str = "LAXITY_TEST_PLACE";
/// Long enough for any machine: reached only by what hangs.
pub const HANG: Nanos = Nanos::from_secs(60);

/// A registry in a directory of shared memory that goes with it.
pub struct Place {
    registry: Registry,
    path: PathBuf,
}

impl Place {
    pub fn new(test: &str) -> Self {
        let path = PathBuf::from(format!("/dev/shm/laxity-test-gpus-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).expect("/dev/shm is writable");
        Place { registry: Registry::at(&path), path }
    }

    /// Files in it.
    pub fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.path).expect("it exists");
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    }
}

impl Deref for Place {
    type Target = Registry;

    fn deref(&self) -> &Registry {
        &self.registry
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A process that is killed when the test is over, however that ends: this test program, started again for its test
/// `child`.
pub struct Process(Child);

impl Process {
    pub fn start(place: &Place, role: &str) -> Process {
        let program = std::env::current_exe().expect("this test");
        let mut command = Command::new(program);
        command.args(["--exact", "child", "--nocapture", "--test-threads=1"]).stdout(Stdio::null());
        Process(command.env(ROLE, role).env(PLACE, place.directory()).spawn().expect("another process"))
    }

    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Kills it; panics if it had ended by itself, which it does if it saw something wrong.
    pub fn kill(&mut self) {
        self.0.kill().expect("it is ours");
        let status = self.0.wait().expect("it is ours");
        assert_eq!(status.code(), None, "it was killed and did not fail");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = soon();
    while !is_so() {
        assert!(now() < deadline, "waited too long until {what}");
        thread::sleep(Duration::from_micros(200));
    }
}

/// When to give up.
pub fn soon() -> Instant {
    now().saturating_add(HANG)
}

/// xorshift64; `LAXITY_SEED` repeats a run.
pub struct Random(u64);

impl Random {
    pub fn new() -> Self {
        let seed = std::env::var("LAXITY_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| now().0 | 1);
        println!("repeat with LAXITY_SEED={seed}");
        Random::of(seed)
    }

    pub fn of(seed: u64) -> Self {
        Random(seed | 1)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    pub fn pause(&mut self, micros: u64) {
        thread::sleep(Duration::from_micros(self.below(micros)));
    }
}
