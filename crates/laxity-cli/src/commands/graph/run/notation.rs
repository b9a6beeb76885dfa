//! Graphs in a word: `A:B.2.3,B:C,C:A@2`, as PGM^RT's runner takes them, and back-edges.

use laxity_model::{Edge, Graph, Node};

/// What a graph is called that has no name.
const NAME: &str = "graph";

/// How an edge is written.
const FORM: &str = "FROM[.PRODUCE]:TO[.CONSUME[.THRESHOLD]][+TOKENS|@TOKENS]";

/// The graph that `text` describes: edges between commas. Numbers that are left out are 1, the threshold what is
/// consumed. `+2` puts two tokens on the edge at the start; `@2` does, too, and makes it a back-edge. Its nodes have
/// neither periods nor bodies.
pub fn graph(text: &str) -> Result<Graph, String> {
    let mut names = Vec::new();
    let edges = text.split(',').map(|part| edge(part, &mut names)).collect::<Result<Vec<_>, _>>()?;
    Ok(Graph::new(NAME, names.into_iter().map(|name: String| Node::new(name, None)).collect(), edges))
}

fn edge(part: &str, names: &mut Vec<String>) -> Result<Edge, String> {
    let wrong = || format!("edge {part:?}: write {FORM}, as in A.2:B.4.6");
    let number = |text: Option<&str>, default| text.map_or(Ok(default), |text| text.parse().map_err(|_| wrong()));
    let (from, to) = part.split_once(':').ok_or_else(wrong)?;
    let (to, start) = match to.find(['+', '@']) {
        Some(at) => (&to[..at], Some(&to[at..])),
        None => (to, None),
    };
    let back_edge = start.is_some_and(|start| start.starts_with('@'));
    let initial = number(start.map(|start| &start[1..]), 0)?;
    let (mut from, mut to) = (from.split('.'), to.split('.'));
    let producer = position(from.next().unwrap_or_default(), names).ok_or_else(wrong)?;
    let consumer = position(to.next().unwrap_or_default(), names).ok_or_else(wrong)?;
    let produce = number(from.next(), 1)?;
    let consume = number(to.next(), 1)?;
    let threshold = number(to.next(), consume)?;
    if from.next().is_some() || to.next().is_some() || part.matches(':').count() > 1 {
        return Err(wrong());
    }
    if produce == 0 || consume == 0 || threshold < consume {
        return Err(format!(
            "edge {part:?}: numbers of tokens start at 1, and a threshold is at least what is consumed"
        ));
    }
    Ok(Edge { producer, consumer, produce, consume, threshold, initial, back_edge, delay: 0, message: 0 })
}

/// The position of the node called `name`, which may be new.
fn position(name: &str, names: &mut Vec<String>) -> Option<usize> {
    if name.is_empty() {
        return None;
    }
    let found = names.iter().position(|known| known == name);
    Some(found.unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_between_commas_and_what_is_left_out_is_one() {
        let graph = graph("A.4:B.7,B.5:C.3.6,D:C").expect("a graph");
        let names: Vec<_> = graph.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["A", "B", "C", "D"]);
        let edges: Vec<_> = graph
            .edges
            .iter()
            .map(|edge| (edge.producer, edge.consumer, edge.produce, edge.consume, edge.threshold))
            .collect();
        assert_eq!(edges, [(0, 1, 4, 7, 7), (1, 2, 5, 3, 6), (3, 2, 1, 1, 1)]);
    }

    #[test]
    fn tokens_at_the_start_follow_a_plus_and_an_at_sign_makes_a_back_edge() {
        let graph = graph("A:B.2.3+1,B:A@2,A:A.1@1").expect("a graph");
        let edges: Vec<_> = graph.edges.iter().map(|edge| (edge.threshold, edge.initial, edge.back_edge)).collect();
        assert_eq!(edges, [(3, 1, false), (1, 2, true), (1, 1, true)]);
        assert_eq!(graph.nodes.len(), 2);
    }

    #[test]
    fn what_is_no_edge_is_refused_with_how_to_write_one() {
        let wrong_forms = [
            "",
            "A",
            "A:",
            ":B",
            "A:B,",
            "A:B:C",
            "A.2.3:B",
            "A:B.1.2.3",
            "A.x:B",
            "A:B.-1",
            "A:B@",
            "A:B+x",
            "A:B@1+1",
            "A:@1",
            "A:B@-1",
        ];
        for wrong in wrong_forms {
            let error = graph(wrong).expect_err(wrong);
            assert!(error.contains("write FROM[.PRODUCE]:TO[.CONSUME[.THRESHOLD]]"), "{wrong}: {error}");
        }
        for wrong in ["A.0:B", "A:B.0", "A:B.3.2"] {
            let error = graph(wrong).expect_err(wrong);
            assert!(error.contains("a threshold is at least what is consumed"), "{wrong}: {error}");
        }
    }
}
