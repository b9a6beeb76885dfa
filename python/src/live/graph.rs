//! `laxity.live.Graph`.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use laxity_graph::{ClaimError, Graph, Node, Ownership};
use laxity_model::{Instant, Nanos};
use laxity_sys::clock;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::claimed::Claimed;
use super::edges::{self, EdgeOfGraph};
use super::errors::{live_error, misuse};
use super::node::PyNode;
use super::recording::PyRecording;
use super::spec::{self, PySpec};
use super::user_data::{Place, PyUserData};
use crate::errors::value_error;

/// A graph that this process is attached to. A context manager: at the end of `with` it is closed.
///
/// The last process to leave takes the graph along. Threads share it. A child made by `fork` attaches by itself.
///
/// Raises UseError from all that is called after it is closed or in a forked child.
#[pyclass(frozen, module = "laxity.live", name = "Graph")]
pub struct PyGraph {
    name: String,
    pid: u32,
    graph: Mutex<Option<Graph>>,
}

impl PyGraph {
    pub fn new(graph: Graph) -> Self {
        let name = graph.spec().graph().name.clone();
        PyGraph { name, pid: std::process::id(), graph: Mutex::new(Some(graph)) }
    }

    fn graph(&self, py: Python<'_>) -> PyResult<Graph> {
        let name = &self.name;
        if std::process::id() != self.pid {
            let text = "this process was forked from the one that attached to it; attach here";
            return Err(misuse(py, format!("graph {name}: {text}")));
        }
        let graph = self.graph.lock().unwrap_or_else(PoisonError::into_inner).clone();
        graph.ok_or_else(|| misuse(py, format!("graph {name}: it is closed; attach again")))
    }

    fn claimed(
        py: Python<'_>,
        graph: Graph,
        claim: impl FnOnce() -> Result<Node, ClaimError> + Send,
    ) -> PyResult<PyNode> {
        // A claim after a death waits until the dead is gone.
        let node = py.detach(claim).map_err(|error| live_error(py, &error))?;
        Ok(PyNode::new(Claimed::new(graph, node)))
    }
}

#[pymethods]
impl PyGraph {
    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// What it is made of; its shape can be asked there.
    #[getter]
    fn spec(&self, py: Python<'_>) -> PyResult<PySpec> {
        Ok(PySpec { spec: self.graph(py)?.spec().clone() })
    }

