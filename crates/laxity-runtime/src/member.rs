//! The process of one node, which the process of the run starts. Its orders are a line of JSON.

use std::sync::Arc;

use laxity_graph::{Graph, Releasing};
use laxity_model::{Distribution, ExecutionTime, Instant, Nanos, TaskId};
use laxity_plan::draws::TaskDraws;
use laxity_plan::{Op, ReleasePattern, ServerPlan};
use laxity_sched::Parameters;
use serde::{Deserialize, Serialize};

use crate::attributes::Attributes;
use crate::jobs::{Jobs, Messages};
use crate::log::Writer;
use crate::plan::{CodeEdges, Raised, ReleaseRule, TaskPlan, Trigger};
use crate::run::worker;
use crate::stop::StopSignal;
use crate::worker::Started;

/// The worker of one node, in a process of its own.
#[derive(Debug)]
pub struct Member {
    stop: Arc<StopSignal>,
    worker: Started,
}

/// The orders of the process of a node, besides the graph.
#[derive(Debug, Serialize, Deserialize)]
struct Orders {
    name: String,
    seed: u64,
    task: u32,
    steps: Vec<Step>,
    /// Of a source, when its jobs are released.
    source: Option<Source>,
    on_time: bool,
    working_set: u64,
    cpus: Option<Vec<usize>>,
    attributes: Class,
    /// The priority of non-preemptive sections, if there are any.
    non_preemptive: Option<u8>,
    inputs: Vec<(usize, u32)>,
    outputs: Vec<(usize, u32)>,
    server: Option<ServerPlan>,
    /// If Laxity's scheduler schedules it.
    scheduled: Option<Scheduled>,
}

/// A task of a system, as [`Parameters`] have it.
#[derive(Debug, Serialize, Deserialize)]
struct Scheduled {
    system: String,
    number: usize,
    cluster: usize,
    period_ns: u64,
    deadline_ns: u64,
    wcet_ns: u64,
    priority: Option<u32>,
    level: Option<u64>,
}

/// A [`ReleaseRule`] of a source.
#[derive(Debug, Serialize, Deserialize)]
struct Source {
    period_ns: u64,
    phase_ns: u64,
    end_ns: u64,
    jobs: u64,
}

/// A step that a process of its own can carry out. Times are as files have them after `actual =`.
#[derive(Debug, Serialize, Deserialize)]
enum Step {
    Dispatch,
    Run(String),
    NonPreemptive(String),
    Suspend(String),
}

/// As [`Attributes`].
#[derive(Debug, Serialize, Deserialize)]
enum Class {
    Other,
    Fifo { priority: u8, ceiling: u8 },
    Deadline { runtime_ns: u64, deadline_ns: u64, period_ns: u64 },
}

impl Member {
    /// Starts the worker of `node` by the `orders` that the process of the run sent; its log is standard output.
    ///
    /// # Errors
    /// Why the node cannot be executed.
    pub fn start(graph: &Graph, node: usize, orders: &str) -> Result<Member, String> {
        let orders: Orders = serde_json::from_str(orders).map_err(|error| format!("orders of a node: {error}"))?;
        let system = orders.scheduled.as_ref().map(|it| laxity_sched::Registry::default().attach(&it.system));
        let system = system.transpose().map_err(|error| error.to_string())?;
        let task = orders.task_plan(node)?;
        let log = Writer::on_standard_output()?;
        let stop = Arc::new(StopSignal::of_node(graph, node));
        let worker = worker(&task, std::slice::from_ref(graph), Arc::clone(&stop));
        let of_jobs = Arc::clone(&stop);
        let make = move || Jobs::new(task, None, log, Arc::default(), of_jobs, system.as_ref(), None);
        let worker = worker.start(make).map_err(|error| error.to_string())?;
        Ok(Member { stop, worker })
    }

    /// Lets it begin: time 0 is `start`.
    pub fn begin(&self, start: Instant) {
        self.worker.begin(start);
    }

    /// Whether its last job is complete.
    pub fn is_over(&self) -> bool {
        self.worker.is_over()
    }

    /// Ends it in the middle of its job.
    pub fn stop(&self) {
        self.stop.stop();
    }

    /// Waits until it is over; lets go of its node if it did not begin.
    ///
    /// # Errors
    /// Why it could not go on.
    pub fn join(self) -> Result<(), String> {
        self.worker.join()
    }
}

/// The line that tells a process to execute `task`, one of the system of that name if Laxity's scheduler schedules it.
///
/// # Errors
/// What a process of its own cannot do.
pub(crate) fn orders(task: &TaskPlan, system: Option<&str>) -> Result<String, String> {
    let steps: Result<Vec<Step>, String> = task.ops.iter().map(|op| Step::of(op, &task.name)).collect();
    let source = match &task.trigger {
        Trigger::Source(_, ReleaseRule { pattern, end, jobs }) => {
            Some(Source { period_ns: pattern.period.0, phase_ns: pattern.phase.0, end_ns: end.0, jobs: *jobs })
        }
        Trigger::Time(_) | Trigger::Tokens(..) | Trigger::Interrupts => None,
    };
    let orders = Orders {
        name: task.name.clone(),
        seed: task.draws.seed,
        task: task.draws.task.0,
        steps: steps?,
        source,
        on_time: matches!(task.trigger, Trigger::Tokens(_, Releasing::OnTime)),
        working_set: task.working_set,
        cpus: task.cpus.clone(),
        attributes: task.attributes.into(),
        non_preemptive: task.raised.as_ref().map(|raised| raised.non_preemptive),
        inputs: task.messages.inputs.clone(),
        outputs: task.messages.outputs.clone(),
        server: task.server,
        scheduled: system.zip(task.scheduled.as_ref()).map(|(system, (number, it))| Scheduled {
            system: system.to_owned(),
            number: *number,
            cluster: it.cluster,
            period_ns: it.period.0,
            deadline_ns: it.deadline.0,
            wcet_ns: it.wcet.0,
            priority: it.priority,
            level: it.level,
        }),
    };
    Ok(serde_json::to_string(&orders).expect("numbers and texts are JSON"))
}

