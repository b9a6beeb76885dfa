//! How GPUs are shared between jobs, and how their interrupts are handled.

use serde::{Deserialize, Serialize};

use crate::{BandwidthLock, ExecutionTime, Nanos};

/// How the GPUs of a workload are managed. The default is stock Linux: the driver arbitrates and tasklets run right
/// after the interrupt.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct GpuManagement {
    /// Which job gets which GPU and engine when.
    pub arbitration: GpuArbitration,
    /// Where bottom halves run.
    pub handling: InterruptHandling,
    /// How long the top half of an interrupt takes; `None`: the overhead profile's constant.
    pub top_half: Option<ExecutionTime>,
    /// How long its bottom half takes; `None`: the overhead profile's constant.
    pub bottom_half: Option<ExecutionTime>,
    /// How long the GPU run-time library's thread in the owner's process takes, after the bottom half, until the owner
    /// knows that its operation is complete; `None`: there is no such thread. Under klmirqd it is treated as the thread
    /// of the bottom half is; else it has no real-time priority.
    pub callback: Option<ExecutionTime>,
    /// Protects GPU operations from the memory traffic of best-effort tasks; `None`: nothing does.
    pub bandwidth_lock: Option<BandwidthLock>,
}

/// Which job gets which GPU and engine when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum GpuArbitration {
    /// The driver: operations go to the engines in the order of issue. A task without a GPU of its own uses that of
    /// its position in the list of tasks, round robin within its cluster.
    #[default]
    Driver,
    /// The driver, whose callers spin until their operation is complete (paper 000, section I).
    DriverSpinning,
    /// A counting semaphore for the pool of each cluster: FIFO, no inheritance (paper 000, section VI).
    Semaphore,
    /// The k-FMLP, one instance for each cluster (paper 000, appendix A).
    KFmlp {
        /// Whether requests join the queue of shortest waiting time (l-aware) or of fewest requests (l-oblivious).
        length_aware: bool,
    },
    /// GPUSync: tokens, then engine locks.
    GpuSync(GpuSync),
}

/// Parameters of GPUSync.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GpuSync {
    /// Tokens of each GPU (rho), at least 1.
    pub tokens: u32,
    /// Longest FIFO queue of a token, its holder included (f), at least 1; `None`: m / (rho g), rounded up.
    pub fifo_length: Option<u32>,
    /// Most requests in all FIFO queues of a cluster; `None`: its CPUs.
    pub fifo_requests: Option<u32>,
    /// The order in which engine locks are granted.
    pub engine_order: EngineOrder,
    /// Copies are broken into chunks of at most this many bytes; `None`: they are not.
    pub chunk: Option<u64>,
    /// How long a job keeps its token.
    pub hold: TokenHold,
    /// How long a copy of a task's state takes, when it moves to another GPU; `None`: there is nothing to copy, and no
    /// affinity is predicted.
    pub migration: Option<Nanos>,
    /// The way that such copies take.
    pub migration_path: MigrationPath,
}

/// The way of a task's state from one GPU to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum MigrationPath {
    /// One copy from GPU to GPU when the job has moved; it takes a copy engine of both.
    #[default]
    Peer,
    /// A copy to host memory before each release of a token, in case the next one is of another GPU (it is
    /// speculative), and one from there when the job has moved.
    Host,
}

/// The order in which an engine lock is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineOrder {
    /// First come, first served.
    #[default]
    Fifo,
    /// The highest effective priority first.
    Priority,
}

/// How long a job keeps its GPU token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum TokenHold {
    /// From its first GPU operation to the end of the job, as libgpui does (paper 003, Fig. 5.7).
    #[default]
    Job,
    /// From its first GPU operation to its last.
    Section,
}

/// Where the bottom halves of GPU interrupts run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum InterruptHandling {
    /// Standard Linux (SLIH): on the interrupted CPU right after the top half, up to ten, the rest in a daemon of that
    /// CPU without real-time priority.
    #[default]
    Linux,
    /// PREEMPT_RT: threads of one fixed priority.
    PreemptRt(ThreadPriority),
    /// Process-aware interrupts: by the owner's priority, on the stack of the job that is preempted.
    ProcessAware,
    /// klmirqd: threads with the effective priority of the owner, never beside the owner.
    Klmirqd {
        /// Number of threads; `None`: one for each GPU. GPU `x` is served by thread `x` modulo their number.
        threads: Option<u32>,
    },
}

