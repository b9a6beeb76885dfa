//! `laxity.live.Node`.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use laxity_graph::hooks::{Deadline, Fifo};
use laxity_graph::{Releasing, WaitError};
use laxity_model::{Instant, Nanos};
use laxity_sys::clock;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::claimed::{Claimed, State};
use super::errors::live_error;
use super::job::{Begun, PyJob};
use super::waiting;
use crate::errors::value_error;

/// A claimed node, for one thread at a time. A context manager: at the end of `with` it is released.
///
/// Iterating over it yields its jobs until there will be none:
///
///     for job in node:
///         with job:
///             ...
///
/// Raises UseError from all that is called after the release, by a second thread at the same time, or in a process that
/// was forked from the one that claimed it.
#[pyclass(frozen, module = "laxity.live", name = "Node")]
pub struct PyNode {
    claimed: Arc<Claimed>,
}

impl PyNode {
    pub fn new(claimed: Claimed) -> Self {
        PyNode { claimed: Arc::new(claimed) }
    }

    /// The next job, or why there is none.
    fn next(&self, py: Python<'_>, timeout: Option<&str>) -> PyResult<Result<PyJob, WaitError>> {
        let deadline = waiting::deadline(timeout)?;
        let mut held = self.claimed.hold(py)?;
        let State { node, spin, ticket, tickets, .. } = held.waiting(py)?;
        let interrupted = node.interrupted();
        let (spin, began) = (*spin, clock::now());
        // The last time-out, which may say what it was that did not come.
        let mut late = None;
        let mut look = |until| {
            // Time spun before is not spun again.
            node.spin_for(spin.saturating_sub(clock::now().saturating_since(began)));
            match node.wait_until(until) {
                Err(error @ WaitError::TimedOut { .. }) => {
                    late = Some(error);
                    None
                }
                Err(error) => Some(Err(error)),
                Ok(job) => {
                    let is_resumed = interrupted == Some(job.index());
                    let begun = Begun { is_resumed, release: job.release(), deadline: job.deadline() };
                    Some(Ok((job.index(), begun)))
                }
            }
        };
        // If there is a job at once the GIL need not change hands.
        let found = match look(Instant::ZERO) {
            None if deadline != Instant::ZERO => waiting::wait_until(py, deadline, look)?,
            found => found,
        };
        Ok(match found {
            Some(Ok((index, begun))) => {
                *tickets += 1;
                *ticket = Some(*tickets);
                Ok(PyJob::new(self.claimed.clone(), *tickets, index, begun))
            }
            Some(Err(error)) => Err(error),
            None => Err(late.unwrap_or(WaitError::TimedOut { node: self.claimed.name.clone(), in_flight: None })),
        })
    }
}

#[pymethods]
impl PyNode {
    /// Its name in the graph.
    #[getter]
    fn name(&self) -> &str {
        &self.claimed.name
    }

    /// The job, counted from 0, that a former owner had begun and not completed, and that comes next; None if none.
    ///
    /// What that owner did outside the graph may be done already.
    #[getter]
    fn interrupted(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        Ok(self.claimed.hold(py)?.state().node.interrupted())
    }

    /// Waits for the next job: for tokens on all edges to the node, and room on all from it.
    ///
    /// Other Python threads go on meanwhile; Ctrl-C raises KeyboardInterrupt, and no token is lost.
    ///
    /// Args:
    ///     timeout: how long, such as "100 ms"; "0 ms" only looks; None waits for ever.
    ///
    /// Raises TimedOutError; LostError if a node died that this one waits for, once for each death (wait again to wait
    /// for its return); TerminatedError if there will be no job any more; UseError if the last job is not complete.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<&str>) -> PyResult<PyJob> {
        self.next(py, timeout)?.map_err(|error| live_error(py, &error))
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyJob>> {
        match self.next(py, None)? {
            Ok(job) => Ok(Some(job)),
            Err(WaitError::Terminated { .. }) => Ok(None),
            Err(error) => Err(live_error(py, &error)),
        }
    }

    /// From now on a wait looks for `span`, such as "50 us", before it suspends, if all that it waits for was last seen
    /// on other CPUs. For threads on CPUs of their own; "0 us", as at first, suspends at once.
    ///
    /// Raises ValueError for a text without a unit.
    fn spin_for(&self, py: Python<'_>, span: &str) -> PyResult<()> {
        let span: Nanos = span.parse().map_err(value_error)?;
        self.claimed.hold(py)?.state().spin = span;
        Ok(())
    }

