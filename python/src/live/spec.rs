//! `laxity.live.Spec`.

use std::collections::BTreeMap;

use laxity_graph::{Channel, Spec, Topology};
use laxity_model::{self as model, Nanos};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use super::channel;
use super::edges::{self, EdgeOfGraph};
use super::errors::{spec_error, unknown};
use super::latest;
use crate::argument::{fields, unfit};
use crate::workload::PyWorkload;

/// What a live graph is made of: nodes, and edges with what they carry. Checked and immutable; compares by value.
///
/// Args:
///     name: of the graph; processes meet by it.
///     nodes: each a `NodeSpec`, or a name for a node without a period. Sources need one.
///     edges: each an `EdgeSpec`.
///     latest: latest-value edges, each the names of its producer and consumer and the longest value in bytes: a job reads,
///         when it begins, what the newest complete job of the producer wrote, and neither waits for the other.
///
/// Raises SpecError, for instance for an edge to no node, rates that do not fit together, or a ring on which two nodes
/// would wait for each other for ever.
#[pyclass(frozen, eq, module = "laxity.live", name = "Spec")]
#[derive(PartialEq)]
pub struct PySpec {
    pub spec: Spec,
}

/// A node as Python describes it, if not by its name alone.
#[derive(FromPyObject)]
struct NodeParts {
    name: String,
    period: Option<String>,
    phase: Option<String>,
    deadline: Option<String>,
    priority: Option<u32>,
    cluster: Option<usize>,
}

/// An edge as Python describes it; its numbers are read where it has a name.
#[derive(FromPyObject)]
struct EdgeParts {
    producer: String,
    consumer: String,
    back_edge: bool,
}

impl PySpec {
    /// The position of the node called `name`.
    fn node(&self, py: Python<'_>, name: &str) -> PyResult<usize> {
        node(py, &self.spec, name)
    }

    fn names(&self, positions: Vec<usize>) -> Vec<&str> {
        positions.into_iter().map(|node| self.spec.graph().nodes[node].name.as_str()).collect()
    }

    fn topology(&self) -> Topology<'_> {
        Topology::of(self.spec.graph())
    }
}

/// The position of the node called `name`.
pub fn node(py: Python<'_>, spec: &Spec, name: &str) -> PyResult<usize> {
    let nodes = &spec.graph().nodes;
    let found = nodes.iter().position(|node| node.name == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        unknown(py, format!("graph {}: no node is called {name}; there is {}", spec.graph().name, names.join(", ")))
    })
}

#[pymethods]
impl PySpec {
    #[new]
    #[pyo3(signature = (name, nodes, edges=Vec::new(), latest=Vec::new()))]
    fn new(
        py: Python<'_>,
        name: &str,
        nodes: Vec<Bound<'_, PyAny>>,
        edges: Vec<Bound<'_, PyAny>>,
        latest: Vec<latest::Described>,
    ) -> PyResult<Self> {
        let nodes: Vec<model::Node> = nodes.iter().map(read_node).collect::<PyResult<_>>()?;
        let (edges, channels): (Vec<_>, Vec<_>) =
            edges.iter().map(|edge| read_edge(edge, &nodes)).collect::<PyResult<Vec<_>>>()?.into_iter().unzip();
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        let registers = latest::read_edges(py, name, &names, &latest)?;
        let graph = model::Graph { latest: registers, ..model::Graph::new(name, nodes, edges) };
        let mut spec = Spec::with_channels(graph, channels).map_err(|error| spec_error(py, &error))?;
        for (edge, &(.., bytes)) in latest.iter().enumerate() {
            spec = spec.with_latest(edge, bytes).map_err(|error| spec_error(py, &error))?;
        }
        Ok(PySpec { spec })
    }

    /// The same, whose values over the latest-value edge from `producer` to `consumer` have up to `size` bytes; 0 if nothing
    /// says more.
    ///
    /// Raises UnknownError.
    fn with_latest(&self, py: Python<'_>, producer: &str, consumer: &str, size: u32) -> PyResult<Self> {
        let ends = (self.node(py, producer)?, self.node(py, consumer)?);
        let found = self.spec.graph().latest.iter().position(|edge| (edge.producer, edge.consumer) == ends);
        let edge =
            found.ok_or_else(|| unknown(py, format!("there is no latest-value edge from {producer} to {consumer}")))?;
        let spec = self.spec.clone().with_latest(edge, size);
        Ok(PySpec { spec: spec.map_err(|error| spec_error(py, &error))? })
    }

