//! Describing a graph: objects, nodes, and what is called for input and output.

use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use laxity_graph::{Pipeline, Registry};
use laxity_model::Nanos;

use crate::exemplar::Exemplar;
use crate::format::Format;
use crate::job::Job;
use crate::object::{Delay, Key, Object};
use crate::parameter::Parameter;
use crate::verified::Verified;
use crate::verify::{self, VerifyError};

/// Why a kernel fails: any error.
pub type KernelError = Box<dyn Error + Send + Sync>;

/// Whether there is another frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// There is.
    Continue,
    /// There is none: the graph ends with the frame before.
    End,
}

/// What a node executes in each job. (OpenVX says *kernel*, too: neither that of Linux nor one of a GPU.)
pub(crate) type Kernel = Box<dyn FnMut(&mut Job<'_>) -> Result<Action, KernelError> + Send>;

/// A graph that is being described: data objects, and nodes with what they read and write. The edges follow when it is
/// [verified](Graph::verify).
pub struct Graph {
    pub(crate) registry: Registry,
    pub(crate) name: String,
    pub(crate) id: u64,
    pub(crate) objects: Vec<ObjectDescription>,
    /// In the order in which a loop would call them.
    pub(crate) nodes: Vec<NodeDescription>,
    pub(crate) input: NodeDescription,
    pub(crate) output: NodeDescription,
}

/// A data object, or a delay.
#[derive(Clone, Debug)]
pub(crate) struct ObjectDescription {
    pub name: String,
    pub format: Format,
    /// 1 for what is no delay.
    pub slots: u32,
    /// What the slots of a delay contain at first; zeros if empty.
    pub initial: Vec<u8>,
}

/// A node, or a callback, which is one, too.
pub(crate) struct NodeDescription {
    pub name: String,
    pub parameters: Vec<Parameter>,
    pub kernel: Kernel,
    /// CPU time of a job, if that is said.
    pub budget: Option<Nanos>,
}

/// A node of a graph that is being described.
#[derive(Debug)]
pub struct Node<'a> {
    description: &'a mut NodeDescription,
}

/// The node in front of all others, which is released periodically.
pub const INPUT_CALLBACK: &str = "input_callback";

/// The node behind all others.
pub const OUTPUT_CALLBACK: &str = "output_callback";

/// To which objects are aligned: a cache line.
const ALIGNMENT: usize = 64;

static GRAPHS: AtomicU64 = AtomicU64::new(0);

impl Graph {
    pub(crate) fn new(registry: Registry, name: &str) -> Graph {
        let nothing = |name: &str| NodeDescription::new(name, Vec::new(), Box::new(|_| Ok(Action::Continue)));
        Graph {
            registry,
            name: name.to_owned(),
            id: GRAPHS.fetch_add(1, Ordering::Relaxed),
            objects: Vec::new(),
            nodes: Vec::new(),
            input: nothing(INPUT_CALLBACK),
            output: nothing(OUTPUT_CALLBACK),
        }
    }

    /// A data object made after `exemplar`. Replicas of it are the graph's business (`vxCreateVirtualImage` and so on).
    pub fn object<E: Exemplar>(&mut self, name: &str, exemplar: E) -> Object<E> {
        self.add(name, exemplar, 1, Vec::new())
    }

    /// A delay of objects made after `exemplar` (`vxCreateDelay`): slot 0 is written in this job, slot k was k jobs ago, up
    /// to `slots` - 1. Slots that no job wrote are all zeros.
    pub fn delay<E: Exemplar>(&mut self, name: &str, exemplar: E, slots: u32) -> Delay<E> {
        Delay::of(self.add(name, exemplar, slots, Vec::new()))
    }

