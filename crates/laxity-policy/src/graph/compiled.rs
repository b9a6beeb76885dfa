//! What the rules of tokens need to know of a graph.

use laxity_model::{EdgeKind, Graph, Nanos};

use super::{CompiledGraphError, Period};

/// A graph made ready to be carried out: periods and deadlines of its nodes, and which nodes affect each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledGraph {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    links: Vec<Links>,
    replicas: u32,
}

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Least separation of its releases.
    pub period: Period,
    /// Relative deadline; the period, rounded down, if the graph does not say.
    pub deadline: Nanos,
    /// Arrival of the first job of a source.
    pub phase: Nanos,
    /// Whether its jobs are released by time; only back-edges may lead to it.
    pub is_source: bool,
}

/// An edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Index of the node that adds tokens.
    pub producer: usize,
    /// Index of the node that removes them.
    pub consumer: usize,
    /// Tokens added by each completed job of the producer (rho).
    pub produce: u32,
    /// Tokens removed by each job of the consumer (kappa).
    pub consume: u32,
    /// Tokens that must be there (phi).
    pub threshold: u32,
    /// Tokens at the start.
    pub initial: u32,
    /// What it is for.
    pub kind: EdgeKind,
    /// M: the consumer reads the data of M jobs ago.
    pub delay: u32,
}

/// The edges at a node, as positions in [`CompiledGraph::edges`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Links {
    /// Inbound, forward and back: a job is released when they have their tokens.
    pub tokens_in: Vec<usize>,
    /// Inbound of the feedback graph: a released job may run when they have theirs.
    pub feedback_in: Vec<usize>,
    /// Outbound, in the order in which a completed job writes: feedback first (paper 003, Fig. 5.5).
    pub out: Vec<usize>,
    /// The nodes that may go on when a job of this node completes, itself included, ascending.
    pub affected: Vec<usize>,
}

impl Edge {
    /// Whether job `index` of the consumer, counted from 0, has its tokens once `completed` jobs of the producer are
    /// complete: `n0 + completed * rho >= phi + index * kappa`. The consumer's earlier jobs took `index * kappa`.
    ///
    /// As the state of a graph is how many jobs of each node are complete, this one rule says which nodes may run. Simulated
    /// and live graphs share it.
    #[inline]
    pub fn suffices(&self, completed: u64, index: u64) -> bool {
        // In 128 bits: either side is below 2^97.
        self.written(completed) >= u128::from(self.threshold) + u128::from(index) * u128::from(self.consume)
    }

    /// How many jobs of the consumer have their tokens once `completed` jobs of the producer are complete: the first for
    /// which these do not [suffice](Edge::suffices), `floor((n0 + completed * rho - phi) / kappa) + 1`, or 0.
    #[inline]
    pub fn enabled(&self, completed: u64) -> u64 {
        let spare = self.written(completed).checked_sub(u128::from(self.threshold));
        // No graph completes 2^64 jobs, so that the saturated number is as good as the true one.
        spare.map_or(0, |spare| u64::try_from(spare / u128::from(self.consume) + 1).unwrap_or(u64::MAX))
    }

    /// How many jobs of the producer must be complete before job `index` of the consumer has its tokens: the least
    /// number that [suffices](Edge::suffices), `ceil((phi + index * kappa - n0) / rho)`, or 0. The last of them is the
    /// job whose completion brings the last token.
    pub fn needed(&self, index: u64) -> u64 {
        let tokens = u128::from(self.threshold) + u128::from(index) * u128::from(self.consume);
        let missing = tokens.saturating_sub(u128::from(self.initial));
        // No graph completes 2^64 jobs, so that the saturated number never suffices, as it should.
        u64::try_from(missing.div_ceil(u128::from(self.produce))).unwrap_or(u64::MAX)
    }

    /// Tokens on the edge when `completed` jobs of the producer are complete and `started` jobs of the consumer took
    /// theirs; a number beyond 64 bits takes decades of producing without consuming, and saturates.
    pub fn tokens(&self, completed: u64, started: u64) -> u64 {
        let taken = u128::from(started) * u128::from(self.consume);
        u64::try_from(self.written(completed).saturating_sub(taken)).unwrap_or(u64::MAX)
    }

    fn written(&self, completed: u64) -> u128 {
        u128::from(self.initial) + u128::from(completed) * u128::from(self.produce)
    }
}

