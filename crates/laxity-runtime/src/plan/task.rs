//! The work of one worker.

use std::iter::Take;
use std::sync::Arc;

use laxity_model::{Instant, Nanos, OwnCode};
use laxity_plan::draws::{DeviceDraws, TaskDraws};
use laxity_plan::{Op, ReleasePattern, Releases, ServerPlan};
use laxity_policy::graph::Releasing;
use laxity_sched::{Parameters, Urgency};
use laxity_scx::TaskRequest;

use super::{CodeEdges, Hold, LivePlan};
use crate::attributes::Attributes;
use crate::code::Bound;
use crate::jobs::Messages;

/// The work of one worker.
#[derive(Clone, Debug)]
pub(crate) struct TaskPlan {
    pub name: String,
    pub ops: Arc<[Op]>,
    pub draws: TaskDraws,
    pub trigger: Trigger,
    pub working_set: u64,
    /// The CPUs that it keeps to, numbered as Linux does; `None`: it may use all.
    pub cpus: Option<Vec<usize>>,
    pub attributes: Attributes,
    /// The messages of a node's edges.
    pub messages: Messages,
    /// How urgent its requests for GPUs are; `None`: as its deadline is.
    pub urgency: Option<u8>,
    /// Jobs spin, rather than suspend, until their GPU operations are complete.
    pub spins: bool,
    /// The relative deadline.
    pub deadline: Nanos,
    /// The bandwidth server that its budget makes of it, if it has one.
    pub server: Option<ServerPlan>,
    /// How its jobs hold the bandwidth lock, if they do.
    pub bandwidth: Option<Hold>,
    /// What it is for Laxity's scheduler, if that schedules it: its number and its parameters.
    pub scheduled: Option<(usize, Parameters)>,
    /// The same for the scheduler in the kernel.
    pub in_kernel: Option<(usize, TaskRequest)>,
    /// If its jobs are the bottom halves of a device.
    pub handles: Option<Handles>,
    /// Under `SCHED_FIFO` the priority of non-preemptive sections, and for each lock that of its ceiling, if it has one.
    pub raised: Option<Raised>,
    /// The code that the workload names for its jobs.
    pub run: Option<OwnCode>,
    /// The code that they run; `None`: they use up CPU time.
    pub code: Option<Bound>,
    /// The edges of a node that carry messages, as its code sees them.
    pub edges: CodeEdges,
}

/// The trigger of jobs.
#[derive(Clone, Debug)]
pub(crate) enum Trigger {
    /// Timers.
    Time(ReleaseRule),
    /// Timers, and there must be room: a source of a graph.
    Source(NodeId, ReleaseRule),
    /// Tokens: any other node.
    Tokens(NodeId, Releasing),
    /// Interrupts of a device.
    Interrupts,
}

/// The bottom halves of a device that serves no job.
#[derive(Clone, Debug)]
pub(crate) struct Handles {
    /// How long they take.
    pub draws: DeviceDraws,
    /// How urgent they are for Laxity's scheduler, without a server.
    pub urgency: Urgency,
}

/// When timers release jobs.
#[derive(Clone, Debug)]
pub(crate) struct ReleaseRule {
    pub pattern: ReleasePattern,
    /// Jobs that are released before it, from the start, are executed.
    pub end: Instant,
    /// Of these, so many.
    pub jobs: u64,
}

/// Releases from the start, in order.
pub(crate) type ReleaseTimes = Take<Releases>;

/// A node of a graph, by their positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId {
    pub graph: usize,
    pub node: usize,
}

/// Priorities of sections.
#[derive(Clone, Debug)]
pub(crate) struct Raised {
    pub base: u8,
    pub non_preemptive: u8,
    pub ceilings: Vec<Option<u8>>,
}

impl Trigger {
    /// The node, if it is one.
    pub fn node(&self) -> Option<NodeId> {
        match self {
            Trigger::Time(_) | Trigger::Interrupts => None,
            Trigger::Source(node, _) | Trigger::Tokens(node, _) => Some(*node),
        }
    }
}

impl TaskPlan {
    /// The releases that time alone decides, from the start.
    pub fn releases(&self) -> Option<ReleaseTimes> {
        let (Trigger::Time(rule) | Trigger::Source(_, rule)) = &self.trigger else { return None };
        let jobs = usize::try_from(rule.jobs).unwrap_or(usize::MAX);
        Some(Releases::new(rule.pattern.clone(), self.draws, rule.end).take(jobs))
    }

    pub fn uses_gpu(&self) -> bool {
        self.ops.iter().any(|op| matches!(op, Op::Issue(_)))
    }

    /// The pool of GPUs that its jobs lock.
    pub fn pool(&self, plan: &LivePlan) -> Option<usize> {
        let pool = |op: &Op| match op {
            Op::Lock { lock, .. } => plan.pools.iter().position(|pool| pool.lock == *lock),
            _ => None,
        };
        self.ops.iter().find_map(pool)
    }
}
