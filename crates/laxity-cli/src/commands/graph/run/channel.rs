//! What edges carry, by name.

use std::str::FromStr;

use laxity_graph::Channel;
use laxity_model::{Edge, Graph};

use super::settings::{self, Setting};

/// What `--edges` says of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeKind {
    /// Tokens alone.
    Counter,
    /// Messages of so many bytes.
    Ring {
        /// The longest message.
        message: u32,
    },
}

impl FromStr for EdgeKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':').unwrap_or((text, "64")) {
            ("counter", _) if text == "counter" => Ok(EdgeKind::Counter),
            ("ring", bytes) => match bytes.parse() {
                Ok(message) => Ok(EdgeKind::Ring { message }),
                Err(_) => Err(format!("a message has 0 to {} bytes, as in ring:4096", u32::MAX)),
            },
            _ => Err("write counter, ring or ring:BYTES".to_owned()),
        }
    }
}

impl EdgeKind {
    /// The channel of `edge`: a ring with room for twice what its two nodes need at least, so that neither waits for
    /// the other to the message.
    fn channel(self, edge: &Edge) -> Channel {
        match self {
            EdgeKind::Counter => Channel::Counter,
            EdgeKind::Ring { message } => {
                let needed = edge.threshold.saturating_add(edge.produce).max(edge.initial);
                Channel::Ring { message, capacity: needed.saturating_mul(2) }
            }
        }
    }
}

/// The channels of all edges of `graph`; counters where nothing is said.
pub fn channels(graph: &Graph, kinds: &[Setting<EdgeKind>]) -> Result<Vec<Channel>, String> {
    let name = |edge: &Edge| format!("{}:{}", graph.nodes[edge.producer].name, graph.nodes[edge.consumer].name);
    let names: Vec<String> = graph.edges.iter().map(name).collect();
    settings::check("--edges", kinds, &names, "edge")?;
    let kind = |name: &String| settings::value(kinds, name).copied().unwrap_or(EdgeKind::Counter);
    Ok(graph.edges.iter().zip(&names).map(|(edge, name)| kind(name).channel(edge)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_counters_or_rings_of_some_size() {
        assert_eq!("counter".parse(), Ok(EdgeKind::Counter));
        assert_eq!("ring".parse(), Ok(EdgeKind::Ring { message: 64 }));
        assert_eq!("ring:4096".parse(), Ok(EdgeKind::Ring { message: 4096 }));
        for wrong in ["", "pipe", "counter:64", "ring:", "ring:-1", "ring:4294967296", "Ring"] {
            assert!(wrong.parse::<EdgeKind>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_edge_carries_what_is_said_of_it_or_of_all() {
        let graph = super::super::notation::graph("A:B,B.2:C.2.3").expect("a graph");
        let kinds =
            |texts: &[&str]| -> Vec<Setting<EdgeKind>> { texts.iter().map(|text| text.parse().expect(text)).collect() };
        let ring = Channel::Ring { message: 8, capacity: 10 };
        assert_eq!(channels(&graph, &kinds(&["B:C=ring:8"])), Ok(vec![Channel::Counter, ring]));
        assert_eq!(channels(&graph, &kinds(&["ring:8", "A:B=counter"])), Ok(vec![Channel::Counter, ring]));
        let error = channels(&graph, &kinds(&["B:D=ring"])).expect_err("no such edge");
        assert_eq!(error, "--edges: no edge is called B:D; did you mean `B:C`?");
    }
}
