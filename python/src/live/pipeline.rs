//! `laxity.live.Pipeline`.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use laxity_analysis::pgm;
use laxity_graph::{Parameter, Pipeline, PipelineError};
use laxity_model::Nanos;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

use super::channel;
use super::errors::{spec_error, unknown};
use super::spec::PySpec;
use crate::argument::choice;
use crate::errors::value_error;

/// A graph described by what its nodes do with data objects: memory that nodes share, of which consecutive runs of the
/// graph have replicas, so that they may overlap.
///
/// The graph computes what a loop computes that calls one node after the other. An object is written by one node, which
/// goes first; those that read or change it follow in the order in which they are declared. Nothing is checked before
/// `build`. Methods that declare something answer with the pipeline itself.
///
/// Args:
///     name: of the graph; processes meet by it.
///     period: it runs once in it: a text such as "33 ms".
///
/// Raises ValueError for a period without a unit.
#[pyclass(frozen, module = "laxity.live", name = "Pipeline")]
pub struct PyPipeline {
    name: String,
    pipeline: Mutex<Pipeline>,
}

choice! {
    /// Names, or a single one.
    enum Names: "a name, or a list of names" {
        One(String),
        Several(Vec<String>),
    }
}

choice! {
    /// How many jobs ago; one number, or several.
    enum Ago: "a number of jobs from 0, or a list of such numbers" {
        One(u32),
        Several(Vec<u32>),
    }
}

impl PyPipeline {
    fn pipeline(&self) -> MutexGuard<'_, Pipeline> {
        // It is replaced as a whole, so that a panic leaves nothing half-declared.
        self.pipeline.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn declare(&self, change: impl FnOnce(Pipeline) -> Pipeline) {
        let mut pipeline = self.pipeline();
        *pipeline = change(pipeline.clone());
    }
}

#[pymethods]
impl PyPipeline {
    #[new]
    fn new(name: String, period: &str) -> PyResult<Self> {
        let period: Nanos = period.parse().map_err(value_error)?;
        Ok(PyPipeline { pipeline: Mutex::new(Pipeline::new(&name, period)), name })
    }

