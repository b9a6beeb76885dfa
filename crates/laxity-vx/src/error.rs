//! Why a graph does not start, and why it fails.

use std::fmt;
use std::io;

use laxity_graph::hooks::FifoError;
use laxity_graph::{ClaimError, RegistryError, WaitError};
use laxity_model::Nanos;
use laxity_sys::segment::SegmentError;

use crate::graph::KernelError;
use crate::options::Budgets;
use crate::status::Status;
use crate::verify::VerifyError;

/// Why a graph is not spawned. Nothing of it runs then.
#[derive(Debug)]
pub enum SpawnError {
    /// It runs, or another one of its name does.
    Scheduled {
        /// The graph.
        graph: String,
    },
    /// A number of the options that cannot be.
    Option {
        /// Which.
        option: &'static str,
        /// What it is.
        value: u64,
        /// What it may be.
        allowed: &'static str,
    },
    /// It cannot be with so many replicas.
    Replicas(Box<VerifyError>),
    /// Its memory.
    Memory(RegistryError),
    /// A node cannot be had.
    Claim(ClaimError),
    /// Linux does not start the thread of a node.
    Thread {
        /// The node.
        node: String,
        /// Why not.
        error: io::Error,
    },
    /// Linux does not let a thread keep to the CPUs.
    Cpus {
        /// The node.
        node: String,
        /// Those asked for.
        cpus: Vec<usize>,
        /// Why not.
        error: io::Error,
    },
    /// Linux does not keep the memory in RAM.
    Lock {
        /// Why not.
        error: io::Error,
    },
    /// Priorities beyond those that there are.
    Priority(FifoError),
    /// Linux does not give a node its priority.
    Fifo {
        /// The node.
        node: String,
        /// Which priority.
        priority: u8,
        /// The highest that this process may have without being privileged.
        limit: u64,
        /// Why not.
        error: io::Error,
    },
    /// A node has no budget.
    NoBudget {
        /// The node.
        node: String,
    },
    /// A budget that Linux does not take.
    Budget {
        /// The node.
        node: String,
        /// Its budget.
        budget: Nanos,
        /// The period.
        period: Nanos,
    },
    /// More is asked for than Linux promises to anybody.
    Overload {
        /// What all nodes need, in thousandths of a CPU.
        needed: u64,
        /// What all CPUs have for it, in thousandths of a CPU.
        offered: u64,
    },
    /// Linux does not reserve a node's budget.
    Deadline {
        /// The node.
        node: String,
        /// Its budget.
        budget: Nanos,
        /// The period.
        period: Nanos,
        /// What all nodes need, in thousandths of a CPU.
        needed: u64,
        /// What all CPUs have, in thousandths of a CPU, if nobody else has reserved any.
        offered: u64,
        /// Why not.
        error: io::Error,
    },
}

/// Why a graph that ran has failed. It has stopped.
#[derive(Debug)]
pub struct Failure {
    /// The graph.
    pub graph: String,
    /// The node.
    pub node: String,
    /// The frame, if it was at one.
    pub frame: Option<u64>,
    /// What happened.
    pub reason: FailureReason,
}

/// What happened to a node.
#[derive(Debug)]
pub enum FailureReason {
    /// Its kernel answered with an error.
    Kernel(KernelError),
    /// Its kernel panicked.
    Panic(String),
    /// Linux does not reserve what was measured.
    Budget(Box<SpawnError>),
    /// It waits in vain.
    Wait(WaitError),
}

impl SpawnError {
    /// What OpenVX would say.
    pub fn status(&self) -> Status {
        match self {
            SpawnError::Scheduled { .. } | SpawnError::Claim(_) => Status::GraphScheduled,
            SpawnError::Option { .. } | SpawnError::Priority(_) | SpawnError::Budget { .. } => Status::InvalidValue,
            SpawnError::NoBudget { .. } => Status::NotSufficient,
            SpawnError::Replicas(error) => error.status(),
            SpawnError::Memory(RegistryError::Segment(SegmentError::Memory { .. })) => Status::NoMemory,
            SpawnError::Memory(_)
            | SpawnError::Thread { .. }
            | SpawnError::Cpus { .. }
            | SpawnError::Lock { .. }
            | SpawnError::Fifo { .. }
            | SpawnError::Overload { .. }
            | SpawnError::Deadline { .. } => Status::NoResources,
        }
    }
}

impl Failure {
    /// What OpenVX would say.
    pub fn status(&self) -> Status {
        match &self.reason {
            FailureReason::Kernel(_) | FailureReason::Panic(_) => Status::GraphAbandoned,
            FailureReason::Budget(error) => error.status(),
            FailureReason::Wait(_) => Status::Failure,
        }
    }
}

