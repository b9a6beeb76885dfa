//! What is regulated, and how.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::thread;

use laxity_model::{LockHeed, Nanos};
use laxity_sys::scheduling;

use crate::error::BandwidthError;

/// The shortest period: below, waking the regulator costs more than the budget of most.
pub(crate) const PERIOD_MIN: Nanos = Nanos::from_micros(200);
/// The longest: the protected operation may meet one period's budget of each CPU at once.
pub(crate) const PERIOD_MAX: Nanos = Nanos::from_millis(100);
/// As in workload files.
pub(crate) const PUNISHMENT_MAX: f64 = 1000.0;

/// What is regulated, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The best-effort CPUs.
    pub cpus: Vec<usize>,
    /// The length of a period (T). All CPUs begin theirs at the same instants: aligned bursts protect better, as the loss
    /// by interference is concave in traffic.
    pub period: Nanos,
    /// The priority of the regulators under `SCHED_FIFO`; 50 in the original.
    pub priority: u8,
    /// When a lock that is taken counts: the original heeds it from the next period on.
    pub heed: LockHeed,
    /// How traffic is counted.
    pub counter: Counter,
    /// How a CPU is throttled.
    pub throttle: Throttle,
    /// The Throttle Fair Scheduler's punishment (paper 004, equation 2); `None`: Linux's fair class alone.
    pub punishment: Option<f64>,
}

/// How memory traffic is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counter {
    /// By hardware where it passes the self-test; otherwise refused.
    #[default]
    Auto,
    /// By the regulated programs themselves, in shared memory.
    Software,
    /// By the CPU: last-level cache misses.
    Hardware,
}

/// How a CPU is throttled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Throttle {
    /// The occupier, and the freezer where the occupier would take more than Linux leaves to real-time threads.
    #[default]
    Auto,
    /// A `SCHED_FIFO` thread that occupies the CPU: at most 95 % of a second, as Linux runs other threads in the rest.
    Occupier,
    /// The freezer of control groups v2, which stops the regulated programs only.
    Freezer,
    /// Laxity's scheduler in the kernel, which must be loaded (laxity-scx): all threads of the CPU that are no tasks of it, for
    /// all of the time if need be. It punishes, too, by virtual time.
    Kernel,
}

impl Options {
    /// CPUs with periods of 1 ms and regulators of priority 50, as in the original.
    pub fn new(cpus: impl Into<Vec<usize>>) -> Self {
        Options {
            cpus: cpus.into(),
            period: Nanos::from_millis(1),
            priority: 50,
            heed: LockHeed::AtOnce,
            counter: Counter::default(),
            throttle: Throttle::default(),
            punishment: None,
        }
    }

    /// Refuses what cannot be.
    pub(crate) fn check(&self) -> Result<(), BandwidthError> {
        if self.cpus.is_empty() {
            return Err(BandwidthError::NoCpu);
        }
        for (position, &cpu) in self.cpus.iter().enumerate() {
            if let Err(error) = may_pin(cpu) {
                let usable = scheduling::usable_cpus().map(|cpus| list(&cpus)).unwrap_or_default();
                let reason = format!("this process may use {usable} ({error})");
                return Err(BandwidthError::Cpu { cpu, reason });
            }
            if self.cpus[..position].contains(&cpu) {
                return Err(BandwidthError::Cpu { cpu, reason: "it is named twice".to_owned() });
            }
        }
        if !(PERIOD_MIN..=PERIOD_MAX).contains(&self.period) {
            return Err(BandwidthError::Period { period: self.period });
        }
        match self.punishment {
            Some(punishment) if !(0.0..=PUNISHMENT_MAX).contains(&punishment) => {
                Err(BandwidthError::Punishment { punishment })
            }
            _ => Ok(()),
        }
    }
}

/// Whether a thread may be on `cpu`: the calling one may be kept on others, which says nothing of new ones.
fn may_pin(cpu: usize) -> io::Result<()> {
    thread::spawn(move || scheduling::pin(cpu)).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn list(cpus: &[usize]) -> String {
    cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

impl Counter {
    /// All, the default first.
    pub const ALL: [Counter; 3] = [Counter::Auto, Counter::Software, Counter::Hardware];

    /// Its name on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            Counter::Auto => "auto",
            Counter::Software => "software",
            Counter::Hardware => "hardware",
        }
    }
}

impl Throttle {
    /// All, the default first.
    pub const ALL: [Throttle; 4] = [Throttle::Auto, Throttle::Occupier, Throttle::Freezer, Throttle::Kernel];

    /// Its name on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            Throttle::Auto => "auto",
            Throttle::Occupier => "occupier",
            Throttle::Freezer => "freezer",
            Throttle::Kernel => "kernel",
        }
    }
}

impl FromStr for Counter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Counter::ALL.into_iter().find(|counter| counter.name() == text);
        found.ok_or_else(|| format!("{text:?} is none; write auto, software or hardware"))
    }
}

impl FromStr for Throttle {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Throttle::ALL.into_iter().find(|throttle| throttle.name() == text);
        found.ok_or_else(|| format!("{text:?} is none; write auto, occupier, freezer or kernel"))
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Throttle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