    /// Its latest-value edges: the names of producer and consumer, and the longest value in bytes.
    #[getter]
    fn latest(&self) -> Vec<latest::Described> {
        let name = |node: usize| self.spec.graph().nodes[node].name.clone();
        let edges = self.spec.graph().latest.iter().zip(self.spec.latest_bytes());
        edges.map(|(edge, &bytes)| (name(edge.producer), name(edge.consumer), bytes)).collect()
    }

    /// A graph of a workload, with its data objects, delays and replicas. The bodies of its nodes do not matter here.
    ///
    /// Args:
    ///     workload: what `laxity.load` or `laxity.workload` answered.
    ///     graph: its name; may be left out if it is the only one.
    ///     channels: what edges carry, by the names of producer and consumer; all others carry tokens alone. Or one
    ///         channel, for all edges.
    ///
    /// Raises SpecError.
    #[classmethod]
    #[pyo3(signature = (workload, graph=None, *, channels=None))]
    fn from_workload(
        _: &Bound<'_, PyType>,
        py: Python<'_>,
        workload: &PyWorkload,
        graph: Option<&str>,
        channels: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let graph = graph_of(py, &workload.workload, graph)?.clone();
        let channels = read_channels(py, &graph, channels)?;
        let spec = Spec::with_channels(graph, channels).map_err(|error| spec_error(py, &error))?;
        Ok(PySpec { spec })
    }

    /// The same, each of whose nodes remembers its last `jobs`, rounded up to a power of two, for recordings and
    /// releases; 64 bytes each. With 0 the graph cannot be recorded, and knows no releases and deadlines.
    ///
    /// Raises SpecError for more than can be.
    fn with_recorder(&self, py: Python<'_>, jobs: u32) -> PyResult<Self> {
        let spec = self.spec.clone().with_recorder(jobs);
        Ok(PySpec { spec: spec.map_err(|error| spec_error(py, &error))? })
    }

    /// The same, with `size` bytes that users keep with the node called `node`: see `Graph.node_data`.
    ///
    /// Raises UnknownError.
    fn with_node_data(&self, py: Python<'_>, node: &str, size: u32) -> PyResult<Self> {
        self.node(py, node)?;
        let spec = self.spec.clone().with_node_data(node, size);
        Ok(PySpec { spec: spec.map_err(|error| spec_error(py, &error))? })
    }

    /// The same, with `size` bytes that users keep with an edge: see `Graph.edge_data`.
    ///
    /// Args:
    ///     edge: the names of its producer and consumer, or its position.
    ///     size: how many bytes.
    ///
    /// Raises UnknownError.
    fn with_edge_data(&self, py: Python<'_>, edge: EdgeOfGraph, size: u32) -> PyResult<Self> {
        let edge = edges::of_graph(py, &self.spec, &edge)?;
        let spec = self.spec.clone().with_edge_data(edge, size);
        Ok(PySpec { spec: spec.map_err(|error| spec_error(py, &error))? })
    }

    /// The same, whose rings at `edges` exchange buffers: a job may hand a message on from one of them to another without
    /// a copy, by `Job.swap`. Their longest messages are of one length.
    ///
    /// Args:
    ///     edges: each the names of its producer and consumer, or its position.
    ///
    /// Raises UnknownError, SpecError.
    fn with_swapping(&self, py: Python<'_>, edges: Vec<EdgeOfGraph>) -> PyResult<Self> {
        let found = edges.iter().map(|edge| edges::of_graph(py, &self.spec, edge)).collect::<PyResult<Vec<usize>>>()?;
        let spec = self.spec.clone().with_swapping(&found);
        Ok(PySpec { spec: spec.map_err(|error| spec_error(py, &error))? })
    }

    /// The bytes that users keep with nodes, by name; of those that have any.
    #[getter]
    fn node_data(&self) -> BTreeMap<&str, u32> {
        let sizes = self.spec.graph().nodes.iter().zip(self.spec.node_data());
        sizes.filter(|(_, size)| **size > 0).map(|(node, &size)| (node.name.as_str(), size)).collect()
    }

    /// The bytes that users keep with edges, by position; of those that have any.
    #[getter]
    fn edge_data(&self) -> BTreeMap<usize, u32> {
        self.spec.edge_data().iter().copied().enumerate().filter(|(_, size)| *size > 0).collect()
    }

