//! `laxity.live.Registry`.

use std::path::PathBuf;

use laxity_graph::{Registry, RegistryError};
use pyo3::prelude::*;

use super::errors::registry_error;
use super::graph::PyGraph;
use super::spec::PySpec;
use super::waiting;

/// Where live graphs have their names: a folder in memory.
///
/// Args:
///     directory: an existing folder; one on a disk works, more slowly. Processes meet if they use the same.
#[pyclass(frozen, module = "laxity.live", name = "Registry")]
pub struct PyRegistry {
    registry: Registry,
}

#[pymethods]
impl PyRegistry {
    #[new]
    #[pyo3(signature = (directory=None))]
    fn new(directory: Option<PathBuf>) -> Self {
        PyRegistry { registry: directory.map_or_else(Registry::default, Registry::at) }
    }

    /// The folder, "/dev/shm" unless another was given.
    #[getter]
    fn directory(&self) -> String {
        self.registry.directory().display().to_string()
    }

    /// Creates the graph that `spec` describes, under its name, and attaches this process. A graph of this name whose
    /// processes are all dead is replaced.
    ///
    /// Raises GraphExistsError if one is in use, else RegistryError.
    fn create(&self, py: Python<'_>, spec: &PySpec) -> PyResult<PyGraph> {
        let name = &spec.spec.graph().name;
        let graph = py.detach(|| self.registry.create(&spec.spec));
        graph.map(PyGraph::new).map_err(|error| registry_error(py, name, &error))
    }

    /// Attaches this process to the graph called `name`.
    ///
    /// Args:
    ///     name: exactly.
    ///     timeout: how long the graph may take to be created, such as "5 s"; None waits for ever; Ctrl-C ends that.
    ///
    /// Raises GraphNotFoundError, else RegistryError.
    #[pyo3(signature = (name, timeout=Some("0 s")), text_signature = "($self, name, timeout=\"0 s\")")]
    fn attach(&self, py: Python<'_>, name: &str, timeout: Option<&str>) -> PyResult<PyGraph> {
        let deadline = waiting::deadline(timeout)?;
        let found = waiting::wait_until(py, deadline, |until| match self.registry.attach_until(name, until) {
            Err(RegistryError::NotFound { .. }) => None,
            found => Some(found),
        })?;
        let found = found.unwrap_or_else(|| Err(RegistryError::NotFound { name: name.to_owned() }));
        found.map(PyGraph::new).map_err(|error| registry_error(py, name, &error))
    }

    /// Creates the graph that `spec` describes, or attaches to it if it is there: for processes that all know it and
    /// start in any order.
    ///
    /// Raises RegistryError, also if a graph of this name is not the same.
    fn create_or_attach(&self, py: Python<'_>, spec: &PySpec) -> PyResult<PyGraph> {
        let name = &spec.spec.graph().name;
        let graph = py.detach(|| self.registry.create_or_attach(&spec.spec));
        graph.map(PyGraph::new).map_err(|error| registry_error(py, name, &error))
    }

    /// The names of all graphs, in order, used or left over by processes that were killed.
    fn names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        py.detach(|| self.registry.names()).map_err(|error| registry_error(py, "", &error))
    }

    /// Whether a process that lives is attached to the graph called `name`. Raises GraphNotFoundError, else
    /// RegistryError.
    fn is_in_use(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        py.detach(|| self.registry.is_in_use(name)).map_err(|error| registry_error(py, name, &error))
    }

    /// Removes graphs all of whose processes were killed, and answers with their names.
    fn gc(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        py.detach(|| self.registry.gc()).map_err(|error| registry_error(py, "", &error))
    }

    fn __repr__(&self) -> String {
        format!("<laxity.live.Registry {}>", self.directory())
    }
}
