//! The state of a graph in shared memory, and what this process knows of it.
//!
//! All there is to say about tokens is how many jobs of each node are complete. A node's owner alone writes that number,
//! so there is no lock, and a process that is killed leaves each job either complete, with all its tokens and messages,
//! or not begun.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence};

use laxity_model::Instant;
use laxity_policy::graph::{Edge, EdgeKind};
use laxity_sys::bell::Ringer;
use laxity_sys::membarrier;
use laxity_sys::segment::Segment;

use crate::layout::{Layout, NodeWords, START};
use crate::owner::{Owner, State};
use crate::parking::{self, Parked};
use crate::spec::{Channel, Spec};
use crate::step;

#[derive(Debug)]
pub(crate) struct Shared {
    pub segment: Segment,
    pub layout: Layout,
    pub spec: Spec,
    /// For each node what its jobs wait for.
    conditions: Vec<Vec<Condition>>,
    /// Wakes nodes that poll.
    pub ringer: OnceLock<Ringer>,
    /// For each node those that wait for it, in the order in which they are told.
    dependents: Vec<Vec<usize>>,
}

/// One of the things that the jobs of a node wait for: that enough jobs of a peer are complete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition {
    /// The node that is waited for.
    pub peer: usize,
    /// A position in the plan's edges.
    pub edge: usize,
    /// How many of its jobs it takes.
    pub rule: Edge,
    /// Whether the peer's end of the graph is the end of this node.
    pub ends_with_peer: bool,
}

impl Shared {
    pub fn new(segment: Segment, layout: Layout, spec: Spec) -> Self {
        let nodes = spec.graph().nodes.len();
        let mut conditions = vec![Vec::new(); nodes];
        let edges = spec.plan().edges();
        for (edge, rule) in edges.iter().enumerate() {
            let ends_with_peer = rule.kind == EdgeKind::Token;
            conditions[rule.consumer].push(Condition { peer: rule.producer, edge, rule: *rule, ends_with_peer });
        }
        for (edge, (rule, channel)) in edges.iter().zip(spec.channels()).enumerate() {
            if let Some(capacity) = channel.capacity() {
                let rule = room(rule, capacity);
                conditions[rule.consumer].push(Condition { peer: rule.producer, edge, rule, ends_with_peer: false });
            }
        }
        let dependents = (0..nodes).map(|node| dependents(&conditions, edges, node)).collect();
        Shared { segment, layout, spec, conditions, ringer: OnceLock::new(), dependents }
    }

    pub fn conditions(&self, node: usize) -> &[Condition] {
        &self.conditions[node]
    }

    pub fn nodes(&self) -> usize {
        self.conditions.len()
    }

    pub fn words(&self, node: usize) -> NodeWords {
        self.layout.node(node)
    }

    #[inline]
    pub fn completed(&self, node: usize) -> u64 {
        step::point();
        self.segment.u64(self.words(node).completed).load(Ordering::Acquire)
    }

    pub fn started(&self, node: usize) -> u64 {
        step::point();
        self.segment.u64(self.words(node).started).load(Ordering::Relaxed)
    }

    pub fn owner_word(&self, node: usize) -> &AtomicU64 {
        step::point();
        self.segment.u64(self.words(node).owner)
    }

    pub fn owner(&self, node: usize) -> Owner {
        Owner::of(self.owner_word(node).load(Ordering::Acquire))
    }

