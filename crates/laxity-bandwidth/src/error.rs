//! Why a CPU is not regulated.

use std::io;
use std::path::PathBuf;

use laxity_gpu::TRAFFIC_CPUS;
use laxity_model::{ErrorCode, ErrorDetails, Nanos, write_rate};

use crate::options::{PERIOD_MAX, PERIOD_MIN, PUNISHMENT_MAX};

/// Why a CPU is not regulated, or a program not started.
#[derive(Debug, thiserror::Error)]
pub enum BandwidthError {
    /// No CPU was named.
    #[error("no CPU to regulate; name at least one")]
    NoCpu,
    /// There is no such CPU, or this process may not use it, or its traffic cannot be counted.
    #[error("CPU {cpu} cannot be regulated: {reason}; name another")]
    Cpu {
        /// Its number.
        cpu: usize,
        /// Why not.
        reason: String,
    },
    /// Another process regulates the CPU.
    #[error("CPU {cpu} is regulated by process {pid} already; end that, or name another CPU")]
    Claimed {
        /// Its number.
        cpu: usize,
        /// That process.
        pid: u32,
    },
    /// The period cannot be one.
    #[error("a period of {period} is outside {PERIOD_MIN} to {PERIOD_MAX}; choose one within")]
    Period {
        /// Its length.
        period: Nanos,
    },
    /// A punishment that is no number of at least 0.
    #[error("a punishment of {punishment} is outside 0 to {PUNISHMENT_MAX}; choose one within")]
    Punishment {
        /// The factor.
        punishment: f64,
    },
    /// Regulators must preempt what they throttle.
    #[error(
        "SCHED_FIFO at priority {priority} is not permitted: {error}; a regulator must preempt what it throttles: allow \
         it (CAP_SYS_NICE, or ulimit -r 99)"
    )]
    RealTime {
        /// The priority.
        priority: u8,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// There is no hardware counter that counts memory traffic and tells of overflows.
    #[error(
        "CPU {cpu} has no usable counter of memory traffic: {reason}; regulate programs that count their traffic \
         themselves (software counter), or use a machine whose performance counters are visible"
    )]
    NoCounter {
        /// Its number.
        cpu: usize,
        /// What is missing.
        reason: String,
    },
    /// The self-test's hog was not stopped at its budget.
    #[error(
        "CPU {cpu}: the self-test failed: a hog that was allowed {} had {}; {counter} and {throttle} do not regulate \
         this CPU: choose another counter or another way of throttling",
        write_rate(*.allowed), write_rate(*.achieved)
    )]
    SelfTest {
        /// Its number.
        cpu: usize,
        /// What the hog was allowed, bytes a second.
        allowed: u64,
        /// What it had by its own count.
        achieved: u64,
        /// How traffic was counted.
        counter: &'static str,
        /// How it was throttled.
        throttle: &'static str,
    },
    /// Control groups cannot be used.
    #[error("cannot {action} {}: {error}; mount cgroup v2 writable, or throttle by the occupier", path.display())]
    Group {
        /// What was tried.
        action: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// There are no control groups of version 2.
    #[error(
        "no cgroup v2 is mounted, which freezing takes; mount it (`mount -t cgroup2 none DIR`), or throttle by the \
         occupier"
    )]
    NoGroups,
    /// Freezing stops a whole group.
    #[error(
        "the freezer stops all {cpus} CPUs of a group at once; regulate one CPU in each group, or throttle by the \
         occupier"
    )]
    FreezerOfMany {
        /// How many CPUs.
        cpus: usize,
    },
    /// Linux keeps no times of threads.
    #[error(
        "fairness to throttled threads needs the times of threads: {error}; use a Linux with CONFIG_SCHED_INFO, or no punishment"
    )]
    NoTimes {
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// Linux does not let a thread or a process be started.
    #[error("cannot start {what}: {error}; free resources, or check that it exists and may be executed")]
    Start {
        /// Which.
        what: String,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// A thread of the regulator could not go on.
    #[error("the regulator of CPU {cpu} ended: {error}; the CPU is not regulated any more: start it again")]
    Ended {
        /// Its number.
        cpu: usize,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// The scheduler in the kernel throttles no CPU.
    #[error("CPUs cannot be throttled in the kernel: {0}; or choose another way of throttling")]
    Scheduler(#[source] laxity_scx::ClientError),
    /// A program under test did not succeed.
    #[error("{program} ended with {status}; a threshold is searched with programs that succeed")]
    Program {
        /// The program.
        program: String,
        /// How it ended.
        status: String,
    },
    /// The bandwidth lock or its arbitration.
    #[error("{0}")]
    Lock(#[from] laxity_gpu::LockError),
}

impl BandwidthError {
    pub(crate) fn no_such(cpu: usize) -> Self {
        BandwidthError::Cpu { cpu, reason: format!("traffic is counted for CPUs below {TRAFFIC_CPUS}") }
    }
}

impl ErrorDetails for BandwidthError {
    fn code(&self) -> ErrorCode {
        match self {
            BandwidthError::NoCpu
            | BandwidthError::Cpu { .. }
            | BandwidthError::Period { .. }
            | BandwidthError::Punishment { .. }
            | BandwidthError::FreezerOfMany { .. } => ErrorCode::Config,
            BandwidthError::Claimed { .. } => ErrorCode::Full,
            BandwidthError::Lock(error) => error.code(),
            _ => ErrorCode::System,
        }
    }
}
