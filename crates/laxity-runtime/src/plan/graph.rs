//! A graph that runs by itself, with what its user says of each node instead of the workload.

use laxity_graph::Spec;
use laxity_model::{Chain, Graph, Nanos, Platform, Scheduler, Workload};
use laxity_policy::graph::Releasing;
use laxity_sys::scheduling;

use super::edges::{self, CodeEdges};
use super::{Ending, LiveGraph, LivePlan, Settled, Trigger, without_modelled_interrupts};
use crate::attributes::Attributes;
use crate::kernel::{self, Unfit};
use crate::linux::{self, LinuxScheduler};
use crate::placement::Placement;
use crate::refusal::{self, Refusal};

/// How to run one graph of a workload by itself.
#[derive(Clone, Debug)]
pub struct GraphOptions {
    /// The graph, with what its jobs do.
    pub graph: Graph,
    /// As it is shared, with what its edges carry and a recorder.
    pub spec: Spec,
    /// Its nodes, in their order.
    pub nodes: Vec<NodeOptions>,
    /// The number of its first node among all tasks and nodes of the workload: with it draws are those of the whole.
    pub first_task: u32,
    /// Seed of random execution times.
    pub seed: u64,
    /// Jobs of sources that are released within it are run.
    pub duration: Nanos,
    /// Of these, so many of each source.
    pub jobs: u64,
    /// Whether the jobs of all nodes wait for their releases, not only those of sources.
    pub on_time: bool,
    /// Laxity's scheduler schedules the nodes by this policy, on all CPUs; classes and CPUs of `nodes` mean nothing then.
    pub laxity: Option<Scheduler>,
    /// That scheduler is the one in the kernel.
    pub in_kernel: bool,
}

/// How to run a node.
#[derive(Clone, Debug, Default)]
pub struct NodeOptions {
    /// How Linux schedules it.
    pub attributes: Attributes,
    /// The CPUs that it keeps to, numbered as Linux does.
    pub cpus: Option<Vec<usize>>,
    /// Bytes that each job goes through.
    pub working_set: u64,
}

impl LivePlan {
    /// Prepares the graph of `options` alone; what its jobs do, its resources and its GPUs are those of `workload`.
    ///
    /// # Errors
    /// What cannot be run live.
    pub fn of_graph(workload: &Workload, options: &GraphOptions) -> Result<LivePlan, Refusal> {
        let one = |reason| Refusal::of(vec![reason]);
        let usable =
            scheduling::usable_cpus().map_err(|error| one(format!("cannot ask which CPUs may be used: {error}")))?;
        let workload = alone(workload, options, usable.len());
        let reasons = refusal::unsupported(&workload);
        if !reasons.is_empty() {
            return Err(Refusal::of(reasons));
        }
        let plain = |Scheduler { rule, scope, .. }| Scheduler { rule, scope, ..Scheduler::GLOBAL_EDF };
        // Only the scheduler in the kernel has other realizations.
        let scheduler = options.laxity.map_or(Scheduler::GLOBAL_EDF, |asked| match options.in_kernel {
            true => Scheduler { coarse_lock: false, ..asked },
            false => plain(asked),
        });
        let compiled =
            laxity_plan::Plan::of_live_interrupts(&without_modelled_interrupts(&workload), &scheduler, options.seed)
                .map_err(|refusal| Refusal::of(refusal.reasons().to_vec()))?;
        let beyond_linux = refusal::beyond_linux(&workload, &compiled.models(&workload));
        if options.laxity.is_none() && !beyond_linux.is_empty() {
            return Err(Refusal::of(beyond_linux));
        }
        let placement = Placement::new(&compiled.header, &usable).map_err(one)?;
        let settled = match options.laxity {
            Some(_) => by_laxity(&workload, &compiled, placement, options).map_err(one)?,
            None => by_classes(placement, options),
        };
        let mut plan =
            LivePlan::assemble(&workload, &compiled, settled, options.seed, options.duration).map_err(one)?;
        plan.ending = Ending::WithLastJob;
        let releasing = if options.on_time { Releasing::OnTime } else { Releasing::Early };
        plan.graphs = vec![LiveGraph { spec: options.spec.clone(), plan: compiled.graphs[0].clone(), releasing }];
        for (number, (task, node)) in plan.tasks.iter_mut().zip(&options.nodes).enumerate() {
            task.working_set = node.working_set;
            task.messages = edges::messages(&options.spec, number);
            task.edges = CodeEdges::default();
            match &mut task.trigger {
                Trigger::Source(_, rule) => rule.jobs = options.jobs,
                Trigger::Tokens(_, of_task) => *of_task = releasing,
                Trigger::Time(_) | Trigger::Interrupts => {}
            }
        }
        rank_by_priority(&mut plan);
        Ok(plan)
    }
}

/// As Linux's classes schedule each node.
fn by_classes(placement: Placement, options: &GraphOptions) -> Settled {
    let attributes: Vec<Attributes> = options.nodes.iter().map(|node| node.attributes).collect();
    Settled {
        linux: strongest(&attributes),
        urgencies: attributes.iter().map(|attributes| attributes.priority()).collect(),
        cpus: options.nodes.iter().map(|node| node.cpus.clone()).collect(),
        attributes,
        placement,
        first_task: options.first_task,
    }
}

