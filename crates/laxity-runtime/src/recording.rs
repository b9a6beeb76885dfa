//! Records what the nodes of a graph do whose kernels are a program's and which Laxity's scheduler schedules: the trace
//! that a run of a workload leaves, with the links of its policy.
//!
//! ```text
//! thread of a node ------------NodeLog--> [ log ] --.
//! thread of a node ------------NodeLog--> [ log ] ---+--> GraphRecording --records--> any Sink
//! thread that handles interrupts of a GPU          /|
//!                         '--ServiceLog--> [ log ]-' |
//! server of a soft GPU ----------------- history ----'
//! ```

use laxity_graph::Spec;
use laxity_model::{
    EngineOrder, Gpu, GpuArbitration, GpuManagement, GpuSync, Instant, InterruptHandling, LockId, Nanos, Platform,
    ReplicaId, Scheduler, Scope, TaskId, ThreadPriority, Workload,
};
use laxity_sched::{LockConfig, System, Watch};
use laxity_softgpu::SoftGpu;
use laxity_sys::scheduling;
use laxity_trace::{Sink, TraceHeader};

use crate::collector::{Collector, Numbering, Streams};
use crate::gpus::Gpus;
use crate::handler::ServiceLog;
use crate::log::{self, JobStep, Reader, Writer};
use crate::plan::{GraphOptions, LivePlan, NodeOptions};

/// Makes one trace of what the nodes of a graph note.
#[derive(Debug)]
pub struct GraphRecording {
    plan: LivePlan,
    system: System,
    gpus: RecordedGpus,
    /// Until it begins.
    readers: Vec<Reader>,
    collector: Option<Collector>,
    /// The name of a task of the system that is none of the graph's.
    stranger: Option<String>,
}

/// The soft GPUs that the nodes of a recorded graph use; the default: none.
#[derive(Debug, Default)]
pub struct RecordedGpus {
    /// All of one configuration.
    pub gpus: Vec<SoftGpu>,
    /// Whether the system's locks are their tokens, then the engines of each.
    pub are_locked: bool,
    /// The tasks of the system that the threads are which handle their interrupts.
    pub handlers: Vec<TaskId>,
}

/// Why a recording has not all that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CutOff {
    /// More happened than could be collected in time.
    Full,
    /// The task of that name is one of the system and none of the graph's: the trace would not show what it does.
    Stranger(String),
}

/// The log of one node's thread.
#[derive(Debug)]
pub struct NodeLog {
    writer: Writer,
    index: u32,
}

impl GraphRecording {
    /// Of the graph of `spec`, which releases so many `frames`, whose nodes are the tasks of `system`, by their positions, and
    /// use `gpus`. Answers with the log of each node, and of each thread that handles the interrupts of a GPU.
    ///
    /// # Errors
    /// What of the system no trace of one graph can show.
    pub fn new(
        spec: &Spec,
        system: &System,
        frames: Option<u64>,
        gpus: RecordedGpus,
    ) -> Result<(GraphRecording, Vec<NodeLog>, Vec<ServiceLog>), String> {
        let (config, name) = (system.config(), system.name());
        let usable =
            scheduling::usable_cpus().map_err(|error| format!("cannot ask which CPUs may be used: {error}"))?;
        let own: Vec<Vec<usize>> =
            config.clusters.iter().map(|cluster| cluster.iter().map(|&cpu| usize::from(cpu)).collect()).collect();
        if own != [usable] {
            return Err(format!(
                "system {name} has other clusters than one of all CPUs that this process may use, so a trace of this graph \
                 alone would not show what they do; create it with that one"
            ));
        }
        let (locks, of_gpus) = (config.locks.len(), gpus.locks());
        if locks != of_gpus {
            return Err(format!(
                "system {name} has {locks} locks, and the trace of the graph shows the {of_gpus} of its GPUs; create the \
                 system with those alone, or record the graph with `laxity graph record`"
            ));
        }
        let scheduler = Scheduler { rule: config.rule.model(), scope: Scope::Global, ..Scheduler::GLOBAL_EDF };
        let nodes = spec.graph().nodes.len();
        let options = GraphOptions {
            graph: spec.graph().clone(),
            spec: spec.clone(),
            nodes: vec![NodeOptions::default(); nodes],
            first_task: 0,
            seed: 0,
            duration: Nanos(u64::MAX),
            jobs: frames.unwrap_or(u64::MAX),
            on_time: false,
            laxity: Some(scheduler),
            in_kernel: false,
        };
        let platform = Platform { gpus: gpus.platform(), ..Platform::identical(1) };
        let mut workload = Workload::new(spec.graph().name.clone(), platform, Vec::new());
        workload.gpu_management = gpus.management(&config.locks);
        let mut plan = LivePlan::of_graph(&workload, &options).map_err(|refusal| refusal.to_string())?;
        // No node of the plan says that it uses them.
        plan.gpus = workload.platform.gpus;
        let (mut writers, readers): (Vec<_>, Vec<_>) = (0..plan.logs()).map(|_| log::log()).unzip();
        let services = writers.split_off(nodes).into_iter().map(ServiceLog::new).take(gpus.gpus.len()).collect();
        let logs = writers.into_iter().map(|writer| NodeLog { writer, index: 0 }).collect();
        let system = system.clone();
        Ok((GraphRecording { plan, system, gpus, readers, collector: None, stranger: None }, logs, services))
    }

    /// What the trace begins with.
    pub fn header(&self) -> &TraceHeader {
        self.plan.header()
    }

