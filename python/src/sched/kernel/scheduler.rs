//! `laxity.sched.kernel.Scheduler`, and the threads that handle interrupts for its tasks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use laxity_model::{Instant, Nanos};
use laxity_scx::{ClientError, InterruptThread, Lock, Membership, Releases, TaskRequest};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::own::KernelTask;
use super::parts::PyKernelLock;
use super::status::PyKernelStatus;
use super::task::PyKernelTask;
use crate::errors::value_error;
use crate::sched::errors::{bad_argument, kernel_error, misuse};
use crate::sched::own::Place;

/// Numbers are those of one scheduler ever.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// Laxity's scheduler in the kernel, as this process knows it: `laxity sched start`, as root, loads it. A context manager: at the end of
/// `with` it is closed; its tasks go on until they are released.
///
/// Threads share it, and each that is to be scheduled becomes a task by `task`. A child made by `fork` joins by itself.
///
/// Raises UseError from all that is called after it is closed or in a forked child.
#[pyclass(frozen, module = "laxity.sched.kernel", name = "KernelScheduler")]
pub struct PyKernelScheduler {
    number: u64,
    pid: u32,
    membership: Mutex<Option<Arc<Membership>>>,
}

/// A thread of the kernel that handles interrupts for tasks.
#[pyclass(frozen, module = "laxity.sched.kernel", name = "KernelInterrupts")]
pub struct PyKernelInterrupts {
    pub thread: InterruptThread,
    number: u32,
}

impl PyKernelScheduler {
    fn membership(&self, py: Python<'_>) -> PyResult<Arc<Membership>> {
        if std::process::id() != self.pid {
            let text = "this process was forked from the one that joined it; join here";
            return Err(misuse(py, format!("the scheduler in the kernel: {text}")));
        }
        let membership = self.membership.lock().unwrap_or_else(PoisonError::into_inner).clone();
        membership.ok_or_else(|| misuse(py, "the scheduler in the kernel: it is closed; join again"))
    }

    fn ask<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&Membership) -> Result<T, ClientError> + Send,
    ) -> PyResult<T> {
        let membership = self.membership(py)?;
        py.detach(|| ask(&membership)).map_err(|error| kernel_error(py, &error))
    }
}

fn releases(py: Python<'_>, name: &str, due_ns: Option<u64>) -> PyResult<Releases> {
    let releases = match name {
        "periodic" => Releases::Periodic,
        "told" => return Ok(Releases::Told { due: due_ns.map(Instant) }),
        "events" => Releases::Events,
        _ => {
            let text = format!("releases={name:?} are none; write \"periodic\", \"told\" or \"events\"");
            return Err(bad_argument(py, text));
        }
    };
    match due_ns {
        Some(_) => Err(bad_argument(py, format!("due_ns is for releases=\"told\", and these are {name:?}"))),
        None => Ok(releases),
    }
}

#[pymethods]
impl PyKernelScheduler {
    /// The scheduler that is loaded now.
    ///
    /// Raises NotRunningError if none is, else SchedError.
    #[staticmethod]
    fn join(py: Python<'_>) -> PyResult<Self> {
        let membership = py.detach(Membership::join).map_err(|error| kernel_error(py, &error))?;
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Ok(PyKernelScheduler { number, pid: std::process::id(), membership: Mutex::new(Some(Arc::new(membership))) })
    }

    /// Does what takes long before the first task can begin, up to tens of milliseconds; `task` does it otherwise.
    ///
    /// Raises EndedError, ConfigError with the scheduler's reason, UseError.
    fn prepare(&self, py: Python<'_>) -> PyResult<()> {
        self.ask(py, Membership::prepare)
    }

