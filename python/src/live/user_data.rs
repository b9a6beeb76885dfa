//! `laxity.live.UserData`.

use laxity_graph::{Graph, UserData, UserDataError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

use super::errors::{misuse, registry_error};

/// The bytes that a user keeps with a node or an edge: as many as `Spec.with_node_data` or `Spec.with_edge_data` said, at
/// first zeros. Any process may read and write at any time. A reader gets one value as it was written, never parts of
/// two, and never waits.
///
/// `len` is how many bytes there are. Writing raises UseError in a forked child. It keeps this process attached to the graph.
#[pyclass(frozen, module = "laxity.live", name = "UserData")]
pub struct PyUserData {
    graph: Graph,
    place: Place,
}

/// What it belongs to, by position.
#[derive(Clone, Copy)]
pub enum Place {
    Node(usize),
    Edge(usize),
}

impl PyUserData {
    pub fn new(graph: Graph, place: Place) -> Self {
        PyUserData { graph, place }
    }

    fn data(&self) -> UserData<'_> {
        match self.place {
            Place::Node(node) => self.graph.node_data(node),
            Place::Edge(edge) => self.graph.edge_data(edge),
        }
    }

    fn error(&self, py: Python<'_>, error: UserDataError) -> PyErr {
        match error {
            UserDataError::Length { .. } => PyValueError::new_err(error.to_string()),
            UserDataError::Forked => misuse(py, error),
            UserDataError::Lock(error) => registry_error(py, &self.graph.spec().graph().name, &error.into()),
        }
    }
}

#[pymethods]
impl PyUserData {
    /// How often it was written.
    #[getter]
    fn version(&self) -> u64 {
        self.data().version()
    }

    /// The value.
    fn read<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.data().read())
    }

    /// The version, and the value that it has.
    fn read_versioned<'py>(&self, py: Python<'py>) -> PyResult<(u64, Bound<'py, PyBytes>)> {
        let mut bytes = vec![0; self.data().len()];
        let version = self.data().read_into(&mut bytes).map_err(|error| self.error(py, error))?;
        Ok((version, PyBytes::new(py, &bytes)))
    }

    /// Replaces the value by `data`: bytes, or an array of as many.
    ///
    /// Raises ValueError for another number of bytes.
    fn write(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = bytes_of(data)?;
        py.detach(|| self.data().write(&bytes)).map_err(|error| self.error(py, error))
    }

    /// Replaces the value by `data`, unless it was replaced since `version`: for a new value that is computed from the old
    /// one.
    ///
    /// Returns whether it was replaced. Raises ValueError for another number of bytes.
    fn write_if(&self, py: Python<'_>, version: u64, data: &Bound<'_, PyAny>) -> PyResult<bool> {
        let bytes = bytes_of(data)?;
        py.detach(|| self.data().write_if(version, &bytes)).map_err(|error| self.error(py, error))
    }

    fn __len__(&self) -> usize {
        self.data().len()
    }
}

fn bytes_of(data: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    PyMemoryView::from(data)?.call_method0("tobytes")?.extract()
}
