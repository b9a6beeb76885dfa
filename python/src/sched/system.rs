//! `laxity.sched.System`, and what there is without one.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use laxity_model::{Nanos, ServerKind};
use laxity_sched::{Config, Parameters, Registry, RegistryError, Rule, System, parse_clusters};
use laxity_sys::scheduling;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::errors::{bad_argument, begin_error, misuse, sched_error};
use super::lock::PyLock;
use super::own::Place;
use super::table;
use super::task::PyTask;
use crate::errors::value_error;

/// Clusters of CPUs and the tasks that a policy schedules there, by name: those of all processes that name it. A context
/// manager: at the end of `with` it is closed; its tasks go on until they are released. The last process to leave takes the
/// system along.
///
/// Threads share it, and each that is to be scheduled becomes a task by `task`. A child made by `fork` attaches by itself.
///
/// Raises UseError from all that is called after it is closed or in a forked child.
#[pyclass(frozen, module = "laxity.sched", name = "System")]
pub struct PySystem {
    name: String,
    pid: u32,
    system: Mutex<Option<System>>,
}

impl PySystem {
    fn open(
        py: Python<'_>,
        directory: Option<PathBuf>,
        open: impl FnOnce(&Registry) -> Result<System, RegistryError> + Send,
    ) -> PyResult<Self> {
        let registry = registry(directory);
        let system = py.detach(|| open(&registry)).map_err(|error| sched_error(py, &error))?;
        Ok(PySystem { name: system.name().to_owned(), pid: std::process::id(), system: Mutex::new(Some(system)) })
    }

    fn system(&self, py: Python<'_>) -> PyResult<System> {
        let name = &self.name;
        if std::process::id() != self.pid {
            let text = "this process was forked from the one that attached to it; attach here";
            return Err(misuse(py, format!("system {name}: {text}")));
        }
        let system = self.system.lock().unwrap_or_else(PoisonError::into_inner).clone();
        system.ok_or_else(|| misuse(py, format!("system {name}: it is closed; attach again")))
    }
}

fn config(
    py: Python<'_>,
    rule: &str,
    clusters: Option<&str>,
    tasks: u16,
    locks: Option<Vec<PyRef<'_, PyLock>>>,
) -> PyResult<Config> {
    let found = Rule::ALL.into_iter().find(|known| known.to_string() == rule);
    let unknown = || bad_argument(py, format!("rule {rule:?} is none; write \"EDF\", \"RM\", \"DM\" or \"FP\""));
    let clusters = match clusters {
        Some(text) => parse_clusters(text).map_err(|error| bad_argument(py, error))?,
        // Linux has no CPU that is numbered higher.
        None => {
            vec![scheduling::usable_cpus()?.into_iter().map(|cpu| u16::try_from(cpu).unwrap_or(u16::MAX)).collect()]
        }
    };
    let cpus = clusters.iter().map(Vec::len).sum();
    let locks = locks.unwrap_or_default().iter().map(|lock| lock.config(cpus)).collect();
    Ok(Config { tasks, locks, ..Config::new(found.ok_or_else(unknown)?, clusters) })
}

#[pymethods]
impl PySystem {
    /// Creates the system called `name`, or attaches to it if it is there already: for processes that all say the same and
    /// start in any order.
    ///
    /// Args:
    ///     name: for all processes, 1 to 200 bytes.
    ///     rule: which jobs are more urgent: "EDF" (the earliest deadline), "RM" (the shortest period), "DM" (the shortest
    ///         relative deadline), "FP" (the smallest given priority).
    ///     clusters: the CPUs of each cluster, numbered as Linux does: "0-3" is global, "0,1;2,3" clustered, "0;1"
    ///         partitioned scheduling. None: one cluster of all CPUs that this thread may use.
    ///     tasks: the most at a time, 1 to 1024.
    ///     locks: what its tasks share, `Lock.queue` and `Lock.tokens`, at most 256; their numbers are their positions.
    ///     directory: a folder in memory where names are; None: /dev/shm.
    ///
    /// Raises ConfigError for what cannot be, DifferentError if it is there and configured otherwise, else SchedError.
    #[staticmethod]
    #[pyo3(signature = (name, *, rule="EDF", clusters=None, tasks=64, locks=None, directory=None))]
    fn create_or_attach(
        py: Python<'_>,
        name: &str,
        rule: &str,
        clusters: Option<&str>,
        tasks: u16,
        locks: Option<Vec<PyRef<'_, PyLock>>>,
        directory: Option<PathBuf>,
    ) -> PyResult<Self> {
        let config = config(py, rule, clusters, tasks, locks)?;
        Self::open(py, directory, |registry| registry.create_or_attach(name, &config))
    }

