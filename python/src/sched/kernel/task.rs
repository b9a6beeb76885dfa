//! `laxity.sched.kernel.Task`, and its jobs.

use std::sync::Arc;

use laxity_model::{Instant, Nanos};
use laxity_scx::{Job, Releases, TaskRequest};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::own::KernelTask;
use super::parts::{PyKernelEvent, PyKernelExpectation, PyKernelHold, PyKernelLock, PyKernelSection};
use super::scheduler::PyKernelInterrupts;
use crate::sched::errors::misuse;
use crate::sched::own::Place;

/// A job of a task. Times are in ns of `time.monotonic_ns`.
#[pyclass(frozen, eq, module = "laxity.sched.kernel", name = "KernelJob")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PyKernelJob(Job);

/// The thread that called `Scheduler.task`, as a task: the scheduler in the kernel decides when it runs. That thread alone uses it;
/// in others everything raises UseError. A context manager: at its end, as when the thread ends, it is a thread as all others. When
/// the scheduler ends, however that happens, the task goes on: Linux schedules it, and `Job.is_scheduled` says so.
///
/// Iterating over it waits for one periodic job after the other, without an end.
#[pyclass(frozen, module = "laxity.sched.kernel", name = "KernelTask")]
pub struct PyKernelTask {
    place: Place<KernelTask>,
    scheduler: u64,
    cluster: usize,
    period: Nanos,
    deadline: Nanos,
    releases: Releases,
}

impl PyKernelTask {
    pub fn new(place: Place<KernelTask>, scheduler: u64, cluster: usize, request: &TaskRequest) -> Self {
        let TaskRequest { period, deadline, releases, .. } = *request;
        PyKernelTask { place, scheduler, cluster, period, deadline, releases }
    }
}

#[pymethods]
impl PyKernelJob {
    /// Its number, from 0.
    #[getter]
    fn index(&self) -> u32 {
        self.0.number.saturating_sub(1)
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

    /// Whether Laxity's scheduler released it. Otherwise that has ended, and Linux schedules the thread: jobs go on by Linux's
    /// clock.
    #[getter]
    fn is_scheduled(&self) -> bool {
        self.0.is_scheduled
    }

    fn __repr__(&self) -> String {
        let Job { release, deadline, .. } = self.0;
        format!("<laxity.sched.kernel.Job {} release_ns={} deadline_ns={}>", self.index(), release.0, deadline.0)
    }
}

#[pymethods]
impl PyKernelTask {
    /// As `Scheduler.task` named it.
    #[getter]
    fn name(&self) -> &str {
        self.place.name()
    }

    /// The cluster that has it, from 0.
    #[getter]
    fn cluster(&self) -> usize {
        self.cluster
    }

    /// Of its releases, or the least time between two, in ns.
    #[getter]
    fn period_ns(&self) -> u64 {
        self.period.0
    }

    /// Relative to each release, in ns.
    #[getter]
    fn deadline_ns(&self) -> u64 {
        self.deadline.0
    }

    /// What releases its jobs: "periodic", "told" or "events".
    #[getter]
    fn releases(&self) -> &'static str {
        match self.releases {
            Releases::Periodic => "periodic",
            Releases::Told { .. } => "told",
            // Tokens are those of graphs in Rust: no task of Python begins with them.
            Releases::Events | Releases::Tokens { .. } => "events",
        }
    }

    /// The present job, or else the last one; None before the first. Raises UseError.
    #[getter]
    fn job(&self, py: Python<'_>) -> PyResult<Option<PyKernelJob>> {
        Ok(self.place.read(py, KernelTask::job)?.map(PyKernelJob))
    }

    /// Whether the scheduler in the kernel schedules the thread, as far as is known. Raises UseError.
    #[getter]
    fn is_scheduled(&self, py: Python<'_>) -> PyResult<bool> {
        self.place.say(py, KernelTask::is_scheduled)
    }

    /// Completes the present job, if there is one, and waits for the next release, one period after the last, and for a CPU. If that
    /// release is in the past, the next job begins at once and keeps its release and deadline. Other threads of Python go on
    /// meanwhile. Ctrl-C ends the wait of the main thread, but for the last half of a second before a release, in which the job comes first; the
    /// next wait is for the same job.
    ///
    /// Raises OrderError if the job holds a lock or is in a section, or if jobs are released otherwise; UseError.
    fn wait_for_next_job(&self, py: Python<'_>) -> PyResult<PyKernelJob> {
        self.place.say_without_gil(py, |task| task.wait(None)).map(PyKernelJob)
    }

    /// The same for a task that said releases="told", as a sporadic one: the next job is released and due then. The first one is
    /// released and due as `Scheduler.task` said, whatever is said here.
    ///
    /// Args:
    ///     release_ns: in ns of `time.monotonic_ns`; one before that of the present job is taken for the same as that.
    ///     deadline_ns: in ns of `time.monotonic_ns`, without a meaning for a task with a budget; None: the task's deadline after the
    ///         release.
    ///
    /// Raises OrderError, UseError.
    #[pyo3(signature = (release_ns, deadline_ns=None))]
    fn wait_for_job_at(&self, py: Python<'_>, release_ns: u64, deadline_ns: Option<u64>) -> PyResult<PyKernelJob> {
        let release = Instant(release_ns);
        let due = deadline_ns.map_or(release.saturating_add(self.deadline), Instant);
        self.place.say_without_gil(py, |task| task.wait(Some((release, due)))).map(PyKernelJob)
    }

    /// For a `with` around the wait for an event, in whatever call, of a task that said releases="events": the first sleep in it completes the
    /// job, and the wake-up releases the next one, which is due as the task's deadline says, and a period after the last one at the
    /// earliest. The first job is the thread's work before its first event.
    fn event(&self) -> PyKernelEvent {
        PyKernelEvent { place: self.place.clone() }
    }

    /// For a `with` around a non-preemptive section: no job of another task preempts it, for 10 ms at most.
    fn section(&self) -> PyKernelSection {
        PyKernelSection { place: self.place.clone() }
    }

    /// For a `with` in which the job holds `lock`, from `Scheduler.lock` of the same object.
    ///
    /// Raises UseError for a lock of another one.
    fn lock(&self, py: Python<'_>, lock: &PyKernelLock) -> PyResult<PyKernelHold> {
        if lock.of != self.scheduler {
            let text = "the lock is of another Scheduler; tasks that share one join once";
            return Err(misuse(py, format!("task {}: {text}", self.place.name())));
        }
        Ok(PyKernelHold { place: self.place.clone(), lock: Arc::clone(&lock.lock) })
    }

    /// For a `with` around the use of a device: `thread` handles its interrupts at the priority of this task's job, and before it.
    fn expecting(&self, thread: &PyKernelInterrupts) -> PyKernelExpectation {
        PyKernelExpectation { place: self.place.clone(), thread: thread.thread }
    }

    /// The thread is no task any more: its job ends, and it is scheduled as all others. Raises OrderError if the job holds a lock or is in
    /// a section, UseError in another thread.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        if self.place.read(py, |_| ()).is_ok() {
            self.place.say(py, KernelTask::expect_end)?;
        }
        self.place.release(py)
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<PyKernelJob> {
        self.wait_for_next_job(py)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        // A child that was forked amid the job may end, and is no task.
        if !self.place.is_of_this_process() {
            return Ok(());
        }
        self.release(py)
    }

    fn __repr__(&self) -> String {
        format!("<laxity.sched.kernel.Task \"{}\" period_ns={}>", self.place.name(), self.period.0)
    }
}

impl Drop for PyKernelTask {
    fn drop(&mut self) {
        self.place.forget();
    }
}
