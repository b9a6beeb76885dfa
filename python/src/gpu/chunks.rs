//! `laxity.gpu.CopyChunks`.

use std::sync::{Mutex, PoisonError};

use laxity_model::Engine;
use pyo3::prelude::*;
use pyo3::types::PySlice;

use super::token::PyToken;

/// A copy in chunks: an iterator of slices of bytes, counted from the start of the copy. The engine is held from when a
/// slice is given until the next is asked for, or until no reference to the iterator is left, as after `break`.
#[pyclass(frozen, module = "laxity.gpu", name = "CopyChunks")]
pub struct PyCopyChunks {
    token: Py<PyToken>,
    engine: Engine,
    bytes: u64,
    chunk: u64,
    timeout: Option<String>,
    progress: Mutex<Progress>,
}

/// How far a copy is.
#[derive(Clone, Copy, Default)]
struct Progress {
    done: u64,
    /// The number of the engine that is held.
    held: Option<u64>,
}

impl PyCopyChunks {
    pub fn new(token: Py<PyToken>, engine: Engine, bytes: u64, chunk: u64, timeout: Option<String>) -> Self {
        PyCopyChunks { token, engine, bytes, chunk, timeout, progress: Mutex::default() }
    }

    fn progress(&self) -> Progress {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_progress(&self, progress: Progress) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = progress;
    }
}

#[pymethods]
impl PyCopyChunks {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Waits for the engine for the next chunk. After an exception it may be called again.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PySlice>>> {
        let Progress { done, held } = self.progress();
        if let Some(engine) = held {
            let place = self.token.get().client().get().place();
            place.let_go(py, |own| own.release_engine(engine))?;
            self.set_progress(Progress { done, held: None });
        }
        if done == self.bytes {
            return Ok(None);
        }
        // The lock is not held while this waits.
        let engine = self.token.get().lock(py, self.engine, self.timeout.as_deref())?;
        let end = done + self.chunk.min(self.bytes - done);
        self.set_progress(Progress { done: end, held: Some(engine) });
        let index = |bytes: u64| isize::try_from(bytes).map_err(crate::errors::value_error);
        Ok(Some(PySlice::new(py, index(done)?, index(end)?, 1)))
    }
}

impl Drop for PyCopyChunks {
    fn drop(&mut self) {
        if let Some(engine) = self.progress().held {
            self.token.get().client().get().place().quietly(|own| own.release_engine(engine));
        }
    }
}
