//! `laxity.gpu.Client`.

use laxity_gpu::{Base, Config, TokenRequest};
use laxity_model::{Instant, Nanos};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::bandwidth::PyBandwidthLock;
use super::budget::PyBudget;
use super::errors::{bad_argument, gpu_error, out_of_order};
use super::own::Place;
use super::token::PyToken;
use crate::errors::value_error;
use crate::live::waiting;

/// A thread that takes part in an arbitration: the one that called `Arbitration.client`, which alone uses it (in others
/// everything raises UseError). A context manager: at the end of `with`, as when its thread ends or its process dies,
/// whatever it holds goes to the next.
///
/// It holds at most one token, and engines in the order of GPUs and of EE, CE0, CE1.
#[pyclass(frozen, module = "laxity.gpu", name = "Client")]
pub struct PyClient {
    place: Place,
    id: u32,
    config: Config,
}

impl PyClient {
    pub fn new(place: Place, id: u32, config: Config) -> Self {
        PyClient { place, id, config }
    }

    pub fn place(&self) -> &Place {
        &self.place
    }

    pub fn config(&self) -> &Config {
        &self.config
    }
}

/// How urgent a thread is, from what Python says.
pub fn base(py: Python<'_>, priority: Option<u8>, deadline_ns: Option<u64>) -> PyResult<Base> {
    match (priority, deadline_ns) {
        (None, None) => Ok(Base::Background),
        (Some(priority), None) => Ok(Base::Fixed(priority)),
        (None, Some(deadline)) => Ok(Base::Deadline(Instant(deadline))),
        (Some(_), Some(_)) => {
            Err(bad_argument(py, "priority and deadline_ns: a client has one of them; leave the other out"))
        }
    }
}

#[pymethods]
impl PyClient {
    /// As it registered.
    #[getter]
    fn name(&self) -> &str {
        self.place.name()
    }

    /// Its number in snapshots.
    #[getter]
    fn id(&self) -> u32 {
        self.id
    }

    /// As urgent as this from now on: a job with another deadline begins, or how Linux schedules this thread was changed,
    /// which is read anew. To be called between jobs.
    ///
    /// Args:
    ///     priority: 1 to 99 as of SCHED_FIFO, the larger the more urgent.
    ///     deadline_ns: in ns of `time.monotonic_ns`, the earlier the more urgent; less urgent than any priority. With
    ///         neither it is less urgent than any other.
    ///
    /// Raises ConfigError, OrderError if it holds a token, UseError.
    #[pyo3(signature = (priority=None, *, deadline_ns=None))]
    fn rebase(&self, py: Python<'_>, priority: Option<u8>, deadline_ns: Option<u64>) -> PyResult<()> {
        let base = base(py, priority, deadline_ns)?;
        let outcome = self.place.with(py, |own| own.rebase(base))?;
        let outcome = outcome.ok_or_else(|| out_of_order(py, self.place.name()))?;
        outcome.map_err(|error| gpu_error(py, &error))
    }

    /// Waits for a token, the right to use a GPU for one job. Other threads of Python go on meanwhile.
    ///
    /// Args:
    ///     gpu: the only GPU that will do, counted from 0; None: any.
    ///     timeout: how long to wait, such as "5 ms"; "0 s" not at all; None for ever, until Ctrl-C.
    ///     length: bound on how long it will be held, such as "2 ms", for what predicts waiting times; None: not known.
    ///
    /// Raises TimedOutError, UnknownGpuError, OrderError if it holds one already, UseError, ValueError for a span
    /// without a unit.
    #[pyo3(signature = (gpu=None, *, timeout=None, length=None))]
    fn token(
        slf: &Bound<'_, Self>,
        gpu: Option<u16>,
        timeout: Option<&str>,
        length: Option<&str>,
    ) -> PyResult<PyToken> {
        let (py, place) = (slf.py(), &slf.get().place);
        let length: Option<Nanos> = length.map(str::parse).transpose().map_err(value_error)?;
        let ask = TokenRequest { gpu, length: length.unwrap_or_default(), deadline: waiting::deadline(timeout)? };
        let (number, gpu, replica) = place.wait(
            py,
            |own, go_on| {
                let granted =
                    own.client.request_while(ask, go_on).map(|token| (token.gpu(), token.replica(), token.detach()));
                Some(granted.map(|(gpu, replica, token)| (own.hold_token(token), gpu, replica.0)))
            },
            |own, (number, _, _)| own.release_token(number),
            "it has none",
        )?;
        Ok(PyToken::new(slf.clone().unbind(), number, gpu, replica))
    }

    /// Begins a section in which this thread holds the bandwidth lock: every regulated CPU (`laxity bandwidth regulate`)
    /// may have at most `budget` of memory traffic. It excludes no thread, sections nest, and the least budget of all
    /// holders counts. A context manager.
    ///
    /// Args:
    ///     budget: such as "64 MB/s".
    ///
    /// Raises ConfigError for what is no budget, UseError.
    fn lock_bandwidth(slf: &Bound<'_, Self>, budget: &str) -> PyResult<PyBandwidthLock> {
        PyBandwidthLock::begin(slf, budget)
    }

    /// The budget of this client's jobs. A thread that watches it, which may be any thread of the process, tells it when a
    /// job has exhausted it: this client's own thread may be waiting then. Raises UseError.
    fn budget(&self, py: Python<'_>) -> PyResult<PyBudget> {
        let budget = self.place.with(py, |own| own.client.budget())?;
        Ok(PyBudget::new(self.place.name(), budget))
    }

    /// Whether the budget of its job is exhausted: one that holds a token had best let go of it. Raises UseError.
    #[getter]
    fn is_exhausted(&self, py: Python<'_>) -> PyResult<bool> {
        self.place.with(py, |own| own.client.is_exhausted())
    }

    /// Lets go of whatever it holds, and forgets the thread. Raises UseError in another thread.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        self.place.release(py)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.release(py)
    }

    fn __repr__(&self) -> String {
        format!("<laxity.gpu.Client {} \"{}\">", self.id, self.place.name())
    }
}

impl Drop for PyClient {
    fn drop(&mut self) {
        self.place.forget();
    }
}
