//! How the scheduler in the kernel is to be: checked before anything is loaded.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use laxity_model::{Nanos, PriorityRule, ReleaseInterrupts, Scheduler, Scope};
use serde::{Deserialize, Serialize};

/// CPUs that the kernel's side can number (`LAXITY_CPUS` of `bpf/state.h`).
pub const CPUS_MAX: usize = 64;

/// As the command line has it, for the program that loads the scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Such as `G-EDF`, `P-RM` or `G-EDF/S-CQm`.
    pub policy: String,
    /// The CPUs that jobs may have.
    pub cpus: Vec<usize>,
    /// Under `C-`, how many CPUs share a cluster.
    pub cluster_size: Option<usize>,
    /// Where to write a trace.
    pub trace: Option<PathBuf>,
    /// The object of `bpf/scheduler.bpf.c`; `None`: beside the program.
    pub object: Option<PathBuf>,
    /// What other threads have of each CPU at least; `None`: what jobs leave.
    #[serde(default)]
    pub others: Option<Share>,
    /// Whether it measures how long it takes itself: into the trace, or else what the program that loads it prints last.
    #[serde(default)]
    pub overheads: bool,
    /// Whether it measures how long locks are held, too, at the cost of every fifth interval.
    #[serde(default)]
    pub holds: bool,
}

/// A share of a CPU's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// In each period, in ns.
    pub budget: Nanos,
    /// In ns.
    pub period: Nanos,
}

/// The longest period of a share: well below the time after which the kernel's watchdog ends a scheduler that starves a thread.
const PERIOD_MAX: Nanos = Nanos(10_000_000_000);

impl FromStr for Share {
    type Err = String;

    /// As in `5ms/100ms`.
    fn from_str(text: &str) -> Result<Share, String> {
        let (budget, period) =
            text.split_once('/').ok_or_else(|| format!("{text}: a budget and a period, as in 5ms/100ms"))?;
        let time = |text: &str| text.trim().parse::<Nanos>().map_err(|error| error.to_string());
        Ok(Share { budget: time(budget)?, period: time(period)? })
    }
}

/// What is wrong with settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The name of no scheduler.
    #[error(
        "{0}; the scheduler in the kernel has G-, C- and P- with EDF, RM, DM and FP, and the realizations {REALIZATIONS}"
    )]
    Policy(String),
    /// A scheduler that the kernel's side does not have.
    #[error(
        "{policy} is not in the kernel: {lacks}; it has G-, C- and P- with EDF, RM, DM and FP, and the realizations {REALIZATIONS}"
    )]
    NotInKernel {
        /// The name.
        policy: String,
        /// What is missing.
        lacks: &'static str,
    },
    /// No CPU.
    #[error("no CPU for jobs: name at least one")]
    NoCpu,
    /// No CPU beside the one for interrupts.
    #[error(
        "{policy} takes CPU {cpu} for interrupts alone, which leaves none for jobs: name another one, or take CEm or CQm"
    )]
    NoOther {
        /// The name.
        policy: String,
        /// The only CPU.
        cpu: usize,
    },
    /// A CPU twice.
    #[error("CPU {0} is named twice")]
    Twice(usize),
    /// A CPU beyond what the kernel's side numbers.
    #[error("CPU {0} is beyond the {CPUS_MAX} CPUs that the scheduler in the kernel knows; leave it out")]
    Beyond(usize),
    /// `C-` without a size, or with one that leaves CPUs over.
    #[error("{policy} on {cpus} CPUs needs clusters of a size that divides {cpus}, with --cluster-size, and it is {}", Given(*.size))]
    Size {
        /// The name.
        policy: String,
        /// How many.
        cpus: usize,
        /// What was given.
        size: Option<usize>,
    },
    /// A share of nothing, of more than half, or of too long a period.
    #[error(
        "other threads cannot have {budget} in {period}: a budget of 1 us at least, no more than half of a period of {PERIOD_MAX} at most"
    )]
    Share {
        /// Of the share.
        budget: Nanos,
        /// Of the share.
        period: Nanos,
    },
}

struct Given(Option<usize>);

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(size) => write!(f, "{size}"),
            None => f.write_str("not given"),
        }
    }
}

/// The realizations of paper 002, which the kernel's side has.
const REALIZATIONS: &str = "of paper 002 (CEm, FE1, HQm, S-CQ1, ...)";

/// What each CPU is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The CPUs of each cluster.
    pub clusters: Vec<Vec<usize>>,
    /// The CPU that releases all jobs and runs none, as in a simulation the first; `None`: every CPU does both.
    pub dedicated: Option<usize>,
}

impl Settings {
    /// The scheduler, and its CPUs.
    ///
    /// # Errors
    /// [`SettingsError`], if the kernel's side cannot be so.
    pub fn check(&self) -> Result<(Scheduler, Placement), SettingsError> {
        let scheduler: Scheduler = self
            .policy
            .parse()
            .map_err(|error: laxity_model::ParseSchedulerError| SettingsError::Policy(error.to_string()))?;
        if scheduler.rule == PriorityRule::Fair {
            let lacks = "Linux has its own fair class";
            return Err(SettingsError::NotInKernel { policy: self.policy.clone(), lacks });
        }
        let mut cpus = self.cpus.clone();
        cpus.sort_unstable();
        if let Some(pair) = cpus.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(SettingsError::Twice(pair[0]));
        }
        match cpus.last() {
            None => return Err(SettingsError::NoCpu),
            Some(&last) if last >= CPUS_MAX => return Err(SettingsError::Beyond(last)),
            Some(_) => {}
        }
        if let Some(Share { budget, period }) = self.others
            && (budget < Nanos(1_000) || budget.0 > period.0 / 2 || period > PERIOD_MAX)
        {
            return Err(SettingsError::Share { budget, period });
        }
        let size = match (scheduler.scope, self.cluster_size) {
            (Scope::Global, _) => cpus.len(),
            (Scope::Partitioned, _) => 1,
            (Scope::Clustered, Some(size)) if size > 0 && cpus.len().is_multiple_of(size) => size,
            (Scope::Clustered, size) => {
                return Err(SettingsError::Size { policy: self.policy.clone(), cpus: cpus.len(), size });
            }
        };
        let dedicated = (scheduler.interrupts == ReleaseInterrupts::Dedicated).then_some(cpus[0]);
        // As in a simulation: its cluster has one CPU less, and none of that one alone exists.
        let jobs = |cpus: &[usize]| cpus.iter().copied().filter(|&cpu| Some(cpu) != dedicated).collect();
        let clusters: Vec<Vec<usize>> =
            cpus.chunks(size).map(jobs).filter(|cpus: &Vec<usize>| !cpus.is_empty()).collect();
        if clusters.is_empty() {
            return Err(SettingsError::NoOther { policy: self.policy.clone(), cpu: cpus[0] });
        }
        Ok((scheduler, Placement { clusters, dedicated }))
    }
}
