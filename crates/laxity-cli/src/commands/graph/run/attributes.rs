//! How Linux schedules the threads of nodes: by `SCHED_FIFO` or `SCHED_DEADLINE`, and on which CPUs.

use std::io;
use std::str::FromStr;
use std::thread;

use clap::Args;
use laxity_graph::Spec;
use laxity_graph::hooks::Fifo;
use laxity_model::{Nanos, Scheduler};
use laxity_runtime::{Attributes, NodeOptions};
use laxity_sys::scheduling;

use super::super::order::downstream;
use super::settings::{self, Cpus, Setting};

/// CPU time that a job takes besides its cost, at most as a rule: to wait, to wake consumers, to log.
const BESIDES: Nanos = Nanos::from_micros(100);

const PRIORITY_MAX: u8 = Fifo::PRIORITY_MAX;

/// Options about scheduling.
#[derive(Args)]
pub struct Scheduling {
    /// SCHED_FIFO priorities for all nodes: rm (by period), dm (by deadline), depth (the end of the graph first), or one number
    #[arg(long, value_name = "RULE")]
    priorities: Option<Rule>,
    /// SCHED_FIFO priority of a node, from 1 (lowest) to 97; can be repeated
    #[arg(long, value_name = "NODE=PRIORITY")]
    priority: Vec<Setting<Priority>>,
    /// SCHED_DEADLINE for all nodes: Linux reserves the cost of a job, and 0.1 ms, in each period
    #[arg(long, conflicts_with_all = ["priorities", "priority", "cpus"])]
    deadline_scheduling: bool,
    /// CPUs for all nodes, or for one, as in 0-1,3; can be repeated
    #[arg(long, value_name = "[NODE=]CPUS")]
    cpus: Vec<Setting<Cpus>>,
    /// Laxity's own scheduler for all nodes, by --policy, in user space (laxity) or the one that is loaded (kernel): jobs have the deadlines of the graph's rule, however far away
    #[arg(long, value_name = "CLASS", value_parser = ["laxity", "kernel"], conflicts_with_all = ["priorities", "priority", "cpus", "deadline_scheduling", "restart"])]
    scheduler: Option<String>,
    /// With --scheduler: the policy, as in P-EDF [default: that of the file]
    #[arg(long, value_name = "POLICY", requires = "scheduler", value_parser = super::super::super::run::parse_policy)]
    policy: Option<Scheduler>,
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
    /// The policy of Laxity's scheduler, if that is to schedule; that of the file unless another is named.
    pub fn laxity(&self, of_file: Scheduler) -> Option<Scheduler> {
        self.scheduler.as_ref().map(|_| self.policy.unwrap_or(of_file))
    }

    /// Whether that is its scheduler in the kernel.
    pub fn is_in_kernel(&self) -> bool {
        self.scheduler.as_deref() == Some("kernel")
    }

    /// How each node of `spec`, whose jobs need `costs` of CPU time, is scheduled, and on which CPUs.
    ///
    /// # Errors
    /// Names and CPUs that do not exist; costs that cannot be reserved.
    pub fn nodes(&self, spec: &Spec, costs: &[Nanos]) -> Result<Vec<NodeOptions>, String> {
        let names: Vec<String> = spec.graph().nodes.iter().map(|node| node.name.clone()).collect();
        settings::check("--priority", &self.priority, &names, "node")?;
        settings::check("--cpus", &self.cpus, &names, "node")?;
        let attributes = self.attributes(spec, &names, costs)?;
        let usable = scheduling::usable_cpus().map_err(|error| format!("--cpus: {error}"))?;
        let nodes = names.iter().zip(attributes).map(|(name, attributes)| {
            let cpus = settings::value(&self.cpus, name).map(|Cpus(cpus)| cpus.clone());
            match cpus.iter().flatten().find(|cpu| !usable.contains(cpu)) {
                Some(cpu) => Err(format!("--cpus: CPU {cpu} cannot be used; those that can are {}", listed(&usable))),
                None => Ok(NodeOptions { attributes, cpus, working_set: 0 }),
            }
        });
        nodes.collect()
    }

    fn attributes(&self, spec: &Spec, names: &[String], costs: &[Nanos]) -> Result<Vec<Attributes>, String> {
        if self.deadline_scheduling {
            return reservations(spec, names, costs);
        }
        let by_rule = self.priorities.map_or(vec![0; names.len()], |rule| rule.priorities(spec));
        let by_name = |name| settings::value(&self.priority, name).map(|&Priority(number)| number);
        let priorities: Vec<u8> =
            names.iter().zip(by_rule).map(|(name, by_rule)| by_name(name).unwrap_or(by_rule)).collect();
        let of_node = |(node, &priority): (usize, &u8)| match priority {
            0 => Attributes::Other,
            _ => Attributes::fifo_among(spec, node, &priorities),
        };
        Ok(priorities.iter().enumerate().map(of_node).collect())
    }
}

