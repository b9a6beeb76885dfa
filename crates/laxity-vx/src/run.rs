//! A graph that is executed.

use std::sync::Arc;
use std::thread::JoinHandle;

use laxity_graph::Graph;
use laxity_model::Instant;

use crate::error::Failure;
use crate::frames::FrameTimes;
use crate::shared::Shared;

/// A graph that is executed. Dropped, it is [terminated](Run::terminate), and its threads have ended.
#[derive(Debug)]
pub struct Run {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Run {
    pub(crate) fn new(shared: Arc<Shared>) -> Run {
        Run { shared, threads: Vec::new() }
    }

    pub(crate) fn add(&mut self, thread: JoinHandle<()>) {
        self.threads.push(thread);
    }

    /// The graph as all processes see it: to be recorded, watched, and asked for the state of nodes.
    pub fn graph(&self) -> &Graph {
        &self.shared.graph
    }

    /// Releases no more frames. Those that were begun are completed. Does not wait for that.
    pub fn stop(&self) {
        self.shared.control.end();
    }

    /// Ends as soon as kernels return. Frames that were begun are given up. Does not wait for that.
    pub fn terminate(&self) {
        self.shared.terminate();
    }

    /// Waits until `frames` frames are completed, or the graph has ended, or `deadline`, an instant of the monotonic clock
    /// ([`Instant::NEVER`]: for ever). Answers with how many are completed.
    pub fn wait_for_frames(&self, frames: u64, deadline: Instant) -> u64 {
        self.shared.frames.wait_for(frames, deadline)
    }

    /// Whether all threads are done: frames or time were over, it was stopped, or it failed.
    pub fn has_ended(&self) -> bool {
        self.shared.frames.have_ended()
    }

    /// Waits until the graph has ended. Answers with when its frames were released and done.
    ///
    /// # Errors
    /// [`Failure`], of the first node that failed.
    pub fn wait(&mut self) -> Result<FrameTimes, Arc<Failure>> {
        for thread in self.threads.drain(..) {
            // Kernels that panic are failures; nothing else does.
            thread.join().expect("a thread of a graph does not panic");
        }
        match self.shared.failure.get() {
            Some(failure) => Err(failure.clone()),
            None => Ok(self.times()),
        }
    }

    /// When frames were released and done so far.
    pub fn times(&self) -> FrameTimes {
        self.shared.frames.times()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.shared.terminate();
            self.threads.drain(..).for_each(|thread| drop(thread.join()));
        }
    }
}