    /// This thread becomes a task: from now on the scheduler decides when it runs. Threads and processes that it starts are scheduled
    /// as all others.
    ///
    /// Args:
    ///     name: for people, 1 to 64 bytes.
    ///     period: of its releases, or the least time between two, such as "10 ms".
    ///     deadline: relative to each release, such as "5 ms"; None: the period.
    ///     wcet: the most that a job takes, such as "2 ms", by which a cluster is chosen; None: not known.
    ///     budget: CPU time that a job may use until its deadline, and then again in each period, which is enforced (a hard constant
    ///         bandwidth server); None: as much as it needs.
    ///     cluster: which one has it, from 0; None: the one with the least load.
    ///     priority: under FP, its place among others: the smaller the more urgent.
    ///     start_ns: the release of the first job, in ns of `time.monotonic_ns`; None: at once.
    ///     releases: of later jobs. "periodic": once a period; "told": when `wait_for_job_at` says; "events": by the wake-up from
    ///         what the thread waits for in `with task.event()`.
    ///     due_ns: of "told", when the first job is due, in ns of `time.monotonic_ns`; None: the deadline after its release.
    ///
    /// Raises ConfigError with the scheduler's reason, EndedError, UseError, ValueError for a span without a unit.
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    #[pyo3(signature = (
        name, *, period, deadline=None, wcet=None, budget=None, cluster=None, priority=0, start_ns=None,
        releases="periodic", due_ns=None
    ))]
    fn task(
        &self,
        py: Python<'_>,
        name: &str,
        period: &str,
        deadline: Option<&str>,
        wcet: Option<&str>,
        budget: Option<&str>,
        cluster: Option<usize>,
        priority: u32,
        start_ns: Option<u64>,
        releases: &str,
        due_ns: Option<u64>,
    ) -> PyResult<PyKernelTask> {
        let span = |text: Option<&str>| text.map(str::parse::<Nanos>).transpose().map_err(value_error);
        let period: Nanos = period.parse().map_err(value_error)?;
        let request = TaskRequest {
            deadline: span(deadline)?.unwrap_or(period),
            budget: span(budget)?,
            priority: priority.into(),
            cluster,
            release: start_ns.map(Instant),
            releases: self::releases(py, releases, due_ns)?,
            ..TaskRequest::periodic(name, period, span(wcet)?.unwrap_or(Nanos::ZERO))
        };
        // Without the GIL: the thread may have no CPU until its first job.
        let task = self.ask(py, |membership| membership.begin(&request))?;
        let cluster = task.cluster();
        let place = Place::keep(name, KernelTask::new(task, request.releases));
        Ok(PyKernelTask::new(place, self.number, cluster, &request))
    }

    /// A lock that is free, for tasks of this object: see `Task.lock`.
    fn lock(&self) -> PyKernelLock {
        PyKernelLock { lock: Arc::new(Lock::new()), of: self.number }
    }

    /// The thread of the kernel with number `thread` in Linux, which handles interrupts for tasks: see `Task.expecting`.
    ///
    /// Raises ConfigError if it does not (`laxity sched irq` has it do so), EndedError, UseError.
    fn interrupt_thread(&self, py: Python<'_>, thread: u32) -> PyResult<PyKernelInterrupts> {
        let found = self.ask(py, |membership| membership.interrupt_thread(thread))?;
        Ok(PyKernelInterrupts { thread: found, number: thread })
    }

    /// What the scheduler does, now. Raises EndedError, UseError.
    fn status(&self, py: Python<'_>) -> PyResult<PyKernelStatus> {
        self.ask(py, Membership::status).map(PyKernelStatus)
    }

    /// Asks it nothing more. Tasks go on.
    fn close(&self) {
        drop(self.membership.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyTuple>) {
        self.close();
    }
}

#[pymethods]
impl PyKernelInterrupts {
    /// Its number in Linux.
    #[getter]
    fn thread(&self) -> u32 {
        self.number
    }

    /// The cluster of the tasks that it works for.
    #[getter]
    fn cluster(&self) -> usize {
        self.thread.cluster()
    }

    fn __repr__(&self) -> String {
        format!("<laxity.sched.kernel.InterruptThread {} cluster={}>", self.number, self.thread.cluster())
    }
}