    /// Whether jobs may run before their release: "early", as at first, or "on_time", when a wait ends no sooner. The
    /// first source that is set to "on_time" starts the graph, if it has not been started.
    ///
    /// Setting it raises RecorderError if the graph knows no releases, ValueError for another word.
    #[getter]
    fn releasing(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(match self.claimed.hold(py)?.state().releasing {
            Releasing::Early => "early",
            Releasing::OnTime => "on_time",
        })
    }

    #[setter]
    fn set_releasing(&self, py: Python<'_>, releasing: &str) -> PyResult<()> {
        let releasing = match releasing {
            "early" => Releasing::Early,
            "on_time" => Releasing::OnTime,
            other => return Err(value_error(format!("releasing is \"{other}\"; use \"early\" or \"on_time\""))),
        };
        let mut held = self.claimed.hold(py)?;
        let state = held.state();
        state.node.set_releasing(releasing).map_err(|error| live_error(py, &error))?;
        state.releasing = releasing;
        Ok(())
    }

    /// From now on the calling thread runs the node by SCHED_FIFO, the more urgent the deeper it is in the graph. While it
    /// wakes several consumers it has the highest of their priorities. The thread stays scheduled so when it lets go of
    /// the node.
    ///
    /// Args:
    ///     base: the priority of sources; each edge from there adds 1. All must lie between 1 and 97.
    ///
    /// Raises ValueError, or ScheduleError if Linux refuses; then the thread is scheduled as before.
    fn schedule_fifo(&self, py: Python<'_>, base: u8) -> PyResult<()> {
        let mut held = self.claimed.hold(py)?;
        let State { node, graph, .. } = held.state();
        let fifo = Fifo::of(graph.spec(), node.position(), base).map_err(value_error)?;
        node.schedule_by(fifo).map_err(|error| live_error(py, &error))
    }

    /// From now on the calling thread runs the node by SCHED_DEADLINE: Linux gives it `runtime` in each period of the
    /// node, within its relative deadline. The thread stays scheduled so when it lets go of the node.
    ///
    /// Args:
    ///     runtime: CPU time that a job needs, such as "3 ms".
    ///
    /// Raises ScheduleError if Linux refuses, then the thread is scheduled as before; ValueError for a span without a
    /// unit.
    fn schedule_deadline(&self, py: Python<'_>, runtime: &str) -> PyResult<()> {
        let runtime: Nanos = runtime.parse().map_err(value_error)?;
        let mut held = self.claimed.hold(py)?;
        let State { node, graph, .. } = held.state();
        let deadline = Deadline::of(graph.spec(), node.position(), runtime);
        node.schedule_by(deadline).map_err(|error| live_error(py, &error))
    }

    /// A descriptor to poll: readable unless the last wait timed out and the next one would, too.
    ///
    /// So a node goes wherever a file does: `select.select`, `selectors`, `loop.add_reader` of asyncio. When it is
    /// readable call `wait("0 ms")`, as often as you like: it stays readable until that raises TimedOutError. At times
    /// it is readable for nothing. It belongs to the node, is closed with it, and is not to be read from.
    ///
    /// Raises OSError if this process has too many descriptors.
    fn fileno(&self, py: Python<'_>) -> PyResult<RawFd> {
        let mut held = self.claimed.hold(py)?;
        Ok(held.state().node.poll_fd()?.as_raw_fd())
    }

    /// Ends the node and releases it: its consumers use up what it produced, then end, too.
    ///
    /// Raises UseError while a job is not complete, BufferError while messages of one are in use.
    fn terminate(&self, py: Python<'_>) -> PyResult<()> {
        let mut held = self.claimed.hold(py)?;
        held.check_views("terminate the node")?;
        held.waiting(py)?;
        held.terminate();
        Ok(())
    }

    /// Lets go of the node, so that someone else can claim it. If an exception ended its last job that counts as a loss.
    ///
    /// Raises UseError while a job is not complete, BufferError while messages of one are in use.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        if self.claimed.is_released() {
            return Ok(());
        }
        let mut held = self.claimed.hold(py)?;
        held.check_views("release the node")?;
        held.waiting(py)?;
        held.leave();
        Ok(())
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// As `release`. If an exception leads out of `with`, its traceback may have views of messages: then the node is
    /// released when the last of them is gone.
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<&Bound<'_, PyType>>,
        _error: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        if self.claimed.is_released() || !self.claimed.is_ours() {
            return Ok(());
        }
        if kind.is_none() {
            return self.release(py);
        }
        self.claimed.hold(py)?.leave();
        Ok(())
    }

    fn __repr__(&self) -> String {
        format!("<laxity.live.Node \"{}\">", self.claimed.name)
    }
}
