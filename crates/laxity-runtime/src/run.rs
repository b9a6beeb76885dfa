//! A workload that runs: its workers, and the collector of what they do.

use std::sync::Arc;

use laxity_bandwidth::{Regulated, Regulator};
use laxity_gpu::Arbitration;
use laxity_graph::{Graph, Registry, RegistryError};
use laxity_model::{Instant, Nanos, TaskId};
use laxity_sched::{Config, System};
use laxity_sys::pi_lock::PiLock;
use laxity_sys::{clock, memory, scheduling, stack};
use laxity_trace::Sink;

use crate::attributes::Attributes;
use crate::best_effort::BestEffortJob;
use crate::code::{Watch, Watches};
use crate::collector::{Collector, Streams};
use crate::devices::{Devices, Timers};
use crate::gpus::{Gpus, Share};
use crate::jobs::Jobs;
use crate::kernel::{self, InKernel};
use crate::kernel_locks::KernelLocks;
use crate::linux::LinuxScheduler;
use crate::log::{self, Reader, Writer};
use crate::outside::{Insiders, Outside};
use crate::plan::{self, BestEffortTask, Ending, LivePlan, TaskPlan};
use crate::processes::{ProcessOptions, Processes};
use crate::regulation;
use crate::run_names;
use crate::shared::Shared;
use crate::stolen::Watchers;
use crate::stop::StopSignal;
use crate::worker::{self, Started, Worker};

/// From when all workers are ready to time 0: long enough for all of them to be asleep by then.
const LEAD: Nanos = Nanos::from_millis(20);

/// A workload that runs.
///
/// ```text
///           ready               begin(start)             all jobs done, or stop
/// (worker) -------> (waits) -----------------> (jobs) -------------------------> (over)
/// ```
#[derive(Debug)]
pub struct Run {
    start: Instant,
    end: Instant,
    ending: Ending,
    stop: Arc<StopSignal>,
    shared: Arc<Shared>,
    workers: Workers,
    /// The threads of best-effort tasks, which end with the run.
    best_effort: Vec<Started>,
    /// The regulators of their CPUs, if there is a bandwidth lock.
    regulator: Option<Regulator>,
    /// The threads that watch its CPUs, if it is asked for.
    watchers: Watchers,
    /// What stands in for devices, if there are any.
    timers: Timers,
    collector: Collector,
    warnings: Vec<String>,
    note: Option<String>,
}

/// The workers of a run.
#[derive(Debug)]
enum Workers {
    /// Threads of this process, one a task; those that call code of the user are watched.
    Threads(Vec<Started>, Watches),
    /// Processes, one a node.
    Processes(Processes),
}