    #[inline]
    pub fn parked(&self, node: usize) -> Parked<'_> {
        Parked { word: self.segment.u32(self.words(node).parked), node }
    }

    /// When the graph's sources start, if that is settled.
    pub fn start(&self) -> Option<Instant> {
        Some(self.segment.u64(START).load(Ordering::Acquire)).filter(|&start| start != 0).map(Instant)
    }

    /// Settles when the graph's sources start, unless it is settled. Answers with what it is.
    pub fn start_at(&self, start: Instant) -> Instant {
        // An instant of 0 means that it is not settled.
        let start = start.0.max(1);
        match self.segment.u64(START).compare_exchange(0, start, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Instant(start),
            Err(settled) => Instant(settled),
        }
    }

    /// What a node says of itself to schedulers.
    pub fn flags(&self, node: usize) -> &AtomicU32 {
        self.segment.u32(self.words(node).flags)
    }

    /// Whether the node was ended, by its owner or from outside. Its owner may be in the middle of a job, the last.
    #[inline]
    pub fn has_terminated(&self, node: usize) -> bool {
        step::point();
        self.segment.u32(self.words(node).terminated).load(Ordering::Acquire) != 0
    }

    /// Whether the node was ended and completes no job any more.
    ///
    /// A job that begins is announced before its owner looks, again, whether the node was ended ([`Shared::begin`]). So
    /// a thread that looks in the other order sees the job, or the job does not begin; the fence between is carried out
    /// here for the owner, too, which begins many jobs and ends once.
    #[cold]
    pub fn is_over(&self, node: usize) -> bool {
        if !self.has_terminated(node) {
            return false;
        }
        membarrier::everywhere();
        // In this order: what was started and is not complete when that is read is the job that goes on.
        let is_begun = || self.started(node) > self.completed(node);
        self.owner(node).state != State::Claimed || !is_begun()
    }

    /// The node's job `index` begins, unless the node was ended; answers whether it was begun before. To be called by its
    /// owner.
    #[inline]
    pub fn begin(&self, node: usize, index: u64) -> Option<bool> {
        let started = self.segment.u64(self.words(node).started);
        let before = started.load(Ordering::Relaxed);
        step::point();
        started.store(index + 1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        if self.has_terminated(node) {
            self.withdraw(node, before);
            return None;
        }
        Some(before > index)
    }

    /// The job does not begin that was announced when `before` jobs had been begun.
    #[cold]
    fn withdraw(&self, node: usize, before: u64) {
        // A waiter that saw the job waits for its end.
        step::point();
        self.segment.u64(self.words(node).started).store(before, Ordering::Release);
        self.rouse_concerned();
    }

    /// The node's job `index` is complete: all its tokens and messages are there, at once.
    #[inline]
    pub fn complete(&self, node: usize, index: u64) {
        self.complete_telling(node, index, |_| ());
    }

    /// The same; `tell` hears of each node that sleeps and can go on, just before it is woken.
    #[inline]
    pub fn complete_telling(&self, node: usize, index: u64, mut tell: impl FnMut(usize)) {
        let (completed, dependents) = (self.segment.u64(self.words(node).completed), &self.dependents[node]);
        if dependents.is_empty() {
            step::point();
            completed.store(index + 1, Ordering::Release);
        } else {
            parking::publish(completed, index + 1);
        }
        for &dependent in dependents {
            let mut is_ready = || {
                let is_ready = self.is_ready(dependent);
                is_ready.then(|| tell(dependent));
                is_ready
            };
            if parking::wake_if(&self.parked(dependent), &mut is_ready) {
                self.ring(dependent);
            }
        }
        // Nodes that wait for a token that does not come were told to wait for this job: see `is_over`, whose fence is also
        // one between the two here.
        compiler_fence(Ordering::SeqCst);
        if self.has_terminated(node) {
            self.rouse_concerned();
        }
    }

    /// Whether the next job of a node that waits may run: for wakers, see [`parking::publish`].
    fn is_ready(&self, node: usize) -> bool {
        let completed = |node: usize| {
            step::point();
            self.segment.u64(self.words(node).completed).load(Ordering::SeqCst)
        };
        let index = completed(node);
        self.conditions[node].iter().all(|condition| condition.rule.suffices(completed(condition.peer), index))
    }

    /// Nothing more will come from the node, but for the job that it has begun, if its owner lives.
    pub fn terminate(&self, node: usize) {
        step::point();
        self.segment.u32(self.words(node).terminated).store(1, Ordering::Release);
        self.rouse_concerned();
    }

    /// Releases a node; to be called by its owner. With a job begun, nodes that depend on it hear of a loss.
    pub fn release(&self, node: usize, owner: Owner) {
        let is_begun = self.started(node) > self.completed(node);
        let state = if is_begun { State::Lost } else { State::Free };
        self.owner_word(node).store(owner.now(state).word(), Ordering::Release);
        if is_begun {
            self.rouse_all();
        }
    }

    /// Makes every waiter look again: for what happens rarely. Also those that a process that died was about to wake.
    #[cold]
    pub fn rouse_all(&self) {
        (0..self.nodes()).for_each(|node| self.rouse(node));
    }

    /// Makes those waiters look again that find something then: where a node ends and no process died, so that one that was
    /// about to wake a waiter still does so. To a scheduler each wake-up for nothing is a job for nothing.
    #[cold]
    fn rouse_concerned(&self) {
        parking::published::<Parked<'_>>();
        let sleeps = |node: usize| parking::is_parked(&self.parked(node)) && !self.has_news(node);
        (0..self.nodes()).filter(|&node| !sleeps(node)).for_each(|node| self.rouse(node));
    }

    /// Whether a node that waits would hear of an end, were it to look. Tokens that are there it hears of by the thread that sent them.
    fn has_news(&self, node: usize) -> bool {
        let index = self.completed(node);
        // What Linux has sent on is asked for by the waiter only.
        let is_linux = |channel: &Channel| !matches!(channel, Channel::Counter | Channel::Ring { .. });
        let is_gone = |peer: usize| self.is_over(peer) || self.owner(peer).state == State::Lost;
        let is_unmet = |it: &Condition| !it.rule.suffices(self.completed(it.peer), index);
        self.has_terminated(node)
            || self.spec.channels().iter().any(is_linux)
            || self.conditions[node].iter().any(|condition| is_unmet(condition) && is_gone(condition.peer))
    }

    /// Makes a waiter look again.
    pub fn rouse(&self, node: usize) {
        parking::published::<Parked<'_>>();
        parking::rouse(&self.parked(node));
        if self.has_bell(node) {
            self.ring(node);
        }
    }

    /// The names at the ends of an edge.
    pub fn ends(&self, edge: usize) -> (String, String) {
        let edge = &self.spec.plan().edges()[edge];
        (self.name(edge.producer), self.name(edge.consumer))
    }

    pub fn name(&self, node: usize) -> String {
        self.spec.graph().nodes[node].name.clone()
    }
}

