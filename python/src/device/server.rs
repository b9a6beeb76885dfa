//! The server of a soft GPU, as a program of Python's: where the package is, there is one.

use laxity_softgpu::server::{Server, ServerError, arguments};
use pyo3::prelude::*;

/// Is the server of a soft GPU until no process needs it; does what the program `laxity-softgpu-server` does.
///
/// `say` gets the line that says that processes can connect. Raises ValueError for arguments that are none, RuntimeError
/// if it cannot be.
#[pyfunction]
pub fn _serve_soft_gpu(py: Python<'_>, arguments: Vec<String>, say: &Bound<'_, PyAny>) -> PyResult<()> {
    let (name, config) = arguments::read(arguments.into_iter()).map_err(crate::errors::value_error)?;
    match Server::new(&name, config) {
        Ok(server) => {
            say.call1(("ready",))?;
            py.detach(|| server.run());
            Ok(())
        }
        Err(ServerError::Running) => say.call1(("ready",)).map(drop),
        Err(error) => Err(pyo3::exceptions::PyRuntimeError::new_err(error.to_string())),
    }
}