/// Thousandths, as a number of CPUs.
struct Cpus(u64);

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} CPUs", self.0 / 1000, self.0 % 1000)
    }
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpawnError::Scheduled { graph } => {
                write!(f, "graph {graph}: it runs, or another one of this name does; wait for it, or choose a name")
            }
            SpawnError::Option { option, value, allowed } => write!(f, "{option} is {value}; use {allowed}"),
            SpawnError::Replicas(error) => write!(f, "{error}"),
            SpawnError::Memory(error) => write!(f, "{error}"),
            SpawnError::Claim(error) => write!(f, "{error}"),
            SpawnError::Thread { node, error } => {
                write!(f, "node {node}: Linux starts no thread for it: {error}; end others, or raise `ulimit -u`")
            }
            SpawnError::Cpus { node, cpus, error } => {
                write!(f, "node {node}: cannot keep to CPUs {cpus:?}: {error}; name CPUs that this process may use")
            }
            SpawnError::Lock { error } => write!(
                f,
                "Linux does not keep the memory of this process in RAM: {error}; raise `ulimit -l`, or do without"
            ),
            SpawnError::Priority(error) => write!(f, "{error}"),
            SpawnError::Fifo { node, priority, limit, error } => write!(
                f,
                "node {node}: SCHED_FIFO priority {priority} is not permitted: {error}; without CAP_SYS_NICE this process \
                 may have {limit} at most, so raise `ulimit -r`, lower the base, or take SCHED_OTHER"
            ),
            SpawnError::NoBudget { node } => write!(
                f,
                "node {node}: SCHED_DEADLINE needs a budget and nothing is said; say what a job needs at most, set a \
                 default, or have it measured"
            ),
            SpawnError::Budget { node, budget, period } if budget > period => write!(
                f,
                "node {node}: budget {budget} exceeds period {period}, which no CPU can give one thread; lower the budget, \
                 split the node, or lengthen the period"
            ),
            SpawnError::Budget { node, budget, .. } => {
                write!(
                    f,
                    "node {node}: budget {budget} is below {}, the least that Linux takes; raise it",
                    Budgets::MIN
                )
            }
            SpawnError::Overload { needed, offered } => write!(
                f,
                "SCHED_DEADLINE: the budgets of all nodes are {}, but Linux promises {} at most; lower budgets, or \
                 lengthen the period",
                Cpus(*needed),
                Cpus(*offered)
            ),
            SpawnError::Deadline { node, budget, period, needed, offered, error } => {
                write!(f, "node {node}: SCHED_DEADLINE with {budget} in each {period} is refused: {error}; ")?;
                match error.kind() {
                    io::ErrorKind::PermissionDenied => write!(
                        f,
                        "it takes CAP_SYS_NICE, and all CPUs of the machine to run on; allow both, or take SCHED_OTHER"
                    ),
                    io::ErrorKind::ResourceBusy => write!(
                        f,
                        "the graph needs {} of {}, the rest of which is promised to others; lower budgets, or lengthen \
                         the period",
                        Cpus(*needed),
                        Cpus(*offered)
                    ),
                    _ => write!(f, "see what the error says, or take SCHED_OTHER"),
                }
            }
        }
    }
}

impl std::error::Error for SpawnError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SpawnError::Replicas(error) => Some(error.as_ref()),
            SpawnError::Memory(error) => Some(error),
            SpawnError::Claim(error) => Some(error),
            SpawnError::Priority(error) => Some(error),
            SpawnError::Thread { error, .. }
            | SpawnError::Cpus { error, .. }
            | SpawnError::Lock { error }
            | SpawnError::Fifo { error, .. }
            | SpawnError::Deadline { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { graph, node, frame, reason } = self;
        write!(f, "graph {graph}: node {node}")?;
        if let Some(frame) = frame {
            write!(f, ", frame {frame}")?;
        }
        match reason {
            FailureReason::Kernel(error) => write!(f, ": {error}"),
            FailureReason::Panic(text) => write!(f, " panicked: {text}"),
            FailureReason::Budget(error) => write!(f, ": {error}"),
            FailureReason::Wait(error) => write!(f, ": {error}"),
        }
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.reason {
            FailureReason::Kernel(error) => Some(error.as_ref()),
            FailureReason::Panic(_) => None,
            FailureReason::Budget(error) => Some(error.as_ref()),
            FailureReason::Wait(error) => Some(error),
        }
    }
}