/// Room for messages is tokens on an edge that leads back: each job of the edge's consumer makes room for what it took,
/// and each of its producer takes what it writes.
fn room(edge: &Edge, capacity: u32) -> Edge {
    Edge {
        producer: edge.consumer,
        consumer: edge.producer,
        produce: edge.consume,
        consume: edge.produce,
        threshold: edge.produce,
        // A spec has room for its initial tokens.
        initial: capacity - edge.initial,
        kind: EdgeKind::Back,
        delay: 0,
    }
}

/// Those with a condition on `node`: by feedback first, as the rules for tokens say, then by tokens, then by room.
fn dependents(conditions: &[Vec<Condition>], edges: &[Edge], node: usize) -> Vec<usize> {
    let mut found: Vec<(u8, usize, usize)> = Vec::new();
    for (dependent, conditions) in conditions.iter().enumerate() {
        for condition in conditions.iter().filter(|condition| condition.peer == node) {
            let order = match edges[condition.edge].kind {
                EdgeKind::Feedback => 0,
                _ if condition.rule.producer == edges[condition.edge].producer => 1,
                _ => 2,
            };
            found.push((order, condition.edge, dependent));
        }
    }
    found.sort_unstable();
    let mut dependents = Vec::new();
    for (_, _, dependent) in found {
        if dependent != node && !dependents.contains(&dependent) {
            dependents.push(dependent);
        }
    }
    dependents
}