/// How to start a run.
#[derive(Default)]
pub struct StartOptions {
    /// Whether all memory of this process is kept in RAM.
    pub locks_memory: bool,
    /// Whether each node is a process; they are threads otherwise.
    pub processes: Option<ProcessOptions>,
    /// Whether a thread of the highest priority looks on each CPU of the run, once a millisecond, for time in which no thread
    /// got it: the trace has it as [`Event::Stolen`](laxity_trace::Event::Stolen). It takes about half a per cent of the CPU.
    pub watches_cpus: bool,
    /// Whether Linux records which other threads and interrupts have the CPUs of the run: the trace has them as
    /// [`Event::Outside`](laxity_trace::Event::Outside).
    pub watches_threads: bool,
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

impl LivePlan {
    /// Creates the graphs, under their names in `registry`, so that other processes can watch them.
    ///
    /// # Errors
    /// Which graph is refused, and why.
    pub fn create_graphs(&self, registry: &Registry) -> Result<Vec<Graph>, RegistryError> {
        self.graphs.iter().map(|graph| registry.create(&graph.spec)).collect()
    }
}

impl LivePlan {
    /// Takes the names of the graphs away, used or not: after a run that failed, whose threads may be stuck in the
    /// user's code, and their memory with them until the process ends.
    pub fn unlink_graphs(&self, registry: &Registry) {
        for graph in &self.graphs {
            // What cannot be removed has no remedy here; `laxity graph gc` removes it later.
            let _ = registry.unlink(&graph.spec.graph().name);
        }
    }
}

impl Run {
    /// Opens the GPUs, starts a worker for each task and node, and lets all of them begin at one time, a moment from now.
    /// `graphs` are those of `plan`.
    ///
    /// # Errors
    /// What is refused, of which task, and the way out.
    pub fn start(plan: &LivePlan, graphs: &[Graph], options: StartOptions) -> Result<Run, String> {
        let stop = Arc::new(StopSignal::of_graphs(graphs));
        // Before there is anything that would have to end.
        let mut outside = options.watches_threads.then(|| Outside::open(&plan.placement.linux)).transpose()?;
        let Parts { shared, workers, best_effort, regulator, timers, seen: of_timers, mut readers, gpus, streams } =
            match options.processes {
                None => start_threads(plan, graphs, &stop)?,
                Some(options) => {
                    let system = plan.system.as_ref().map(create_system).transpose()?;
                    let (processes, readers) = Processes::start(plan, graphs, options, system)?;
                    let streams = vec![Vec::new(); plan.tasks.len()];
                    Parts {
                        shared: Arc::default(),
                        workers: Workers::Processes(processes),
                        best_effort: Vec::new(),
                        regulator: None,
                        timers: Timers::default(),
                        seen: Vec::new(),
                        readers,
                        gpus: Gpus::default(),
                        streams,
                    }
                }
            };
        if options.watches_cpus && plan.linux() == LinuxScheduler::Deadline {
            return Err("CPUs cannot be watched under SCHED_DEADLINE, whose threads have them before any other; take \
                        --scheduler laxity or fifo, or leave it out"
                .to_owned());
        }
        let cpus = if options.watches_cpus { &plan.placement.linux[..] } else { &[] };
        let (watchers, seen) = Watchers::start(cpus, &stop)?;
        readers.extend(seen.into_iter().chain(of_timers));
        // After the stacks of all threads are there.
        let not_locked = |error| format!("memory is not locked: {error}; a page fault may delay a job (`ulimit -l`)");
        let note = if options.locks_memory { memory::lock_all().map_err(not_locked).err() } else { None };
        let lead = if plan.is_in_kernel() { kernel::lead(plan.tasks.len()) } else { LEAD };
        let start = kernel::start(&plan.header().scheduler, clock::now().saturating_add(lead));
        if let Some(outside) = &mut outside {
            outside.insiders = insiders(&workers, &best_effort, &gpus);
            outside.insiders.threads.extend(timers.numbers());
            outside.begin(start);
        }
        graphs.iter().for_each(|graph| _ = graph.start(start));
        let mut collector = Collector::new(plan, start, readers, gpus, &Streams::Numbered(streams));
        collector.outside = outside;
        let mut run = Run {
            start,
            end: start.saturating_add(plan.duration),
            ending: plan.ending,
            stop,
            shared,
            workers,
            best_effort,
            regulator,
            watchers,
            timers,
            collector,
            warnings: Vec::new(),
            note,
        };
        match &mut run.workers {
            Workers::Threads(threads, _) => threads.iter().for_each(|thread| thread.begin(start)),
            Workers::Processes(processes) => processes.begin(start),
        }
        run.best_effort.iter().for_each(|thread| thread.begin(start));
        run.timers.begin(start);
        Ok(run)
    }

    /// A note to the user: that memory is not locked.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Hands to `sink` all records that nothing can precede any more, and looks after the workers. To be called several
    /// times a second. Answers warnings to the user.
    pub fn collect(&mut self, sink: &mut impl Sink) -> Vec<String> {
        self.look_after();
        self.trust();
        self.hold_what_follows_the_stop();
        self.collector.collect(sink);
        std::mem::take(&mut self.warnings)
    }

    /// Whether its time is over and all jobs but those of best-effort tasks are done, or it cannot go on.
    pub fn is_over(&self) -> bool {
        let are_over = match &self.workers {
            Workers::Threads(_, watches) if watches.are_lost(self.stop.is_stopped()) => return true,
            Workers::Threads(threads, _) => threads.iter().all(Started::is_over),
            Workers::Processes(processes) => processes.are_over(),
        };
        let is_due = match self.ending {
            Ending::WithLastJob => true,
            // A worker that fails stops the others.
            Ending::AtDuration => self.stop.is_stopped() || clock::now() >= self.end,
        };
        are_over && is_due || self.collector.is_broken()
    }

