//! Why a graph does not start, and why it fails.

use std::fmt;
use std::io;

use laxity_graph::hooks::FifoError;
use laxity_graph::{ClaimError, RegistryError, WaitError};
use laxity_model::Nanos;
use laxity_sched::TaskError;
use laxity_sys::segment::SegmentError;
use thiserror::Error;

use crate::graph::KernelError;
use crate::options::Budgets;
use crate::status::Status;
use crate::verify::VerifyError;

/// Why a graph is not spawned. Nothing of it runs then.
#[derive(Debug, Error)]
pub enum SpawnError {
    /// It runs, or another one of its name does.
    #[error(
        "graph {graph}: it runs, or another one of this name does; wait for it and release its run, or choose a name"
    )]
    Scheduled {
        /// The graph.
        graph: String,
    },
    /// A number of the options that cannot be.
    #[error("{option} is {value}; use {allowed}")]
    Option {
        /// Which.
        option: &'static str,
        /// What it is.
        value: u64,
        /// What it may be.
        allowed: &'static str,
    },
    /// It cannot be with so many replicas.
    #[error("{0}")]
    Replicas(#[source] Box<VerifyError>),
    /// Its memory.
    #[error("{0}")]
    Memory(#[source] RegistryError),
    /// A node cannot be claimed.
    #[error("{0}")]
    Claim(#[source] ClaimError),
    /// Linux does not start the thread of a node.
    #[error("node {node}: Linux starts no thread for it: {error}; end others, or raise `ulimit -u`")]
    Thread {
        /// The node.
        node: String,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// Linux does not let a thread keep to the CPUs.
    #[error("node {node}: cannot keep to CPUs {cpus:?}: {error}; name CPUs that this process may use")]
    Cpus {
        /// The node.
        node: String,
        /// Those asked for.
        cpus: Vec<usize>,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// Linux does not keep the memory in RAM.
    #[error("Linux does not keep the memory of this process in RAM: {error}; raise `ulimit -l`, or do without")]
    Lock {
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// Priorities beyond those that there are.
    #[error("{0}")]
    Priority(#[source] FifoError),
    /// Linux does not give a node its priority.
    #[error(
        "node {node}: SCHED_FIFO priority {priority} is not permitted: {error}; without CAP_SYS_NICE this process may have \
         {limit} at most, so raise `ulimit -r`, lower the base, or take SCHED_OTHER"
    )]
    Fifo {
        /// The node.
        node: String,
        /// Which priority.
        priority: u8,
        /// The highest that this process may have without being privileged.
        limit: u64,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// A node has no budget.
    #[error(
        "node {node}: SCHED_DEADLINE needs a budget and nothing is said; say what a job needs at most, set a default, or \
         have it measured"
    )]
    NoBudget {
        /// The node.
        node: String,
    },
    /// A budget that Linux does not take.
    #[error("node {node}: budget {budget} {}", wrong_budget(*.budget, *.period))]
    Budget {
        /// The node.
        node: String,
        /// Its budget.
        budget: Nanos,
        /// The period.
        period: Nanos,
    },
    /// The graph needs more than Linux promises at most.
    #[error(
        "SCHED_DEADLINE: the budgets of all nodes are {}, but Linux promises {} at most; lower budgets, or lengthen the \
         period",
        Cpus(*.needed),
        Cpus(*.offered)
    )]
    Overload {
        /// What all nodes need, in thousandths of a CPU.
        needed: u64,
        /// What all CPUs have for it, in thousandths of a CPU.
        offered: u64,
    },
    /// Laxity's scheduler cannot be asked for in that way.
    #[error("{reason}; {way_out}")]
    System {
        /// What does not go together.
        reason: String,
        /// The way out.
        way_out: &'static str,
    },
    /// There can be no trace.
    #[error("the trace: {reason}")]
    Trace {
        /// Why not, and the way out.
        reason: String,
    },
    /// The thread of a node cannot be a task of its system.
    #[error("node {node}: {reason}")]
    Task {
        /// The node.
        node: String,
        /// Why not, and the way out.
        reason: String,
    },
    /// Linux does not reserve a node's budget.
    #[error(
        "node {node}: SCHED_DEADLINE with {budget} in each {period} is refused: {error}; {}",
        way_out(.error, *.needed, *.offered)
    )]
    Deadline {
        /// The node.
        node: String,
        /// Its budget.
        budget: Nanos,
        /// The period.
        period: Nanos,
        /// What all nodes need, in thousandths of a CPU.
        needed: u64,
        /// What all CPUs have, in thousandths of a CPU, if no other program has reserved any.
        offered: u64,
        /// Why not.
        #[source]
        error: io::Error,
    },
}

