//! The edges that follow from what nodes do with objects.
//!
//! ```text
//! object    write ---> read ----> change ---> read          a node that changes it waits for earlier readers
//!             |                     ^
//!             '------> read --------'
//! delay     write ---> read, k jobs ago     k tokens at the start; against the flow it is a back-edge
//! ```
//!
//! Every wait is for a job of a lower index, or of the same index and earlier in an order of the nodes. So whatever is
//! not refused here never waits for itself.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use laxity_model::{DataObject, Edge, Graph, Node};

use super::{Access, Link, Object, Pipeline, PipelineError, Use};
use crate::spec::{Channel, NAME_MAX};

/// What follows from a [`Pipeline`].
pub(super) struct Derived {
    /// Without replicas.
    pub graph: Graph,
    pub channels: Vec<Channel>,
    /// With their uses.
    pub objects: Vec<Object>,
    /// Nodes on the longest path.
    pub depth: u32,
}

/// Job j of a node waits for job j of another.
#[derive(Clone, Copy)]
struct Wait {
    from: usize,
    to: usize,
    /// The position of the object that makes it wait.
    object: Option<usize>,
}

pub(super) fn derive(pipeline: &Pipeline) -> Result<Derived, PipelineError> {
    let objects = uses(pipeline)?;
    let mut waits = declared(pipeline)?;
    for (position, object) in objects.iter().enumerate() {
        let writer = check(pipeline, object)?;
        waits.extend(turns(position, object, writer));
    }
    let order = Order::of(pipeline, &objects, &waits)?;
    let mut pairs = BTreeSet::new();
    let mut edges = Vec::new();
    for (position, wait) in waits.iter().enumerate() {
        // Those that were declared may carry messages: all of them stay.
        if pairs.insert((wait.from, wait.to)) || position < pipeline.edges.len() {
            edges.push(edge(wait.from, wait.to));
        }
    }
    edges.extend(delays(&objects, &pairs, &order));
    let mut channels: Vec<Channel> = pipeline.edges.iter().map(|(_, _, channel)| *channel).collect();
    channels.resize(edges.len(), Channel::Counter);
    let nodes = nodes(pipeline, &edges);
    let mut graph = Graph::new(&pipeline.name, nodes, edges);
    graph.objects = objects.iter().map(|object| order.data_object(object)).collect();
    Ok(Derived { graph, channels, objects, depth: order.depth })
}

/// The objects with their uses.
fn uses(pipeline: &Pipeline) -> Result<Vec<Object>, PipelineError> {
    let mut objects = pipeline.objects.clone();
    let mut positions: BTreeMap<&str, usize> = BTreeMap::new();
    for (position, object) in pipeline.objects.iter().enumerate() {
        if positions.insert(&object.name, position).is_some() {
            return Err(PipelineError::DuplicateObject { object: object.name.clone() });
        }
    }
    for (node, (name, parameters)) in pipeline.nodes.iter().enumerate() {
        for parameter in parameters {
            let unknown = || PipelineError::UnknownObject { node: name.clone(), object: parameter.object.clone() };
            let &position = positions.get(parameter.object.as_str()).ok_or_else(unknown)?;
            objects[position].uses.push(Use { node, access: parameter.access });
        }
    }
    for object in &mut objects {
        object.uses.sort_unstable();
        object.uses.dedup();
    }
    Ok(objects)
}

/// The edges that are declared.
fn declared(pipeline: &Pipeline) -> Result<Vec<Wait>, PipelineError> {
    let position = |name: &String, from: &String, to: &String| {
        let unknown = || PipelineError::UnknownNode { from: from.clone(), to: to.clone(), node: name.clone() };
        pipeline.nodes.iter().position(|(node, _)| node == name).ok_or_else(unknown)
    };
    let waits = pipeline
        .edges
        .iter()
        .map(|(from, to, _)| Ok(Wait { from: position(from, from, to)?, to: position(to, from, to)?, object: None }));
    waits.collect()
}

