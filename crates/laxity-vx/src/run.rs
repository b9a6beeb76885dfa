//! A graph that is executed.

use std::io;
use std::ops::Deref;
use std::sync::Arc;

use laxity_graph::Graph;
use laxity_model::Instant;
use laxity_runtime::worker::Started;
use laxity_sys::process::forks;

use crate::error::{Failure, FailureReason};
use crate::frames::FrameTimes;
use crate::graph::OUTPUT_CALLBACK;
use crate::shared::Shared;
use crate::trace::{Trace, Tracing};

/// A graph that is executed. Dropped, it is [terminated](RunHandle::terminate), and its threads have ended. Its memory and
/// its name stay until then, also when it has ended.
#[derive(Debug)]
pub struct Run {
    handle: RunHandle,
    workers: Vec<Started>,
    /// Behind the workers, which are to have ended.
    tracing: Option<Tracing>,
    /// [`forks`] of the process that executes it.
    forks: u32,
}

/// A handle by which any thread may control a [`Run`], at any time.
#[derive(Clone, Debug)]
pub struct RunHandle {
    shared: Arc<Shared>,
}

impl Run {
    pub(crate) fn new(shared: Arc<Shared>) -> Run {
        Run { handle: RunHandle { shared }, workers: Vec::new(), tracing: None, forks: forks() }
    }

    pub(crate) fn add(&mut self, worker: Started) {
        self.workers.push(worker);
    }

    /// All workers are ready: time 0 is `start`, also of the trace.
    ///
    /// # Errors
    /// That no thread can write the trace.
    pub(crate) fn begin(&mut self, start: Instant, trace: Option<Trace>) -> io::Result<()> {
        if let Some(mut trace) = trace {
            trace.start(start);
            self.tracing = Some(trace.write(self.shared.clone())?);
        }
        self.workers.iter().for_each(|worker| worker.begin(start));
        Ok(())
    }

    /// For other threads, such as one that handles Ctrl-C. It keeps the graph's memory, too.
    pub fn handle(&self) -> RunHandle {
        self.handle.clone()
    }

    /// Waits until the graph has ended. Answers with when its frames were released and done.
    ///
    /// # Errors
    /// [`Failure`], of the first node that failed.
    pub fn wait(&mut self) -> Result<FrameTimes, Arc<Failure>> {
        for worker in self.workers.drain(..) {
            // Kernels that panic are failures; nothing else does.
            worker.join().expect("a worker of a graph does not panic");
        }
        if let Some(Err(error)) = self.tracing.as_mut().map(Tracing::end) {
            let graph = self.shared.graph.spec().graph().name.clone();
            let (node, reason) = (OUTPUT_CALLBACK.to_owned(), FailureReason::Trace(error.to_string()));
            self.shared.fail(Failure { graph, node, frame: None, reason });
        }
        self.failure().map_or_else(|| Ok(self.times()), Err)
    }
}

impl RunHandle {
    /// The graph as all processes see it: to be recorded, watched, and asked for the state of nodes.
    pub fn graph(&self) -> &Graph {
        &self.shared.graph
    }

    /// Releases no more frames. Those that were begun are completed. Does not wait for that.
    pub fn stop(&self) {
        self.shared.stop.drain();
    }

    /// Ends as soon as kernels return. Frames that were begun are given up. Does not wait for that.
    pub fn terminate(&self) {
        self.shared.stop.stop();
    }

    /// Waits until `frames` frames are completed, or the graph has ended, or `deadline`, an instant of the monotonic clock
    /// ([`Instant::NEVER`]: for ever). Answers with how many are completed.
    pub fn wait_for_frames(&self, frames: u64, deadline: Instant) -> u64 {
        self.shared.frames.wait_for(frames, deadline)
    }

    /// Whether the calling thread executes kernels of this run. It cannot wait for the run, which would wait for it.
    pub fn is_of_this_thread(&self) -> bool {
        self.shared.is_of_this_thread()
    }

    /// Whether all nodes have ended: frames or time were over, it was stopped, or it failed.
    pub fn has_ended(&self) -> bool {
        self.shared.frames.have_ended()
    }

    /// Why it failed, if it did.
    pub fn failure(&self) -> Option<Arc<Failure>> {
        self.shared.failure.get().cloned()
    }

    /// Frames that were begun, and those that are completed.
    pub fn counts(&self) -> (u64, u64) {
        self.shared.frames.counts()
    }

    /// When frames were released and done so far.
    pub fn times(&self) -> FrameTimes {
        self.shared.frames.times()
    }
}

impl Deref for Run {
    type Target = RunHandle;

    fn deref(&self) -> &RunHandle {
        &self.handle
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if forks() != self.forks {
            // A child made by `fork` has no such thread.
            std::mem::forget(self.tracing.take());
            return;
        }
        if !self.workers.is_empty() {
            // Then they end, which is waited for.
            self.terminate();
        }
    }
}