    /// The groups of edges that exchange buffers, by position.
    #[getter]
    fn swapping(&self) -> Vec<Vec<usize>> {
        self.spec.swapping().to_vec()
    }

    /// How many of its last jobs each node remembers: 256, unless `with_recorder` said otherwise.
    #[getter]
    fn recorder(&self) -> u32 {
        self.spec.recorder()
    }

    /// The name of the graph.
    #[getter]
    fn name(&self) -> &str {
        &self.spec.graph().name
    }

    /// Its nodes, each a `NodeSpec`; a node's place here is its position.
    #[getter]
    fn nodes<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let class = py.import("laxity.live._describe")?.getattr("NodeSpec")?;
        let text = |span: Option<Nanos>| span.map(|span| span.to_string());
        let describe = |node: &model::Node| {
            let fields = PyDict::new(py);
            fields.set_item("period", text(node.period))?;
            fields.set_item("phase", text((!node.phase.is_zero()).then_some(node.phase)))?;
            fields.set_item("deadline", text(node.deadline))?;
            fields.set_item("priority", node.priority)?;
            fields.set_item("cluster", node.cluster)?;
            class.call((&node.name,), Some(&fields))
        };
        self.spec.graph().nodes.iter().map(describe).collect()
    }

    /// Its edges, each an `EdgeSpec`; an edge's place here is its position.
    #[getter]
    fn edges<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let class = py.import("laxity.live._describe")?.getattr("EdgeSpec")?;
        let graph = self.spec.graph();
        let describe = |(edge, channel): (&model::Edge, &Channel)| {
            let fields = PyDict::new(py);
            for (name, number) in [
                ("produce", edge.produce),
                ("consume", edge.consume),
                ("threshold", edge.threshold),
                ("initial", edge.initial),
            ] {
                fields.set_item(name, number)?;
            }
            fields.set_item("back_edge", edge.back_edge)?;
            let ends = (&graph.nodes[edge.producer].name, &graph.nodes[edge.consumer].name);
            class.call((ends.0, ends.1, channel::write(py, channel)?), Some(&fields))
        };
        graph.edges.iter().zip(self.spec.channels()).map(describe).collect()
    }

    /// The names of nodes with an edge to `node`, back-edges included, each once. Raises UnknownError.
    fn predecessors(&self, py: Python<'_>, node: &str) -> PyResult<Vec<&str>> {
        Ok(self.names(self.topology().predecessors(self.node(py, node)?)))
    }

    /// The names of nodes with an edge from `node`, back-edges included, each once. Raises UnknownError.
    fn successors(&self, py: Python<'_>, node: &str) -> PyResult<Vec<&str>> {
        Ok(self.names(self.topology().successors(self.node(py, node)?)))
    }

    /// Whether an edge that is no back-edge leads from `parent` to `child`. Raises UnknownError.
    fn is_child(&self, py: Python<'_>, child: &str, parent: &str) -> PyResult<bool> {
        Ok(self.topology().is_child(self.node(py, child)?, self.node(py, parent)?))
    }

    /// Whether a path without back-edges leads from `ancestor` to `descendant`. Raises UnknownError.
    fn is_descendant(&self, py: Python<'_>, descendant: &str, ancestor: &str) -> PyResult<bool> {
        Ok(self.topology().is_descendant(self.node(py, descendant)?, self.node(py, ancestor)?))
    }

    /// Whether the graph has no cycle, back-edges included.
    fn is_dag(&self) -> bool {
        self.topology().is_dag()
    }

    /// The least and the greatest weight of a path from a source to `node`, with both ends, without back-edges.
    ///
    /// Args:
    ///     node: where the paths end.
    ///     weights: of nodes, for instance bounds on response times in ns; 1 for those that are not in it, so that
    ///         nodes are counted.
    ///
    /// Raises UnknownError.
    #[pyo3(signature = (node, weights=None))]
    fn depths(&self, py: Python<'_>, node: &str, weights: Option<BTreeMap<String, u64>>) -> PyResult<(u64, u64)> {
        let weights = weights.unwrap_or_default();
        for name in weights.keys() {
            self.node(py, name)?;
        }
        let weight = |node: usize| weights.get(&self.spec.graph().nodes[node].name).copied().unwrap_or(1);
        let found = self.topology().depths(self.node(py, node)?, weight);
        Ok(found.expect("a spec has no cycle without back-edges"))
    }

    /// The graph in the language of Graphviz: nodes with their periods, edges with produce:consume:threshold,
    /// back-edges dashed.
    fn dot(&self) -> String {
        self.topology().dot()
    }

    fn __repr__(&self) -> String {
        let graph = self.spec.graph();
        let (nodes, edges) = (graph.nodes.len(), graph.edges.len());
        format!("<laxity.live.Spec \"{}\": {nodes} nodes, {edges} edges>", graph.name)
    }
}

