//! Graphs described by what their nodes read and write. Edges and replicas follow.
//!
//! ```text
//! declared     camera: output image      filter: inout image      show: input image
//! follows      camera ---> filter ---> show      with N tokens from each node to those before it that use the image
//! ```
//!
//! Source: paper 003, section 5.4.1 (replicas, feedback graph, delays), for nodes and data objects as in OpenVX (section
//! 5.3). Decision 19 has the reasons.

mod derive;
mod error;

use laxity_model::{self as model, Nanos, Replicas};

use crate::data_object::{Access, Object, Use};
use crate::spec::{Channel, Spec};

pub use error::{Link, PipelineError};

/// A graph described by what its nodes do with data objects: memory that nodes share, of which consecutive runs of the
/// graph have replicas, so that they may overlap.
///
/// The graph computes what a loop computes that calls one node after the other. An object is written by one node, which
/// goes first; those that read or change it follow in the order in which they are declared. Nothing is checked before
/// [`Pipeline::build`].
///
/// ```
/// use laxity_graph::{Parameter, Pipeline};
/// use laxity_model::Nanos;
///
/// # fn main() -> Result<(), laxity_graph::PipelineError> {
/// let pipeline = Pipeline::new("tracker", Nanos::from_millis(33))
///     .object("image", 640 * 480)
///     .delay("points", 4096, 1)
///     .node("camera", [Parameter::output("image")])
///     .node("tracker", [Parameter::input("image"), Parameter::past("points", 1), Parameter::output("points")])
///     .node("display", [Parameter::inout("image"), Parameter::input("points")]);
/// let spec = pipeline.build(pipeline.depth()?)?;
/// assert_eq!(spec.plan().replicas(), 3);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipeline {
    name: String,
    period: Nanos,
    objects: Vec<Object>,
    nodes: Vec<(String, Vec<Parameter>)>,
    edges: Vec<(String, String, Channel)>,
}

/// What a node does with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    object: String,
    access: Access,
}

impl Parameter {
    /// The node reads `object`.
    pub fn input(object: &str) -> Parameter {
        Parameter::past(object, 0)
    }

    /// The node reads what was in the delay `object` so many jobs ago.
    pub fn past(object: &str, ago: u32) -> Parameter {
        Parameter { object: object.to_owned(), access: Access::Read { ago } }
    }

    /// The node writes `object`, all of it. One node of the graph does.
    pub fn output(object: &str) -> Parameter {
        Parameter { object: object.to_owned(), access: Access::Write }
    }

    /// The node changes `object` in place.
    pub fn inout(object: &str) -> Parameter {
        Parameter { object: object.to_owned(), access: Access::Change }
    }
}

impl Pipeline {
    /// An empty graph called `name`, which runs once in `period`.
    pub fn new(name: &str, period: Nanos) -> Pipeline {
        Pipeline { name: name.to_owned(), period, objects: Vec::new(), nodes: Vec::new(), edges: Vec::new() }
    }

    /// The same graph, which runs once in `period`.
    #[must_use]
    pub fn with_period(self, period: Nanos) -> Pipeline {
        Pipeline { period, ..self }
    }

    /// Declares an object of `bytes` bytes.
    #[must_use]
    pub fn object(self, name: &str, bytes: usize) -> Pipeline {
        self.delay(name, bytes, 0)
    }

    /// Declares a delay: an object of which the values of the last `depth` jobs can be read, too. Those of jobs before
    /// the first are zeros. With a depth of 0 it is an object like others.
    #[must_use]
    pub fn delay(mut self, name: &str, bytes: usize, depth: u32) -> Pipeline {
        self.objects.push(Object { name: name.to_owned(), bytes, depth, initial: Vec::new(), uses: Vec::new() });
        self
    }

    /// Declares a delay; `initial` is as long as one value, and is what reads as that of any job before the first.
    #[must_use]
    pub fn delay_from(mut self, name: &str, depth: u32, initial: &[u8]) -> Pipeline {
        let (name, bytes) = (name.to_owned(), initial.len());
        self.objects.push(Object { name, bytes, depth, initial: initial.to_vec(), uses: Vec::new() });
        self
    }

    /// Declares a node and what it does with objects.
    #[must_use]
    pub fn node(mut self, name: &str, parameters: impl IntoIterator<Item = Parameter>) -> Pipeline {
        self.nodes.push((name.to_owned(), parameters.into_iter().collect()));
        self
    }

    /// Adds an edge beyond those that follow from objects: job j of the node `to` waits for job j of the node `from`,
    /// and gets a message if `channel` carries any. These are the first edges of the graph, in this order.
    #[must_use]
    pub fn edge(mut self, from: &str, to: &str, channel: Channel) -> Pipeline {
        self.edges.push((from.to_owned(), to.to_owned(), channel));
        self
    }

    /// The number of nodes on the longest path: a rule of thumb for the number of replicas (paper 003, section 5.4.1).
    /// With bounds on response times `laxity_analysis::pgm::replicas_needed` knows better.
    ///
    /// # Errors
    /// [`PipelineError`].
    pub fn depth(&self) -> Result<u32, PipelineError> {
        derive::derive(self).map(|derived| derived.depth)
    }

    /// The graph and its data objects, without replicas: what can be analysed.
    ///
    /// # Errors
    /// [`PipelineError`].
    pub fn graph(&self) -> Result<model::Graph, PipelineError> {
        derive::derive(self).map(|derived| derived.graph)
    }

    /// The graph with `replicas` (N) of every object, at least 1: job j + N of a node waits until all jobs j that use
    /// the same replica are complete. Delays have M + N slots. Any number computes the same; more let more runs of the
    /// graph overlap.
    ///
    /// # Errors
    /// [`PipelineError`].
    pub fn build(&self, replicas: u32) -> Result<Spec, PipelineError> {
        let mut derived = derive::derive(self)?;
        derived.graph.replicas = Replicas::Count(replicas);
        let spec = Spec::with_objects(derived.graph, derived.channels, derived.objects, self.edges.len());
        spec.map_err(PipelineError::Spec)
    }

    /// What `graph`, `objects` and the first `declared` of its edges were derived from; nothing if they cannot have
    /// been. Whether they really were is to be seen by building it again.
    pub(crate) fn of(
        graph: &model::Graph,
        channels: &[Channel],
        objects: &[Object],
        declared: usize,
    ) -> Option<Pipeline> {
        let name = |node: usize| Some(graph.nodes.get(node)?.name.clone());
        let mut parameters = vec![Vec::new(); graph.nodes.len()];
        for object in objects {
            for &Use { node, access } in &object.uses {
                parameters.get_mut(node)?.push(Parameter { object: object.name.clone(), access });
            }
        }
        let edges = graph.edges.get(..declared)?.iter().zip(channels);
        let edges = edges.map(|(edge, &channel)| Some((name(edge.producer)?, name(edge.consumer)?, channel)));
        let unused = |object: &Object| Object { uses: Vec::new(), ..object.clone() };
        Some(Pipeline {
            name: graph.name.clone(),
            period: graph.nodes.iter().find_map(|node| node.period)?,
            objects: objects.iter().map(unused).collect(),
            nodes: graph.nodes.iter().map(|node| node.name.clone()).zip(parameters).collect(),
            edges: edges.collect::<Option<Vec<_>>>()?,
        })
    }
}
