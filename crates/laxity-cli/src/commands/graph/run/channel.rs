//! What edges carry, by name.

use std::str::FromStr;

use laxity_graph::{Channel, ChannelKind, UnknownChannel};
use laxity_model::{Edge, Graph};

use super::settings::{self, Setting};

/// What `--edges` says of an edge: how messages of at most so many bytes travel, if there are any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    kind: ChannelKind,
    message: u32,
}

impl FromStr for Carried {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, bytes) = text.split_once(':').unwrap_or((text, "64"));
        let kind = name.parse().map_err(|error: UnknownChannel| error.to_string())?;
        if kind == ChannelKind::Counter && name != text {
            return Err("a counter carries no messages, so they have no length; write counter, or ring:4096".to_owned());
        }
        let too_long = || format!("a message has 0 to {} bytes, as in ring:4096", u32::MAX);
        Ok(Carried { kind, message: bytes.parse().map_err(|_| too_long())? })
    }
}

impl Carried {
    /// The channel of `edge`: with room for twice what its two nodes need at least, so that neither waits for the other
    /// to the message.
    fn channel(self, edge: &Edge) -> Channel {
        let needed = edge.threshold.saturating_add(edge.produce).max(edge.initial);
        self.kind.channel(self.message, needed.saturating_mul(2))
    }
}

/// The channels of all edges of `graph`; counters where nothing is said.
pub fn channels(graph: &Graph, kinds: &[Setting<Carried>]) -> Result<Vec<Channel>, String> {
    let name = |edge: &Edge| format!("{}:{}", graph.nodes[edge.producer].name, graph.nodes[edge.consumer].name);
    let names: Vec<String> = graph.edges.iter().map(name).collect();
    settings::check("--edges", kinds, &names, "edge")?;
    let channel = |(edge, name): (&Edge, &String)| {
        settings::value(kinds, name).map_or(Channel::Counter, |carried: &Carried| carried.channel(edge))
    };
    Ok(graph.edges.iter().zip(&names).map(channel).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_has_a_kind_and_messages_a_length() {
        let carried = |kind, message| Ok(Carried { kind, message });
        assert_eq!("counter".parse(), carried(ChannelKind::Counter, 64));
        assert_eq!("ring".parse(), carried(ChannelKind::Ring, 64));
        assert_eq!("ring:4096".parse(), carried(ChannelKind::Ring, 4096));
        assert_eq!("fast-mq:8".parse(), carried(ChannelKind::Queue, 8));
        for wrong in ["", "pipe", "counter:64", "ring:", "ring:-1", "ring:4294967296", "Ring"] {
            assert!(wrong.parse::<Carried>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_edge_carries_what_is_said_of_it_or_of_all() {
        let graph = super::super::notation::graph("A:B,B.2:C.2.3").expect("a graph");
        let kinds =
            |texts: &[&str]| -> Vec<Setting<Carried>> { texts.iter().map(|text| text.parse().expect(text)).collect() };
        let ring = Channel::Ring { message: 8, capacity: 10 };
        assert_eq!(channels(&graph, &kinds(&["B:C=ring:8"])), Ok(vec![Channel::Counter, ring]));
        assert_eq!(channels(&graph, &kinds(&["ring:8", "A:B=counter"])), Ok(vec![Channel::Counter, ring]));
        let error = channels(&graph, &kinds(&["B:D=ring"])).expect_err("no such edge");
        assert_eq!(error, "--edges: no edge is called B:D; did you mean `B:C`?");
    }
}