/// The fields of `part`, which is `words` if it has one called `field`.
fn described<'a, 'py, T>(part: &'a Bound<'py, PyAny>, field: &str, words: &str) -> PyResult<T>
where
    T: FromPyObject<'a, 'py, Error = PyErr>,
{
    if part.hasattr(field)? { fields(part) } else { Err(unfit(part, words)) }
}

fn read_node(node: &Bound<'_, PyAny>) -> PyResult<model::Node> {
    let mut read = model::Node::new(String::new(), None);
    if let Ok(name) = node.extract() {
        read.name = name;
        return Ok(read);
    }
    let NodeParts { name, period, phase, deadline, priority, cluster } =
        described(node, "cluster", "a node: its name, or a laxity.live.NodeSpec")?;
    let span = |field: &str, text: Option<String>| {
        let span = text.as_deref().map(str::parse::<Nanos>).transpose();
        span.map_err(|error| spec_error(node.py(), &format!("node {name}: {field} {error}")))
    };
    read.period = span("period", period)?;
    read.phase = span("phase", phase)?.unwrap_or_default();
    read.deadline = span("deadline", deadline)?;
    (read.priority, read.cluster, read.name) = (priority, cluster, name);
    Ok(read)
}

fn read_edge(edge: &Bound<'_, PyAny>, nodes: &[model::Node]) -> PyResult<(model::Edge, Channel)> {
    let EdgeParts { producer, consumer, back_edge } = described(edge, "back_edge", "an edge: a laxity.live.EdgeSpec")?;
    let name = format!("{producer} -> {consumer}");
    let position = |end: &str| {
        let error = || format!("edge {name}: no node is called {end}; names match exactly");
        let found = nodes.iter().position(|node| node.name == end);
        found.ok_or_else(|| spec_error(edge.py(), &error()))
    };
    let consume = channel::number(edge, "consume", &name)?;
    let has_threshold = !edge.getattr("threshold")?.is_none();
    let read = model::Edge {
        producer: position(&producer)?,
        consumer: position(&consumer)?,
        produce: channel::number(edge, "produce", &name)?,
        consume,
        threshold: if has_threshold { channel::number(edge, "threshold", &name)? } else { consume },
        initial: channel::number(edge, "initial", &name)?,
        back_edge,
        delay: 0,
        message: 0,
    };
    Ok((read, channel::read(&edge.getattr("channel")?, &name)?))
}

/// The graph of `workload` called `name`, or its only one.
fn graph_of<'a>(py: Python<'_>, workload: &'a model::Workload, name: Option<&str>) -> PyResult<&'a model::Graph> {
    let graphs = &workload.graphs;
    let names: Vec<&str> = graphs.iter().map(|graph| graph.name.as_str()).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let problem = match (name, graphs.as_slice()) {
        (None, [graph]) => return Ok(graph),
        (None, graphs) => format!("workload {}: {} graphs; say which, of {names}", workload.name, graphs.len()),
        (Some(name), graphs) => match graphs.iter().find(|graph| graph.name == name) {
            Some(graph) => return Ok(graph),
            None => format!("workload {}: no graph is called {name}; there is {names}", workload.name),
        },
    };
    Err(spec_error(py, &problem))
}

/// What the edges of `graph` carry.
fn read_channels(py: Python<'_>, graph: &model::Graph, channels: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<Channel>> {
    let counters = vec![Channel::Counter; graph.edges.len()];
    let Some(channels) = channels else { return Ok(counters) };
    let Ok(named) = channels.cast::<PyDict>() else {
        return Ok(vec![channel::read(channels, "of the workload")?; graph.edges.len()]);
    };
    // The rules for edges are those of a live graph, whose data is not needed to find them.
    let shape = Spec::new(graph.clone()).map_err(|error| spec_error(py, &error))?;
    let mut read = counters;
    for (edge, channel) in named {
        let edge = edges::of_graph(py, &shape, &edge.extract()?)?;
        read[edge] = channel::read(&channel, &edges::name(&shape, edge))?;
    }
    Ok(read)
}