    /// Time 0 of the trace is `start`, the first release.
    pub fn begin(&mut self, start: Instant) {
        let readers = std::mem::take(&mut self.readers);
        let gpus = self.gpus.gpus.clone();
        let streams = Streams::Named { since: start };
        let collector = Collector::new(&self.plan, start, readers, Gpus::of(gpus), &streams);
        self.collector = Some(collector.numbered(Numbering::new(self.plan.tasks.len(), &self.gpus.handlers)));
    }

    /// Hands to `sink` all records that nothing can precede any more. To be called several times a second.
    pub fn collect(&mut self, sink: &mut impl Sink) {
        self.look_for_strangers();
        self.collector.iter_mut().for_each(|collector| collector.collect(sink));
    }

    fn look_for_strangers(&mut self) {
        let is_one = |task: TaskId| task.index() >= self.plan.tasks.len() && !self.gpus.handlers.contains(&task);
        // Damaged memory is for the tasks to tell.
        let tasks = self.system.snapshot().map(|snapshot| snapshot.tasks).unwrap_or_default();
        if let Some(stranger) = tasks.into_iter().find(|task| is_one(task.id)) {
            self.stranger.get_or_insert(stranger.name);
        }
    }

    /// Hands the rest to `sink`; the nodes have ended.
    ///
    /// # Errors
    /// Why the trace has not all that happened.
    pub fn finish(mut self, sink: &mut impl Sink) -> Result<(), CutOff> {
        let Some(collector) = &mut self.collector else { return Ok(()) };
        let (_, is_whole) = collector.finish(Instant::ZERO, sink);
        match self.stranger.or_else(|| collector.stranger().map(|task| task.0.to_string())) {
            Some(stranger) => Err(CutOff::Stranger(stranger)),
            None if is_whole => Ok(()),
            None => Err(CutOff::Full),
        }
    }
}

impl RecordedGpus {
    /// How many locks of the system are theirs.
    fn locks(&self) -> usize {
        let engines = |gpu: &SoftGpu| 1 + usize::from(gpu.config().copy_engines);
        if self.are_locked { 1 + self.gpus.iter().map(engines).sum::<usize>() } else { 0 }
    }

    fn platform(&self) -> Vec<Gpu> {
        let gpu = |gpu: &SoftGpu| Gpu {
            name: gpu.name().to_owned(),
            cluster: 0,
            copy_engines: gpu.config().copy_engines,
            // Times are measured.
            bandwidth: u64::MAX,
            latency: Nanos::ZERO,
            interrupt_cpus: Vec::new(),
        };
        self.gpus.iter().map(gpu).collect()
    }

    /// What a workload file would say of `locks`, which are theirs.
    fn management(&self, locks: &[LockConfig]) -> GpuManagement {
        let order = |lock: &LockConfig| match lock {
            LockConfig::Queue { order, .. } => *order,
            LockConfig::KFmlp { .. } | LockConfig::Tokens { .. } => EngineOrder::Fifo,
        };
        let engine_order = locks.get(1).map_or(EngineOrder::Fifo, order);
        match locks.first() {
            Some(&LockConfig::Tokens { tokens, fifo_length, fifo_requests, .. }) => GpuManagement {
                arbitration: GpuArbitration::GpuSync(GpuSync {
                    tokens: tokens.into(),
                    fifo_length: Some(fifo_length.into()),
                    fifo_requests: Some(fifo_requests.into()),
                    engine_order,
                    ..GpuSync::DEFAULT
                }),
                handling: InterruptHandling::Klmirqd { threads: None },
                ..GpuManagement::default()
            },
            _ => GpuManagement {
                handling: InterruptHandling::PreemptRt(ThreadPriority::High),
                ..GpuManagement::default()
            },
        }
    }
}

impl NodeLog {
    /// Hears that job `index` is ready, which is due at `deadline` for the scheduler.
    pub fn ready(&mut self, index: u64, deadline: Instant) -> impl Watch + '_ {
        // Jobs of a trace have 32 bits.
        self.index = index as u32;
        self.writer.note(self.index, JobStep::Priority(deadline.0));
        self.writer.decisions(self.index, Some(JobStep::Ready))
    }

    /// The job executes, having got its CPU.
    pub fn executes(&mut self) {
        self.writer.note(self.index, JobStep::Executes);
    }

    /// Hears that the job is complete.
    pub fn complete(&mut self) -> impl Watch + '_ {
        self.writer.decisions(self.index, Some(JobStep::Complete))
    }

    /// Hears that there was nothing to do in the job: its node has ended, and produces no more.
    pub fn end(&mut self) -> impl Watch + '_ {
        self.writer.decisions(self.index, Some(JobStep::Ended))
    }

    /// Hears that the job requests `lock`. It has it, and executes, when the request returns.
    pub fn request(&mut self, lock: LockId) -> impl Watch + '_ {
        self.writer.decisions(self.index, Some(JobStep::Request(lock)))
    }

    /// Hears that the job gives up `replica` of `lock`.
    pub fn unlock(&mut self, lock: LockId, replica: ReplicaId) -> impl Watch + '_ {
        self.writer.decisions(self.index, Some(JobStep::Unlock(lock, replica)))
    }

    /// Hears that the job is suspended.
    pub fn suspend(&mut self) -> impl Watch + '_ {
        self.writer.decisions(self.index, Some(JobStep::Suspend))
    }

    /// Hears that the job goes on.
    pub fn resume(&mut self) -> impl Watch + '_ {
        self.writer.decisions(self.index, Some(JobStep::Resumed))
    }
}

/// Whether the node at `position` has the number of its task in traces.
///
/// # Errors
/// That another thread of the system has it.
pub fn check_number(system: &System, position: usize, task: TaskId) -> Result<(), String> {
    if task.index() == position {
        return Ok(());
    }
    Err(format!(
        "it is task {} of system {}, and {position} in the trace of its graph; record graphs that have a system of their own",
        task.0,
        system.name()
    ))
}
