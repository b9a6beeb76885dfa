//! `laxity.sched.Task`, and its jobs.

use std::cell::RefCell;

use laxity_model::{Instant, Nanos};
use laxity_sched::{Job, Parameters};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::lock::PyHold;
use super::own::Place;
use super::section::{PySection, PySuspension};
use crate::errors::value_error;

/// A job of a task. Times are in ns of `time.monotonic_ns`.
#[pyclass(frozen, eq, module = "laxity.sched", name = "TaskJob")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PyTaskJob(Job);

/// The thread that called `System.task`, as a task: Laxity decides when it runs. That thread alone uses it; in others
/// everything raises UseError. A context manager: at its end, as when the thread ends, Linux schedules the thread as before.
///
/// Iterating over it waits for one job after the other, without an end.
#[pyclass(frozen, module = "laxity.sched", name = "Task")]
pub struct PyTask {
    place: Place,
    id: u32,
    parameters: Parameters,
}

impl PyTask {
    pub fn new(place: Place, id: u32, parameters: Parameters) -> Self {
        PyTask { place, id, parameters }
    }
}

#[pymethods]
impl PyTaskJob {
    /// Its number, from 0.
    #[getter]
    fn index(&self) -> u64 {
        self.0.index
    }

    /// When it was released, in ns of `time.monotonic_ns`.
    #[getter]
    fn release_ns(&self) -> u64 {
        self.0.release.0
    }

    /// When it is due, in ns of `time.monotonic_ns`.
    #[getter]
    fn deadline_ns(&self) -> u64 {
        self.0.deadline.0
    }

    fn __repr__(&self) -> String {
        let Job { index, release, deadline } = self.0;
        format!("<laxity.sched.TaskJob {index} release_ns={} deadline_ns={}>", release.0, deadline.0)
    }
}

#[pymethods]
impl PyTask {
    /// As `System.task` named it.
    #[getter]
    fn name(&self) -> &str {
        self.place.name()
    }

    /// Its number in snapshots.
    #[getter]
    fn id(&self) -> u32 {
        self.id
    }

    /// The cluster that schedules it, from 0.
    #[getter]
    fn cluster(&self) -> usize {
        self.parameters.cluster
    }

    /// Of its releases, or the least time between two, in ns.
    #[getter]
    fn period_ns(&self) -> u64 {
        self.parameters.period.0
    }

    /// Relative to each release, in ns.
    #[getter]
    fn deadline_ns(&self) -> u64 {
        self.parameters.deadline.0
    }

    /// The present job, or else the last one; None before the first. Raises UseError.
    #[getter]
    fn job(&self, py: Python<'_>) -> PyResult<Option<PyTaskJob>> {
        let job = self.place.read(py, |task| task.job())?;
        Ok((job.deadline != Instant::ZERO).then_some(PyTaskJob(job)))
    }

    /// Whether the present job has a CPU. If not, a more urgent one has it, and this thread runs where that leaves it idle.
    /// Raises UseError.
    #[getter]
    fn is_linked(&self, py: Python<'_>) -> PyResult<bool> {
        self.place.read(py, |task| task.is_linked())
    }

    /// The first release of `wait_for_next_job` is at `start_ns` of `time.monotonic_ns`, and the next ones follow a period
    /// apart: tasks with one start are released together. Without this call the first release is at the first wait.
    /// Raises OrderError after the first wait, UseError.
    fn start_at(&self, py: Python<'_>, start_ns: u64) -> PyResult<()> {
        self.place.tell(py, |task| task.start_at(Instant(start_ns)))
    }

    /// Completes the present job, if there is one, and waits for the next release, one period after the last. If that is
    /// in the past, the next job begins at once and keeps its release and deadline. Other threads of Python go on
    /// meanwhile. Ctrl-C ends the wait of the main thread; the next wait is for the same release.
    ///
    /// Raises OrderError if the job is suspended, UseError.
    fn wait_for_next_job(&self, py: Python<'_>) -> PyResult<PyTaskJob> {
        let raised = RefCell::new(None);
        let (job, raised) = self.place.tell(py, move |task| {
            let go_on = || match Python::attach(|py| py.check_signals()) {
                Ok(()) => true,
                Err(error) => {
                    raised.replace(Some(error));
                    false
                }
            };
            let job = task.wait_for_next_job_while(&go_on)?;
            Ok((job, raised.into_inner()))
        })?;
        match (job, raised) {
            (_, Some(error)) => Err(error),
            (job, None) => Ok(PyTaskJob(job.expect("a wait without a job was ended by what a handler raised"))),
        }
    }

