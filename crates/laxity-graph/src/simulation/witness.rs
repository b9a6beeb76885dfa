//! What must hold of a graph after each step, judged from its memory and from what the simulated threads say of themselves.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

use laxity_membership::{Kind, MEMBERS_MAX};
use laxity_policy::graph::EdgeKind;
use laxity_sys::robust::Holder;
use laxity_testing::simulation;

use crate::owner::State;
use crate::shared::Shared;

/// What guardians sleep on; nodes sleep on their numbers.
pub const GUARDIANS: u64 = 1 << 32;

pub struct Witness {
    /// The graph, as none of its processes has it.
    pub shared: Shared,
    nodes: Mutex<Vec<Seen>>,
    /// Threads that are telling others what happened, and at which node; none: at any.
    telling: Mutex<Vec<(usize, Option<usize>)>>,
    /// Changes with each death, as the liveness words do that guardians wait on.
    pub news: AtomicU32,
    is_over: AtomicBool,
}

/// What was seen of a node.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// The thread that has it.
    holder: Option<usize>,
    completed: u64,
    /// Jobs that a thread carried out and was about to complete.
    done: u64,
}

impl Witness {
    pub fn new(shared: Shared) -> Witness {
        let nodes = Mutex::new(vec![Seen::default(); shared.nodes()]);
        Witness { shared, nodes, telling: Mutex::default(), news: AtomicU32::new(0), is_over: AtomicBool::new(false) }
    }

    fn nodes(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.nodes.lock().expect("no thread panicked")
    }

    /// `actor` has `node`.
    pub fn enter(&self, node: usize, actor: usize) {
        let other = self.nodes()[node].holder.replace(actor);
        assert_eq!(other, None, "node {node} has two owners: {actor} and the other one");
    }

    /// `actor` is about to let go of `node`.
    pub fn leave(&self, node: usize, actor: usize) {
        let holder = self.nodes()[node].holder.take();
        assert_eq!(holder, Some(actor), "it had node {node}");
    }

    /// The thread that has `node` has carried out job `index`, and is about to complete it.
    pub fn done(&self, node: usize, index: u64) {
        let seen = &mut self.nodes()[node];
        assert_eq!(seen.completed, index, "job {index} of node {node} is the next");
        seen.done = index + 1;
    }

    /// `actor` does what others at `node`, or at any, may wait for.
    pub fn tell<R>(&self, actor: usize, node: Option<usize>, action: impl FnOnce() -> R) -> R {
        self.telling.lock().expect("no thread panicked").push((actor, node));
        let result = action();
        self.forget_tale(actor);
        result
    }

    fn forget_tale(&self, actor: usize) {
        self.telling.lock().expect("no thread panicked").retain(|&(teller, _)| teller != actor);
    }

    /// `actor` carries out no step any more.
    pub fn forget(&self, actor: usize) {
        self.forget_tale(actor);
        self.nodes().iter_mut().filter(|seen| seen.holder == Some(actor)).for_each(|seen| seen.holder = None);
    }

    /// The next look of a guardian finds something.
    pub fn announce(&self) {
        self.news.fetch_add(1, Ordering::SeqCst);
    }

    /// Ends the simulation once all nodes have ended; answers whether that is so.
    pub fn is_over(&self) -> bool {
        if !self.is_over.load(Ordering::SeqCst) && (0..self.shared.nodes()).all(|node| self.shared.has_terminated(node))
        {
            self.is_over.store(true, Ordering::SeqCst);
            self.announce();
            simulation::wake(GUARDIANS, usize::MAX);
        }
        self.is_over.load(Ordering::SeqCst)
    }

    /// After each step.
    pub fn check(&self, sleepers: &mut dyn Iterator<Item = u64>) {
        let shared = &self.shared;
        for (node, seen) in self.nodes().iter_mut().enumerate() {
            let (completed, started) = (shared.completed(node), shared.started(node));
            if completed != seen.completed {
                assert_eq!(completed, seen.completed + 1, "node {node} completes one job after the other");
                assert_eq!(completed, seen.done, "node {node} completes what was carried out");
                // No token is taken that was not there, and no message is written where there was no room.
                assert!(self.has_tokens(node, seen.completed), "job {} of node {node} had its tokens", seen.completed);
                seen.completed = completed;
            }
            assert!(started == completed || started == completed + 1, "node {node}: {started} of {completed} started");
            if started > completed {
                assert!(self.has_tokens(node, completed), "job {completed} of node {node} was begun with its tokens");
            }
        }
        for node in sleepers.filter(|&key| key < shared.nodes() as u64).map(|key| key as usize) {
            let is_due = shared.has_terminated(node) || self.has_tokens(node, shared.completed(node));
            assert!(
                !is_due || self.is_being_told(node),
                "node {node} sleeps, is due, and no thread is about to wake it"
            );
        }
    }

    /// Tokens on all edges that come in, and room on all that go out.
    fn has_tokens(&self, node: usize, index: u64) -> bool {
        let mut conditions = self.shared.conditions(node).iter();
        conditions.all(|condition| condition.rule.suffices(self.shared.completed(condition.peer), index))
    }

    /// Whether a thread is about to wake the owner of `node`, or one died that was, and has not been seen to.
    fn is_being_told(&self, node: usize) -> bool {
        let members = self.shared.members();
        let is_peer = |told: Option<usize>| {
            told.is_none_or(|told| self.shared.conditions(node).iter().any(|condition| condition.peer == told))
        };
        self.telling.lock().expect("no thread panicked").iter().any(|&(_, told)| is_peer(told))
            || (0..MEMBERS_MAX).any(|slot| members.holder(slot) == Holder::Died)
    }

    /// After the last step: as many jobs as the source's make possible, and no node is with the dead.
    pub fn check_end(&self, source_jobs: u64) {
        let (shared, edges) = (&self.shared, self.shared.spec.plan().edges());
        for node in 0..shared.nodes() {
            let inbound = edges.iter().filter(|edge| edge.consumer == node && edge.kind == EdgeKind::Token);
            let possible = inbound.map(|edge| edge.enabled(shared.completed(edge.producer))).min();
            assert_eq!(shared.completed(node), possible.unwrap_or(source_jobs), "jobs of node {node}");
            assert_ne!(shared.owner(node).state, State::Claimed, "node {node} is free");
        }
    }
}
