//! A workload that runs: its threads, and who looks after them.

use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::{Builder, JoinHandle};

use laxity_graph::{Registry, Spec};
use laxity_model::{Instant, Nanos};
use laxity_sys::pi_lock::PiLock;
use laxity_sys::{clock, memory};
use laxity_trace::Sink;

use crate::collector::Collector;
use crate::control::Control;
use crate::gpus::{Gpus, Share};
use crate::halt::Halt;
use crate::jobs::Jobs;
use crate::log;
use crate::plan::{Plan, TaskPlan};
use crate::worker::Worker;

/// From when all threads are ready to time 0: long enough for all of them to be asleep by then.
const LEAD: Nanos = Nanos::from_millis(20);

/// A workload that runs.
///
/// ```text
///           ready               begin(start)             all jobs done, or stop
/// (thread) -------> (waits) -----------------> (jobs) -------------------------> (over)
/// ```
#[derive(Debug)]
pub struct Run {
    start: Instant,
    end: Instant,
    halt: Arc<Halt>,
    threads: Vec<JoinHandle<Result<(), String>>>,
    collector: Collector,
    is_stopped: bool,
    note: Option<String>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When its trace ends, from time 0.
    pub reached: Instant,
    /// Whether the trace has all that happened until then, and says that it ends. A thread that does more than can be
    /// collected in time ends it early.
    pub is_whole: bool,
}

/// A thread that is ready.
struct Started {
    begin: Sender<Instant>,
    thread: JoinHandle<Result<(), String>>,
}

impl Run {
    /// Opens the graphs and GPUs, starts a thread for each task and node, and all of them at one time, a moment from now.
    ///
    /// # Errors
    /// What is refused, of which task, and the way out.
    pub fn start(plan: &Plan) -> Result<Run, String> {
        let halt = Arc::new(Halt { control: Control::default(), graphs: graphs(plan)? });
        let resources: Arc<[PiLock]> = (0..plan.resources).map(|_| PiLock::default()).collect();
        let logs = plan.tasks.len() + plan.gpus.len();
        let (mut writers, readers): (Vec<_>, Vec<_>) = (0..logs).map(|_| log::log()).unzip();
        let gpus = Gpus::open(plan, writers.split_off(plan.tasks.len()))?;
        let mut started = Vec::new();
        let mut streams = Vec::new();
        for (task, log) in plan.tasks.iter().zip(writers) {
            let share = gpus.share(plan, task)?;
            let numbers = share.as_ref().map(|share| share.streams.iter().map(|stream| stream.number()).collect());
            streams.push(numbers.unwrap_or_default());
            let jobs = Jobs::new(plan, task.clone(), share.as_ref(), log, Arc::clone(&resources), Arc::clone(&halt));
            let jobs = jobs.map_err(|error| format!("task \"{}\": {error}", task.name))?;
            // One is ready before the next is started, so that equals are registered in their order. Those that were
            // started wait for their begin, and end when nobody can give it.
            started.push(start(task, jobs, share, Arc::clone(&halt))?);
        }
        // After the stacks of all threads are there.
        let unlocked = |error| format!("memory is not locked: {error}; a page fault may delay a job (`ulimit -l`)");
        let note = memory::lock_all().map_err(unlocked).err();
        let start = clock::now().saturating_add(LEAD);
        halt.graphs.iter().for_each(|graph| _ = graph.start(start));
        let collector = Collector::new(plan, start, readers, gpus, streams);
        let threads = started.into_iter().map(|Started { begin, thread }| {
            // If it is over already, there is nothing to begin.
            let _ = begin.send(start);
            thread
        });
        let threads = threads.collect();
        let end = start.saturating_add(plan.duration);
        Ok(Run { start, end, halt, threads, collector, is_stopped: false, note })
    }

    /// What is weaker than it should be.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Hands to `sink` what happened and is known for sure. To be called several times a second.
    pub fn collect(&mut self, sink: &mut impl Sink) {
        self.collector.collect(sink);
    }

    /// Whether its time is over and all jobs are done, or it cannot go on.
    pub fn is_over(&self) -> bool {
        let are_done = self.threads.iter().all(JoinHandle::is_finished);
        // Who fails stops the others.
        are_done && (self.halt.is_stopped() || clock::now() >= self.end) || self.collector.is_broken()
    }

    /// Ends all jobs where they are.
    pub fn stop(&mut self) {
        self.is_stopped = true;
        self.halt.stop();
    }

    /// Until when it is known what happened, from time 0.
    pub fn seen(&self) -> Instant {
        self.collector.seen()
    }

    /// How many jobs are complete in the trace.
    pub fn completed(&self) -> u64 {
        self.collector.completed()
    }

    /// Ends what still runs, and hands all that is left to `sink`.
    ///
    /// # Errors
    /// Why a thread could not go on. The trace is whole up to there all the same.
    pub fn finish(mut self, sink: &mut impl Sink) -> (Outcome, Result<(), String>) {
        let is_over = !self.is_stopped && self.is_over() && !self.halt.is_stopped();
        self.halt.stop();
        let mut failed = Ok(());
        for thread in self.threads.drain(..) {
            let ended = thread.join().unwrap_or_else(|_| Err("a thread panicked".to_owned()));
            failed = failed.and(ended);
        }
        let now = clock::now();
        let end = if is_over { self.end } else { now };
        let end = Instant(end.saturating_since(self.start).0);
        let (reached, is_whole) = self.collector.finish(end, sink);
        (Outcome { reached, is_whole }, failed)
    }
}

/// The graphs of `plan`, under their names, so that others can watch them.
fn graphs(plan: &Plan) -> Result<Vec<laxity_graph::Graph>, String> {
    let create = |(graph, _): &(laxity_model::Graph, laxity_plan::GraphPlan)| {
        let refused = |error: &dyn std::fmt::Display| format!("graph \"{}\": {error}", graph.name);
        let spec = Spec::new(graph.clone()).map_err(|error| refused(&error))?;
        Registry::default().create(&spec).map_err(|error| refused(&error))
    };
    plan.graphs.iter().map(create).collect()
}

/// Starts the thread of `task`, and waits until it is ready.
fn start(task: &TaskPlan, jobs: Jobs, share: Option<Share>, halt: Arc<Halt>) -> Result<Started, String> {
    let (ready, readiness) = mpsc::channel();
    let (begin, begins) = mpsc::channel();
    // Linux shows the first 15 bytes; names of threads end at a NUL.
    let builder = Builder::new().name(task.name.replace('\0', " "));
    let plan = task.clone();
    let body = move || {
        let stop = Arc::clone(&halt);
        let worker = match Worker::new(&plan, jobs, share.as_ref(), halt) {
            Ok(worker) => worker,
            Err(error) => {
                // Whoever no longer listens does not care.
                let _ = ready.send(Err(error.clone()));
                return Err(error);
            }
        };
        let _ = ready.send(Ok(()));
        let Ok(start) = begins.recv() else { return Ok(()) };
        worker.run(start).inspect_err(|_| stop.stop())
    };
    let cannot = |error| format!("cannot start a thread for task \"{}\": {error}", task.name);
    let thread = builder.spawn(body).map_err(cannot)?;
    readiness.recv().unwrap_or_else(|_| Err("a thread ended at once".to_owned()))?;
    Ok(Started { begin, thread })
}