impl CompiledGraph {
    /// The plan of `graph` as it is: one replica of everything, no feedback.
    pub fn new(graph: &Graph) -> Result<CompiledGraph, CompiledGraphError> {
        for (index, edge) in graph.edges.iter().enumerate() {
            check(graph, index, edge)?;
        }
        let rates = graph.rates().map_err(|error| CompiledGraphError::of(graph, error))?;
        let mut nodes = Vec::with_capacity(graph.nodes.len());
        for (index, (node, &rate)) in graph.nodes.iter().zip(&rates).enumerate() {
            let period = Period::of(rate);
            if period.floor().is_zero() {
                return Err(CompiledGraphError::TooFast { node: node.name.clone(), rate });
            }
            nodes.push(Node {
                period,
                deadline: node.deadline.unwrap_or(period.floor()),
                phase: node.phase,
                is_source: !graph.edges.iter().any(|edge| edge.consumer == index && !edge.back_edge),
            });
        }
        let edges = graph.edges.iter().map(|edge| Edge {
            producer: edge.producer,
            consumer: edge.consumer,
            produce: edge.produce,
            consume: edge.consume,
            threshold: edge.threshold,
            initial: edge.initial,
            kind: if edge.back_edge { EdgeKind::Back } else { EdgeKind::Token },
            delay: edge.delay,
        });
        Ok(CompiledGraph::with(nodes, edges.collect(), 1))
    }

    /// Links the edges to the nodes; all indices are in range.
    pub(super) fn with(nodes: Vec<Node>, edges: Vec<Edge>, replicas: u32) -> CompiledGraph {
        let mut links = vec![Links::default(); nodes.len()];
        let (feedback, tokens): (Vec<usize>, Vec<usize>) =
            (0..edges.len()).partition(|&edge| edges[edge].kind == EdgeKind::Feedback);
        for &edge in &feedback {
            links[edges[edge].consumer].feedback_in.push(edge);
        }
        for &edge in &tokens {
            links[edges[edge].consumer].tokens_in.push(edge);
        }
        for edge in feedback.into_iter().chain(tokens) {
            links[edges[edge].producer].out.push(edge);
        }
        for (node, links) in links.iter_mut().enumerate() {
            links.affected = links.out.iter().map(|&edge| edges[edge].consumer).chain([node]).collect();
            links.affected.sort_unstable();
            links.affected.dedup();
        }
        CompiledGraph { nodes, edges, links, replicas }
    }

    /// The nodes, at the positions they have in the graph.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The edges: those of the graph at the positions they have there, then those of the feedback graph.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// N: how many replicas there are of every data object.
    pub fn replicas(&self) -> u32 {
        self.replicas
    }

    /// The replica of every data object that job `index` of a node uses: `index mod N` (paper 003, section 5.4.1).
    pub fn replica(&self, index: u64) -> u32 {
        (index % u64::from(self.replicas)) as u32
    }

    /// Where job `index` of the producer of `edge` puts its data in the edge's ring of M + N slots, M being the delay.
    /// A consumer's job `j` reads the slot of the producer's job `j - M`.
    pub fn slot(&self, edge: usize, index: u64) -> u64 {
        index % (u64::from(self.edges[edge].delay) + u64::from(self.replicas))
    }

    pub(super) fn links(&self, node: usize) -> &Links {
        &self.links[node]
    }
}

/// Rules of an edge by itself.
fn check(graph: &Graph, index: usize, edge: &laxity_model::Edge) -> Result<(), CompiledGraphError> {
    let nodes = graph.nodes.len();
    if let Some(node) = [edge.producer, edge.consumer].into_iter().find(|&node| node >= nodes) {
        return Err(CompiledGraphError::UnknownNode { edge: index, node, nodes });
    }
    let (from, to) = (graph.nodes[edge.producer].name.clone(), graph.nodes[edge.consumer].name.clone());
    let &laxity_model::Edge { produce, consume, threshold, initial, .. } = edge;
    if produce == 0 || consume == 0 || threshold < consume {
        return Err(CompiledGraphError::Tokens { from, to, produce, consume, threshold });
    }
    if edge.back_edge && initial < threshold {
        return Err(CompiledGraphError::Deadlock { from, to, initial, threshold });
    }
    Ok(())
}
