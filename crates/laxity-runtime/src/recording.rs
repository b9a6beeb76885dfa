//! Records what the nodes of a graph do whose kernels are a program's and which Laxity's scheduler schedules: the trace
//! that a run of a workload leaves, with the links of its policy.
//!
//! ```text
//! thread of a node --NodeLog--> [ log ] --.
//! thread of a node --NodeLog--> [ log ] ---+--> GraphRecording --records--> any Sink
//! ```

use laxity_graph::Spec;
use laxity_model::{Instant, Nanos, Platform, Scheduler, Scope, TaskId, Workload};
use laxity_sched::{System, Watch};
use laxity_sys::scheduling;
use laxity_trace::{Sink, TraceHeader};

use crate::collector::Collector;
use crate::gpus::Gpus;
use crate::log::{self, JobStep, Reader, Writer};
use crate::plan::{GraphOptions, LivePlan, NodeOptions};

/// Makes one trace of what the nodes of a graph note.
#[derive(Debug)]
pub struct GraphRecording {
    plan: LivePlan,
    /// Until it begins.
    readers: Vec<Reader>,
    collector: Option<Collector>,
}

/// The log of one node's thread.
#[derive(Debug)]
pub struct NodeLog {
    writer: Writer,
    index: u32,
}

impl GraphRecording {
    /// Of the graph of `spec`, which releases so many `frames`, whose nodes are the tasks of `system`, by their positions.
    /// Answers with the log of each.
    ///
    /// # Errors
    /// What of the system no trace of one graph can show.
    pub fn new(spec: &Spec, system: &System, frames: Option<u64>) -> Result<(GraphRecording, Vec<NodeLog>), String> {
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
        if !config.locks.is_empty() {
            let locks = config.locks.len();
            return Err(format!(
                "system {name} has {locks} locks, and the trace of a graph has none; create it without locks, or record \
                 the graph with `laxity graph record`"
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
        let workload = Workload::new(spec.graph().name.clone(), Platform::identical(1), Vec::new());
        let plan = LivePlan::of_graph(&workload, &options).map_err(|refusal| refusal.to_string())?;
        let (writers, readers): (Vec<_>, Vec<_>) = (0..plan.logs()).map(|_| log::log()).unzip();
        let logs = writers.into_iter().map(|writer| NodeLog { writer, index: 0 }).take(nodes).collect();
        Ok((GraphRecording { plan, readers, collector: None }, logs))
    }

    /// What the trace begins with.
    pub fn header(&self) -> &TraceHeader {
        self.plan.header()
    }

    /// Time 0 of the trace is `start`, the first release.
    pub fn begin(&mut self, start: Instant) {
        let streams = vec![Vec::new(); self.plan.tasks.len()];
        let readers = std::mem::take(&mut self.readers);
        self.collector = Some(Collector::new(&self.plan, start, readers, Gpus::default(), streams));
    }

    /// Hands to `sink` all records that nothing can precede any more. To be called several times a second.
    pub fn collect(&mut self, sink: &mut impl Sink) {
        self.collector.iter_mut().for_each(|collector| collector.collect(sink));
    }

    /// Hands the rest to `sink`; the nodes have ended. Answers whether the trace has all that happened.
    pub fn finish(mut self, sink: &mut impl Sink) -> bool {
        self.collector.as_mut().is_none_or(|collector| collector.finish(Instant::ZERO, sink).1)
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
