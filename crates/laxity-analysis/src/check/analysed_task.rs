//! What is analysed: tasks and graph nodes alike, reduced to what the analysis needs.

use laxity_model::{Arrival, Graph, Replicas, Scheduler, Step, Task, Workload};

use super::Refusal;
use super::gpu_use::GpuUse;
use super::served::{Fate, Jobs, Server};
use super::uses::{Lock, Uses};
use crate::LONGEST_TICKS;
use crate::exact::floor_ticks;
use crate::pgm::{TokenGraph, rates};

/// A task, or a node as the sporadic task that stands for it. Times in ticks (nanoseconds).
#[derive(Clone, Debug)]
pub(super) struct AnalysedTask {
    /// The task's name; of a node, `graph/node`.
    pub name: String,
    /// Worst-case CPU time.
    pub wcet: u64,
    /// The longest of its non-preemptive sections.
    pub section: u64,
    /// Total length of its self-suspensions for a time.
    pub suspension: u64,
    /// How often it may suspend: for a time, for a lock, for a GPU operation.
    pub suspensions: u64,
    /// Interrupts that the GPU operations of a job raise.
    pub interrupts: u64,
    /// How often a job asks for a lock, engines of GPUs included.
    pub lock_requests: u64,
    /// What it asks of resources and GPUs.
    pub uses: Uses,
    pub period: u64,
    pub deadline: u64,
    pub jitter: u64,
    /// Whether it may arrive together with all others.
    pub is_synchronous: bool,
    /// How long before its arrival a job may be pending: of a node, while its predecessors' tokens are there already; of a
    /// soft server, while the budgets before are used up early. Of a node it follows from the bounds of others
    /// ([`coupled`](super::coupled)).
    pub early: u64,
    /// What a node has to do with others; `None` for what is no node.
    pub node: Option<Tokens>,
    /// The priority given by hand.
    pub priority: Option<u32>,
    /// The period and the deadline by which fixed priorities rank it.
    pub ranked_by: (u64, u64),
    /// The cluster it names.
    pub cluster: Option<usize>,
    /// The bandwidth server that it is.
    pub server: Option<Server>,
    /// If its budgets are analysed in place of its jobs: the jobs. The fields above are those of a budget then.
    pub jobs: Option<Jobs>,
}

/// A time that stands for none.
pub(super) const UNBOUNDED: u64 = LONGEST_TICKS;

/// What concerns the clusters of other nodes. It follows from the bounds of others ([`coupled`](super::coupled)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tokens {
    /// Interrupts for other jobs, beside those that release jobs of its cluster, when a job is complete: 1 or none.
    pub sent: u64,
    /// Whether a CPU of another cluster may release its jobs.
    pub is_sent: bool,
    /// How long the interrupt may have to wait there.
    pub held: u64,
}

/// The tasks of a workload, then the nodes of each graph. Features that cannot be analysed are added to `refusals`.
pub(super) fn analysed_tasks(
    workload: &Workload,
    scheduler: &Scheduler,
    refusals: &mut Vec<Refusal>,
) -> Vec<AnalysedTask> {
    let gpu_use = GpuUse::of(workload, scheduler);
    let is_protected = workload.gpu_management.bandwidth_lock.is_some();
    let uses = |body: &[Step]| {
        let mut uses = Uses::of(body, &workload.platform.gpus, gpu_use);
        // A section that stands for an operation under the bandwidth lock is followed by its unlocking, which is a step.
        uses.ends_executing &= !(is_protected && uses.demand.section > 0);
        uses
    };
    let mut all: Vec<AnalysedTask> = workload.tasks.iter().map(|task| of_task(task, uses(&task.body))).collect();
    for graph in &workload.graphs {
        all.extend(of_graph(graph, uses, refusals));
    }
    all
}

impl AnalysedTask {
    /// What follows from a body.
    fn with(uses: Uses) -> AnalysedTask {
        let demand = &uses.demand;
        AnalysedTask {
            name: String::new(),
            wcet: demand.wcet,
            section: demand.section,
            suspension: demand.suspension,
            suspensions: demand.suspensions,
            interrupts: demand.interrupts,
            lock_requests: demand.engine_locks.saturating_add(uses.requests.len() as u64),
            period: 1,
            deadline: 1,
            jitter: 0,
            is_synchronous: false,
            early: 0,
            node: None,
            priority: None,
            ranked_by: (1, 1),
            cluster: None,
            server: None,
            jobs: None,
            uses,
        }
    }

    /// Whether it uses a GPU.
    pub fn uses_gpu(&self) -> bool {
        !self.uses.demand.operations.is_empty() || self.uses.requests.iter().any(|request| request.lock == Lock::Gpu)
    }

