//! From a workload and a scheduler to what the simulator runs: flat arrays, and a refusal by name of what it cannot run.

use std::fmt;

use laxity_model::{
    Arrival, CpuId, Distribution, ExecutionTime, Nanos, OverheadCosts, ReleaseInterrupts, Scheduler, Scope, Step, Task,
    TaskId, Workload,
};
use laxity_policy::cpu::{Ranking, worst_fit};
use laxity_trace::{Origin, Sink, TaskInfo, TraceHeader};

use crate::Simulator;

/// A simulation that is ready to start.
#[derive(Clone, Debug)]
pub struct Setup {
    pub(crate) header: TraceHeader,
    pub(crate) tasks: Vec<TaskPlan>,
    pub(crate) clusters: Vec<ClusterPlan>,
    pub(crate) costs: OverheadCosts,
    /// Period of the tick interrupt.
    pub(crate) tick: Nanos,
    /// The CPU that takes all interrupts and runs no job.
    pub(crate) dedicated: Option<CpuId>,
    pub(crate) seed: u64,
}

/// A task as the simulator runs it.
#[derive(Clone, Debug)]
pub(crate) struct TaskPlan {
    pub period: Nanos,
    pub deadline: Nanos,
    pub phase: Nanos,
    pub jitter: Nanos,
    /// Extra separation of a sporadic task.
    pub gap: Option<Distribution>,
    pub ops: Vec<Op>,
    pub cluster: usize,
    /// Its number within the cluster.
    pub local: TaskId,
}

/// A step of a job, flattened. Before and after each `Suspend` there is another.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Run(ExecutionTime),
    NonPreemptive(ExecutionTime),
    Suspend(ExecutionTime),
}

/// CPUs that share a ready queue, and their tasks.
#[derive(Clone, Debug)]
pub(crate) struct ClusterPlan {
    pub cpus: Vec<CpuId>,
    pub tasks: Vec<TaskId>,
    pub ranking: Ranking,
}

/// What the simulator cannot run, each thing by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    reasons: Vec<String>,
}

impl Setup {
    /// Prepares `workload` under `scheduler`; `seed` decides random execution times, gaps and jitter. Draws depend on
    /// seed, task, job and step alone, so two schedulers see the same jobs.
    ///
    /// The workload must be valid; what it asks for and the simulator cannot do yet is refused by name.
    pub fn new(workload: &Workload, scheduler: &Scheduler, seed: u64) -> Result<Setup, Refusal> {
        let mut reasons = Vec::new();
        let dedicated = (scheduler.interrupts == ReleaseInterrupts::Dedicated).then_some(CpuId(0));
        let (cpus, cluster_of) = assign(workload, scheduler, dedicated, &mut reasons);
        let mut ops = Vec::with_capacity(workload.tasks.len());
        for task in &workload.tasks {
            ops.push(flatten(task, &mut reasons));
        }
        refuse_rest(workload, &mut reasons);
        if !reasons.is_empty() {
            return Err(Refusal { reasons });
        }
        let clusters = cluster_plans(workload, scheduler, cpus, &cluster_of);
        let mut tasks = Vec::with_capacity(workload.tasks.len());
        let mut next_local = vec![0; clusters.len()];
        for ((task, ops), &cluster) in workload.tasks.iter().zip(ops).zip(&cluster_of) {
            tasks.push(plan(task, ops, cluster, TaskId(next_local[cluster])));
            next_local[cluster] += 1;
        }
        let costs = workload.platform.overheads.at(workload.tasks.len());
        let rank = |task: usize| {
            let plan: &TaskPlan = &tasks[task];
            (plan.cluster, clusters[plan.cluster].ranking.rank(plan.local))
        };
        let header = TraceHeader {
            origin: Origin::Simulated,
            workload: workload.name.clone(),
            cpus: workload.platform.cpus,
            clusters: clusters.iter().map(|cluster| cluster.cpus.clone()).collect(),
            scheduler: *scheduler,
            quantum: workload.platform.quantum,
            costs,
            seed,
            tasks: TaskInfo::of(workload, rank),
            ..TraceHeader::new(Origin::Simulated, &workload.name, workload.platform.cpus, *scheduler)
        };
        Ok(Setup { header, tasks, clusters, costs, tick: workload.platform.tick, dedicated, seed })
    }

    /// What a trace of this simulation begins with.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// A simulator at time 0 that writes to `sink`.
    pub fn start<S: Sink>(&self, sink: S) -> Simulator<S> {
        Simulator::new(self.clone(), sink)
    }
}

