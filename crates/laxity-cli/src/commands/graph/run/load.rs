//! What the nodes of a graph have to do, and how often: what the file says, or what options say instead.

use clap::Args;
use laxity_model::{Distribution, ExecutionTime, Graph, Nanos, Step};

use super::settings::{self, Bytes, Rate, Setting};

/// Options that replace what the file says; with -g, the only ones to say it.
#[derive(Args)]
pub struct Load {
    /// Period of the sources, or of one; can be repeated
    #[arg(long, value_name = "[NODE=]DURATION")]
    period: Vec<Setting<Nanos>>,
    /// Releases of the sources a second, as in 30, or in a window, as in 7/28ms; can be repeated
    #[arg(long, value_name = "[NODE=]RATE")]
    rate: Vec<Setting<Rate>>,
    /// CPU time of each job, as in 9ms or '{ uniform = ["1 ms", "5 ms"] }'; can be repeated
    #[arg(long, value_name = "[NODE=]TIME")]
    cost: Vec<Setting<Distribution>>,
    /// Memory that each job goes through, as in 64kB, as a part of its CPU time; can be repeated
    #[arg(long, value_name = "[NODE=]BYTES")]
    working_set: Vec<Setting<Bytes>>,
    /// Complete each job at once, whatever the file says it takes
    #[arg(long, conflicts_with_all = ["cost", "working_set"])]
    no_work: bool,
}

impl Load {
    /// Writes periods and costs into `graph`.
    pub fn apply(&self, graph: &mut Graph) -> Result<(), String> {
        let names: Vec<String> = graph.nodes.iter().map(|node| node.name.clone()).collect();
        settings::check("--period", &self.period, &names, "node")?;
        settings::check("--rate", &self.rate, &names, "node")?;
        settings::check("--cost", &self.cost, &names, "node")?;
        settings::check("--working-set", &self.working_set, &names, "node")?;
        for node in 0..names.len() {
            let is_source = graph.edges.iter().all(|edge| edge.consumer != node || edge.back_edge);
            let node = &mut graph.nodes[node];
            node.period = match is_source {
                true => Some(self.period_of(&node.name)?.or(node.period).ok_or_else(|| no_period(&node.name))?),
                false => self.no_source(&node.name).map(|()| node.period)?,
            };
            if self.no_work {
                node.body.clear();
            }
            if let Some(cost) = settings::value(&self.cost, &node.name) {
                node.body = body(cost);
            }
        }
        Ok(())
    }

    /// How much memory the jobs of `node` go through.
    pub fn working_set(&self, node: &str) -> u64 {
        settings::value(&self.working_set, node).map_or(0, |bytes| bytes.0)
    }

    /// The period of the source `name`, if an option says it.
    fn period_of(&self, name: &str) -> Result<Option<Nanos>, String> {
        let rate = |rate: &Rate| rate.period;
        let by_name = (settings::named(&self.period, name).copied(), settings::named(&self.rate, name).map(rate));
        let of_all = (settings::value(&self.period, name).copied(), settings::value(&self.rate, name).map(rate));
        match if by_name == (None, None) { of_all } else { by_name } {
            (Some(_), Some(_)) => Err(format!("node {name}: --period and --rate both say how often it runs; keep one")),
            (period, rate) => Ok(period.or(rate)),
        }
    }

    /// Refuses a period for the node `name`, which is no source.
    fn no_source(&self, name: &str) -> Result<(), String> {
        if settings::named(&self.period, name).is_none() && settings::named(&self.rate, name).is_none() {
            return Ok(());
        }
        Err(format!("node {name}: is no source, its period follows from its producers; remove --period and --rate"))
    }
}

fn no_period(name: &str) -> String {
    format!("node {name}: is a source and has no period; add one, as in --period {name}=10ms")
}

/// CPU time alone; nothing if there is none.
fn body(cost: &Distribution) -> Vec<Step> {
    let wcet = cost.max(Nanos::ZERO);
    match wcet {
        Nanos::ZERO => Vec::new(),
        wcet => vec![Step::Cpu(ExecutionTime { wcet, actual: cost.clone() })],
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::notation;
    use super::*;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        load: Load,
    }

    /// The graph of `edges` with these options.
    fn applied(edges: &str, options: &[&str]) -> Result<Graph, String> {
        let words = Words::parse_from(["run"].iter().chain(options));
        let mut graph = notation::graph(edges).expect("a graph");
        words.load.apply(&mut graph).map(|()| graph)
    }

    #[test]
    fn nodes_get_their_periods_and_costs() {
        let options = [
            "--period=10ms",
            "--rate=A=250",
            "--cost=1ms",
            "--cost",
            "C={ uniform = [\"1 ms\", \"2 ms\"] }",
            "--cost=B=0ms",
        ];
        let graph = applied("A:B,B:C,D:C,C:A@1", &options).expect("a graph");
        let nodes: Vec<_> = graph
            .nodes
            .iter()
            .map(|node| (node.name.as_str(), node.period, node.body.iter().map(Step::cpu_wcet).sum::<Nanos>()))
            .collect();
        let ms = Nanos::from_millis;
        let expected = [("A", Some(ms(4)), ms(1)), ("B", None, ms(0)), ("C", None, ms(2)), ("D", Some(ms(10)), ms(1))];
        assert_eq!(nodes, expected, "a back-edge leads to A, which is a source all the same");
    }

    #[test]
    fn settings_name_nodes_and_only_sources_have_a_period() {
        let error = |options: &[&str]| applied("camera:sink", options).expect_err("refused");
        assert!(error(&[]).contains("add one, as in --period camera=10ms"));
        assert!(error(&["--period=camra=1ms"]).ends_with("did you mean `camera`?"));
        assert!(error(&["--period=1ms", "--working-set=snk=1kB"]).ends_with("did you mean `sink`?"));
        assert!(error(&["--rate=1", "--rate=sink=5"]).starts_with("node sink: is no source"));
        assert!(error(&["--rate=1", "--period=5ms"]).ends_with("both say how often it runs; keep one"));
    }
}
