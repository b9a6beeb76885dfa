//! The messages of edges that carry any.

use laxity_graph::Job;

/// The edges of a node that carry messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Messages {
    /// Inbound edges, each with the messages that are there when a job begins.
    pub inputs: Vec<(usize, u32)>,
    /// Outbound edges, each with the messages that a job writes.
    pub outputs: Vec<(usize, u32)>,
}

/// Reads all messages and writes all, as users of rings do.
pub(super) fn exchange(job: &mut Job<'_>, edges: &Messages) {
    if edges.inputs.is_empty() && edges.outputs.is_empty() {
        return;
    }
    let byte = job.index() as u8;
    let (inputs, mut outputs) = job.messages();
    for &(edge, count) in &edges.inputs {
        for number in 0..count {
            let Ok(message) = inputs.get(edge, number) else { break };
            std::hint::black_box(message.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)));
        }
    }
    for &(edge, count) in &edges.outputs {
        for number in 0..count {
            let Ok(message) = outputs.get(edge, number) else { break };
            message.fill(byte);
        }
    }
}