/// The fixed priority of interrupt threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ThreadPriority {
    /// Below every real-time task.
    Low,
    /// Above every real-time task.
    High,
}

impl GpuSync {
    /// One token each, engines first come, first served, copies whole, no affinity.
    pub const DEFAULT: GpuSync = GpuSync {
        tokens: 1,
        fifo_length: None,
        fifo_requests: None,
        engine_order: EngineOrder::Fifo,
        chunk: None,
        hold: TokenHold::Job,
        migration: None,
        migration_path: MigrationPath::Peer,
    };
}

impl Default for GpuSync {
    fn default() -> Self {
        GpuSync::DEFAULT
    }
}

impl InterruptHandling {
    /// Each of them, with default parameters.
    pub const ALL: [InterruptHandling; 5] = [
        InterruptHandling::Linux,
        InterruptHandling::PreemptRt(ThreadPriority::Low),
        InterruptHandling::PreemptRt(ThreadPriority::High),
        InterruptHandling::ProcessAware,
        InterruptHandling::Klmirqd { threads: None },
    ];

    /// The one of that name, with the parameters of `like` if that is of the same name; `None` if there is none.
    pub fn named(name: &str, like: InterruptHandling) -> Option<Self> {
        [like].into_iter().chain(Self::ALL).find(|handling| handling.name() == name)
    }

    /// The name in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            InterruptHandling::Linux => "linux",
            InterruptHandling::PreemptRt(ThreadPriority::Low) => "preempt_rt_low",
            InterruptHandling::PreemptRt(ThreadPriority::High) => "preempt_rt_high",
            InterruptHandling::ProcessAware => "pai",
            InterruptHandling::Klmirqd { .. } => "klmirqd",
        }
    }
}

impl InterruptHandling {
    /// What its threads are called.
    pub const fn thread_name(self) -> &'static str {
        match self {
            InterruptHandling::Klmirqd { .. } => "klmirqd",
            _ => "irq",
        }
    }
}

impl GpuArbitration {
    /// Each of them, with default parameters.
    pub const ALL: [GpuArbitration; 5] = [
        GpuArbitration::Driver,
        GpuArbitration::DriverSpinning,
        GpuArbitration::Semaphore,
        GpuArbitration::KFmlp { length_aware: false },
        GpuArbitration::GpuSync(GpuSync::DEFAULT),
    ];

    /// The one of that name, with the parameters of `like` if that is of the same name; `None` if there is none.
    pub fn named(name: &str, like: GpuArbitration) -> Option<Self> {
        [like].into_iter().chain(Self::ALL).find(|arbitration| arbitration.name() == name)
    }

    /// The name in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            GpuArbitration::Driver => "driver",
            GpuArbitration::DriverSpinning => "driver_spinning",
            GpuArbitration::Semaphore => "semaphore",
            GpuArbitration::KFmlp { .. } => "k_fmlp",
            GpuArbitration::GpuSync(_) => "gpusync",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_stay_where_the_name_stays() {
        let sync = GpuArbitration::GpuSync(GpuSync { tokens: 3, ..GpuSync::DEFAULT });
        assert_eq!(GpuArbitration::named("gpusync", sync), Some(sync));
        assert_eq!(GpuArbitration::named("gpusync", GpuArbitration::Driver), Some(GpuArbitration::ALL[4]));
        let one = InterruptHandling::Klmirqd { threads: Some(1) };
        assert_eq!(InterruptHandling::named("klmirqd", one), Some(one));
        assert_eq!(InterruptHandling::named("pai", one), Some(InterruptHandling::ProcessAware));
        assert_eq!(InterruptHandling::named("irqd", one), None);
    }

    #[test]
    fn names_are_those_of_files() {
        let arbitrations = GpuArbitration::ALL.map(|arbitration| (arbitration.name(), arbitration));
        assert!(crate::file::ARBITRATIONS.iter().all(|word| arbitrations.contains(word)));
        let handlings = InterruptHandling::ALL.map(|handling| (handling.name(), handling));
        assert!(crate::file::HANDLINGS.iter().all(|word| handlings.contains(word)));
    }
}
