//! How Linux schedules the threads of nodes: `SCHED_FIFO` priorities, and the CPUs that they keep to.

use std::io;
use std::str::FromStr;
use std::thread;

use clap::Args;
use laxity_graph::Spec;
use laxity_sys::scheduling;
use serde::{Deserialize, Serialize};

use super::super::order::downstream;
use super::settings::{self, Cpus, Setting};

/// The highest priority of a node. The thread that waits for deaths has the next one, and must get past them.
pub const PRIORITY_MAX: u8 = 97;

/// Options about scheduling.
#[derive(Args)]
pub struct Scheduling {
    /// SCHED_FIFO priorities for all nodes: rm (by period), dm (by deadline), depth (the end of the graph first), or one number
    #[arg(long, value_name = "RULE")]
    priorities: Option<Rule>,
    /// SCHED_FIFO priority of a node, from 1 (lowest) to 97; can be repeated
    #[arg(long, value_name = "NODE=PRIORITY")]
    priority: Vec<Setting<Priority>>,
    /// CPUs for all nodes, or for one, as in 0-1,3; can be repeated
    #[arg(long, value_name = "[NODE=]CPUS")]
    cpus: Vec<Setting<Cpus>>,
}

/// What the thread of one node gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attributes {
    /// `SCHED_FIFO` at this priority; nothing leaves the thread as Linux starts it.
    pub priority: Option<u8>,
    /// The only CPUs that it may use; nothing leaves it those of this process.
    pub cpus: Option<Vec<usize>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Priority(u8);

impl FromStr for Priority {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let in_range = |number: &u8| (1..=PRIORITY_MAX).contains(number);
        let wrong = || format!("{text:?} is no priority; write NODE=1 (lowest) to NODE={PRIORITY_MAX}");
        text.parse().ok().filter(in_range).map(Priority).ok_or_else(wrong)
    }
}

/// Which node goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// The one with the shorter period.
    RateMonotonic,
    /// The one with the shorter relative deadline.
    DeadlineMonotonic,
    /// The one with more nodes before it, so that what was begun is finished first.
    Depth,
    /// None.
    All(Priority),
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "rm" => Ok(Rule::RateMonotonic),
            "dm" => Ok(Rule::DeadlineMonotonic),
            "depth" => Ok(Rule::Depth),
            text => match text.parse() {
                Ok(priority) => Ok(Rule::All(priority)),
                Err(_) => Err(format!("write rm, dm, depth, or a number from 1 (lowest) to {PRIORITY_MAX}")),
            },
        }
    }
}

impl Scheduling {
    /// The attributes of each node of `spec`.
    ///
    /// # Errors
    /// Names and CPUs that there are not.
    pub fn attributes(&self, spec: &Spec) -> Result<Vec<Attributes>, String> {
        let names: Vec<String> = spec.graph().nodes.iter().map(|node| node.name.clone()).collect();
        settings::check("--priority", &self.priority, &names, "node")?;
        settings::check("--cpus", &self.cpus, &names, "node")?;
        let by_rule = self.priorities.map(|rule| rule.priorities(spec));
        let usable = scheduling::usable_cpus().map_err(|error| format!("--cpus: {error}"))?;
        let attributes = names.iter().enumerate().map(|(node, name)| {
            let by_name = settings::value(&self.priority, name).map(|&Priority(number)| number);
            let priority = by_name.or_else(|| by_rule.as_ref().map(|priorities| priorities[node]));
            let cpus = settings::value(&self.cpus, name).map(|Cpus(cpus)| cpus.clone());
            match cpus.iter().flatten().find(|cpu| !usable.contains(cpu)) {
                Some(cpu) => Err(format!("--cpus: CPU {cpu} cannot be used; those that can are {}", listed(&usable))),
                None => Ok(Attributes { priority, cpus }),
            }
        });
        attributes.collect()
    }
}

impl Rule {
    /// The lowest nodes have priority 1, the next ones 2, and so on; those beyond the highest share that.
    fn priorities(self, spec: &Spec) -> Vec<u8> {
        let nodes = spec.plan().nodes();
        // The higher the key, the more urgent.
        let keys: Vec<u64> = match self {
            Rule::All(Priority(number)) => return vec![number; nodes.len()],
            Rule::RateMonotonic => nodes.iter().map(|node| u64::MAX - node.period.floor().0).collect(),
            Rule::DeadlineMonotonic => nodes.iter().map(|node| u64::MAX - node.deadline.0).collect(),
            Rule::Depth => downstream(spec.graph()).1.into_iter().map(|depth| depth as u64).collect(),
        };
        let mut levels = keys.clone();
        levels.sort_unstable();
        levels.dedup();
        let level = |key: &u64| levels.binary_search(key).expect("every key is among the levels") + 1;
        keys.iter().map(|key| u8::try_from(level(key)).map_or(PRIORITY_MAX, |level| level.min(PRIORITY_MAX))).collect()
    }
}

