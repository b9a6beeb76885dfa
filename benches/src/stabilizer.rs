//! What arbitration costs a whole program that shares the GPU with no other: the video stabilizer of
//! `examples/vision`, on a soft GPU.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};

use laxity_gpu::{Config, Registry};
use laxity_model::{GpuArbitration, GpuSync, Nanos};
use laxity_sys::clock::now;
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
    #[arg(long, default_value_t = 150)]
    frames: u32,
    /// Their period in the runs in real time, in milliseconds
    #[arg(long, default_value_t = 40)]
    period: u64,
    /// How often it runs with and without arbitration, both in real time and at full speed
    #[arg(long, default_value_t = 21, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeats: u32,
}

/// How frames come.
#[derive(Clone, Copy, PartialEq)]
pub enum Pace {
    /// In real time, as a camera's do.
    Periodic,
    /// Each as soon as there is room for it: nodes of the program wait for each other at the GPU all the time.
    Full,
}

impl Pace {
    /// For a line of a report.
    pub fn name(self) -> &'static str {
        match self {
            Pace::Periodic => "in real time",
            Pace::Full => "at full speed",
        }
    }
}

/// How long the program may take to have the clip in memory.
const MARGIN: Nanos = Nanos::from_millis(3_000);
/// A machine that needs more time than this is too busy to measure on.
const MARGIN_MAX: Nanos = Nanos::from_millis(24_000);

/// What is read of its summary.
#[derive(Deserialize)]
struct Summary {
    cpu_s: f64,
}

type Failure = Box<dyn Error>;

impl Program {
    /// Why it cannot be measured, if it cannot.
    pub fn is_missing(&self) -> Option<String> {
        let missing = [&self.stabilize, &self.clip].into_iter().find(|path| !path.exists())?;
        Some(format!("stabilizer: not measured, as {} is not there; `make vision` builds it", missing.display()))
    }

    /// CPU time with arbitration by that without.
    pub fn ratio(&self, registry: &Registry, pace: Pace, round: u32) -> Result<f64, Failure> {
        // As many tokens as CPUs: no job waits for one that could run.
        let sync = GpuSync { tokens: 2, ..GpuSync::DEFAULT };
        let config = Config { arbitration: GpuArbitration::GpuSync(sync), ..Config::new(2, 1) };
        let name = format!("bench-stabilizer-{}", process::id());
        let _arbitration = registry.create(&name, &config)?;
        // The second program finds warm caches: they take turns.
        let with_is_first = round.is_multiple_of(2);
        let [first, second] = match pace {
            Pace::Periodic => self.in_real_time(&name, with_is_first)?,
            Pace::Full => self.at_full_speed(&name, with_is_first)?,
        };
        Ok(if with_is_first { first / second } else { second / first })
    }

    /// CPU seconds of one run after the other.
    fn at_full_speed(&self, name: &str, with_is_first: bool) -> Result<[f64; 2], Failure> {
        let run = |with| self.start(name, with, &[]).and_then(|child| self.end(child));
        Ok([run(with_is_first)?, run(!with_is_first)?])
    }

    /// CPU seconds of two runs at a time, where frames of one come halfway between those of the other. So each has the
    /// machine to itself while it works on a frame, and a machine that is slow at times slows both.
    fn in_real_time(&self, name: &str, with_is_first: bool) -> Result<[f64; 2], Failure> {
        let period = Nanos::from_millis(self.period);
        let mut margin = MARGIN;
        loop {
            let first_frame = now().saturating_add(margin);
            let run = |with, after: Nanos| {
                let start_at = first_frame.saturating_add(after).0.to_string();
                let period = format!("{}ms", self.period);
                self.start(name, with, &["--period", &period, "--start-at", &start_at])
            };
            let children = [run(with_is_first, Nanos::ZERO)?, run(!with_is_first, Nanos(period.0 / 2))?];
            match children.map(|child| self.end(child)) {
                [Ok(first), Ok(second)] => return Ok([first, second]),
                [Err(error), _] | [_, Err(error)] if !is_late(&*error) || margin >= MARGIN_MAX => return Err(error),
                _ => margin = Nanos(2 * margin.0),
            }
        }
    }

    /// Starts it, on a soft GPU of its own.
    fn start(&self, name: &str, with: bool, how: &[&str]) -> Result<Child, Failure> {
        // A file of that name, rather than a program in PATH.
        let mut command = Command::new(Path::new(".").join(&self.stabilize));
        let frames = self.frames.to_string();
        command.args(["--cache-frames", "100", "--frames", &frames, "--summary", "json"]).args(how);
        command.args(["--gpu", &format!("soft:{name}-{}", if with { "with" } else { "without" })]);
        command.args(with.then_some(["--arbitration", name]).iter().flatten());
        Ok(command.arg(&self.clip).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
    }

    /// Waits for it, and returns its CPU seconds.
    fn end(&self, child: Child) -> Result<f64, Failure> {
        let output = child.wait_with_output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{}: {}: {}", self.stabilize.display(), output.status, said.trim()).into());
        }
        Ok(serde_json::from_slice::<Summary>(&output.stdout)?.cpu_s)
    }
}

/// Whether its first frame came before it was ready.
fn is_late(error: &dyn Error) -> bool {
    error.to_string().contains("start later")
}
