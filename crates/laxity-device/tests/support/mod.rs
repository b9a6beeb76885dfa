//! Devices of their own for tests.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use laxity_device::DeviceOptions;
use laxity_gpu::{Arbitration, Config, Registry};
use laxity_model::{GpuArbitration, GpuSync, Nanos};
use laxity_softgpu::{Entry, SERVER_VARIABLE, SoftGpu};

/// Longer than anything takes on a machine that is busy with other things.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The soft GPU's server, which is another package's program: built where this test was, unless a variable says where it
/// is.
static SERVER: LazyLock<PathBuf> = LazyLock::new(|| {
    if let Some(server) = std::env::var_os(SERVER_VARIABLE) {
        return server.into();
    }
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--package", "laxity-softgpu", "--bin", "laxity-softgpu-server"]);
    build.current_dir(env!("CARGO_MANIFEST_DIR")).env("CARGO_TARGET_DIR", target);
    let output = build.output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    target.join("debug/laxity-softgpu-server")
});

/// Of a name that only this process has; two copy engines, and without an arbitration.
pub fn options(test: &str) -> DeviceOptions {
    let mut options = DeviceOptions::new(&format!("test-{}-{test}", std::process::id()));
    options.gpu.memory = 1 << 20;
    options.gpu.linger = Nanos::from_millis(50);
    options.server = Some(SERVER.clone());
    options
}

/// An arbitration in a directory of shared memory that goes with it.
pub struct Place {
    pub registry: laxity_testing::TestRegistry<Registry>,
}

impl Place {
    pub fn new(test: &str) -> Self {
        Place { registry: laxity_testing::TestRegistry::new(test) }
    }

    /// GPUSync with these parameters.
    pub fn arbitrate(&self, gpus: u16, sync: GpuSync) -> Arbitration {
        let config = Config { arbitration: GpuArbitration::GpuSync(sync), ..Config::new(4, gpus) };
        self.registry.create_or_attach("g", &config).expect("the configuration can be")
    }
}

/// Everything that a soft GPU remembers.
pub fn history(gpu: &SoftGpu) -> Vec<Entry> {
    let mut entries = Vec::new();
    loop {
        let (_, some) = gpu.history(entries.len() as u64).expect("the server is there");
        if some.is_empty() {
            return entries;
        }
        entries.extend(some);
    }
}

pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "waited too long until {what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}