/// Rules of an object by itself. Answers with the node that writes it.
fn check(pipeline: &Pipeline, object: &Object) -> Result<usize, PipelineError> {
    let name = object.name.clone();
    if name.is_empty() || name.len() > NAME_MAX {
        return Err(PipelineError::ObjectName { name });
    }
    if object.bytes == 0 {
        return Err(PipelineError::NoBytes { object: name });
    }
    if object.initial.len() > u32::MAX as usize {
        return Err(PipelineError::LongInitial { object: name, bytes: object.initial.len() });
    }
    let node = |position: usize| pipeline.nodes[position].0.clone();
    for used in &object.uses {
        match used.access {
            Access::Read { ago } if ago > object.depth => {
                return Err(PipelineError::TooLongAgo {
                    node: node(used.node),
                    object: name,
                    ago,
                    depth: object.depth,
                });
            }
            Access::Change if object.depth > 0 => {
                return Err(PipelineError::DelayChanged { node: node(used.node), object: name });
            }
            _ => {}
        }
    }
    let mut turns = object.uses.iter().filter(|used| is_turn(used.access)).map(|used| used.node);
    // Uses are sorted by node.
    let mut previous = None;
    if let Some(twice) = turns.find(|&node| previous.replace(node) == Some(node)) {
        return Err(PipelineError::UsedTwice { node: node(twice), object: name });
    }
    let mut writers = object.uses.iter().filter(|used| used.access == Access::Write).map(|used| used.node);
    match (writers.next(), writers.next(), object.uses.first()) {
        (Some(writer), None, _) => Ok(writer),
        (Some(one), Some(other), _) => Err(PipelineError::TwoWriters { object: name, nodes: (node(one), node(other)) }),
        (None, _, Some(used)) => Err(PipelineError::NoWriter { node: node(used.node), object: name }),
        (None, _, None) => Err(PipelineError::Unused { object: name }),
    }
}

/// Whether it is an access to what this job of the graph computes.
fn is_turn(access: Access) -> bool {
    !matches!(access, Access::Read { ago: 1.. })
}

/// The waits in every job because of one object: the writer goes first, the others follow in the order in which they are
/// declared, readers beside each other.
fn turns(position: usize, object: &Object, writer: usize) -> Vec<Wait> {
    let mut waits = Vec::new();
    let mut wait = |from, to| waits.push(Wait { from, to, object: Some(position) });
    let mut last = writer;
    let mut readers: Vec<usize> = Vec::new();
    for &Use { node, access } in object.uses.iter().filter(|used| is_turn(used.access)) {
        match access {
            Access::Read { .. } => {
                wait(last, node);
                readers.push(node);
            }
            Access::Change => {
                if readers.is_empty() {
                    wait(last, node);
                }
                // They wait for `last` themselves.
                readers.drain(..).for_each(|reader| wait(reader, node));
                last = node;
            }
            Access::Write => {}
        }
    }
    waits
}

/// The edges from writers to nodes that read what they wrote in an earlier job, one for each pair of nodes; a node need
/// not wait for its own earlier jobs.
fn delays(objects: &[Object], pairs: &BTreeSet<(usize, usize)>, order: &Order) -> Vec<Edge> {
    let mut delayed: BTreeMap<(usize, usize), Edge> = BTreeMap::new();
    for object in objects {
        let Some(writer) = object.uses.iter().find(|used| used.access == Access::Write) else { continue };
        let is_downstream = order.descendants(writer.node);
        for used in &object.uses {
            let Access::Read { ago: ago @ 1.. } = used.access else { continue };
            let pair = (writer.node, used.node);
            // An edge of the same job asks for more.
            if pair.0 == pair.1 || pairs.contains(&pair) {
                continue;
            }
            let edge = delayed.entry(pair).or_insert_with(|| Edge {
                initial: ago,
                delay: ago,
                back_edge: !is_downstream[used.node],
                ..edge(pair.0, pair.1)
            });
            // What it reads last exists last.
            (edge.initial, edge.delay) = (edge.initial.min(ago), edge.delay.min(ago));
        }
    }
    delayed.into_values().collect()
}

