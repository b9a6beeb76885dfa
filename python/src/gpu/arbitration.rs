//! `laxity.gpu.Arbitration`, and what there is without one.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use laxity_gpu::{Arbitration, Config, Inheritance, Registry, RegistryError, Snapshot};
use laxity_model::{EngineOrder, GpuArbitration, GpuSync, parse_size};
use laxity_sys::scheduling;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::client::{self, PyClient};
use super::errors::{bad_argument, gpu_error, misuse};
use super::own::Place;
use super::table;

/// GPUs that processes share, which this process is attached to. A context manager: at the end of `with` it is closed;
/// its clients go on until they are released. The last process to leave takes the arbitration along.
///
/// Threads share it, and each that uses GPUs registers by `client`. A child made by `fork` attaches by itself.
///
/// Raises UseError from all that is called after it is closed or in a forked child.
#[pyclass(frozen, module = "laxity.gpu", name = "Arbitration")]
pub struct PyArbitration {
    name: String,
    pid: u32,
    arbitration: Mutex<Option<Arbitration>>,
}

/// By which rules, as Python says it.
struct Rules<'a> {
    gpus: u16,
    cpus: Option<u16>,
    tokens: u32,
    fifo: Option<u32>,
    engines: &'a str,
    copy_engines: u8,
    chunk: Option<&'a str>,
    clients: u16,
    protocol: &'a str,
}

impl Rules<'_> {
    fn config(&self, py: Python<'_>) -> PyResult<Config> {
        let cpus = self.cpus.unwrap_or_else(|| u16::try_from(scheduling::cpus()).unwrap_or(u16::MAX));
        let engine_order = match self.engines {
            "fifo" => EngineOrder::Fifo,
            "prio" => EngineOrder::Priority,
            other => {
                let text = format!("engines {other:?} is none; write \"fifo\" (first come, first served) or \"prio\"");
                return Err(bad_argument(py, text));
            }
        };
        let chunk = self.chunk.map(parse_size).transpose().map_err(|reason| bad_argument(py, reason))?;
        let arbitration = match self.protocol {
            "gpusync" => GpuArbitration::GpuSync(GpuSync {
                tokens: self.tokens,
                fifo_length: self.fifo,
                engine_order,
                chunk,
                ..GpuSync::DEFAULT
            }),
            "k_fmlp" => GpuArbitration::KFmlp { length_aware: false },
            other => {
                let text = format!("protocol {other:?} is none; write \"gpusync\" or \"k_fmlp\"");
                return Err(bad_argument(py, text));
            }
        };
        let (copy_engines, clients) = (self.copy_engines, self.clients);
        Ok(Config { copy_engines, clients, arbitration, ..Config::new(cpus, self.gpus) })
    }
}

impl PyArbitration {
    fn open(
        py: Python<'_>,
        directory: Option<PathBuf>,
        open: impl FnOnce(&Registry) -> Result<Arbitration, RegistryError> + Send,
        name: &str,
    ) -> PyResult<Self> {
        let registry = registry(directory);
        let arbitration = py.detach(|| open(&registry)).map_err(|error| gpu_error(py, &error))?;
        let arbitration = Mutex::new(Some(arbitration));
        Ok(PyArbitration { name: name.to_owned(), pid: std::process::id(), arbitration })
    }

    pub fn arbitration(&self, py: Python<'_>) -> PyResult<Arbitration> {
        let name = &self.name;
        if std::process::id() != self.pid {
            let text = "this process was forked from the one that attached to it; attach here";
            return Err(misuse(py, format!("arbitration {name}: {text}")));
        }
        let arbitration = self.arbitration.lock().unwrap_or_else(PoisonError::into_inner).clone();
        arbitration.ok_or_else(|| misuse(py, format!("arbitration {name}: it is closed; attach again")))
    }
}