    /// Creates the system called `name`; the arguments are those of `create_or_attach`. One whose processes are all dead
    /// is replaced.
    ///
    /// Raises SystemExistsError if one is in use, ConfigError, else SchedError.
    #[staticmethod]
    #[pyo3(signature = (name, *, rule="EDF", clusters=None, tasks=64, locks=None, directory=None))]
    fn create(
        py: Python<'_>,
        name: &str,
        rule: &str,
        clusters: Option<&str>,
        tasks: u16,
        locks: Option<Vec<PyRef<'_, PyLock>>>,
        directory: Option<PathBuf>,
    ) -> PyResult<Self> {
        let config = config(py, rule, clusters, tasks, locks)?;
        Self::open(py, directory, |registry| registry.create(name, &config))
    }

    /// Attaches to the system called `name`, however it is configured.
    ///
    /// Raises SystemNotFoundError, else SchedError.
    #[staticmethod]
    #[pyo3(signature = (name, *, directory=None))]
    fn attach(py: Python<'_>, name: &str, directory: Option<PathBuf>) -> PyResult<Self> {
        Self::open(py, directory, |registry| registry.attach(name))
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Which jobs are more urgent: "EDF", "RM", "DM" or "FP".
    #[getter]
    fn rule(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.system(py)?.config().rule.to_string())
    }

    /// For each cluster its CPUs, numbered as Linux does.
    #[getter]
    fn clusters(&self, py: Python<'_>) -> PyResult<Vec<Vec<u16>>> {
        Ok(self.system(py)?.config().clusters.clone())
    }

    /// This thread becomes a task: Laxity decides when it runs, on the CPUs of its cluster, above all ordinary threads.
    /// Threads and processes that it starts are scheduled as usual.
    ///
    /// Args:
    ///     name: for people, 1 to 64 bytes.
    ///     period: of its releases, or the least time between two, such as "10 ms".
    ///     deadline: relative to each release, such as "5 ms", and as long as is wanted; None: the period.
    ///     wcet: the most that a job takes, such as "2 ms"; None: not known. It is told to others, and not enforced.
    ///     budget: what jobs may take in each period, such as "3 ms", which is enforced; None: as much as they need.
    ///     server: what happens to a job that has used up the budget. "cbs_hard": it waits for that of the next period, and
    ///         code that goes on meanwhile is below all real-time threads. "cbs_soft", for "EDF": it goes on, due a period
    ///         later. "sporadic": it waits until what it used first comes back, a period after its use began.
    ///     cluster: which one schedules it, from 0.
    ///     priority: under "FP", its place among others: the smaller the more urgent.
    ///
    /// Raises RefusedError if Linux does not let the thread have SCHED_FIFO, ConfigError, FullError, UseError,
    /// ValueError for a span without a unit.
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    #[pyo3(signature = (name, *, period, deadline=None, wcet=None, budget=None, server="cbs_hard", cluster=0, priority=None))]
    fn task(
        &self,
        py: Python<'_>,
        name: &str,
        period: &str,
        deadline: Option<&str>,
        wcet: Option<&str>,
        budget: Option<&str>,
        server: &str,
        cluster: usize,
        priority: Option<u32>,
    ) -> PyResult<PyTask> {
        let span = |text: Option<&str>| text.map(str::parse::<Nanos>).transpose().map_err(value_error);
        let period = period.parse().map_err(value_error)?;
        let (deadline, wcet) = (span(deadline)?.unwrap_or(period), span(wcet)?.unwrap_or(Nanos::ZERO));
        let kind = ServerKind::ALL.into_iter().find(|kind| kind.name() == server).ok_or_else(|| {
            let [hard, soft, sporadic] = ServerKind::ALL.map(ServerKind::name);
            value_error(format!("server=\"{server}\" is unknown; write \"{hard}\", \"{soft}\" or \"{sporadic}\""))
        })?;
        let budget = span(budget)?;
        let server = budget.map(|_| kind);
        let parameters =
            Parameters { cluster, deadline, wcet, budget, server, priority, ..Parameters::periodic(name, period) };
        let task = self.system(py)?.begin(parameters.clone()).map_err(|error| begin_error(py, &error))?;
        let id = task.id().0;
        Ok(PyTask::new(Place::keep(name, task), id, parameters))
    }