    /// Why nothing bounds what nodes before it do to its jobs, if so.
    pub fn unbounded(&self) -> Option<&'static str> {
        if self.early >= UNBOUNDED {
            Some(
                "nothing bounds how many of its jobs may be released at once, as a node before it has no response-time bound",
            )
        } else if self.node.is_some_and(|tokens| tokens.held >= UNBOUNDED) {
            Some("nothing bounds how long its release takes, as the CPU of a node before it is not proven to keep up")
        } else {
            None
        }
    }

    /// How many jobs may be pending before they arrive.
    pub fn early_jobs(&self) -> u64 {
        self.early.div_ceil(self.period)
    }

    /// How long before its arrival a job may be pending that must not delay itself then: a node's.
    pub fn ahead(&self) -> u64 {
        if self.node.is_some() { self.early } else { 0 }
    }

    /// How long after it is due the interrupt may come that releases a job, of which each may be pending for up to `pending`:
    /// where tokens release it, not before its predecessor is complete.
    pub fn released_late(&self, pending: u64) -> u64 {
        if self.node.is_some() { pending.saturating_sub(self.period) } else { self.jitter }
    }

    /// Interrupts that follow from a job once it is pending: ends of suspensions, and what its tokens release elsewhere.
    pub fn later_interrupts(&self) -> u64 {
        self.suspensions.saturating_add(self.node.map_or(0, |tokens| tokens.sent))
    }

    /// How often a job becomes ready: once released, and after each self-suspension.
    pub fn wakeups(&self) -> u64 {
        1 + self.suspensions
    }

    /// What its jobs ask for, for what is true of them whatever schedules them: execution time, period, deadline.
    pub fn raw(&self) -> (u64, u64, u64) {
        match &self.jobs {
            // No more than the budgets.
            Some(Jobs { fate: Fate::Outrun(_), .. }) | None => (self.wcet, self.period, self.deadline),
            Some(jobs) => (jobs.wcet, jobs.period, jobs.deadline),
        }
    }

    /// The same with execution times of `permille` thousandths, rounded up.
    pub fn scaled(&self, permille: u64) -> AnalysedTask {
        let scale = |time: u64| {
            let product = (u128::from(time) * u128::from(permille)).div_ceil(1_000);
            u64::try_from(product).unwrap_or(u64::MAX)
        };
        let (wcet, section) = (scale(self.wcet), scale(self.section));
        let server = self.server.map(|server| server.scaled(permille));
        AnalysedTask { wcet, section, uses: self.uses.scaled(scale), server, ..self.clone() }
    }
}

fn of_task(task: &Task, uses: Uses) -> AnalysedTask {
    let (period, deadline) = task.ranked_by();
    let is_periodic = matches!(task.arrival, Arrival::Periodic);
    AnalysedTask {
        name: task.name.clone(),
        period: task.period.0,
        deadline: task.deadline.0,
        jitter: task.jitter.0,
        is_synchronous: !is_periodic || task.phase.is_zero(),
        priority: task.priority,
        ranked_by: (period.0, deadline.0),
        cluster: task.cluster,
        server: task.server.map(|it| Server::new(it, &task.body, is_periodic, false)),
        jobs: None,
        ..AnalysedTask::with(uses)
    }
}

/// The nodes as sporadic tasks: period and deadline follow from the rates, rounded down.
fn of_graph(graph: &Graph, uses: impl Fn(&[Step]) -> Uses, refusals: &mut Vec<Refusal>) -> Vec<AnalysedTask> {
    let rates = match rates(&TokenGraph::from(graph)) {
        Ok(rates) => rates,
        Err(error) => {
            refusals.push(Refusal { subject: format!("graph \"{}\"", graph.name), reason: error.to_string() });
            return Vec::new();
        }
    };
    let mut is_fed_back = vec![false; graph.nodes.len()];
    graph.edges.iter().filter(|edge| edge.back_edge).for_each(|edge| is_fed_back[edge.consumer] = true);
    let node = |(position, (node, rate)): (usize, (&laxity_model::Node, &crate::pgm::Rate))| {
        let period = floor_ticks(&rate.period());
        if period == 0 {
            let subject = format!("node \"{}\" of graph \"{}\"", node.name, graph.name);
            let reason = "its period is below 1 ns; let it consume more tokens at a time".to_owned();
            refusals.push(Refusal { subject, reason });
        }
        let (period, deadline) = (period.max(1), node.deadline.map_or(period, |deadline| deadline.0).max(1));
        let own = node.server.and_then(|server| server.period).map(|period| period.0.max(1));
        let awaits_tokens = node.period.is_none() || is_fed_back[position] || graph.replicas != Replicas::None;
        AnalysedTask {
            name: format!("{}/{}", graph.name, node.name),
            period,
            deadline,
            jitter: 0,
            // Nodes behind a source are released when their tokens come.
            is_synchronous: false,
            node: Some(Tokens::default()),
            priority: node.priority,
            ranked_by: own.map_or((period, deadline), |period| (period, period)),
            cluster: node.cluster,
            server: node.server.map(|it| Server::new(it, &node.body, !awaits_tokens, awaits_tokens)),
            ..AnalysedTask::with(uses(&node.body))
        }
    };
    graph.nodes.iter().zip(&rates).enumerate().map(node).collect()
}
