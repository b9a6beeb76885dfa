//! What nodes tell the scheduler below them, and what schedulers that Linux has make of it (paper 003, section 5.2.3).
//! Decision 18 has the reasons.
//!
//! ```text
//! schedule_by --> enter     wait --> begin     complete --> [boost] tokens, [wakes] wake-ups, [have_woken] [restore]
//! ```
//!
//! All of it is called by the node's thread. Hooks about sending are called for nodes with two consumers or more only:
//! one consumer is told in one step. Feedback tokens do not count (paper 003, footnote 13).
//!
//! No lock is on the path of tokens, and so no preempted thread can hold one: what priority inheritance would protect
//! against cannot happen. The lock of the segment is taken to create, attach and leave only.

use std::fmt;
use std::io;

use laxity_model::{Instant, Nanos};
use laxity_policy::graph::EdgeKind;
use laxity_sys::scheduling;

use crate::spec::Spec;

/// What a node tells a scheduler.
pub trait Hooks: fmt::Debug + Send {
    /// How the node is scheduled, for messages.
    fn describe(&self) -> String {
        format!("{self:?}")
    }

    /// The calling thread runs the node from now on.
    ///
    /// # Errors
    /// If Linux refuses.
    fn enter(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// A job begins that was released, and is due, then; nothing is known of it if the graph has no recorder.
    fn begin(&mut self, _release: Option<Instant>, _deadline: Option<Instant>) {}

    /// The job completes and is about to wake several consumers: none of them should preempt it before it is done.
    fn boost(&mut self) {}

    /// All consumers were told.
    fn restore(&mut self) {}

    /// Whether it wants to hear of [`Hooks::wakes`], which takes the node that completes a job a look at the recorder.
    fn tells_of_releases(&self) -> bool {
        false
    }

    /// The job that completes is the last that the next one of `node`, which sleeps, waited for: that is released, and due, then,
    /// and its thread is woken just after. The release may lie in the future.
    fn wakes(&mut self, _node: usize, _release: Instant, _deadline: Instant) {}

    /// All were woken that the last job wakes.
    fn have_woken(&mut self) {}
}

/// `SCHED_FIFO`, the more urgent the deeper a node is in the graph (paper 003, section 5.4.1): a node's priority is a
/// base plus the length of the longest path to it. While it tells several consumers it has the highest of theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fifo {
    priority: u8,
    ceiling: u8,
}

/// `SCHED_DEADLINE`: Linux gives the thread `runtime` in each period, and more where others leave some of theirs, and has
/// it done by the relative deadline, both those of the node. It reckons from when it wakes the thread and not from
/// [`Job::release`](crate::Job::release), and takes neither a thread that is kept from CPUs nor more than all of them can
/// carry. While it tells consumers nothing can be done, as priorities are deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    runtime: Nanos,
    deadline: Nanos,
    period: Nanos,
}

/// The priorities of a graph do not lie between 1 and [`Fifo::PRIORITY_MAX`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "base priority {base} gives the deepest node {deepest}; all must lie between 1 and {}: {}",
    Fifo::PRIORITY_MAX,
    way_out_of(*base)
)]
pub struct FifoError {
    /// That of sources.
    pub base: u8,
    /// What the deepest node would have.
    pub deepest: u64,
}

/// Linux refuses to schedule a node's thread as asked; it is scheduled as before.
#[derive(Debug, thiserror::Error)]
#[error("node {node}: Linux does not schedule it by {hooks}: {error}; it runs as before, so {}", way_out(error))]
pub struct HookError {
    /// The node.
    pub node: String,
    /// How it was to be scheduled.
    pub hooks: String,
    /// Why not.
    #[source]
    pub error: io::Error,
}

impl Fifo {
    /// The highest priority: below that of the threads that watch for deaths.
    pub const PRIORITY_MAX: u8 = 97;

    /// For `node` of `spec`, whose sources have the priority `base`. Panics if there is no such node.
    ///
    /// # Errors
    /// [`FifoError`], whatever the node.
    pub fn of(spec: &Spec, node: usize, base: u8) -> Result<Fifo, FifoError> {
        let priorities: Vec<u64> = depths(spec).iter().map(|depth| u64::from(base) + depth).collect();
        let deepest = priorities.iter().copied().max().unwrap_or_default();
        if base == 0 || deepest > Fifo::PRIORITY_MAX.into() {
            return Err(FifoError { base, deepest });
        }
        // At most PRIORITY_MAX, as was checked.
        let priorities: Vec<u8> = priorities.into_iter().map(|priority| priority as u8).collect();
        Ok(Fifo::among(spec, node, &priorities))
    }