    /// The name of the graph.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Declares an object of `size` bytes.
    fn object<'py>(slf: Bound<'py, Self>, name: &str, size: usize) -> Bound<'py, Self> {
        slf.get().declare(|pipeline| pipeline.object(name, size));
        slf
    }

    /// Declares a delay: an object of which the values of the last jobs can be read, too.
    ///
    /// Args:
    ///     name: unique among objects.
    ///     size: of one value, in bytes.
    ///     depth: how many jobs ago can be read.
    ///     initial: what reads as the value of any job before the first: `size` bytes, or an array of as many; zeros if
    ///         not given.
    ///
    /// Raises SpecError for an initial value of another size.
    #[pyo3(signature = (name, size, depth, initial=None))]
    fn delay<'py>(
        slf: Bound<'py, Self>,
        name: &str,
        size: usize,
        depth: u32,
        initial: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        let Some(initial) = initial else {
            slf.get().declare(|pipeline| pipeline.delay(name, size, depth));
            return Ok(slf);
        };
        let initial: Vec<u8> = PyMemoryView::from(initial)?.call_method0("tobytes")?.extract()?;
        if initial.len() != size {
            let found = initial.len();
            let text = format!("object {name}: {size} bytes, but its initial value has {found}; give as many");
            return Err(spec_error(slf.py(), &text));
        }
        slf.get().declare(|pipeline| pipeline.delay_from(name, depth, &initial));
        Ok(slf)
    }

    /// Declares a node and what it does with objects, each a name or several.
    ///
    /// Args:
    ///     name: unique among nodes.
    ///     input: what it reads.
    ///     past: the delays that it reads, with how many jobs ago: one number, or several.
    ///     output: what it writes, all of it; what is in it before is left from some earlier job.
    ///     inout: what it changes in place.
    #[pyo3(signature = (
        name, *, input=Names::Several(vec![]), past=BTreeMap::new(), output=Names::Several(vec![]),
        inout=Names::Several(vec![])
    ))]
    fn node<'py>(
        slf: Bound<'py, Self>,
        name: &str,
        input: Names,
        past: BTreeMap<String, Ago>,
        output: Names,
        inout: Names,
    ) -> Bound<'py, Self> {
        let mut parameters: Vec<Parameter> = Vec::new();
        parameters.extend(input.all().map(|object| Parameter::input(object)));
        for (object, ago) in &past {
            parameters.extend(ago.all().map(|ago| Parameter::past(object, ago)));
        }
        parameters.extend(output.all().map(|object| Parameter::output(object)));
        parameters.extend(inout.all().map(|object| Parameter::inout(object)));
        slf.get().declare(|pipeline| pipeline.node(name, parameters));
        slf
    }

    /// Declares an edge beyond those that follow from objects: job j of `consumer` waits for job j of `producer`, and
    /// gets a message if `channel` carries any.
    ///
    /// Raises SpecError for what is no channel.
    #[pyo3(signature = (producer, consumer, channel=None))]
    fn edge<'py>(
        slf: Bound<'py, Self>,
        producer: &str,
        consumer: &str,
        channel: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        let read = |channel| channel::read(channel, &format!("{producer} -> {consumer}"));
        let channel = channel.map(read).transpose()?.unwrap_or_default();
        slf.get().declare(|pipeline| pipeline.edge(producer, consumer, channel));
        Ok(slf)
    }

    /// The number of nodes on the longest path: a rule of thumb for the number of replicas. Raises SpecError.
    fn depth(&self, py: Python<'_>) -> PyResult<u32> {
        self.pipeline().depth().map_err(|error| spec_error(py, &error))
    }

    /// The least number of replicas with which no job waits for one.
    ///
    /// Args:
    ///     response_times: for each node a bound on its response time, from its release on: a text such as "9 ms".
    ///
    /// Raises SpecError, UnknownError for a node that there is not, ValueError for a time without a unit.
    fn replicas_needed(&self, py: Python<'_>, response_times: BTreeMap<String, String>) -> PyResult<u32> {
        let graph = self.pipeline().graph().map_err(|error| spec_error(py, &error))?;
        let is_node = |name: &&String| graph.nodes.iter().any(|node| node.name == **name);
        if let Some(name) = response_times.keys().find(|name| !is_node(name)) {
            return Err(unknown(py, format!("graph {}: no node is called {name}; names match exactly", self.name)));
        }
        let bound = |node: &laxity_model::Node| {
            let name = &node.name;
            let missing = || spec_error(py, &format!("node {name}: its response time is missing; bound that of each"));
            response_times.get(name).ok_or_else(missing)?.parse::<Nanos>().map_err(value_error)
        };
        let bounds = graph.nodes.iter().map(bound).collect::<PyResult<Vec<Nanos>>>()?;
        pgm::replicas_needed(&graph, &bounds).map_err(|error| spec_error(py, &error))
    }

    /// The graph with `replicas` of every object, at least 1; any number computes the same, and more let more runs of
    /// the graph overlap.
    ///
    /// Raises SpecError for cycles without a delay, objects that no node writes or that two nodes write, reads that go
    /// back too far.
    fn build(&self, py: Python<'_>, replicas: u32) -> PyResult<PySpec> {
        let spec = self.pipeline().build(replicas);
        Ok(PySpec { spec: spec.map_err(|error: PipelineError| spec_error(py, &error))? })
    }

    fn __repr__(&self) -> String {
        format!("<laxity.live.Pipeline \"{}\">", self.name)
    }
}

impl Names {
    fn all(&self) -> impl Iterator<Item = &String> {
        match self {
            Names::One(name) => std::slice::from_ref(name),
            Names::Several(names) => names,
        }
        .iter()
    }
}

impl Ago {
    fn all(&self) -> impl Iterator<Item = u32> {
        match self {
            Ago::One(ago) => std::slice::from_ref(ago),
            Ago::Several(several) => several,
        }
        .iter()
        .copied()
    }
}
