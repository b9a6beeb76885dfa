//! `laxity.gpu.Budget`.

use laxity_gpu::{Budget, StateError};
use pyo3::prelude::*;

use super::errors::gpu_error;

/// The budget of a client's jobs, for the thread that watches it, which may be any thread of the process. It may outlive
/// its client; then its methods do nothing.
#[pyclass(frozen, module = "laxity.gpu", name = "Budget")]
pub struct PyBudget {
    name: String,
    budget: Budget,
}

impl PyBudget {
    pub fn new(name: &str, budget: Budget) -> Self {
        PyBudget { name: name.to_owned(), budget }
    }

    fn change(&self, py: Python<'_>, change: impl FnOnce(&Budget) -> Result<(), StateError> + Send) -> PyResult<()> {
        // Others may be at the gate.
        py.detach(|| change(&self.budget)).map_err(|error| gpu_error(py, &error))
    }
}

#[pymethods]
impl PyBudget {
    /// The job has no budget any more: its request is withdrawn, though its thread goes on waiting; if it holds a token,
    /// the next in the queue is admitted in its place, and has the token when the job lets go of it. Nothing happens if
    /// that is known. Raises GpuError.
    fn exhaust(&self, py: Python<'_>) -> PyResult<()> {
        self.change(py, Budget::exhaust)
    }

    /// The job has budget again: it repeats its request, behind the requests that were made meanwhile. If it still holds a
    /// token, that token does not get its place in the queue back. Nothing happens if that is known. Raises GpuError.
    fn replenish(&self, py: Python<'_>) -> PyResult<()> {
        self.change(py, Budget::replenish)
    }

    fn __repr__(&self) -> String {
        format!("<laxity.gpu.Budget of \"{}\">", self.name)
    }
}
