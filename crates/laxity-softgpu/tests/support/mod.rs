//! Soft GPUs of their own for tests.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use laxity_model::Nanos;
use laxity_softgpu::{Config, Entry, OpenError, Options, SoftGpu};

/// Longer than anything takes on a machine that is busy with other things.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// For a process of the test: the name of the soft GPU.
pub const NAME: &str = "LAXITY_TEST_SOFTGPU";

pub fn config() -> Config {
    Config { copy_engines: 2, memory: 1 << 20, linger: Nanos::from_millis(50), ..Config::default() }
}

/// A name that only this process and its children use.
pub fn name(test: &str) -> String {
    format!("test-{}-{test}", std::process::id())
}

pub fn try_open(name: &str, config: Config) -> Result<SoftGpu, OpenError> {
    SoftGpu::open_with(name, config, &options())
}

/// With the server of this build.
pub fn options() -> Options {
    Options { server: Some(env!("CARGO_BIN_EXE_laxity-softgpu-server").into()), ..Options::default() }
}

pub fn open(name: &str) -> SoftGpu {
    try_open(name, config()).expect("a soft GPU")
}

/// All entries that are remembered.
pub fn history(gpu: &SoftGpu) -> Vec<Entry> {
    let mut entries = Vec::new();
    loop {
        let (first, some) = gpu.history(entries.len() as u64).expect("the server is there");
        assert_eq!(first, entries.len() as u64, "nothing is forgotten yet");
        if some.is_empty() {
            return entries;
        }
        entries.extend(some);
    }
}

/// Starts the test `role` of this program, which does nothing otherwise, in a process of its own.
pub fn start(role: &str, gpu: &str) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", role, "--nocapture", "--test-threads=1"])
        .env(NAME, gpu)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("a process")
}

/// In such a process: the soft GPU.
pub fn given() -> Option<SoftGpu> {
    std::env::var(NAME).ok().map(|name| open(&name))
}