impl Attributes {
    /// Gives them to the calling thread.
    ///
    /// # Errors
    /// Why Linux refuses, and the way out.
    pub fn apply(&self) -> Result<(), String> {
        if let Some(cpus) = &self.cpus {
            scheduling::keep_on(cpus).map_err(|error| format!("cannot keep to CPUs {}: {error}", listed(cpus)))?;
        }
        if let Some(priority) = self.priority {
            scheduling::set_fifo(priority).map_err(|error| refused(priority, &error))?;
        }
        Ok(())
    }
}

/// Tries out the highest priority that any node gets, before anything is begun.
pub fn check_permission(attributes: &[Attributes]) -> Result<(), String> {
    let Some(priority) = attributes.iter().filter_map(|attributes| attributes.priority).max() else { return Ok(()) };
    // A thread of its own, as there may be no way back.
    let tried = thread::spawn(move || scheduling::set_fifo(priority)).join();
    tried.unwrap_or(Ok(())).map_err(|error| refused(priority, &error))
}

fn refused(priority: u8, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!(
            "SCHED_FIFO priority {priority} is not permitted to this user; raise the limit (`ulimit -r {PRIORITY_MAX}`, \
             or `rtprio` in /etc/security/limits.conf), give the program the capability (`sudo setcap cap_sys_nice+ep \
             $(command -v laxity)`), or leave out --priority and --priorities"
        ),
        _ => format!("cannot get SCHED_FIFO priority {priority}: {error}"),
    }
}

fn listed(cpus: &[usize]) -> String {
    let numbers: Vec<String> = cpus.iter().map(usize::to_string).collect();
    numbers.join(",")
}

#[cfg(test)]
mod tests {
    use laxity_model::Nanos;

    use super::super::notation;
    use super::*;

    /// A (10 ms) -- 1:2 --> B (20 ms, due in 4 ms) --> C (20 ms); D (10 ms) --> C would differ in rate.
    fn spec() -> Spec {
        let mut graph = notation::graph("A:B.2,B:C").expect("a graph");
        graph.nodes[0].period = Some(Nanos::from_millis(10));
        graph.nodes[1].deadline = Some(Nanos::from_millis(4));
        Spec::new(graph).expect("it can be")
    }

    fn attributes(rule: Option<&str>, priority: &[&str]) -> Result<Vec<Option<u8>>, String> {
        let scheduling = Scheduling {
            priorities: rule.map(|rule| rule.parse().expect(rule)),
            priority: priority.iter().map(|text| text.parse().expect(text)).collect(),
            cpus: Vec::new(),
        };
        Ok(scheduling.attributes(&spec())?.into_iter().map(|attributes| attributes.priority).collect())
    }

    #[test]
    fn rules_rank_nodes_from_priority_one_up_and_equals_share_one() {
        assert_eq!(attributes(Some("rm"), &[]), Ok(vec![Some(2), Some(1), Some(1)]));
        assert_eq!(attributes(Some("dm"), &[]), Ok(vec![Some(2), Some(3), Some(1)]));
        assert_eq!(attributes(Some("depth"), &[]), Ok(vec![Some(1), Some(2), Some(3)]));
        assert_eq!(attributes(Some("40"), &["B=7"]), Ok(vec![Some(40), Some(7), Some(40)]));
        assert_eq!(attributes(None, &["B=7"]), Ok(vec![None, Some(7), None]));
        assert!(attributes(None, &["b=7"]).is_err());
    }

    #[test]
    fn priorities_that_are_none_are_refused() {
        for wrong in ["0", "98", "99", "-1", "rr", ""] {
            assert!(wrong.parse::<Rule>().is_err() && wrong.parse::<Priority>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn cpus_that_there_are_not_are_refused_with_those_that_there_are() {
        let cpus = vec!["C=1023".parse().expect("a set")];
        let scheduling = Scheduling { priorities: None, priority: Vec::new(), cpus };
        let error = scheduling.attributes(&spec()).expect_err("so many CPUs");
        assert!(error.starts_with("--cpus: CPU 1023 cannot be used; those that can are "), "{error}");
    }
}