#[pymethods]
impl PyArbitration {
    /// Creates the arbitration called `name`, or attaches to it if it is there already: for processes that all say the
    /// same and start in any order.
    ///
    /// Args:
    ///     name: for all processes, 1 to 200 bytes.
    ///     gpus: how many, 1 to 64.
    ///     cpus: that the threads run on which share them; None: all of the machine.
    ///     tokens: of each GPU (rho): so many jobs may use it at a time. GPUSync.
    ///     fifo: the most requests in the queue of a token, its holder's included (f); None: as many as it takes for all
    ///         CPUs. GPUSync.
    ///     engines: go to the first waiter ("fifo") or to the most urgent one ("prio"). GPUSync.
    ///     copy_engines: of each GPU: 1, for both directions, or 2.
    ///     chunk: copies are broken into chunks of at most this size, such as "1 MiB"; None: they are not. GPUSync.
    ///     clients: the most threads that may be registered at a time.
    ///     protocol: "gpusync", or "k_fmlp": one token a GPU, first come, first served.
    ///     directory: a folder in memory where names are; None: /dev/shm.
    ///
    /// Raises ConfigError for what cannot be, DifferentError if it is there and configured otherwise, else GpuError.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    #[pyo3(signature = (
        name, *, gpus, cpus=None, tokens=1, fifo=None, engines="fifo", copy_engines=2, chunk=None, clients=64,
        protocol="gpusync", directory=None
    ))]
    fn create_or_attach(
        py: Python<'_>,
        name: &str,
        gpus: u16,
        cpus: Option<u16>,
        tokens: u32,
        fifo: Option<u32>,
        engines: &str,
        copy_engines: u8,
        chunk: Option<&str>,
        clients: u16,
        protocol: &str,
        directory: Option<PathBuf>,
    ) -> PyResult<Self> {
        let rules = Rules { gpus, cpus, tokens, fifo, engines, copy_engines, chunk, clients, protocol };
        let config = rules.config(py)?;
        Self::open(py, directory, |registry| registry.create_or_attach(name, &config), name)
    }

    /// Creates the arbitration called `name`; the arguments are those of `create_or_attach`. One whose processes are all
    /// dead is replaced.
    ///
    /// Raises ArbitrationExistsError if one is in use, ConfigError, else GpuError.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    #[pyo3(signature = (
        name, *, gpus, cpus=None, tokens=1, fifo=None, engines="fifo", copy_engines=2, chunk=None, clients=64,
        protocol="gpusync", directory=None
    ))]
    fn create(
        py: Python<'_>,
        name: &str,
        gpus: u16,
        cpus: Option<u16>,
        tokens: u32,
        fifo: Option<u32>,
        engines: &str,
        copy_engines: u8,
        chunk: Option<&str>,
        clients: u16,
        protocol: &str,
        directory: Option<PathBuf>,
    ) -> PyResult<Self> {
        let rules = Rules { gpus, cpus, tokens, fifo, engines, copy_engines, chunk, clients, protocol };
        let config = rules.config(py)?;
        Self::open(py, directory, |registry| registry.create(name, &config), name)
    }

    /// Attaches to the arbitration called `name`, however it is configured.
    ///
    /// Raises ArbitrationNotFoundError, else GpuError.
    #[staticmethod]
    #[pyo3(signature = (name, *, directory=None))]
    fn attach(py: Python<'_>, name: &str, directory: Option<PathBuf>) -> PyResult<Self> {
        Self::open(py, directory, |registry| registry.attach(name), name)
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// How many GPUs it has.
    #[getter]
    fn gpus(&self, py: Python<'_>) -> PyResult<u16> {
        Ok(self.arbitration(py)?.config().gpus)
    }

    /// Whether Linux lets this process raise threads, so that holders really run at the priority that they inherit. If
    /// not, grants are in the right order all the same.
    #[getter]
    fn inherits(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.arbitration(py)?.inheritance() == Inheritance::Real)
    }

    /// The least budget of all threads that hold the bandwidth lock, in bytes a second; None while it is free.
    #[getter]
    fn bandwidth_budget(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        Ok(self.arbitration(py)?.bandwidth_budget())
    }

    /// Counts `nbytes` of memory traffic of this thread on its CPU. A best-effort program that is regulated by what it counts
    /// calls this after every piece of work.
    fn count_traffic(&self, py: Python<'_>, nbytes: u64) -> PyResult<()> {
        self.arbitration(py)?.count_traffic(nbytes);
        Ok(())
    }

    /// Registers this thread.
    ///
    /// Args:
    ///     name: as `look` shows it, 1 to 64 bytes.
    ///     priority: how urgent it is among those that wait: 1 to 99 as of SCHED_FIFO, the larger the more urgent.
    ///     deadline_ns: of its job, in ns of `time.monotonic_ns`: the earlier the more urgent, and less urgent than any
    ///         priority. With neither it is less urgent than any other.
    ///
    /// How Linux schedules the thread is read, not set. Raises ConfigError, FullError, UseError.
    #[pyo3(signature = (name, priority=None, *, deadline_ns=None))]
    fn client(&self, py: Python<'_>, name: &str, priority: Option<u8>, deadline_ns: Option<u64>) -> PyResult<PyClient> {
        let arbitration = self.arbitration(py)?;
        let base = client::base(py, priority, deadline_ns)?;
        let client = arbitration.register(name, base).map_err(|error| gpu_error(py, &error))?;
        let id = client.id().0;
        Ok(PyClient::new(Place::keep(client, name), id, *arbitration.config()))
    }

    /// Holders and waiters of all tokens and engines, now, as a `pyarrow.Table`; see `laxity.gpu.look`. No client is delayed.
    fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let snapshot = self.arbitration(py)?.snapshot().map_err(|error| gpu_error(py, &error))?;
        table::rows(py, &snapshot)
    }

    /// Leaves the arbitration, once its clients of this process are released, too.
    fn close(&self) {
        drop(self.arbitration.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyTuple>) {
        self.close();
    }

    /// The snapshot, for people.
    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        let snapshot: Snapshot = self.arbitration(py)?.snapshot().map_err(|error| gpu_error(py, &error))?;
        Ok(snapshot.to_string())
    }

    fn __repr__(&self) -> String {
        format!("<laxity.gpu.Arbitration \"{}\">", self.name)
    }
}

