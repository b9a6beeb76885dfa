//! Graphs in a word: `A:B.2.3,B:C`, as PGM^RT's runner takes them.

use std::str::FromStr;

use laxity_model::{Edge, ExecutionTime, Graph, Nanos, Node, Step};

use super::super::way_out;

/// What a graph is called that has no name.
const NAME: &str = "graph";

/// A span for one node, `A=10ms`, or for all, `10ms`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    node: Option<String>,
    span: Nanos,
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (node, span) = match text.split_once('=') {
            Some((node, span)) => (Some(node.to_owned()), span),
            None => (None, text),
        };
        Ok(Setting { node, span: span.parse::<Nanos>().map_err(|error| error.to_string())? })
    }
}

/// The graph that `text` describes: edges `FROM[.PRODUCE]:TO[.CONSUME[.THRESHOLD]]` between commas. Numbers that are left
/// out are 1, the threshold what is consumed. Sources get their periods from `periods`, all jobs their execution times
/// from `costs`; of several that concern a node the last counts.
pub fn graph(text: &str, periods: &[Setting], costs: &[Setting]) -> Result<Graph, String> {
    let mut names = Vec::new();
    let edges = text.split(',').map(|part| edge(part, &mut names)).collect::<Result<Vec<_>, _>>()?;
    check_names(&names, periods)?;
    check_names(&names, costs)?;
    let is_source = |node: usize| edges.iter().all(|edge| edge.consumer != node);
    let nodes = names.iter().enumerate().map(|(position, name)| {
        let period = setting(periods, name).filter(|_| is_source(position));
        if is_source(position) && period.is_none() {
            return Err(format!("node {name}: is a source and has no period; add one, as in --period {name}=10ms"));
        }
        if !is_source(position) && periods.iter().any(|setting| setting.node.as_ref() == Some(name)) {
            return Err(format!("node {name}: is no source, its period follows from its producers; remove --period"));
        }
        let cost = setting(costs, name).filter(|cost| !cost.is_zero());
        let body = cost.map(|cost| Step::Cpu(ExecutionTime::constant(cost))).into_iter().collect();
        let (phase, deadline, priority, cluster) = (Nanos::ZERO, None, None, None);
        Ok(Node { name: name.clone(), period, phase, deadline, priority, cluster, body })
    });
    Ok(Graph::new(NAME, nodes.collect::<Result<_, String>>()?, edges))
}

fn edge(part: &str, names: &mut Vec<String>) -> Result<Edge, String> {
    let wrong = || format!("edge {part:?}: write FROM[.PRODUCE]:TO[.CONSUME[.THRESHOLD]], as in A.2:B.4.6");
    let number = |text: Option<&str>, default| text.map_or(Ok(default), |text| text.parse().map_err(|_| wrong()));
    let (from, to) = part.split_once(':').ok_or_else(wrong)?;
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
    Ok(Edge { producer, consumer, produce, consume, threshold, initial: 0, back_edge: false, delay: 0 })
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

fn check_names(names: &[String], settings: &[Setting]) -> Result<(), String> {
    match settings.iter().filter_map(|setting| setting.node.as_ref()).find(|name| !names.contains(name)) {
        Some(name) => Err(format!("no node is called {name}; {}", way_out(name, names, "node"))),
        None => Ok(()),
    }
}

/// What is set for `name` by name, or else for all.
fn setting(settings: &[Setting], name: &str) -> Option<Nanos> {
    let last = |node: Option<&str>| settings.iter().rfind(|setting| setting.node.as_deref() == node);
    last(Some(name)).or_else(|| last(None)).map(|setting| setting.span)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(texts: &[&str]) -> Vec<Setting> {
        texts.iter().map(|text| text.parse().expect(text)).collect()
    }

    fn described(text: &str) -> Result<Graph, String> {
        graph(text, &settings(&["10ms", "A=4ms"]), &settings(&["1ms", "C=2ms", "B=0ms"]))
    }

    #[test]
    fn edges_are_between_commas_and_what_is_left_out_is_one() {
        let graph = described("A.4:B.7,B.5:C.3.6,D:C").expect("a graph");
        let nodes: Vec<_> = graph
            .nodes
            .iter()
            .map(|node| (node.name.as_str(), node.period, node.body.iter().map(Step::cpu_wcet).sum::<Nanos>()))
            .collect();
        let ms = Nanos::from_millis;
        let expected = [("A", Some(ms(4)), ms(1)), ("B", None, ms(0)), ("C", None, ms(2)), ("D", Some(ms(10)), ms(1))];
        assert_eq!(nodes, expected);
        let edges: Vec<_> = graph
            .edges
            .iter()
            .map(|edge| (edge.producer, edge.consumer, edge.produce, edge.consume, edge.threshold))
            .collect();
        assert_eq!(edges, [(0, 1, 4, 7, 7), (1, 2, 5, 3, 6), (3, 2, 1, 1, 1)]);
    }

    #[test]
    fn what_is_no_edge_is_refused_with_how_to_write_one() {
        for wrong in ["", "A", "A:", ":B", "A:B,", "A:B:C", "A.2.3:B", "A:B.1.2.3", "A.x:B", "A:B.-1"] {
            let error = described(wrong).expect_err(wrong);
            assert!(error.contains("write FROM[.PRODUCE]:TO[.CONSUME[.THRESHOLD]]"), "{wrong}: {error}");
        }
        for wrong in ["A.0:B", "A:B.0", "A:B.3.2"] {
            let error = described(wrong).expect_err(wrong);
            assert!(error.contains("a threshold is at least what is consumed"), "{wrong}: {error}");
        }
    }

    #[test]
    fn settings_name_nodes_and_only_sources_have_a_period() {
        let error = |periods: &[&str]| graph("camera:sink", &settings(periods), &[]).expect_err("refused");
        assert!(error(&[]).contains("add one, as in --period camera=10ms"));
        assert!(error(&["camra=1ms"]).ends_with("did you mean `camera`?"));
        assert!(error(&["1ms", "sink=1ms"]).starts_with("node sink: is no source"));
        assert!("A=soon".parse::<Setting>().is_err());
    }
}
