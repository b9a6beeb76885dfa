//! `laxity.gpu.Token`.

use laxity_model::{CopyDirection, Engine};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::chunks::PyCopyChunks;
use super::client::PyClient;
use super::engine::PyEngine;
use super::errors::{bad_argument, misuse};
use crate::live::waiting;

/// The right to use a GPU for one job. A context manager: at the end of `with` its engines are unlocked, then the token is
/// returned. The same happens when no reference to it is left.
#[pyclass(frozen, module = "laxity.gpu", name = "Token")]
pub struct PyToken {
    client: Py<PyClient>,
    number: u64,
    gpu: u16,
    replica: u16,
}

impl PyToken {
    pub fn new(client: Py<PyClient>, number: u64, gpu: u16, replica: u16) -> Self {
        PyToken { client, number, gpu, replica }
    }

    pub fn client(&self) -> &Py<PyClient> {
        &self.client
    }

    /// Waits for `engine`; its number from then on.
    pub fn lock(&self, py: Python<'_>, engine: Engine, timeout: Option<&str>) -> PyResult<u64> {
        let (place, number) = (self.client.get().place(), self.number);
        let deadline = waiting::deadline(timeout)?;
        place.wait(
            py,
            move |own, go_on| {
                if !own.has_token(number) {
                    return None;
                }
                let ask = |token: &laxity_gpu::Token<'_>| Ok(token.engine_while(engine, deadline, go_on)?.detach());
                Some(own.ask_token(ask)?.map(|engine| own.hold_engine(engine)))
            },
            |own, engine| own.release_engine(engine),
            "the token was let go of; ask for another",
        )
    }

    fn engine(slf: &Bound<'_, Self>, engine: Engine, timeout: Option<&str>) -> PyResult<PyEngine> {
        let token = slf.get();
        let number = token.lock(slf.py(), engine, timeout)?;
        Ok(PyEngine::new(slf.clone().unbind(), number, token.gpu, engine))
    }

    /// The engine that copies in the direction that is named.
    fn copy_engine_of(&self, py: Python<'_>, direction: &str) -> PyResult<Engine> {
        let direction = match direction {
            "h2d" => CopyDirection::In,
            "d2h" => CopyDirection::Out,
            _ => {
                let text = format!("direction {direction:?} is none; write \"h2d\" (to the GPU) or \"d2h\" (from it)");
                return Err(bad_argument(py, text));
            }
        };
        Ok(self.client.get().config().copy_engine(direction))
    }
}

#[pymethods]
impl PyToken {
    /// The GPU, counted from 0.
    #[getter]
    fn gpu(&self) -> u16 {
        self.gpu
    }

    /// Which of the tokens of all GPUs.
    #[getter]
    fn replica(&self) -> u16 {
        self.replica
    }

    /// Waits for the engine that executes GPU kernels. It is held from this call on; `with` lets go of it.
    ///
    /// Args:
    ///     timeout: as for tokens.
    ///
    /// Raises TimedOutError, OrderError if the client holds it or one that comes later, UseError.
    #[pyo3(signature = (*, timeout=None))]
    fn execution_engine(slf: &Bound<'_, Self>, timeout: Option<&str>) -> PyResult<PyEngine> {
        Self::engine(slf, Engine::Execution, timeout)
    }

    /// Waits for the engine that copies in a direction. It is held from this call on; `with` lets go of it.
    ///
    /// Args:
    ///     direction: "h2d", from host to device, or "d2h"; a GPU with one copy engine has the same for both.
    ///     timeout: as for tokens.
    ///
    /// Raises ConfigError, TimedOutError, OrderError, UseError.
    #[pyo3(signature = (direction, *, timeout=None))]
    fn copy_engine(slf: &Bound<'_, Self>, direction: &str, timeout: Option<&str>) -> PyResult<PyEngine> {
        let engine = slf.get().copy_engine_of(slf.py(), direction)?;
        Self::engine(slf, engine, timeout)
    }

    /// Goes through a copy of `nbytes` bytes in chunks of the size that is configured: an iterator of slices of bytes.
    /// During each the engine is held, and let go of after it, so that a more urgent copy waits for one chunk at most.
    ///
    /// Args:
    ///     direction: as for `copy_engine`.
    ///     nbytes: of the whole copy.
    ///     timeout: for each chunk, as for tokens.
    ///
    /// Raises ConfigError; the iterator raises what `copy_engine` does.
    #[pyo3(signature = (direction, nbytes, *, timeout=None))]
    fn copy_chunks(
        slf: &Bound<'_, Self>,
        direction: &str,
        nbytes: u64,
        timeout: Option<String>,
    ) -> PyResult<PyCopyChunks> {
        // Said now, not at the first chunk.
        waiting::deadline(timeout.as_deref())?;
        let engine = slf.get().copy_engine_of(slf.py(), direction)?;
        let chunk = slf.get().client.get().config().chunk().unwrap_or(nbytes).max(1);
        Ok(PyCopyChunks::new(slf.clone().unbind(), engine, nbytes, chunk, timeout))
    }

    /// The job is over: lets go of it, and before that of all engines; of what was let go of already, nothing. Raises
    /// UseError in another thread.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        self.client.get().place().let_go(py, |own| own.release_token(self.number))
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let (py, token) = (slf.py(), slf.get());
        let is_held = token.client.get().place().with(py, |own| own.has_token(token.number))?;
        if is_held { Ok(slf) } else { Err(misuse(py, "the token was let go of; ask for another")) }
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.release(py)
    }

    fn __repr__(&self) -> String {
        format!("<laxity.gpu.Token {} of GPU {}>", self.replica, self.gpu)
    }
}

impl Drop for PyToken {
    fn drop(&mut self) {
        self.client.get().place().quietly(|own| own.release_token(self.number));
    }
}
