//! What is measured, and why it cannot be.

use std::io;
use std::str::FromStr;

use laxity_model::{MeasuredQuantity, Nanos};
use laxity_sys::scheduling;

/// What is to be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The CPUs to measure; what takes two is measured on neighbours in this list.
    pub cpus: Vec<usize>,
    /// For how long, though no less than one round.
    pub duration: Nanos,
    /// The working set, in bytes, for which a profile has cache-related delays.
    pub working_set: u64,
    /// Which sample is the worst case.
    pub worst: Worst,
}

/// Which of the samples is the worst case of an overhead. Published profiles are without outliers, too (paper 002,
/// section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Worst {
    /// The largest that was seen.
    #[default]
    Max,
    /// 99.9 % are no more.
    P999,
    /// 99 % are no more.
    P99,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// Linux does not say which CPUs there are.
    #[error("Linux does not say which CPUs this process may use: {0}")]
    Cpus(#[source] io::Error),
    /// No CPU is to be measured.
    #[error("no CPU to measure; name at least one")]
    NoCpu,
    /// A CPU that this process may not use.
    #[error("CPU {cpu}: this process may use {}; name one of them", .usable.iter().map(usize::to_string).collect::<Vec<_>>().join(", "))]
    NotUsable {
        /// Which.
        cpu: usize,
        /// Those that it may use.
        usable: Vec<usize>,
    },
    /// A CPU that is listed twice.
    #[error("CPU {cpu} is named twice; remove one")]
    Twice {
        /// Which.
        cpu: usize,
    },
    /// A working set that is out of range.
    #[error("a working set of {bytes} B is outside {} B to {} B; choose one within", WORKING_SETS.start(), WORKING_SETS.end())]
    WorkingSet {
        /// In bytes.
        bytes: u64,
    },
    /// A thread on a CPU could not do what it had to.
    #[error("a thread on CPU {cpu} cannot {what}: {source}; choose other CPUs or free resources")]
    Thread {
        /// Where.
        cpu: usize,
        /// What, as in "be kept there".
        what: &'static str,
        /// Why not.
        source: io::Error,
    },
}

/// The smallest and largest working set, in bytes.
pub(crate) const WORKING_SETS: std::ops::RangeInclusive<u64> = 4_096..=64 << 20;

impl Options {
    /// The first CPUs that this process may use, two at most; 30 s; 64 KiB; the largest samples.
    ///
    /// # Errors
    /// If Linux does not say which there are.
    pub fn new() -> Result<Options, MeasureError> {
        let mut cpus = scheduling::usable_cpus().map_err(MeasureError::Cpus)?;
        cpus.truncate(2);
        Ok(Options { cpus, duration: Nanos::from_secs(30), working_set: 64 << 10, worst: Worst::Max })
    }

    /// Refuses what cannot be measured.
    pub(crate) fn check(&self) -> Result<(), MeasureError> {
        let usable = scheduling::usable_cpus().map_err(MeasureError::Cpus)?;
        if self.cpus.is_empty() {
            return Err(MeasureError::NoCpu);
        }
        for (position, &cpu) in self.cpus.iter().enumerate() {
            if !usable.contains(&cpu) {
                return Err(MeasureError::NotUsable { cpu, usable });
            }
            if self.cpus[..position].contains(&cpu) {
                return Err(MeasureError::Twice { cpu });
            }
        }
        let bytes = self.working_set;
        if WORKING_SETS.contains(&bytes) { Ok(()) } else { Err(MeasureError::WorkingSet { bytes }) }
    }
}

impl Worst {
    /// All, the largest first.
    pub const ALL: [Worst; 3] = [Worst::Max, Worst::P999, Worst::P99];

    /// The name on command lines and in files.
    pub const fn name(self) -> &'static str {
        match self {
            Worst::Max => "max",
            Worst::P999 => "p99.9",
            Worst::P99 => "p99",
        }
    }

    /// That of a quantity.
    pub fn of(self, quantity: &MeasuredQuantity) -> Nanos {
        match self {
            Worst::Max => quantity.max,
            Worst::P999 => quantity.p999,
            Worst::P99 => quantity.p99,
        }
    }
}

impl FromStr for Worst {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Worst::ALL.into_iter().find(|worst| worst.name() == text);
        found.ok_or_else(|| format!("{text:?} is none; write max, p99.9 or p99"))
    }
}
