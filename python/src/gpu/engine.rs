//! `laxity.gpu.Engine`.

use laxity_model::Engine;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::errors::misuse;
use super::token::PyToken;

/// An engine of a GPU, held from the call that answered with it. A context manager: it is unlocked at the end of `with`.
/// It is also unlocked with its token, and when no reference to it is left.
#[pyclass(frozen, module = "laxity.gpu", name = "Engine")]
pub struct PyEngine {
    token: Py<PyToken>,
    number: u64,
    gpu: u16,
    engine: Engine,
}

impl PyEngine {
    pub fn new(token: Py<PyToken>, number: u64, gpu: u16, engine: Engine) -> Self {
        PyEngine { token, number, gpu, engine }
    }
}

#[pymethods]
impl PyEngine {
    /// Its GPU, counted from 0.
    #[getter]
    fn gpu(&self) -> u16 {
        self.gpu
    }

    /// "EE", "CE0" or "CE1".
    #[getter]
    fn name(&self) -> &'static str {
        self.engine.name()
    }

    /// Lets go of it; of what was let go of already, nothing. Raises UseError in another thread.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        self.token.get().client().get().place().let_go(py, |own| own.release_engine(self.number))
    }

    /// Raises UseError if it was let go of, by itself or with its token.
    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let (py, engine) = (slf.py(), slf.get());
        let is_held = engine.token.get().client().get().place().with(py, |own| own.has_engine(engine.number))?;
        if is_held { Ok(slf) } else { Err(misuse(py, "the engine was let go of; ask the token for it again")) }
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.release(py)
    }

    fn __repr__(&self) -> String {
        format!("<laxity.gpu.Engine {} of GPU {}>", self.engine.name(), self.gpu)
    }
}

impl Drop for PyEngine {
    fn drop(&mut self) {
        self.token.get().client().get().place().quietly(|own| own.release_engine(self.number));
    }
}