/// What Linux is to reserve for each node.
fn reservations(spec: &Spec, names: &[String], costs: &[Nanos]) -> Result<Vec<Attributes>, String> {
    let reservation = |(node, (name, &cost)): (usize, (&String, &Nanos))| {
        let (runtime, deadline) = (cost + BESIDES, spec.plan().nodes()[node].deadline);
        let error = format!("--deadline-scheduling: node {name}: {runtime} (its cost and {BESIDES}) exceeds ");
        if runtime > deadline {
            return Err(format!("{error}its deadline of {deadline}; lower --cost, or extend the deadline"));
        }
        Ok(Attributes::deadline_of(spec, node, runtime))
    };
    names.iter().zip(costs).enumerate().map(reservation).collect()
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

/// Tries out how each node is scheduled, before anything begins.
///
/// # Errors
/// What Linux refuses.
pub fn check_permission(nodes: &[NodeOptions]) -> Result<(), String> {
    // Threads of their own, as there may be no way back.
    nodes.iter().try_for_each(|node| thread::scope(|scope| scope.spawn(|| apply(node)).join()).unwrap_or(Ok(())))
}

fn apply(NodeOptions { attributes, cpus, .. }: &NodeOptions) -> Result<(), String> {
    if *attributes == Attributes::Other {
        return Ok(());
    }
    if let Some(cpus) = cpus {
        scheduling::keep_on(cpus).map_err(|error| format!("cannot keep to CPUs {}: {error}", listed(cpus)))?;
    }
    attributes.apply().map_err(|error| match attributes.priority() {
        Some(priority) => refused(priority, &error),
        None => unreserved(&error),
    })
}

/// Why Linux reserves nothing.
fn unreserved(error: &io::Error) -> String {
    let way_out = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "it takes the capability CAP_SYS_NICE (`sudo setcap cap_sys_nice+ep $(command -v laxity)`) and all CPUs of \
             the machine, so run outside of cpusets, or leave out --deadline-scheduling"
        }
        io::ErrorKind::ResourceBusy => "the CPUs are promised to others, so lower --cost, or the rates",
        io::ErrorKind::InvalidInput => "no deadline may exceed the period of its node",
        _ => "see what the error says",
    };
    format!("SCHED_DEADLINE is refused: {error}; {way_out}")
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
            deadline_scheduling: false,
            scheduler: None,
            policy: None,
            cpus: Vec::new(),
        };
        let nodes = scheduling.nodes(&spec(), &[Nanos::ZERO; 3])?;
        Ok(nodes.into_iter().map(|node| node.attributes.priority()).collect())
    }

    #[test]
    fn linux_reserves_the_cost_and_a_little_or_the_deadline_is_too_short() {
        let scheduling = Scheduling {
            priorities: None,
            priority: Vec::new(),
            deadline_scheduling: true,
            cpus: Vec::new(),
            scheduler: None,
            policy: None,
        };
        let nodes = |cost| scheduling.nodes(&spec(), &[Nanos::ZERO, cost, Nanos::ZERO]);
        let runtime = |node: NodeOptions| match node.attributes {
            Attributes::Deadline { runtime, .. } => runtime,
            other => panic!("{other:?}"),
        };
        let runtimes = nodes(Nanos::from_millis(3)).expect("it fits").into_iter().map(runtime);
        assert!(runtimes.eq([100_000, 3_100_000, 100_000].map(Nanos)));
        let error = nodes(Nanos::from_millis(4)).expect_err("B is due in 4 ms");
        assert!(error.contains("node B: 4.1 ms (its cost and 100 us) exceeds its deadline of 4 ms"), "{error}");
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
    fn priorities_out_of_range_are_refused() {
        for wrong in ["0", "98", "99", "-1", "rr", ""] {
            assert!(wrong.parse::<Rule>().is_err() && wrong.parse::<Priority>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn unknown_cpus_are_refused_with_the_list_of_usable_ones() {
        let cpus = vec!["C=1023".parse().expect("a set")];
        let scheduling = Scheduling {
            priorities: None,
            priority: Vec::new(),
            deadline_scheduling: false,
            cpus,
            scheduler: None,
            policy: None,
        };
        let error = scheduling.nodes(&spec(), &[Nanos::ZERO; 3]).expect_err("so many CPUs");
        assert!(error.starts_with("--cpus: CPU 1023 cannot be used; those that can are "), "{error}");
    }
}