/// Why a graph that ran has failed. It has stopped.
#[derive(Debug, Error)]
#[error("graph {graph}: node {node}{}{reason}", in_frame(*.frame))]
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

/// What happened to a node. Its text goes on after the name of the node.
#[derive(Debug, Error)]
pub enum FailureReason {
    /// Its kernel answered with an error.
    #[error(": {0}")]
    Kernel(#[source] KernelError),
    /// Its kernel panicked.
    #[error(" panicked: {0}")]
    Panic(String),
    /// Linux does not reserve what was measured.
    #[error(": {0}")]
    Budget(#[source] Box<SpawnError>),
    /// It waits in vain.
    #[error(": {0}")]
    Wait(#[source] WaitError),
    /// Laxity's scheduler.
    #[error(": {0}")]
    Scheduler(#[source] TaskError),
    /// All frames are complete, and their trace is not whole.
    #[error(": the trace: {0}")]
    Trace(String),
}

impl SpawnError {
    /// The status of OpenVX that fits.
    pub fn status(&self) -> Status {
        match self {
            SpawnError::Scheduled { .. } | SpawnError::Claim(_) => Status::GraphScheduled,
            SpawnError::Option { .. }
            | SpawnError::Priority(_)
            | SpawnError::Budget { .. }
            | SpawnError::Memory(RegistryError::Name { .. })
            | SpawnError::System { .. } => Status::InvalidValue,
            SpawnError::NoBudget { .. } => Status::NotSufficient,
            SpawnError::Replicas(error) => error.status(),
            SpawnError::Memory(RegistryError::Segment(SegmentError::Memory { .. })) => Status::NoMemory,
            SpawnError::Memory(_)
            | SpawnError::Thread { .. }
            | SpawnError::Cpus { .. }
            | SpawnError::Lock { .. }
            | SpawnError::Fifo { .. }
            | SpawnError::Overload { .. }
            | SpawnError::Task { .. }
            | SpawnError::Trace { .. }
            | SpawnError::Deadline { .. } => Status::NoResources,
        }
    }
}

impl Failure {
    /// The status of OpenVX that fits.
    pub fn status(&self) -> Status {
        match &self.reason {
            FailureReason::Kernel(_) | FailureReason::Panic(_) => Status::GraphAbandoned,
            FailureReason::Budget(error) => error.status(),
            FailureReason::Wait(_) | FailureReason::Scheduler(_) | FailureReason::Trace(_) => Status::Failure,
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

fn wrong_budget(budget: Nanos, period: Nanos) -> String {
    if budget > period {
        return format!(
            "exceeds period {period}, which no CPU can give one thread; lower the budget, split the node, or lengthen the \
             period"
        );
    }
    format!("is below {}, the least that Linux takes; raise it", Budgets::MIN)
}

fn way_out(error: &io::Error, needed: u64, offered: u64) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "it takes CAP_SYS_NICE, and all CPUs of the machine to run on; allow both, or take SCHED_OTHER".to_owned()
        }
        io::ErrorKind::ResourceBusy => format!(
            "the graph needs {} of {}, the rest of which is promised to others; lower budgets, or lengthen the period",
            Cpus(needed),
            Cpus(offered)
        ),
        _ => "see what the error says, or take SCHED_OTHER".to_owned(),
    }
}

fn in_frame(frame: Option<u64>) -> String {
    frame.map_or(String::new(), |frame| format!(", frame {frame}"))
}