    /// Ends all jobs where they are.
    pub fn stop(&mut self) {
        self.stop.stop();
        match &mut self.workers {
            Workers::Threads(_, watches) => watches.end_programs(),
            Workers::Processes(processes) => processes.stop(),
        }
    }

    /// Until when it is known what happened, from time 0.
    pub fn seen(&self) -> Instant {
        self.collector.seen()
    }

    /// How many jobs are complete in the trace.
    pub fn completed(&self) -> u64 {
        self.collector.completed()
    }

    /// For each task how often its process was killed.
    pub fn losses(&self) -> &[u64] {
        match &self.workers {
            Workers::Threads(..) => &[],
            Workers::Processes(processes) => processes.losses(),
        }
    }

    /// Notes to the user on what happened until now and no trace has: periods in which no CPU could be throttled, lost records of
    /// Linux, and the end of the scheduler in the kernel.
    pub fn remarks(&self) -> Vec<String> {
        let regulation = self.regulator.iter().flat_map(|regulator| regulation::remarks(&regulator.reports()));
        let outside = self.collector.outside.as_ref().and_then(Outside::remark);
        regulation.chain(outside).chain(self.shared.kernel.as_ref().and_then(InKernel::remark)).collect()
    }

    /// Whether a node was lost for good, and its graph therefore ended.
    pub fn is_broken(&self) -> bool {
        matches!(&self.workers, Workers::Processes(processes) if processes.is_broken())
    }

    /// The threads that call code of the user.
    pub(crate) fn watches(&self) -> Vec<Arc<Watch>> {
        match &self.workers {
            Workers::Threads(_, watches) => watches.list.clone(),
            Workers::Processes(_) => Vec::new(),
        }
    }

    /// Ends what still runs, and hands all that is left to `sink`. If code of the user does not come back, that is what happened
    /// until jobs were told to end: its job never ends, and the jobs that did end where they were are not late.
    ///
    /// # Errors
    /// Why a worker could not go on. The trace is whole up to there all the same.
    pub fn finish(mut self, sink: &mut impl Sink) -> (Outcome, Result<(), String>) {
        let is_complete = self.is_over() && !self.stop.is_stopped();
        self.stop();
        let stopped = self.stop.stopped_at().unwrap_or_else(clock::now);
        self.hold_what_follows_the_stop();
        let (are_over, failed) = self.join();
        if are_over {
            // What the workers did until they were over is in the trace, too.
            self.collector.let_go();
        }
        self.trust();
        // The last of its notes is in the trace.
        self.regulator = None;
        let end = if is_complete && self.ending == Ending::AtDuration { self.end } else { stopped };
        let (reached, is_whole) = self.collector.finish(Instant(end.saturating_since(self.start).0), sink);
        (Outcome { reached, is_whole }, failed)
    }

    /// Once jobs were told to end where they are, it is not known yet whether code of the user comes back, and jobs that are due
    /// to arrive afterwards never do.
    fn hold_what_follows_the_stop(&mut self) {
        if let Some(at) = self.stop.stopped_at() {
            self.collector.hold_at(at);
        }
    }

    /// Tells the collector until when the logs are complete.
    fn trust(&mut self) {
        if let Workers::Processes(processes) = &mut self.workers {
            self.collector.trust(processes.known_until(), processes.lack_the_end());
        }
    }

    fn look_after(&mut self) {
        if let Workers::Processes(processes) = &mut self.workers {
            let collector = &mut self.collector;
            processes.look_after(&mut self.warnings, &mut |node| collector.writer_has_died(node));
            // Others may have taken the place of some.
            if let Some(outside) = &mut collector.outside {
                outside.insiders.processes.extend(processes.numbers());
            }
        }
    }