    /// A job is ready: for tasks that wait for events by themselves. The last one must be complete.
    ///
    /// Args:
    ///     index: its number.
    ///     release_ns: when its release was, in ns of `time.monotonic_ns`.
    ///     deadline_ns: when it is due, in ns of `time.monotonic_ns`; None: the task's deadline after the release.
    ///
    /// Raises OrderError, UseError.
    #[pyo3(signature = (index, release_ns, deadline_ns=None))]
    fn release_job(
        &self,
        py: Python<'_>,
        index: u64,
        release_ns: u64,
        deadline_ns: Option<u64>,
    ) -> PyResult<PyTaskJob> {
        let release = Instant(release_ns);
        let deadline = deadline_ns.map_or(release.saturating_add(self.parameters.deadline), Instant);
        let job = Job { index, release, deadline };
        self.place.tell(py, |task| task.release(job).map(drop))?;
        Ok(PyTaskJob(job))
    }

    /// The present job is complete; the thread is expected to wait for the next. Raises OrderError, UseError.
    fn complete(&self, py: Python<'_>) -> PyResult<()> {
        self.place.tell(py, |task| task.complete().map(drop))
    }

    /// The present job suspends itself, and others get its CPU: before the thread waits for a device or another thread.
    /// `suspended` does this and `resume` for a `with`. Raises OrderError, UseError.
    fn suspend(&self, py: Python<'_>) -> PyResult<()> {
        self.place.tell(py, |task| task.suspend().map(drop))
    }

    /// The suspended job goes on: after the wait. Raises OrderError, UseError.
    fn resume(&self, py: Python<'_>) -> PyResult<()> {
        self.place.tell(py, |task| task.resume().map(drop))
    }

    /// For a `with` around a wait: the job is suspended meanwhile.
    fn suspended(&self) -> PySuspension {
        PySuspension { place: self.place.clone() }
    }

    /// For a `with` around a non-preemptive section: no other task gets this thread's CPU meanwhile.
    fn section(&self) -> PySection {
        PySection { place: self.place.clone() }
    }

    /// For a `with` in which the job holds lock number `lock` of the system, a position in its `locks`; `as` gets the replica.
    ///
    /// Args:
    ///     lock: which one.
    ///     length: bound on how long it will be held, such as "1 ms"; None: not known.
    ///     gpu: of tokens, the only GPU that will do; None: any.
    ///
    /// Raises ValueError for a span without a unit.
    #[pyo3(signature = (lock, *, length=None, gpu=None))]
    fn lock(&self, lock: u16, length: Option<&str>, gpu: Option<u16>) -> PyResult<PyHold> {
        let length = length.map_or(Ok(Nanos::ZERO), str::parse).map_err(value_error)?;
        Ok(PyHold { place: self.place.clone(), lock, length, gpu })
    }

    /// The present job has this priority from now on, the smaller the more urgent: under EDF a deadline in ns of
    /// `time.monotonic_ns`, else a level from 1. Of equal ones the smaller `tie` is first. Raises OrderError, UseError.
    #[pyo3(signature = (level, tie=0))]
    fn prioritize(&self, py: Python<'_>, level: u64, tie: u32) -> PyResult<()> {
        self.place.tell(py, |task| task.prioritize((level, tie)).map(drop))
    }

    /// The thread is no task any more: its job ends, and Linux schedules it as before. Raises UseError in another thread.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        self.place.release(py)
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<PyTaskJob> {
        self.wait_for_next_job(py)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.release(py)
    }

    fn __repr__(&self) -> String {
        let Nanos(period) = self.parameters.period;
        format!("<laxity.sched.Task {} \"{}\" period_ns={period}>", self.id, self.place.name())
    }
}

impl Drop for PyTask {
    fn drop(&mut self) {
        self.place.forget();
    }
}