impl Orders {
    fn task_plan(self, node: usize) -> Result<TaskPlan, String> {
        let id = crate::plan::NodeId { graph: 0, node };
        let draws = TaskDraws { seed: self.seed, task: TaskId(self.task) };
        let releasing = if self.on_time { Releasing::OnTime } else { Releasing::Early };
        let trigger = match self.source {
            Some(source) => Trigger::Source(id, source.rule()),
            None => Trigger::Tokens(id, releasing),
        };
        let attributes = Attributes::from(self.attributes);
        let raised = attributes.priority().zip(self.non_preemptive);
        let ops: Result<Vec<Op>, String> = self.steps.into_iter().map(Op::try_from).collect();
        let scheduled = self.scheduled.map(|it| it.parameters(self.name.clone()));
        Ok(TaskPlan {
            name: self.name,
            messages: Messages { inputs: self.inputs, outputs: self.outputs },
            ops: ops?.into(),
            draws,
            trigger,
            working_set: self.working_set,
            cpus: self.cpus,
            attributes,
            urgency: None,
            spins: false,
            bandwidth: None,
            server: self.server,
            handles: None,
            deadline: scheduled.as_ref().map_or(Nanos::ZERO, |(_, it)| it.deadline),
            scheduled,
            in_kernel: None,
            run: None,
            code: None,
            edges: CodeEdges::default(),
            raised: raised.map(|(base, non_preemptive)| Raised { base, non_preemptive, ceilings: Vec::new() }),
        })
    }
}

impl Scheduled {
    /// The number of the task, and what it is.
    fn parameters(self, name: String) -> (usize, Parameters) {
        let Scheduled { number, cluster, period_ns, deadline_ns, wcet_ns, priority, level, .. } = self;
        let (period, deadline, wcet) = (Nanos(period_ns), Nanos(deadline_ns), Nanos(wcet_ns));
        (number, Parameters { cluster, deadline, wcet, priority, level, ..Parameters::periodic(name, period) })
    }
}

impl Source {
    fn rule(&self) -> ReleaseRule {
        let (period, phase) = (Nanos(self.period_ns), Nanos(self.phase_ns));
        let pattern = ReleasePattern { period, deadline: period, phase, irregular: None };
        ReleaseRule { pattern, end: Instant(self.end_ns), jobs: self.jobs }
    }
}

impl Step {
    fn of(op: &Op, task: &str) -> Result<Step, String> {
        let text = |time: &ExecutionTime| match &time.actual {
            Distribution::WorstCase => Distribution::Constant(time.wcet),
            actual => actual.clone(),
        };
        let text = |time: &ExecutionTime| text(time).to_toml().expect("the worst case was replaced by what it is");
        match op {
            Op::Dispatch => Ok(Step::Dispatch),
            Op::Run(time) => Ok(Step::Run(text(time))),
            Op::NonPreemptive(time) => Ok(Step::NonPreemptive(text(time))),
            Op::Suspend(time) => Ok(Step::Suspend(text(time))),
            _ => Err(format!(
                "node \"{task}\": locks of resources and GPUs are those of the threads of one process; leave out \
                 --processes, or take --no-work"
            )),
        }
    }
}

impl TryFrom<Step> for Op {
    type Error = String;

    fn try_from(step: Step) -> Result<Op, String> {
        let time = |text: String| {
            let actual: Distribution = text.parse().map_err(|error| format!("execution time {text}: {error}"))?;
            Ok::<_, String>(ExecutionTime { wcet: actual.max(Nanos::ZERO), actual })
        };
        Ok(match step {
            Step::Dispatch => Op::Dispatch,
            Step::Run(text) => Op::Run(time(text)?),
            Step::NonPreemptive(text) => Op::NonPreemptive(time(text)?),
            Step::Suspend(text) => Op::Suspend(time(text)?),
        })
    }
}

impl From<Attributes> for Class {
    fn from(attributes: Attributes) -> Class {
        match attributes {
            Attributes::Other => Class::Other,
            Attributes::Fifo { priority, ceiling } => Class::Fifo { priority, ceiling },
            Attributes::Deadline { runtime, deadline, period } => {
                Class::Deadline { runtime_ns: runtime.0, deadline_ns: deadline.0, period_ns: period.0 }
            }
        }
    }
}

impl From<Class> for Attributes {
    fn from(class: Class) -> Attributes {
        match class {
            Class::Other => Attributes::Other,
            Class::Fifo { priority, ceiling } => Attributes::Fifo { priority, ceiling },
            Class::Deadline { runtime_ns, deadline_ns, period_ns } => Attributes::Deadline {
                runtime: Nanos(runtime_ns),
                deadline: Nanos(deadline_ns),
                period: Nanos(period_ns),
            },
        }
    }
}