    /// For `node` of `spec`, whose nodes have these `priorities`; 0 is that of nodes that Linux schedules otherwise.
    ///
    /// Panics unless the node's is between 1 and [`Fifo::PRIORITY_MAX`], and none is above.
    pub fn among(spec: &Spec, node: usize, priorities: &[u8]) -> Fifo {
        let highest = priorities.iter().copied().fold(0, u8::max);
        assert!(
            highest <= Fifo::PRIORITY_MAX,
            "priority {highest} is that of a thread that watches for deaths, or above"
        );
        let own = priorities[node];
        assert!(own > 0, "0 is no priority of SCHED_FIFO");
        let ceiling = consumers(spec, node).into_iter().map(|consumer| priorities[consumer]).fold(own, u8::max);
        Fifo { priority: own, ceiling }
    }

    /// The node's own.
    pub fn priority(&self) -> u8 {
        self.priority
    }

    /// The highest of its own and its consumers'.
    pub fn ceiling(&self) -> u8 {
        self.ceiling
    }

    /// A thread that got its priority gets this one, too, unless it was forbidden meanwhile; then it runs on as it is.
    fn switch_to(&self, priority: u8) {
        if self.priority != self.ceiling {
            let _ = scheduling::set_fifo(priority);
        }
    }
}

impl Hooks for Fifo {
    fn describe(&self) -> String {
        format!("SCHED_FIFO at priority {}", self.priority)
    }

    fn enter(&mut self) -> io::Result<()> {
        scheduling::set_fifo(self.priority)
    }

    fn boost(&mut self) {
        self.switch_to(self.ceiling);
    }

    fn restore(&mut self) {
        self.switch_to(self.priority);
    }
}

impl Deadline {
    /// For `node` of `spec`, a job of which needs `runtime` of CPU time. Panics if there is no such node.
    pub fn of(spec: &Spec, node: usize, runtime: Nanos) -> Deadline {
        let rule = spec.plan().nodes()[node];
        Deadline { runtime, deadline: rule.deadline, period: rule.period.floor() }
    }
}

impl Hooks for Deadline {
    fn describe(&self) -> String {
        let Deadline { runtime, deadline, period } = self;
        format!("SCHED_DEADLINE with {runtime} in each period of {period}, by the deadline {deadline}")
    }

    fn enter(&mut self) -> io::Result<()> {
        scheduling::set_deadline(self.runtime, self.deadline, self.period)
    }
}

/// For each node the length of the longest path to it; back-edges do not count.
fn depths(spec: &Spec) -> Vec<u64> {
    let mut depths = vec![0; spec.graph().nodes.len()];
    loop {
        let before = depths.clone();
        for edge in spec.graph().edges.iter().filter(|edge| !edge.back_edge) {
            depths[edge.consumer] = depths[edge.consumer].max(depths[edge.producer] + 1);
        }
        // Which happens, as a spec has no cycle but over back-edges.
        if depths == before {
            return depths;
        }
    }
}

/// The nodes to which `node` sends tokens that release jobs, itself excepted, each once.
pub(crate) fn consumers(spec: &Spec, node: usize) -> Vec<usize> {
    let sends = |edge: &&laxity_policy::graph::Edge| edge.producer == node && edge.kind != EdgeKind::Feedback;
    let edges = spec.plan().edges().iter().filter(sends);
    let mut consumers: Vec<usize> = edges.map(|edge| edge.consumer).filter(|&consumer| consumer != node).collect();
    consumers.sort_unstable();
    consumers.dedup();
    consumers
}

fn way_out_of(base: u8) -> &'static str {
    if base == 0 { "raise the base" } else { "lower the base, or split the graph" }
}

fn way_out(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "allow this user CAP_SYS_NICE or an RLIMIT_RTPRIO, and a deadline thread all CPUs"
        }
        io::ErrorKind::InvalidInput => "see to it that 1024 ns <= runtime <= deadline <= period holds",
        io::ErrorKind::ResourceBusy => "ask for less: the CPUs are promised to others",
        _ => "see what the error says",
    }
}