fn registry(directory: Option<PathBuf>) -> Registry {
    directory.map_or_else(Registry::default, Registry::at)
}

/// Holders and waiters in the arbitration called `name`, now, without taking part.
///
/// Returns a `pyarrow.Table` with a row for each token and engine that is free ("free") or held ("holds"), for each
/// client that waits ("waits" in a queue, "outside" of all, or "donates" its priority there), and for each client that
/// does neither ("idle"). Columns: `gpu`, `lock` ("token", "EE", "CE0", "CE1"), `token` (its number), `state`,
/// `position` (1 is next), `client`, `name`, `pid`, `thread`, `priority`, `deadline_ns` (its own urgency),
/// `effective_priority`, `effective_deadline_ns` (with what it inherits), `inherits_from` (a client), `donee` (a
/// client). Columns that do not apply are null.
///
/// Args:
///     name: exactly.
///     directory: a folder where names are; None: /dev/shm.
///
/// Raises ArbitrationNotFoundError, else GpuError.
#[pyfunction]
#[pyo3(signature = (name, *, directory=None))]
pub fn look<'py>(py: Python<'py>, name: &str, directory: Option<PathBuf>) -> PyResult<Bound<'py, PyAny>> {
    let registry = registry(directory);
    let snapshot = py.detach(|| registry.look(name)).map_err(|error| gpu_error(py, &error))?;
    table::rows(py, &snapshot)
}

/// The names of all arbitrations, in order, used or left over by processes that were killed.
///
/// Args:
///     directory: a folder where names are; None: /dev/shm.
///
/// Raises GpuError.
#[pyfunction]
#[pyo3(signature = (*, directory=None))]
pub fn names(py: Python<'_>, directory: Option<PathBuf>) -> PyResult<Vec<String>> {
    let registry = registry(directory);
    py.detach(|| registry.names()).map_err(|error| gpu_error(py, &error))
}

/// Removes arbitrations all of whose processes were killed, and answers with their names.
///
/// Args:
///     directory: a folder where names are; None: /dev/shm.
///
/// Raises GpuError.
#[pyfunction]
#[pyo3(signature = (*, directory=None))]
pub fn gc(py: Python<'_>, directory: Option<PathBuf>) -> PyResult<Vec<String>> {
    let registry = registry(directory);
    py.detach(|| registry.gc()).map_err(|error| gpu_error(py, &error))
}
