//! What is analysed: tasks and graph nodes alike, reduced to what the analysis needs.

use laxity_model::{Arrival, Graph, Step, Task, Workload};

use super::Refusal;
use crate::exact::floor_ticks;
use crate::pgm::{TokenGraph, rates};

/// A task, or a node as the sporadic task that stands for it. Times in ticks (nanoseconds).
#[derive(Clone, Debug)]
pub(super) struct Subject {
    /// The task's name; of a node, `graph.node`.
    pub name: String,
    /// Worst-case CPU time.
    pub wcet: u64,
    /// The longest of its non-preemptive sections.
    pub section: u64,
    /// Total length of its self-suspensions.
    pub suspension: u64,
    /// How often it suspends itself.
    pub suspensions: u64,
    pub period: u64,
    pub deadline: u64,
    pub jitter: u64,
    /// Whether it may arrive together with all others.
    pub is_synchronous: bool,
    /// The priority given by hand.
    pub priority: Option<u32>,
    /// The cluster it names.
    pub cluster: Option<usize>,
}

/// The tasks of a workload, then the nodes of each graph. What cannot be analysed is added to `refusals`.
pub(super) fn subjects(workload: &Workload, refusals: &mut Vec<Refusal>) -> Vec<Subject> {
    let mut all: Vec<Subject> = workload.tasks.iter().map(|task| of_task(task, refusals)).collect();
    for graph in &workload.graphs {
        all.extend(of_graph(graph, refusals));
    }
    all
}

impl Subject {
    /// How often a job becomes ready: once released, and after each self-suspension.
    pub fn wakeups(&self) -> u64 {
        1 + self.suspensions
    }

    /// The same with execution times of `permille` thousandths, rounded up.
    pub fn scaled(&self, permille: u64) -> Subject {
        let scale = |time: u64| {
            let product = (u128::from(time) * u128::from(permille)).div_ceil(1_000);
            u64::try_from(product).unwrap_or(u64::MAX)
        };
        Subject { wcet: scale(self.wcet), section: scale(self.section), ..self.clone() }
    }
}

fn of_task(task: &Task, refusals: &mut Vec<Refusal>) -> Subject {
    let body = Body::of(&format!("task \"{}\"", task.name), &task.body, refusals);
    Subject {
        name: task.name.clone(),
        wcet: body.wcet,
        section: body.section,
        suspension: body.suspension,
        suspensions: body.suspensions,
        period: task.period.0,
        deadline: task.deadline.0,
        jitter: task.jitter.0,
        is_synchronous: matches!(task.arrival, Arrival::Sporadic { .. }) || task.phase.is_zero(),
        priority: task.priority,
        cluster: task.cluster,
    }
}

/// The nodes as sporadic tasks: period and deadline follow from the rates, rounded down.
fn of_graph(graph: &Graph, refusals: &mut Vec<Refusal>) -> Vec<Subject> {
    let rates = match rates(&TokenGraph::from(graph)) {
        Ok(rates) => rates,
        Err(error) => {
            refusals.push(Refusal { subject: format!("graph \"{}\"", graph.name), reason: error.to_string() });
            return Vec::new();
        }
    };
    let node = |(node, rate): (&laxity_model::Node, &crate::pgm::Rate)| {
        let subject = format!("node \"{}\" of graph \"{}\"", node.name, graph.name);
        let body = Body::of(&subject, &node.body, refusals);
        let period = floor_ticks(&rate.period());
        if period == 0 {
            let reason = "its period is below 1 ns; let it consume more tokens at a time".to_owned();
            refusals.push(Refusal { subject, reason });
        }
        Subject {
            name: format!("{}.{}", graph.name, node.name),
            wcet: body.wcet,
            section: body.section,
            suspension: body.suspension,
            suspensions: body.suspensions,
            period: period.max(1),
            deadline: node.deadline.map_or(period, |deadline| deadline.0).max(1),
            jitter: 0,
            // Nodes behind a source are released when their tokens come.
            is_synchronous: false,
            priority: node.priority,
            cluster: node.cluster,
        }
    };
    graph.nodes.iter().zip(&rates).map(node).collect()
}

/// What a body asks for.
#[derive(Default)]
struct Body {
    wcet: u64,
    section: u64,
    suspension: u64,
    suspensions: u64,
}

impl Body {
    fn of(subject: &str, steps: &[Step], refusals: &mut Vec<Refusal>) -> Body {
        let mut body = Body::default();
        let (mut uses_gpu, mut locks) = (false, false);
        for step in steps {
            match step {
                Step::Cpu(time) => body.wcet = body.wcet.saturating_add(time.wcet.0),
                Step::NonPreemptive(time) => {
                    body.wcet = body.wcet.saturating_add(time.wcet.0);
                    body.section = body.section.max(time.wcet.0);
                }
                Step::Suspend(time) => {
                    body.suspension = body.suspension.saturating_add(time.wcet.0);
                    body.suspensions += 1;
                }
                Step::Critical { .. } => locks = true,
                Step::Gpu(_) | Step::GpuSection { .. } => uses_gpu = true,
            }
        }
        let mut refuse = |is_used: bool, reason: &str| {
            if is_used {
                refusals.push(Refusal { subject: subject.to_owned(), reason: reason.to_owned() });
            }
        };
        refuse(uses_gpu, "GPU operations are not analysed yet; no bound covers its waits for the GPU");
        refuse(locks, "critical sections are not analysed yet; no bound covers its waits for resources");
        body
    }
}