    /// As [`Graph::delay`]; what no job wrote is what `fill` writes into zeros.
    pub fn delay_from<E: Exemplar>(
        &mut self,
        name: &str,
        exemplar: E,
        slots: u32,
        fill: impl FnOnce(E::Mut<'_>),
    ) -> Delay<E> {
        let initial = exemplar.format().size().map(|size| {
            // Views are of memory aligned as objects are.
            let mut memory = vec![0; size + ALIGNMENT];
            let start = memory.as_ptr().align_offset(ALIGNMENT);
            let bytes = &mut memory[start..start + size];
            fill(exemplar.view_mut(bytes));
            bytes.to_vec()
        });
        // Objects without a size are refused when the graph is verified.
        Delay::of(self.add(name, exemplar, slots, initial.unwrap_or_default()))
    }

    fn add<E: Exemplar>(&mut self, name: &str, exemplar: E, slots: u32, initial: Vec<u8>) -> Object<E> {
        let key = Key { graph: self.id, position: self.objects.len() };
        self.objects.push(ObjectDescription { name: name.to_owned(), format: exemplar.format(), slots, initial });
        Object { key, exemplar }
    }

    /// A node, which executes `kernel` once a frame. Where the order of nodes matters (those that read an object and those
    /// that change it), it is that in which they are added.
    pub fn node<F>(&mut self, name: &str, parameters: impl IntoIterator<Item = Parameter>, mut kernel: F) -> Node<'_>
    where
        F: FnMut(&mut Job<'_>) -> Result<(), KernelError> + Send + 'static,
    {
        let kernel: Kernel = Box::new(move |job| kernel(job).map(|()| Action::Continue));
        self.nodes.push(NodeDescription::new(name, parameters.into_iter().collect(), kernel));
        Node { description: self.nodes.last_mut().expect("one was added") }
    }

    /// What is called at the release of each frame, before all nodes: it may write the objects that are the graph's input,
    /// and says whether there is a frame (paper 003, section 5.4.1: the input callback node). Without one, frames are
    /// released and that is all.
    pub fn input<F>(&mut self, parameters: impl IntoIterator<Item = Parameter>, callback: F) -> Node<'_>
    where
        F: FnMut(&mut Job<'_>) -> Result<Action, KernelError> + Send + 'static,
    {
        self.input = NodeDescription::new(INPUT_CALLBACK, parameters.into_iter().collect(), Box::new(callback));
        Node { description: &mut self.input }
    }

    /// What is called when all nodes are done with a frame; it may read the objects that are the graph's output (the output
    /// callback node).
    pub fn output<F>(&mut self, parameters: impl IntoIterator<Item = Parameter>, mut callback: F) -> Node<'_>
    where
        F: FnMut(&mut Job<'_>) -> Result<(), KernelError> + Send + 'static,
    {
        let kernel: Kernel = Box::new(move |job| callback(job).map(|()| Action::Continue));
        self.output = NodeDescription::new(OUTPUT_CALLBACK, parameters.into_iter().collect(), kernel);
        Node { description: &mut self.output }
    }

    /// Derives the edges from what nodes do with objects (`vxVerifyGraph`).
    ///
    /// # Errors
    /// [`VerifyError`], with what OpenVX would say.
    pub fn verify(self) -> Result<Verified, VerifyError> {
        verify::check(&self)?;
        Verified::of(self)
    }

    /// Callbacks and nodes, in the order in which a loop would call them.
    pub(crate) fn all_nodes(&self) -> impl DoubleEndedIterator<Item = &NodeDescription> {
        std::iter::once(&self.input).chain(&self.nodes).chain(std::iter::once(&self.output))
    }

    /// Objects and nodes, for which edges follow, but those of callbacks without objects.
    pub(crate) fn pipeline(&self, period: Nanos) -> Pipeline {
        let mut pipeline = Pipeline::new(&self.name, period);
        for object in &self.objects {
            let depth = object.slots.saturating_sub(1);
            pipeline = match (object.format.size(), object.initial.is_empty()) {
                (Some(bytes), true) => pipeline.delay(&object.name, bytes, depth),
                (Some(_), false) => pipeline.delay_from(&object.name, depth, &object.initial),
                (None, _) => pipeline.object(&object.name, 0),
            };
        }
        for node in self.all_nodes() {
            let parameter = |parameter: &Parameter| {
                let object = &self.objects[parameter.key.position].name;
                match parameter.access {
                    laxity_graph::Access::Read { ago } => laxity_graph::Parameter::past(object, ago),
                    laxity_graph::Access::Write => laxity_graph::Parameter::output(object),
                    laxity_graph::Access::Change => laxity_graph::Parameter::inout(object),
                }
            };
            pipeline = pipeline.node(&node.name, node.parameters.iter().map(parameter));
        }
        pipeline
    }
}

impl NodeDescription {
    fn new(name: &str, parameters: Vec<Parameter>, kernel: Kernel) -> Self {
        NodeDescription { name: name.to_owned(), parameters, kernel, budget: None }
    }
}

impl Node<'_> {
    /// CPU time that a job needs at most, by which [`Policy::Deadline`](crate::Policy::Deadline) reserves.
    pub fn budget(self, budget: Nanos) -> Self {
        self.description.budget = Some(budget);
        self
    }
}

impl fmt::Debug for NodeDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NodeDescription { name, parameters, budget, kernel: _ } = self;
        f.debug_struct("Node").field("name", name).field("parameters", parameters).field("budget", budget).finish()
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: Vec<_> = self.all_nodes().collect();
        f.debug_struct("Graph")
            .field("name", &self.name)
            .field("objects", &self.objects)
            .field("nodes", &nodes)
            .finish()
    }
}
