//! The state that the workers of a graph share with its run.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use laxity_graph::Graph;
use laxity_model::Nanos;
use laxity_runtime::StopSignal;

use crate::error::Failure;
use crate::frames::Frames;
use crate::scheduling::{period, thousandths};

/// The state that the workers of a graph share with its run.
#[derive(Debug)]
pub(crate) struct Shared {
    pub graph: Graph,
    pub stop: Arc<StopSignal>,
    pub frames: Frames,
    /// What nodes were planned to reserve, in thousandths of a CPU.
    pub needed: u64,
    /// What nodes reserve whose budgets were measured, likewise.
    pub measured: AtomicU64,
    /// The first one.
    pub failure: OnceLock<Arc<Failure>>,
}

thread_local! {
    /// The run whose kernels this thread executes.
    static OF_THREAD: Cell<*const Shared> = const { Cell::new(ptr::null()) };
}

impl Shared {
    /// The calling thread, which is about to execute kernels of the run, is one of its own from now on.
    pub fn take_thread(&self) {
        OF_THREAD.set(self);
    }

    /// Whether the calling thread executes kernels of the run.
    pub fn is_of_this_thread(&self) -> bool {
        ptr::eq(OF_THREAD.get(), self)
    }

    /// A node has failed, and with it the graph: all others end.
    pub fn fail(&self, failure: Failure) {
        let _ = self.failure.set(Arc::new(failure));
        self.stop.stop();
    }

    /// One more node reserves `budget`. Answers with what all of them do, in thousandths of a CPU.
    pub fn reserve(&self, budget: Nanos) -> u64 {
        let part = thousandths(budget, period(self.graph.spec()));
        self.needed + self.measured.fetch_add(part, Ordering::SeqCst) + part
    }
}