    /// Waits until all workers are over, but for those that code of the user does not give back. Answers whether all are, and
    /// why one could not go on.
    fn join(&mut self) -> (bool, Result<(), String>) {
        let (mut are_over, mut outcome) = (true, Ok(()));
        match &mut self.workers {
            Workers::Threads(threads, watches) => (are_over, outcome) = watches.join(std::mem::take(threads)),
            Workers::Processes(processes) => {
                processes.wait();
                self.look_after();
            }
        }
        for thread in self.best_effort.drain(..) {
            let ended = thread.join();
            outcome = outcome.and(ended);
        }
        self.watchers.join();
        (are_over, outcome)
    }
}

impl Drop for Run {
    /// Workers that have begun would not end by themselves.
    fn drop(&mut self) {
        self.stop();
    }
}

/// The threads and processes whose work is that of tasks.
fn insiders(workers: &Workers, best_effort: &[Started], gpus: &Gpus) -> Insiders {
    let mut insiders = Insiders::default();
    match workers {
        Workers::Threads(threads, _) => insiders.threads.extend(threads.iter().map(Started::number)),
        Workers::Processes(processes) => insiders.processes.extend(processes.numbers()),
    }
    insiders.threads.extend(best_effort.iter().map(Started::number).chain(gpus.threads()));
    insiders
}

/// What a run consists of.
struct Parts {
    shared: Arc<Shared>,
    workers: Workers,
    best_effort: Vec<Started>,
    regulator: Option<Regulator>,
    /// What stands in for devices, and what that notes.
    timers: Timers,
    seen: Vec<Reader>,
    /// The logs: see [`LivePlan::logs`].
    readers: Vec<Reader>,
    gpus: Gpus,
    /// The numbers of each task's streams.
    streams: Vec<Vec<u32>>,
}

fn start_threads(plan: &LivePlan, graphs: &[Graph], stop: &Arc<StopSignal>) -> Result<Parts, String> {
    let locks = || Some(KernelLocks::new(plan.tasks.len(), plan.kernel_locks.as_deref()?, plan.resources));
    let kernel = plan
        .is_in_kernel()
        .then(|| InKernel::join(plan.resources, plan.tasks.len(), plan.gpus.len(), locks()))
        .transpose()?;
    let shared = Arc::new(Shared { resources: (0..plan.resources).map(|_| PiLock::default()).collect(), kernel });
    let (mut writers, readers): (Vec<_>, Vec<_>) = (0..plan.logs()).map(|_| log::log()).unzip();
    let regulated = plan.protection.as_ref().map_or(0, |protection| protection.cpus.len());
    let of_regulators = writers.split_off(writers.len() - regulated);
    let of_best_effort = writers.split_off(writers.len() - plan.best_effort.tasks.len());
    let system = plan.system.as_ref().map(create_system).transpose()?;
    let mut of_threads = writers.split_off(plan.tasks.len());
    let of_devices = of_threads.split_off((plan.first_device - plan.tasks.len()).min(of_threads.len()));
    let gpus = Gpus::open(plan, of_threads, system.as_ref(), &shared)?;
    let shared_plan = Arc::new(plan.clone());
    let (mut threads, mut streams) = (Vec::new(), Vec::new());
    let system_name = system.as_ref().map(|system| system.name().to_owned());
    let mut watches = Watches { system: system_name, arbitrations: gpus.names(), ..Watches::default() };
    for (number, (task, log)) in plan.tasks.iter().zip(writers).enumerate() {
        let share = gpus.share(plan, number, task)?;
        let numbers = share.as_ref().map(|share| share.streams.iter().map(|stream| stream.number()).collect());
        streams.push(numbers.unwrap_or_default());
        let share = share.map(|share| (Arc::clone(&shared_plan), share));
        // One is ready before the next is started, so that equals are registered in their order. If one fails, those that
        // were started end, as they are never told to begin.
        let watch = task.code.as_ref().map(|_| Arc::new(Watch::new(&task.name)));
        watches.list.extend(watch.clone());
        let started = start_thread(task, graphs, share, log, &shared, stop, system.as_ref(), watch);
        threads.push(started.inspect_err(|_| watches.unlink_after_crash())?);
    }
    let devices = Devices::start(plan, of_devices, system.as_ref(), stop)?;
    threads.extend(devices.threads);
    let (mut best_effort, mut numbers) = (Vec::new(), Vec::new());
    for (number, (task, log)) in plan.best_effort.tasks.iter().zip(of_best_effort).enumerate() {
        let (started, thread) = start_best_effort(task, log, stop, gpus.bandwidth.clone())?;
        best_effort.push(started);
        let regulated = Regulated { thread, weight: task.weight, cpus: task.cpus.clone() };
        numbers.push((regulated, TaskId((plan.best_effort.first_task + number) as u32)));
    }
    let protection = plan.protection.as_ref().filter(|protection| !protection.cpus.is_empty());
    let regulator = protection
        .zip(gpus.bandwidth.as_ref())
        .map(|(protection, arbitration)| regulation::start(protection, arbitration, numbers, of_regulators));
    let regulator = regulator.transpose()?;
    let (timers, seen) = (devices.timers, devices.readers);
    let workers = Workers::Threads(threads, watches);
    Ok(Parts { shared, workers, best_effort, regulator, timers, seen, readers, gpus, streams })
}

/// Starts the thread of a best-effort task, and waits until its memory is there. Answers its number in Linux, too.
fn start_best_effort(
    task: &BestEffortTask,
    log: Writer,
    stop: &Arc<StopSignal>,
    counts: Option<Arbitration>,
) -> Result<(Started, u32), String> {
    let worker = Worker {
        name: task.name.clone(),
        stack: None,
        cpus: Some(task.cpus.clone()),
        attributes: Attributes::Other,
        trigger: worker::Trigger::Timer(Box::new(plan::start())),
        stop: Arc::clone(stop),
    };
    let (own, stop) = (task.clone(), Arc::clone(stop));
    let (tell, told) = std::sync::mpsc::channel();
    let started = worker.start(move || {
        let _ = tell.send(scheduling::current_thread());
        BestEffortJob::new(own, log, stop, counts)
    });
    let started = started.map_err(|error| format!("best-effort task \"{}\": {error}", task.name))?;
    Ok((started, told.recv().expect("a thread that is ready has told")))
}

/// The system of Laxity's scheduler that schedules the tasks of this run, under a name of its own.
fn create_system(config: &Config) -> Result<System, String> {
    laxity_sched::Registry::default().create(&run_names::next(), config).map_err(|error| error.to_string())
}

/// Starts the worker of `task` as a thread of this process, and waits until it is ready.
#[allow(clippy::too_many_arguments, reason = "all that the threads of a run share")]
fn start_thread(
    task: &TaskPlan,
    graphs: &[Graph],
    share: Option<(Arc<LivePlan>, Share)>,
    log: Writer,
    shared: &Arc<Shared>,
    stop: &Arc<StopSignal>,
    system: Option<&System>,
    watch: Option<Arc<Watch>>,
) -> Result<Started, String> {
    let system = system.cloned();
    let (plan, shared, stop) = (task.clone(), Arc::clone(shared), Arc::clone(stop));
    let worker = worker(task, graphs, Arc::clone(&stop));
    let crashed = watch.clone();
    let crashed = move || crashed.as_ref().and_then(|watch| watch.crashed_at_first());
    let make = move || {
        let gpus = share.as_ref().map(|(plan, share)| (&**plan, share));
        Jobs::new(plan, gpus, log, shared, stop, system.as_ref(), watch)
    };
    worker.start_watched(make, crashed).map_err(|error| format!("task \"{}\": {error}", task.name))
}

/// The worker of `task`.
pub(crate) fn worker(task: &TaskPlan, graphs: &[Graph], stop: Arc<StopSignal>) -> Worker {
    let graph = |graph: usize| graphs[graph].clone();
    let releases = || task.releases().expect("time releases its jobs");
    let trigger = match task.trigger.clone() {
        plan::Trigger::Time(_) => worker::Trigger::Timer(Box::new(releases())),
        plan::Trigger::Source(id, _) => worker::Trigger::Source(graph(id.graph), id.node, Box::new(releases())),
        plan::Trigger::Interrupts => unreachable!("no worker of a task or a node has them"),
        plan::Trigger::Tokens(id, releasing) => worker::Trigger::Tokens(graph(id.graph), id.node, releasing),
    };
    // A node's thread has the name of the node.
    let name = task.trigger.node().map_or(&task.name, |id| &graphs[id.graph].spec().graph().nodes[id.node].name);
    // Code of the user expects the stack of an ordinary thread.
    let stack = task.code.as_ref().map(|_| stack::ordinary());
    Worker { name: name.clone(), stack, cpus: task.cpus.clone(), attributes: task.attributes, trigger, stop }
}
