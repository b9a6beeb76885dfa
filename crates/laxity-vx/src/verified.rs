//! A graph whose edges are known.

use std::sync::{Arc, Mutex};

use laxity_graph::{Access, Channel, Pipeline, PipelineError, Registry, Spec, Topology};
use laxity_model::{self as model, Nanos};
use laxity_policy::graph::EdgeKind;

use crate::format::Format;
use crate::graph::{Graph, Kernel, ObjectDescription};
use crate::verify::VerifyError;

/// A graph that can be [spawned](Verified::spawn), again when it has ended.
#[derive(Debug)]
pub struct Verified {
    pub(crate) registry: Registry,
    pub(crate) id: u64,
    pub(crate) nodes: Vec<Executable>,
    objects: Vec<ObjectDescription>,
    /// With the edges of the callbacks.
    pipeline: Pipeline,
    graph: model::Graph,
    depth: u32,
}

/// A node, or a callback.
#[derive(Clone)]
pub(crate) struct Executable {
    pub name: String,
    /// Nothing while a run has it.
    pub kernel: Arc<Mutex<Option<Kernel>>>,
    pub budget: Option<Nanos>,
    /// Positions of the arrays that it writes: they are empty at first.
    pub arrays: Vec<usize>,
}

/// A job of one node waits for a job of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The node that is waited for.
    pub from: String,
    /// The node that waits.
    pub to: String,
    /// Why it waits.
    pub kind: DependencyKind,
    /// Job j waits for job j - `initial`: the tokens at the start.
    pub initial: u32,
}

/// Why a node waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DependencyKind {
    /// It uses what the other one is done with in the same frame, or it is a callback.
    Edge,
    /// It reads from a delay what the other one, behind it, wrote frames ago.
    BackEdge,
    /// It writes where the other one may still read: it waits until that is done with the replica.
    Feedback,
}

/// A stand-in where only the shape matters.
const ANY_PERIOD: Nanos = Nanos::from_millis(1);

impl Verified {
    pub(crate) fn of(graph: Graph) -> Result<Verified, VerifyError> {
        let pipeline = with_callbacks(&graph, ANY_PERIOD)?;
        let derived = pipeline.graph().map_err(VerifyError::Derivation)?;
        // Whatever else a graph can have wrong shows here.
        pipeline.build(1).map_err(VerifyError::Derivation)?;
        // A callback without objects lengthens all paths by itself, but needs no replica.
        let idle = [&graph.input, &graph.output].into_iter().filter(|callback| callback.parameters.is_empty()).count();
        let depth = pipeline.depth().map_err(VerifyError::Derivation)? - idle as u32;
        let Graph { registry, id, objects, nodes, input, output, .. } = graph;
        let executable = |node: crate::graph::NodeDescription| {
            let written = node.parameters.iter().filter(|parameter| parameter.access == Access::Write);
            let positions = written.map(|parameter| parameter.key.position);
            let arrays = positions.filter(|&position| matches!(objects[position].format, Format::Array { .. }));
            let (arrays, kernel) = (arrays.collect(), Arc::new(Mutex::new(Some(node.kernel))));
            Executable { name: node.name, kernel, budget: node.budget, arrays }
        };
        let nodes = std::iter::once(input).chain(nodes).chain(std::iter::once(output)).map(executable).collect();
        Ok(Verified { registry, id, nodes, objects, pipeline, graph: derived, depth })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.graph.name
    }

    /// The number of nodes on the longest path (callbacks count if they use objects): by rule of thumb the number of
    /// replicas (paper 003, section 5.4.1).
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// The graph without replicas, as analysis takes it; the callbacks are its first and its last node.
    pub fn graph(&self) -> &model::Graph {
        &self.graph
    }

    /// Which node waits for which, with so many replicas of each object: edges, back-edges, feedback edges.
    ///
    /// # Errors
    /// [`VerifyError`] for 0 replicas.
    pub fn dependencies(&self, replicas: u32) -> Result<Vec<Dependency>, VerifyError> {
        let spec = self.spec(ANY_PERIOD, replicas)?;
        let name = |node: usize| spec.graph().nodes[node].name.clone();
        let dependency = |edge: &laxity_policy::graph::Edge| Dependency {
            from: name(edge.producer),
            to: name(edge.consumer),
            kind: match edge.kind {
                EdgeKind::Token => DependencyKind::Edge,
                EdgeKind::Back => DependencyKind::BackEdge,
                EdgeKind::Feedback => DependencyKind::Feedback,
            },
            initial: edge.initial,
        };
        Ok(spec.plan().edges().iter().map(dependency).collect())
    }

    /// The graph in the language of Graphviz; back-edges are dashed, and feedback is left out. No node has a period yet:
    /// that is chosen when the graph is spawned. As a picture, and while it runs, `laxity graph show` has it.
    pub fn dot(&self) -> String {
        let mut graph = self.graph.clone();
        graph.nodes.iter_mut().for_each(|node| node.period = None);
        Topology::of(&graph).dot()
    }

    /// Objects and slots, one a line: what the memory is for.
    pub fn describe_objects(&self) -> String {
        let line = |object: &ObjectDescription| match object.slots {
            1 => format!("{}: {}\n", object.name, object.format),
            slots => format!("{}: a delay of {slots} slots, each {}\n", object.name, object.format),
        };
        self.objects.iter().map(line).collect()
    }

    /// The graph as it is carried out.
    pub(crate) fn spec(&self, period: Nanos, replicas: u32) -> Result<Spec, VerifyError> {
        self.pipeline.clone().with_period(period).build(replicas).map_err(VerifyError::Derivation)
    }
}

/// The pipeline of `graph` with the callbacks in front and behind: the sources become children of the one, the sinks
/// parents of the other (paper 003, section 5.4.1).
fn with_callbacks(graph: &Graph, period: Nanos) -> Result<Pipeline, VerifyError> {
    let mut pipeline = graph.pipeline(period);
    let derived = pipeline.graph().map_err(VerifyError::Derivation)?;
    let (input, output) = (0, graph.nodes.len() + 1);
    let edges = || derived.edges.iter().filter(|edge| !edge.back_edge);
    for (position, node) in graph.nodes.iter().enumerate().map(|(position, node)| (position + 1, node)) {
        if !edges().any(|edge| edge.consumer == position && edge.producer != input) {
            pipeline = pipeline.edge(&graph.input.name, &node.name, Channel::Counter);
        }
        if !edges().any(|edge| edge.producer == position && edge.consumer != output) {
            pipeline = pipeline.edge(&node.name, &graph.output.name, Channel::Counter);
        }
    }
    Ok(pipeline)
}

impl From<PipelineError> for VerifyError {
    fn from(error: PipelineError) -> Self {
        VerifyError::Derivation(error)
    }
}

impl std::fmt::Debug for Executable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Executable").field("name", &self.name).field("budget", &self.budget).finish_non_exhaustive()
    }
}
