//! A claimed node as several objects of Python share it: the node, its job, and views of the job's messages.
//!
//! ```text
//!                  begin                complete: job complete, if no view is left
//! (waiting) ------------------> (job) ------------------------------------------> (waiting)
//!     |                           |   abandon: job begun, the next wait has it again -->
//!     '------- release -----------'--> (released): once the last view is gone
//! ```

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use laxity_graph::{Graph, Node, Releasing};
use laxity_model::Nanos;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;

use super::errors::misuse;
use super::message::Lender;

/// A claimed node. Nothing here waits for the GIL with the lock held; a wait holds the lock without the GIL.
pub struct Claimed {
    pub name: String,
    /// `None` only once `is_leaving`.
    state: Mutex<Option<State>>,
    pid: u32,
    /// Jobs completed, and swaps made, through this claim: views of messages from before cannot be made any more.
    epoch: AtomicU64,
    /// Views of messages and data objects of the job.
    views: AtomicUsize,
    /// Whether it was let go of; if views are left, the last of them releases the node.
    is_leaving: AtomicBool,
}

/// What it takes to use the node.
pub struct State {
    pub node: Node,
    /// For names.
    pub graph: Graph,
    pub spin: Nanos,
    pub releasing: Releasing,
    /// The ticket of the object of Python whose job is begun, if one is.
    pub ticket: Option<u64>,
    pub tickets: u64,
}

impl Claimed {
    pub fn new(graph: Graph, node: Node) -> Self {
        let name = graph.spec().graph().nodes[node.position()].name.clone();
        let releasing = Releasing::default();
        let state = State { node, graph, spin: Nanos::ZERO, releasing, ticket: None, tickets: 0 };
        Claimed {
            name,
            state: Mutex::new(Some(state)),
            pid: std::process::id(),
            epoch: AtomicU64::new(0),
            views: AtomicUsize::new(0),
            is_leaving: AtomicBool::new(false),
        }
    }

    /// The node, for as long as the answer lives: for one thread at a time, in the process that claimed it.
    pub fn hold(&self, py: Python<'_>) -> PyResult<Held<'_>> {
        let name = &self.name;
        if !self.is_ours() {
            let text = "this process was forked from the one that claimed it; attach and claim here";
            return Err(misuse(py, format!("node {name}: {text}")));
        }
        if self.is_released() {
            return Err(misuse(py, format!("node {name}: it is released; claim it again")));
        }
        let guard = match self.state.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return Err(misuse(py, format!("node {name}: another thread uses it; a node is for one at a time")));
            }
        };
        Ok(Held { claimed: self, guard })
    }

    /// Whether it can be used no more, though views may still keep it.
    pub fn is_released(&self) -> bool {
        self.is_leaving.load(Ordering::Relaxed)
    }

    /// Whether this is the process that claimed it, not one forked from it.
    pub fn is_ours(&self) -> bool {
        std::process::id() == self.pid
    }

    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }
}

impl Lender for Claimed {
    /// Counts one more view, if the job is still the one of `epoch`.
    fn lend(&self, epoch: u64) -> bool {
        let is_begun = self.epoch() == epoch && !self.is_released();
        if is_begun {
            self.views.fetch_add(1, Ordering::Relaxed);
        }
        is_begun
    }

    /// Counts one view less. The last one lets the node go, if that was put off.
    fn give_back(&self) {
        let is_last = self.views.fetch_sub(1, Ordering::Relaxed) == 1;
        if is_last && self.is_released() && self.is_ours() {
            drop(self.state.lock().unwrap_or_else(PoisonError::into_inner).take());
        }
    }
}

impl Claimed {
    /// The job of `ticket` is over without being complete: the next wait has it again.
    pub fn abandon(&self, ticket: u64) {
        // No thread waits while a job is begun, so that the lock is free unless this process was forked meanwhile.
        if let Ok(mut guard) = self.state.try_lock()
            && let Some(state) = guard.as_mut()
        {
            state.ticket = state.ticket.filter(|&current| current != ticket);
        }
    }
}

/// A node that no other thread uses now.
pub struct Held<'a> {
    claimed: &'a Claimed,
    guard: MutexGuard<'a, Option<State>>,
}

impl Held<'_> {
    pub fn state(&mut self) -> &mut State {
        self.guard.as_mut().expect("`hold` found it, and what takes it away consumes this")
    }

    /// The state, if no job is begun.
    pub fn waiting(&mut self, py: Python<'_>) -> PyResult<&mut State> {
        let name = &self.claimed.name;
        let state = self.state();
        if state.ticket.is_some()
            && let Some(job) = state.node.job()
        {
            let index = job.index();
            let text = format!("node {name}: job {index} is not complete; end it with `with job:` or job.complete()");
            return Err(misuse(py, text));
        }
        Ok(state)
    }

    /// The state, if the job of `ticket`, which is number `index`, is the one that is begun.
    pub fn begun(&mut self, py: Python<'_>, ticket: u64, index: u64) -> PyResult<&mut State> {
        let name = &self.claimed.name;
        let state = self.state();
        if state.ticket == Some(ticket) {
            return Ok(state);
        }
        Err(misuse(py, format!("node {name}: job {index} is over; wait for the next")))
    }

    /// Refuses to `action` while messages of the job can be seen.
    pub fn check_views(&self, action: &str) -> PyResult<()> {
        let Claimed { name, views, .. } = self.claimed;
        let views = views.load(Ordering::Relaxed);
        if views == 0 {
            return Ok(());
        }
        Err(PyBufferError::new_err(format!(
            "node {name}: {views} of its job's messages or objects are still in use, by numpy arrays or other views; \
             before you {action}, delete them or return from the function that has them, and copy what must live longer"
        )))
    }

    /// Messages of the job are not where they were.
    pub fn moved(&self) {
        self.claimed.epoch.fetch_add(1, Ordering::Relaxed);
    }

    /// The job is complete.
    pub fn complete(mut self) {
        let state = self.state();
        state.ticket = None;
        if let Some(job) = state.node.job() {
            job.complete();
        }
        self.claimed.epoch.fetch_add(1, Ordering::Relaxed);
    }

    /// The node ends, and is released.
    pub fn terminate(mut self) {
        self.claimed.is_leaving.store(true, Ordering::Relaxed);
        if let Some(state) = self.guard.take() {
            state.node.terminate();
        }
    }

    /// The node is released; if views of its messages are left, when the last of them is gone.
    pub fn leave(mut self) {
        self.claimed.is_leaving.store(true, Ordering::Relaxed);
        if self.claimed.views.load(Ordering::Relaxed) == 0 {
            drop(self.guard.take());
        }
    }
}