/// The CPUs of each cluster, and the cluster of each task.
fn assign(
    workload: &Workload,
    scheduler: &Scheduler,
    dedicated: Option<CpuId>,
    reasons: &mut Vec<String>,
) -> (Vec<Vec<CpuId>>, Vec<usize>) {
    let platform = &workload.platform;
    let all = || (0..platform.cpus as u16).map(CpuId);
    let named: Vec<Vec<CpuId>> = match scheduler.scope {
        Scope::Global => vec![all().collect()],
        Scope::Clustered => platform.clusters.clone(),
        Scope::Partitioned => all().map(|cpu| vec![cpu]).collect(),
    };
    // A dedicated interrupt CPU schedules nothing; a cluster that consists of it alone does not exist.
    let mut cpus = Vec::new();
    let mut kept = vec![None; named.len()];
    for (index, cluster) in named.into_iter().enumerate() {
        let cluster: Vec<CpuId> = cluster.into_iter().filter(|&cpu| Some(cpu) != dedicated).collect();
        if !cluster.is_empty() {
            kept[index] = Some(cpus.len());
            cpus.push(cluster);
        }
    }
    if cpus.is_empty() {
        reasons.push(format!(
            "{scheduler} on {} CPU: the CPU dedicated to interrupts leaves none for jobs, so add a CPU or take \
             interrupts on all CPUs (m instead of 1)",
            platform.cpus
        ));
        return (vec![vec![CpuId(0)]], vec![0; workload.tasks.len()]);
    }
    let mut tasks = workload.tasks.clone();
    for task in &mut tasks {
        task.cluster = match (scheduler.scope, task.cluster) {
            (Scope::Global, _) | (_, None) => None,
            (_, Some(wanted)) => match kept.get(wanted).copied().flatten() {
                Some(cluster) => Some(cluster),
                None => {
                    reasons.push(format!(
                        "task \"{}\": its cluster {wanted} has no CPU that runs jobs under {scheduler} ({} clusters, \
                         interrupts on {}), so name another or leave it out to have it assigned",
                        task.name,
                        kept.len(),
                        dedicated.map_or("all CPUs".to_owned(), |cpu| cpu.to_string()),
                    ));
                    None
                }
            },
        };
    }
    let sizes: Vec<usize> = cpus.iter().map(Vec::len).collect();
    let cluster_of = worst_fit(&tasks, &sizes);
    (cpus, cluster_of)
}

fn cluster_plans(
    workload: &Workload,
    scheduler: &Scheduler,
    cpus: Vec<Vec<CpuId>>,
    cluster_of: &[usize],
) -> Vec<ClusterPlan> {
    cpus.into_iter()
        .enumerate()
        .map(|(cluster, cpus)| {
            let members: Vec<usize> = (0..cluster_of.len()).filter(|&task| cluster_of[task] == cluster).collect();
            let ranking = Ranking::new(scheduler.rule, members.iter().map(|&task| &workload.tasks[task]));
            ClusterPlan { cpus, tasks: members.into_iter().map(|task| TaskId(task as u32)).collect(), ranking }
        })
        .collect()
}

fn plan(task: &Task, ops: Vec<Op>, cluster: usize, local: TaskId) -> TaskPlan {
    let gap = match &task.arrival {
        Arrival::Periodic => None,
        Arrival::Sporadic { gap } => Some(gap.clone()),
    };
    let (period, deadline, phase, jitter) = (task.period, task.deadline, task.phase, task.jitter);
    TaskPlan { period, deadline, phase, jitter, gap, ops, cluster, local }
}

fn flatten(task: &Task, reasons: &mut Vec<String>) -> Vec<Op> {
    let empty = Op::Run(ExecutionTime::constant(Nanos::ZERO));
    let mut ops = Vec::with_capacity(task.body.len());
    for step in &task.body {
        let op = match step {
            Step::Cpu(time) => Op::Run(time.clone()),
            Step::NonPreemptive(time) => Op::NonPreemptive(time.clone()),
            Step::Suspend(time) => Op::Suspend(time.clone()),
            Step::Critical { .. } => {
                reasons.push(format!("task \"{}\": critical sections are not simulated yet", task.name));
                continue;
            }
            Step::Gpu(_) | Step::GpuSection { .. } => {
                reasons.push(format!("task \"{}\": GPU operations are not simulated yet", task.name));
                continue;
            }
        };
        // A job must be dispatched before it can suspend, and between two suspensions: an empty CPU step.
        if matches!(op, Op::Suspend(_)) && matches!(ops.last(), None | Some(Op::Suspend(_))) {
            ops.push(empty.clone());
        }
        ops.push(op);
    }
    // It completes on a CPU, too.
    if matches!(ops.last(), Some(Op::Suspend(_))) {
        ops.push(empty);
    }
    ops
}

fn refuse_rest(workload: &Workload, reasons: &mut Vec<String>) {
    for graph in &workload.graphs {
        reasons.push(format!("graph \"{}\": graphs are not simulated yet", graph.name));
    }
    for task in &workload.best_effort {
        reasons.push(format!("best-effort task \"{}\": best-effort tasks are not simulated yet", task.name));
    }
    // One reason a name is enough.
    let mut seen = 0;
    while seen < reasons.len() {
        if reasons[..seen].contains(&reasons[seen]) {
            reasons.remove(seen);
        } else {
            seen += 1;
        }
    }
}

impl Refusal {
    /// The reasons, one a thing that cannot be simulated.
    pub fn reasons(&self) -> &[String] {
        &self.reasons
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reasons.join("\n"))
    }
}

impl std::error::Error for Refusal {}