    /// Shared memory that it takes, in bytes.
    #[getter]
    fn memory(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.graph(py)?.memory())
    }

    /// Claims the node called `name`; one claim at a time in all processes. After a death the node goes on with the job
    /// that was begun and not completed.
    ///
    /// Raises UnknownError, or ClaimError with the process that has it.
    fn claim(&self, py: Python<'_>, name: &str) -> PyResult<PyNode> {
        let graph = self.graph(py)?;
        spec::node(py, graph.spec(), name)?;
        Self::claimed(py, graph.clone(), || graph.claim(name))
    }

    /// Claims the first node that no process has. Raises ClaimError.
    fn claim_any(&self, py: Python<'_>) -> PyResult<PyNode> {
        let graph = self.graph(py)?;
        Self::claimed(py, graph.clone(), || graph.claim_any())
    }

    /// What the node called `name` is doing now. Raises UnknownError.
    fn status<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let graph = self.graph(py)?;
        let status = graph.status(spec::node(py, graph.spec(), name)?);
        let (pid, is_lost) = match status.ownership {
            Ownership::Free => (None, false),
            Ownership::Claimed { pid } => (Some(pid), false),
            Ownership::Lost => (None, true),
        };
        let fields = PyDict::new(py);
        fields.set_item("pid", pid)?;
        fields.set_item("is_lost", is_lost)?;
        fields.set_item("started", status.started)?;
        fields.set_item("completed", status.completed)?;
        fields.set_item("has_terminated", status.has_terminated)?;
        fields.set_item("is_waiting", status.is_waiting)?;
        fields.set_item("is_sending", status.is_sending)?;
        py.import("laxity.live._describe")?.getattr("NodeStatus")?.call((), Some(&fields))
    }

    /// Tokens on an edge that no job has taken.
    ///
    /// Args:
    ///     edge: the names of its producer and consumer, or its position.
    ///
    /// Raises UnknownError.
    fn tokens(&self, py: Python<'_>, edge: EdgeOfGraph) -> PyResult<u64> {
        let graph = self.graph(py)?;
        let edge = edges::of_graph(py, graph.spec(), &edge)?;
        Ok(graph.tokens(edge))
    }

    /// What users keep with the node called `name`. Raises UnknownError.
    fn node_data(&self, py: Python<'_>, name: &str) -> PyResult<PyUserData> {
        let graph = self.graph(py)?;
        let node = spec::node(py, graph.spec(), name)?;
        Ok(PyUserData::new(graph, Place::Node(node)))
    }

    /// What users keep with an edge.
    ///
    /// Args:
    ///     edge: the names of its producer and consumer, or its position.
    ///
    /// Raises UnknownError.
    fn edge_data(&self, py: Python<'_>, edge: EdgeOfGraph) -> PyResult<PyUserData> {
        let graph = self.graph(py)?;
        let edge = edges::of_graph(py, graph.spec(), &edge)?;
        Ok(PyUserData::new(graph, Place::Edge(edge)))
    }

    /// Ends the node called `name` from outside: its owner's next wait says so, and its consumers end when they have
    /// used what it produced, the job included that it may have begun. Without a name it ends all sources, and so in time the graph.
    ///
    /// Raises UnknownError.
    #[pyo3(signature = (name=None))]
    fn terminate(&self, py: Python<'_>, name: Option<&str>) -> PyResult<()> {
        let graph = self.graph(py)?;
        match name {
            Some(name) => graph.terminate(spec::node(py, graph.spec(), name)?),
            None => {
                let nodes = graph.spec().plan().nodes().iter().enumerate();
                nodes.filter(|(_, node)| node.is_source).for_each(|(node, _)| graph.terminate(node));
            }
        }
        Ok(())
    }

    /// Settles that job 0 of each source arrives at `at_ns` and its phase, and job j that many periods later. The first call
    /// settles it.
    ///
    /// Args:
    ///     at_ns: in ns of `time.monotonic_ns`; now if not given.
    ///
    /// Returns what is settled.
    #[pyo3(signature = (at_ns=None))]
    fn start(&self, py: Python<'_>, at_ns: Option<u64>) -> PyResult<u64> {
        Ok(self.graph(py)?.start(at_ns.map_or_else(clock::now, Instant)).0)
    }

    /// Records what happens in the graph from now on, and what it remembers of before.
    ///
    /// Args:
    ///     path: a trace file, which is replaced; without it the trace is kept in memory, about 40 bytes an event.
    ///     every: a thread collects so often, such as "50 ms", which must be before any node has as many jobs as the
    ///         graph remembers; with None the caller collects, by `Recording.collect`.
    ///
    /// Raises RecorderError if the graph remembers no jobs, OSError if the file cannot be written, ValueError for a span
    /// that is nothing or has no unit.
    #[pyo3(
        signature = (path=None, *, every=Some("20 ms")), text_signature = "($self, path=None, *, every=\"20 ms\")"
    )]
    fn record(&self, py: Python<'_>, path: Option<PathBuf>, every: Option<&str>) -> PyResult<PyRecording> {
        let graph = self.graph(py)?;
        let every: Option<Nanos> = every.map(str::parse).transpose().map_err(value_error)?;
        if every.is_some_and(Nanos::is_zero) {
            return Err(value_error("every is nothing; use a span of a millisecond or more"));
        }
        PyRecording::new(py, &graph, path.as_deref(), every)
    }

    /// Leaves the graph, once its nodes that were claimed here are released, too.
    fn close(&self) {
        drop(self.graph.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyTuple>) {
        self.close();
    }

    fn __repr__(&self) -> String {
        format!("<laxity.live.Graph \"{}\">", self.name)
    }
}