/// As Laxity's scheduler schedules all nodes.
///
/// # Errors
/// Why it cannot.
fn by_laxity(
    workload: &Workload,
    compiled: &laxity_plan::Plan,
    placement: Placement,
    options: &GraphOptions,
) -> Result<Settled, String> {
    let scheduler = compiled.header.scheduler;
    let wanted = if options.in_kernel { LinuxScheduler::Kernel } else { LinuxScheduler::Laxity };
    let in_kernel = || {
        if !options.in_kernel {
            return Err(Unfit::NotLoaded(String::new()));
        }
        kernel::fits(&scheduler, &placement)?;
        let reasons = refusal::beyond_kernel(workload, &compiled.models(workload));
        if reasons.is_empty() { Ok(()) } else { Err(Unfit::Other(reasons.join("\n"))) }
    };
    let (linux, _) = linux::choose(&scheduler, Some(wanted), in_kernel, &[], &[], false)?;
    let nodes = options.nodes.len();
    let rank = |node: usize| linux::priority(compiled.header.tasks[node].rank, nodes);
    Ok(Settled {
        linux,
        urgencies: (0..nodes).map(|node| (!scheduler.rule.goes_by_deadline()).then(|| rank(node))).collect(),
        cpus: vec![None; nodes],
        attributes: vec![Attributes::Other; nodes],
        placement,
        first_task: options.first_task,
    })
}

/// A workload of nothing but the graph, on all CPUs that this process may use.
fn alone(workload: &Workload, options: &GraphOptions, cpus: usize) -> Workload {
    let mut graph = options.graph.clone();
    for node in &mut graph.nodes {
        // Linux schedules by the options. Clusters are those of the workload's platform.
        (node.priority, node.cluster) = (node.priority.filter(|_| options.laxity.is_some()), None);
    }
    let name = graph.name.clone();
    let mut alone = Workload { graphs: vec![graph], ..Workload::new(name, Platform::identical(cpus), Vec::new()) };
    let is_own = |chain: &&Chain| workload.graphs[chain.graph].name == alone.graphs[0].name;
    alone.chains = workload.chains.iter().filter(is_own).map(|chain| Chain { graph: 0, ..chain.clone() }).collect();
    alone.resources = workload.resources.clone();
    alone.gpu_management = workload.gpu_management.clone();
    alone.platform.gpus = workload.platform.gpus.clone();
    for gpu in &mut alone.platform.gpus {
        gpu.interrupt_cpus = (0..cpus).map(|cpu| laxity_model::CpuId(cpu as u16)).collect();
    }
    alone
}

fn strongest(attributes: &[Attributes]) -> LinuxScheduler {
    let any = |wanted: fn(&Attributes) -> bool| attributes.iter().any(wanted);
    if any(|attributes| matches!(attributes, Attributes::Fifo { .. })) {
        LinuxScheduler::Fifo
    } else if any(|attributes| matches!(attributes, Attributes::Deadline { .. })) {
        LinuxScheduler::Deadline
    } else {
        LinuxScheduler::Other
    }
}

/// Where there are priorities, the trace ranks the nodes by them.
fn rank_by_priority(plan: &mut LivePlan) {
    if plan.linux != LinuxScheduler::Fifo {
        return;
    }
    let priorities: Vec<u8> = plan.tasks.iter().map(|task| task.attributes.priority().unwrap_or(0)).collect();
    for (info, own) in plan.header.tasks.iter_mut().zip(&priorities) {
        info.rank = priorities.iter().filter(|&other| other > own).count() as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A task and a graph come first, so that the nodes of the second graph have other numbers than they would have alone.
    #[test]
    fn the_nodes_of_a_graph_that_runs_alone_have_the_steps_and_draws_of_the_whole_workload() {
        let text = r#"laxity = 1
name = "w"
[platform]
cpus = 1
[[task]]
name = "t"
period = "10 ms"
wcet = "1 ms"
[[graph]]
name = "first"
edge = ["a -> b"]
node = [{ name = "a", period = "10 ms", wcet = "1 ms" }, { name = "b", wcet = "1 ms" }]
[[graph]]
name = "second"
edge = ["c -> d"]
node = [
    { name = "c", period = "10 ms", body = [{ cpu = "2 ms", actual = { uniform = ["1 ms", "2 ms"] } }, { suspend = "1 ms" }] },
    { name = "d", body = [{ nonpreemptive = "1 ms" }] },
]
"#;
        let workload = Workload::from_toml(text, "w.toml").unwrap_or_else(|errors| panic!("{errors}"));
        let whole = laxity_plan::Plan::new(&workload, &workload.scheduler, 7).expect("it can be simulated");
        let options = GraphOptions {
            graph: workload.graphs[1].clone(),
            spec: Spec::new(workload.graphs[1].clone()).expect("it can be"),
            nodes: vec![NodeOptions::default(); 2],
            first_task: 3,
            seed: 7,
            duration: Nanos::from_millis(100),
            jobs: 4,
            on_time: false,
            laxity: None,
            in_kernel: false,
        };
        let plan = LivePlan::of_graph(&workload, &options).expect("it can be run");
        assert_eq!(plan.tasks.len(), 2);
        for (task, number) in plan.tasks.iter().zip(3..) {
            assert_eq!(task.draws, whole.draws(laxity_model::TaskId(number)));
            assert_eq!(format!("{:?}", task.ops), format!("{:?}", whole.tasks[number as usize].ops));
        }
        assert_eq!(plan.tasks[0].releases().expect("a source").count(), 4, "no more than asked for");
        assert!(plan.tasks[1].releases().is_none());
    }
}
