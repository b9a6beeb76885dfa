//! Which job consumes the tokens that another job produced.

use std::collections::VecDeque;

use laxity_model::EdgeId;

use crate::TraceHeader;
use crate::perfetto::writer::Arrows;

/// The tokens on every edge, in the order in which they were put there: the first in is the first out.
pub struct Tokens {
    edges: Vec<VecDeque<Batch>>,
}

/// Tokens that one job produced.
struct Batch {
    /// The arrow from that job; `None` for tokens that were there at the start.
    flow: Option<u64>,
    left: u32,
}

impl Tokens {
    pub fn new(header: &TraceHeader) -> Self {
        let initial = |tokens: u32| (tokens > 0).then_some(Batch { flow: None, left: tokens });
        Tokens { edges: header.edges.iter().map(|edge| initial(edge.initial).into_iter().collect()).collect() }
    }

    /// Puts tokens on an edge; the arrow `flow` begins here.
    pub fn produce(&mut self, edge: EdgeId, tokens: u32, flow: u64) -> Arrows {
        if let Some(batches) = self.edges.get_mut(edge.index()).filter(|_| tokens > 0) {
            batches.push_back(Batch { flow: Some(flow), left: tokens });
        }
        Arrows { through: vec![flow], ending: Vec::new() }
    }

    /// Takes tokens from an edge. The arrow of a batch ends where its last token is taken, and goes on until then.
    pub fn consume(&mut self, edge: EdgeId, tokens: u32) -> Arrows {
        let mut arrows = Arrows::default();
        let Some(batches) = self.edges.get_mut(edge.index()) else { return arrows };
        let mut wanted = tokens;
        while wanted > 0 {
            let Some(batch) = batches.front_mut() else { break };
            let taken = wanted.min(batch.left);
            wanted -= taken;
            batch.left -= taken;
            if batch.left == 0 {
                arrows.ending.extend(batch.flow);
                batches.pop_front();
            } else {
                arrows.through.extend(batch.flow);
            }
        }
        arrows
    }
}
