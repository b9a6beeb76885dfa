//! Vision graphs that are executed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use laxity_model::Instant;
use laxity_vx::{Failure, FailureReason, FrameTimes, Run, RunHandle};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors::exception_of;
use crate::live::PyGraph;
use crate::live::waiting;

/// A vision graph that is executed.
#[pyclass(frozen, module = "laxity._native", name = "_VxRun")]
pub struct VxRun {
    state: Mutex<State>,
    /// The process that runs it.
    pid: u32,
}

enum State {
    Open(Run),
    Closed(End),
}

/// What is left of a run.
struct End {
    times: FrameTimes,
    failure: Option<Arc<Failure>>,
}

/// Period, first release, frames begun and completed; then number, release and completion of each frame.
type Times = (u64, u64, u64, u64, Vec<(u64, u64, u64)>);

impl VxRun {
    pub fn new(run: Run) -> Self {
        VxRun { state: Mutex::new(State::Open(run)), pid: std::process::id() }
    }

    /// Whether this process runs it, and is not a child of the one that does: the child has no threads of it.
    fn is_ours(&self) -> bool {
        std::process::id() == self.pid
    }

    /// Raises UseError in a forked child.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_ours() {
            return Ok(());
        }
        Err(use_error(py, "this process was forked from the one that runs the vision graph; use it there"))
    }

    /// Raises UseError in a kernel of the run, for what waits until its kernels have returned.
    fn check_kernel(&self, py: Python<'_>, verb: &str) -> PyResult<()> {
        if self.handle().is_some_and(|run| run.is_of_this_thread()) {
            let text = format!(
                "a kernel of the run cannot {verb}: it would wait for itself; do so on another thread, or return"
            );
            return Err(use_error(py, &text));
        }
        Ok(())
    }

    /// As [`VxRun::check`], and as [`VxRun::check_kernel`] unless the wait is a look.
    fn check_wait(&self, py: Python<'_>, deadline: Instant) -> PyResult<()> {
        self.check(py)?;
        if deadline == Instant::ZERO { Ok(()) } else { self.check_kernel(py, "wait for it") }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A state is replaced as a whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing once it is closed. To be dropped soon, as it keeps the graph's memory.
    fn handle(&self) -> Option<RunHandle> {
        match &*self.lock() {
            State::Open(run) => Some(run.handle()),
            State::Closed(_) => None,
        }
    }

    fn failure(&self) -> Option<Arc<Failure>> {
        match &*self.lock() {
            State::Open(run) => run.failure(),
            State::Closed(end) => end.failure.clone(),
        }
    }

    fn frame_times(&self) -> FrameTimes {
        match &*self.lock() {
            State::Open(run) => run.times(),
            State::Closed(end) => end.times.clone(),
        }
    }
}

#[pymethods]
impl VxRun {
    /// Waits until the graph has ended. Answers whether it has; raises GraphFailedError if a node has failed.
    fn wait(&self, py: Python<'_>, timeout: Option<&str>) -> PyResult<bool> {
        let deadline = waiting::deadline(timeout)?;
        self.check_wait(py, deadline)?;
        let has_ended = match self.handle() {
            None => true,
            Some(run) => {
                let look = |until| {
                    run.wait_for_frames(u64::MAX, until);
                    run.has_ended().then_some(())
                };
                waiting::wait_until(py, deadline, look)?.is_some()
            }
        };
        match self.failure() {
            Some(failure) if has_ended => Err(failed(py, &failure)),
            _ => Ok(has_ended),
        }
    }

    /// Waits until so many frames are completed, or the graph has ended. Answers with how many are.
    fn wait_for_frames(&self, py: Python<'_>, frames: u64, timeout: Option<&str>) -> PyResult<u64> {
        let deadline = waiting::deadline(timeout)?;
        self.check_wait(py, deadline)?;
        let Some(run) = self.handle() else { return Ok(self.frame_times().completed) };
        waiting::wait_until(py, deadline, |until| {
            let completed = run.wait_for_frames(frames, until);
            (completed >= frames || run.has_ended()).then_some(())
        })?;
        Ok(run.counts().1)
    }

    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.check(py)?;
        self.handle().iter().for_each(RunHandle::stop);
        Ok(())
    }

    fn terminate(&self, py: Python<'_>) -> PyResult<()> {
        self.check(py)?;
        self.handle().iter().for_each(RunHandle::terminate);
        Ok(())
    }

    #[getter]
    fn has_ended(&self, py: Python<'_>) -> PyResult<bool> {
        self.check(py)?;
        Ok(self.handle().is_none_or(|run| run.has_ended()))
    }

    fn times(&self, py: Python<'_>) -> PyResult<Times> {
        self.check(py)?;
        let times = self.frame_times();
        let frames = times.frames.iter().map(|frame| (frame.index, frame.release.0, frame.completion.0)).collect();
        Ok((times.period.0, times.first_release.0, times.begun, times.completed, frames))
    }

    fn graph(&self, py: Python<'_>) -> PyResult<PyGraph> {
        self.check(py)?;
        let closed = || PyRuntimeError::new_err("the run is closed, and its graph is gone; ask before");
        Ok(PyGraph::new(self.handle().ok_or_else(closed)?.graph().clone()))
    }

    /// Terminates it, if it has not ended, and waits for its threads. Nothing in a forked child.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if !self.is_ours() {
            return Ok(());
        }
        self.check_kernel(py, "close it")?;
        let Some(handle) = self.handle() else { return Ok(()) };
        handle.terminate();
        // Kernels need the GIL to end.
        py.detach(|| handle.wait_for_frames(u64::MAX, Instant::NEVER));
        let end = State::Closed(End { times: handle.times(), failure: handle.failure() });
        let run = std::mem::replace(&mut *self.lock(), end);
        drop(handle);
        py.detach(move || drop(run));
        Ok(())
    }
}

impl Drop for VxRun {
    fn drop(&mut self) {
        let is_ours = self.is_ours();
        if is_ours && Python::attach(|py| self.close(py)).is_ok() {
            return;
        }
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let State::Open(run) = state {
            let end = End { times: run.times(), failure: None };
            let run = std::mem::replace(state, State::Closed(end));
            // To drop a run is to wait for its threads.
            if is_ours {
                // One of them is this, whose kernel had the last reference.
                thread::spawn(|| drop(run));
            } else {
                // They are its parent's. The memory goes with the child.
                std::mem::forget(run);
            }
        }
    }
}

fn use_error(py: Python<'_>, text: &str) -> PyErr {
    exception_of(py, "laxity.vx", "UseError", (text,))
}

/// `laxity.vx.GraphFailedError`, because of what the kernel has raised.
fn failed(py: Python<'_>, failure: &Failure) -> PyErr {
    let args = (failure.to_string(), &failure.node, failure.frame, failure.status().name());
    let error = exception_of(py, "laxity.vx", "GraphFailedError", args);
    if let FailureReason::Kernel(cause) = &failure.reason
        && let Some(cause) = cause.downcast_ref::<PyErr>()
    {
        error.set_cause(py, Some(cause.clone_ref(py)));
    }
    error
}
