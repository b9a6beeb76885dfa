//! A graph that this process is attached to.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use laxity_membership::MemberId;
use laxity_model::{Instant, Nanos};

use crate::flags::{TOKEN_SENDING, TOKEN_WAIT};
use crate::link::Channels;
use crate::node::Node;
use crate::owner::{Owner, State};
use crate::registry::RegistryError;
use crate::shared::Shared;
use crate::spec::Spec;
use crate::step;

/// A graph that this process is attached to, until the last copy of this and the last of its nodes are dropped. The last
/// process to leave takes the graph's name and memory with it.
///
/// Threads share it. A child made by `fork` does not take part: it attaches by itself, or executes another program.
#[derive(Clone, Debug)]
pub struct Graph {
    membership: Arc<Membership>,
}

#[derive(Debug)]
pub(crate) struct Membership {
    pub shared: Arc<Shared>,
    member: laxity_membership::Membership<Shared>,
    /// Messages in pipes last while any process has them open.
    pub channels: Channels,
}

/// Why a node cannot be claimed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// No node has this name.
    #[error("the graph has no node {name}; names match exactly")]
    NoSuchNode {
        /// The name.
        name: String,
    },
    /// A process has it.
    #[error("node {node}: process {pid} has it; release it there first")]
    Claimed {
        /// The node.
        node: String,
        /// The process.
        pid: u32,
    },
    /// The process that had it was killed but has not ended.
    #[error("node {node}: process {pid}, which had it, was killed but has threads that have not ended; try again")]
    Ending {
        /// The node.
        node: String,
        /// The process.
        pid: u32,
    },
    /// It cannot listen where its producers are to connect to.
    #[error(
        "edge {} -> {}: cannot listen at {address}: {}; choose another address, or port 0",
        edge.0, edge.1, std::io::Error::from_raw_os_error(*code)
    )]
    Listen {
        /// Producer and consumer of the edge.
        edge: (String, String),
        /// Where.
        address: SocketAddr,
        /// Why not: Linux's number of the error.
        code: i32,
    },
    /// No node is free.
    #[error("every node is claimed; release one first")]
    NoneFree,
    /// This process was forked from the one that attached.
    #[error("this process was forked from the one that attached to the graph; attach here")]
    Forked,
}

/// What a node is doing, for observers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    /// Whose it is.
    pub ownership: Ownership,
    /// Jobs that were begun.
    pub started: u64,
    /// Jobs that are complete.
    pub completed: u64,
    /// Whether it ended.
    pub has_terminated: bool,
    /// Whether its owner is suspended until tokens, room, or its release come.
    pub is_waiting: bool,
    /// Whether its owner is telling two consumers or more that their tokens are there.
    pub is_sending: bool,
}

/// Whose a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// No process has it.
    Free,
    /// A process has it.
    Claimed {
        /// Which.
        pid: u32,
    },
    /// Its process died, or released it in the middle of a job.
    Lost,
}

impl Ownership {
    /// The process that has the node.
    pub const fn pid(self) -> Option<u32> {
        match self {
            Ownership::Claimed { pid } => Some(pid),
            Ownership::Free | Ownership::Lost => None,
        }
    }
}

/// How long a killed process may take to end before a claim gives up.
const ENDING: Nanos = Nanos::from_secs(1);

impl Graph {
    /// As a simulation attaches: without a guardian.
    #[cfg(test)]
    pub(crate) fn simulated(member: laxity_membership::Membership<Shared>) -> Self {
        let channels = Channels::open(member.memory()).expect("no channels of Linux");
        Graph::new((member, channels))
    }

    #[cfg(test)]
    pub(crate) fn member(&self) -> MemberId {
        self.membership.member.id()
    }

    pub(crate) fn new((member, channels): (laxity_membership::Membership<Shared>, Channels)) -> Self {
        let shared = member.memory().clone();
        Graph { membership: Arc::new(Membership { shared, member, channels }) }
    }

    /// What it is made of.
    pub fn spec(&self) -> &Spec {
        &self.shared().spec
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.membership.shared
    }

    /// Whether this is the process that attached, not one forked from it.
    pub(crate) fn is_ours(&self) -> bool {
        self.membership.is_ours()
    }

    /// Bytes of shared memory that it takes.
    pub fn memory(&self) -> usize {
        self.shared().segment.len()
    }

    /// Whether no other process that lives is attached.
    pub fn is_alone(&self) -> bool {
        self.membership.member.is_alone()
    }