/// Those that no edge of the same job leads to are released by time.
fn nodes(pipeline: &Pipeline, edges: &[Edge]) -> Vec<Node> {
    let mut is_source = vec![true; pipeline.nodes.len()];
    edges.iter().filter(|edge| !edge.back_edge).for_each(|edge| is_source[edge.consumer] = false);
    let node = |((name, _), is_source): (&(String, Vec<_>), bool)| {
        Node::new(name.clone(), is_source.then_some(pipeline.period))
    };
    pipeline.nodes.iter().zip(is_source).map(node).collect()
}

/// One token for each job.
fn edge(producer: usize, consumer: usize) -> Edge {
    Edge::new(producer, consumer)
}

/// An order of the nodes in which no node waits for one behind it.
struct Order {
    /// For each node its place.
    places: Vec<usize>,
    /// For each node those that wait for it.
    successors: Vec<Vec<usize>>,
    /// Nodes on the longest path.
    depth: u32,
}

impl Order {
    /// The order that is closest to the one of declaration.
    fn of(pipeline: &Pipeline, objects: &[Object], waits: &[Wait]) -> Result<Order, PipelineError> {
        let nodes = pipeline.nodes.len();
        let mut successors = vec![Vec::new(); nodes];
        let mut missing = vec![0_usize; nodes];
        for wait in waits {
            successors[wait.from].push(wait.to);
            missing[wait.to] += 1;
        }
        let mut ready: BinaryHeap<_> = (0..nodes).filter(|&node| missing[node] == 0).map(Reverse).collect();
        let (mut places, mut depths, mut placed) = (vec![usize::MAX; nodes], vec![1_u32; nodes], 0);
        while let Some(Reverse(node)) = ready.pop() {
            places[node] = placed;
            placed += 1;
            for &next in &successors[node] {
                depths[next] = depths[next].max(depths[node] + 1);
                missing[next] -= 1;
                if missing[next] == 0 {
                    ready.push(Reverse(next));
                }
            }
        }
        if placed < nodes {
            return Err(cycle(pipeline, objects, waits, &places));
        }
        Ok(Order { places, successors, depth: depths.into_iter().max().unwrap_or(0) })
    }

    /// The nodes that a path leads to from `start`.
    fn descendants(&self, start: usize) -> Vec<bool> {
        let mut is_reached = vec![false; self.places.len()];
        let mut to_visit = vec![start];
        while let Some(node) = to_visit.pop() {
            for &next in &self.successors[node] {
                if !std::mem::replace(&mut is_reached[next], true) {
                    to_visit.push(next);
                }
            }
        }
        is_reached
    }

    fn data_object(&self, object: &Object) -> DataObject {
        let mut accessors: Vec<usize> = object.uses.iter().map(|used| used.node).collect();
        accessors.sort_unstable_by_key(|&node| self.places[node]);
        accessors.dedup();
        DataObject { name: object.name.clone(), accessors, delay: object.depth }
    }
}

/// A cycle among the nodes without a place: each of them waits for another one.
fn cycle(pipeline: &Pipeline, objects: &[Object], waits: &[Wait], places: &[usize]) -> PipelineError {
    let is_stuck = |node: usize| places[node] == usize::MAX;
    let before = |node: usize| waits.iter().find(|wait| wait.to == node && is_stuck(wait.from));
    let start = (0..places.len()).find(|&node| is_stuck(node));
    // Against the waits; a node that is met a second time is on the cycle.
    let mut path: Vec<Wait> = Vec::new();
    let mut next = start.and_then(before);
    while let Some(&wait) = next {
        if let Some(first) = path.iter().position(|earlier| earlier.to == wait.to) {
            path.drain(..first);
            break;
        }
        path.push(wait);
        next = before(wait.from);
    }
    let name = |node: usize| pipeline.nodes[node].0.clone();
    let link = |wait: &Wait| Link {
        from: name(wait.from),
        to: name(wait.to),
        object: wait.object.map(|object| objects[object].name.clone()),
    };
    PipelineError::Cycle { links: path.iter().rev().map(link).collect() }
}

#[cfg(test)]
mod tests;
