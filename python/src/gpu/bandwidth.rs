//! `laxity.gpu.BandwidthLock`.

use std::sync::atomic::{AtomicBool, Ordering};

use laxity_model::{parse_rate, write_rate};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::client::PyClient;
use super::errors::{bad_argument, gpu_error, misuse};

/// A section in which a thread holds the bandwidth lock: every regulated CPU may have at most `budget` of memory traffic.
/// A context manager: the section ends with `with`. It also ends with its client, and when no reference to it is left.
#[pyclass(frozen, module = "laxity.gpu", name = "BandwidthLock")]
pub struct PyBandwidthLock {
    client: Py<PyClient>,
    budget: u64,
    is_over: AtomicBool,
}

impl PyBandwidthLock {
    /// Begins the section.
    pub fn begin(client: &Bound<'_, PyClient>, budget: &str) -> PyResult<Self> {
        let py = client.py();
        let budget = parse_rate(budget).map_err(|reason| bad_argument(py, reason))?;
        let locked = client.get().place().with(py, |own| own.client.begin_bandwidth(budget))?;
        locked.map_err(|error| gpu_error(py, &error))?;
        Ok(PyBandwidthLock { client: client.clone().unbind(), budget, is_over: AtomicBool::new(false) })
    }
}

#[pymethods]
impl PyBandwidthLock {
    /// What each regulated CPU may have meanwhile, in bytes a second.
    #[getter]
    fn budget(&self) -> u64 {
        self.budget
    }

    /// Ends the section; one that has ended does nothing. Raises UseError in another thread.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        self.client.get().place().let_go(py, |own| {
            if !self.is_over.swap(true, Ordering::SeqCst) {
                own.client.end_section(self.budget);
            }
        })
    }

    /// Raises UseError if the section has ended.
    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let (py, lock) = (slf.py(), slf.get());
        // With its client every section has ended.
        let is_over = lock.client.get().place().with(py, |_| lock.is_over.load(Ordering::SeqCst))?;
        if is_over { Err(misuse(py, "the section has ended; begin another")) } else { Ok(slf) }
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.release(py)
    }

    fn __repr__(&self) -> String {
        format!("<laxity.gpu.BandwidthLock with {}>", write_rate(self.budget))
    }
}

impl Drop for PyBandwidthLock {
    fn drop(&mut self) {
        if !self.is_over.load(Ordering::SeqCst) {
            self.client.get().place().quietly(|own| own.client.end_section(self.budget));
        }
    }
}