    /// Takes its name away, if it has it: no process finds it any more, another graph can have the name, and this one goes on
    /// where it is attached to. For a process that has to keep the memory longer than it uses the graph.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn unlink(&self) -> Result<(), RegistryError> {
        Ok(self.membership.member.unlink()?)
    }

    /// The position of the node called `name`, exactly.
    pub fn node(&self, name: &str) -> Option<usize> {
        self.spec().graph().nodes.iter().position(|node| node.name == name)
    }

    /// The position of the first edge from the node called `from` to that called `to`.
    pub fn edge(&self, from: &str, to: &str) -> Option<usize> {
        let (producer, consumer) = (self.node(from)?, self.node(to)?);
        let is_it = |edge: &laxity_model::Edge| (edge.producer, edge.consumer) == (producer, consumer);
        self.spec().graph().edges.iter().position(is_it)
    }

    /// The position of the data object called `name`.
    pub fn object(&self, name: &str) -> Option<usize> {
        self.spec().objects().iter().position(|object| object.name == name)
    }

    /// Claims the node called `name` for the owner of the result; one at a time in all processes. After a death the node
    /// goes on with the job that was begun and not completed.
    ///
    /// # Errors
    /// [`ClaimError`].
    pub fn claim(&self, name: &str) -> Result<Node, ClaimError> {
        let node = self.node(name).ok_or_else(|| ClaimError::NoSuchNode { name: name.to_owned() })?;
        self.claim_node(node)
    }

    /// Claims the first node that is free.
    ///
    /// # Errors
    /// [`ClaimError`].
    pub fn claim_any(&self) -> Result<Node, ClaimError> {
        for node in 0..self.shared().nodes() {
            match self.claim_node(node) {
                Err(ClaimError::Claimed { .. } | ClaimError::Ending { .. }) => {}
                result => return result,
            }
        }
        Err(ClaimError::NoneFree)
    }

    fn claim_node(&self, node: usize) -> Result<Node, ClaimError> {
        let shared = self.shared();
        if !self.is_ours() {
            return Err(ClaimError::Forked);
        }
        shared.reap();
        let found = shared.owner(node);
        let name = || shared.name(node);
        let pid = || shared.pid(found);
        if found.state == State::Claimed {
            return Err(ClaimError::Claimed { node: name(), pid: pid() });
        }
        if found.state == State::Lost && !shared.await_end(found, step::now().saturating_add(ENDING)) {
            return Err(ClaimError::Ending { node: name(), pid: pid() });
        }
        let MemberId { slot, generation } = self.membership.member.id();
        let claims = found.claims.wrapping_add(1);
        let ours = Owner { state: State::Claimed, member: slot as u8, generation, claims };
        let word = shared.owner_word(node);
        match word.compare_exchange(found.word(), ours.word(), Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => Node::new(self.membership.clone(), node, ours),
            Err(word) => {
                let pid = shared.pid(Owner::of(word));
                Err(ClaimError::Claimed { node: name(), pid })
            }
        }
    }

    /// Ends the node at `node` from outside: its owner's next wait says so, and its consumers end when they have used
    /// what it produced.
    ///
    /// Panics if there is no such node.
    pub fn terminate(&self, node: usize) {
        self.shared().terminate(node);
    }

    /// What the node at `node` is doing now. Panics if there is no such node.
    pub fn status(&self, node: usize) -> NodeStatus {
        let shared = self.shared();
        let owner = shared.owner(node);
        let ownership = match owner.state {
            State::Free => Ownership::Free,
            State::Claimed => Ownership::Claimed { pid: shared.pid(owner) },
            State::Lost => Ownership::Lost,
        };
        let has_terminated = shared.has_terminated(node);
        // In this order started is never below completed.
        let completed = shared.completed(node);
        let flags = shared.flags(node).load(Ordering::Relaxed);
        NodeStatus {
            ownership,
            started: shared.started(node).max(completed),
            completed,
            has_terminated,
            is_waiting: flags & TOKEN_WAIT != 0,
            is_sending: flags & TOKEN_SENDING != 0,
        }
    }

    /// Settles that job 0 of each source arrives at `start` and its phase, and job j so many periods later; the first
    /// call counts. Answers with what is settled.
    ///
    /// Without it the job of a source arrives when it begins, unless that is within a period of the one before.
    pub fn start(&self, start: Instant) -> Instant {
        self.shared().start_at(start)
    }

    /// Where in the graph's memory the node's [flags](crate::flags) are, in bytes from its start: an aligned word of 32
    /// bits, which schedulers may read at any time. Panics if there is no such node.
    pub fn flags_offset(&self, node: usize) -> usize {
        assert!(node < self.shared().nodes(), "the graph has {} nodes, not {node}", self.shared().nodes());
        self.shared().words(node).flags
    }

    /// Tokens on the edge at `edge` of the plan that no job has taken. Panics if there is no such edge.
    pub fn tokens(&self, edge: usize) -> u64 {
        let rule = &self.spec().plan().edges()[edge];
        rule.tokens(self.shared().completed(rule.producer), self.shared().started(rule.consumer))
    }
}

impl Membership {
    /// Whether this is the process that attached, not one forked from it.
    pub fn is_ours(&self) -> bool {
        self.member.is_ours()
    }
}