    /// All tasks, and which has a CPU, now, as a `pyarrow.Table`; see `laxity.sched.look`. No task is delayed.
    fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let snapshot = self.system(py)?.snapshot().map_err(|error| sched_error(py, &error))?;
        table::rows(py, &self.name, &snapshot)
    }

    /// Leaves the system, once its tasks of this process are released, too.
    fn close(&self) {
        drop(self.system.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyTuple>) {
        self.close();
    }

    fn __repr__(&self) -> String {
        format!("<laxity.sched.System \"{}\">", self.name)
    }
}

fn registry(directory: Option<PathBuf>) -> Registry {
    directory.map_or_else(Registry::default, Registry::at)
}

/// The tasks of the system called `name`, now, without taking part and without delaying one.
///
/// Returns a `pyarrow.Table` with a row for each task. Columns: `task` (its number), `name`, `pid`, `thread`, `cluster`,
/// `state` ("parked": it waits for its next job; "ready": it waits for a CPU; "linked": it has one; "suspended"; "throttled":
/// suspended without a budget, amid code that goes on; "held"),
/// `cpu` (null where it has none), `job` and `deadline_ns` of the present or last job, `period_ns`, `relative_deadline_ns`,
/// `completed` (jobs), `late` (those of them that were), `tardiness_max_ns`. Its metadata has `system` and `rule`.
///
/// Args:
///     name: exactly.
///     directory: a folder where names are; None: /dev/shm.
///
/// Raises SystemNotFoundError, else SchedError.
#[pyfunction]
#[pyo3(signature = (name, *, directory=None))]
pub fn sched_look<'py>(py: Python<'py>, name: &str, directory: Option<PathBuf>) -> PyResult<Bound<'py, PyAny>> {
    let registry = registry(directory);
    let snapshot = py.detach(|| registry.look(name)).map_err(|error| sched_error(py, &error))?;
    table::rows(py, name, &snapshot)
}

/// The names of all systems, in order, used or left over by processes that were killed.
///
/// Args:
///     directory: a folder where names are; None: /dev/shm.
///
/// Raises SchedError.
#[pyfunction]
#[pyo3(signature = (*, directory=None))]
pub fn sched_names(py: Python<'_>, directory: Option<PathBuf>) -> PyResult<Vec<String>> {
    let registry = registry(directory);
    py.detach(|| registry.names()).map_err(|error| sched_error(py, &error))
}

/// Removes systems all of whose processes were killed, and answers with their names.
///
/// Args:
///     directory: a folder where names are; None: /dev/shm.
///
/// Raises SchedError.
#[pyfunction]
#[pyo3(signature = (*, directory=None))]
pub fn sched_gc(py: Python<'_>, directory: Option<PathBuf>) -> PyResult<Vec<String>> {
    let registry = registry(directory);
    py.detach(|| registry.gc()).map_err(|error| sched_error(py, &error))
}
