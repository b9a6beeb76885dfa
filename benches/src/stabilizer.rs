//! What arbitration costs a whole program that has nobody to share the GPU with: the video stabilizer of
//! `examples/vision`, on a soft GPU.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

use laxity_gpu::{Config, Registry};
use laxity_model::{GpuArbitration, GpuSync};
use serde::Deserialize;

/// Where the program and its clip are.
#[derive(clap::Args)]
pub struct Program {
    /// The stabilizer, as `make vision` builds it; its part is left out if it is not there
    #[arg(long, default_value = "out/vision/stabilize")]
    stabilize: PathBuf,
    /// The clip that it stabilizes
    #[arg(long, default_value = "/usr/share/doc/opencv-doc/examples/data/vtest.avi")]
    clip: PathBuf,
    /// Frames of each run
    #[arg(long, default_value_t = 300)]
    frames: u32,
    /// Their period in the runs in real time
    #[arg(long, default_value = "20ms")]
    period: String,
}

/// How frames come.
#[derive(Clone, Copy, PartialEq)]
pub enum Pace {
    /// Each as soon as there is room for it: nodes of the program wait for each other at the GPU all the time.
    Full,
    /// In real time, as a camera's do.
    Periodic,
}

/// What is read of its summary.
#[derive(Deserialize)]
struct Summary {
    cpu_s: f64,
}

impl Program {
    /// Why it cannot be measured, if it cannot.
    pub fn is_missing(&self) -> Option<String> {
        let missing = [&self.stabilize, &self.clip].into_iter().find(|path| !path.exists())?;
        Some(format!("stabilizer: not measured, as {} is not there; `make vision` builds it", missing.display()))
    }

    /// CPU time with arbitration by that without.
    pub fn ratio(&self, registry: &Registry, pace: Pace, round: usize) -> Result<f64, Box<dyn Error>> {
        // As many tokens as CPUs: no job waits for one that could run.
        let sync = GpuSync { tokens: 2, ..GpuSync::DEFAULT };
        let config = Config { arbitration: GpuArbitration::GpuSync(sync), ..Config::new(2, 1) };
        let name = format!("bench-stabilizer-{}", process::id());
        let _arbitration = registry.create(&name, &config)?;
        // Whoever is second finds caches warm: they take turns.
        if round.is_multiple_of(2) {
            let without = self.cpu_seconds(pace, &name, None)?;
            return Ok(self.cpu_seconds(pace, &name, Some(&name))? / without);
        }
        let with = self.cpu_seconds(pace, &name, Some(&name))?;
        Ok(with / self.cpu_seconds(pace, &name, None)?)
    }

    fn cpu_seconds(&self, pace: Pace, gpu: &str, arbitration: Option<&str>) -> Result<f64, Box<dyn Error>> {
        let frames = self.frames.to_string();
        let mut command = Command::new(path(&self.stabilize));
        command.args([
            "--cache-frames",
            "100",
            "--frames",
            &frames,
            "--summary",
            "json",
            "--gpu",
            &format!("soft:{gpu}"),
        ]);
        if pace == Pace::Periodic {
            command.args(["--period", &self.period]);
        }
        command.args(arbitration.iter().flat_map(|name| ["--arbitration", name]));
        let output = command.arg(&self.clip).output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{}: {}: {}", self.stabilize.display(), output.status, said.trim()).into());
        }
        Ok(serde_json::from_slice::<Summary>(&output.stdout)?.cpu_s)
    }
}

/// A file of that name, rather than a program in PATH.
fn path(program: &Path) -> PathBuf {
    Path::new(".").join(program)
}
