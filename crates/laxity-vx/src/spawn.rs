//! Starting the workers of a graph.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use laxity_graph::{RECORDER_MAX, RegistryError, Releasing};
use laxity_model::{Instant, Nanos};
use laxity_runtime::worker::{StartError, Started, Trigger, Worker};
use laxity_runtime::{Release, StopSignal};
use laxity_sched::{Parameters, System};
use laxity_sys::{clock, memory};

use crate::body::{Measured, NodeBody, Role, TakenKernel};
use crate::error::SpawnError;
use crate::frames::Frames;
use crate::gpu::Gpu;
use crate::node_task::{self, NodeTask, Planned};
use crate::options::{Budgets, Policy, SpawnOptions};
use crate::run::Run;
use crate::scheduling::{self, Scheduling};
use crate::shared::Shared;
use crate::trace::Trace;
use crate::verified::{Executable, Verified};

impl Verified {
    /// Executes the graph periodically, a thread a node, consecutive frames at the same time (`nvxSpawnGraph` of paper 003,
    /// section 5.4.1). Answers when all threads are ready and the first release is settled.
    ///
    /// # Errors
    /// [`SpawnError`]; no thread is left then, and it can be tried again with other options.
    pub fn spawn(&self, options: &SpawnOptions) -> Result<Run, SpawnError> {
        check(options)?;
        let replicas = options.replicas.unwrap_or(self.depth());
        let spec = self.spec(options.period, replicas).map_err(|error| SpawnError::Replicas(Box::new(error)))?;
        let spec = spec.with_recorder(options.recorder).expect("it was checked");
        let planned = scheduling::plan(&spec, &self.nodes, options.policy)?;
        let tasks = match options.policy {
            Policy::Laxity { cluster } => node_task::parameters(&spec, cluster)?.into_iter().map(Some).collect(),
            Policy::Other | Policy::Fifo { .. } | Policy::Deadline { .. } => vec![None; planned.len()],
        };
        let (trace, logs) = Trace::begin(options, &spec)?;
        let mut logs = logs.into_iter();
        let graph = self.registry.create(&spec).map_err(|error| match error {
            RegistryError::Exists { name } => SpawnError::Scheduled { graph: name },
            error => SpawnError::Memory(error),
        })?;
        let shared = Arc::new(Shared {
            stop: Arc::new(StopSignal::of_graphs(std::slice::from_ref(&graph))),
            frames: Frames::new(options.period, self.nodes.len(), options.frames()),
            needed: scheduling::needed(&planned, options.period),
            measured: AtomicU64::new(0),
            failure: OnceLock::new(),
            graph,
        });
        // From here on whatever fails ends the workers that there are.
        let mut run = Run::new(shared.clone());
        for (position, (&scheduling, parameters)) in planned.iter().zip(tasks).enumerate() {
            let planned = |(system, parameters): (System, Parameters)| {
                let log = logs.next().map(|log| (position, log));
                Planned { system, parameters, log }
            };
            let task = options.system.clone().zip(parameters).map(planned);
            run.add(self.start(position, (scheduling, task), options, &shared)?);
        }
        if options.lock_memory {
            memory::lock_all().map_err(|error| SpawnError::Lock { error })?;
        }
        let first = options.start.unwrap_or_else(clock::now).saturating_add(options.phase);
        // No other process knows the graph long enough to have set its start.
        let start = shared.graph.start(first);
        shared.frames.start(start);
        let refused = |error| SpawnError::Trace { reason: format!("no thread can write it: {error}") };
        run.begin(start, trace).map_err(refused)?;
        Ok(run)
    }

    /// Starts the worker of the node at `position`, and waits until it is ready.
    fn start(
        &self,
        position: usize,
        (scheduling, task): (Scheduling, Option<Planned>),
        options: &SpawnOptions,
        shared: &Arc<Shared>,
    ) -> Result<Started, SpawnError> {
        let Executable { name, kernel, arrays, .. } = &self.nodes[position];
        let graph = &shared.graph;
        let graph_name = &graph.spec().graph().name;
        let kernel = TakenKernel::take(kernel).ok_or_else(|| SpawnError::Scheduled { graph: graph_name.clone() })?;
        let role = match position {
            0 => Role::Input,
            position if position + 1 == self.nodes.len() => Role::Output,
            _ => Role::Node,
        };
        let attributes = scheduling.at_first();
        let worker = Worker {
            name: name.clone(),
            stack: Some(STACK),
            cpus: (!options.cpus.is_empty()).then(|| options.cpus.clone()),
            attributes,
            trigger: match role {
                Role::Input => Trigger::Source(graph.clone(), position, Box::new(frame_releases(options))),
                Role::Node | Role::Output => Trigger::Tokens(graph.clone(), position, Releasing::Early),
            },
            stop: Arc::clone(&shared.stop),
        };
        let (name_of_body, arrays, device) = (name.clone(), arrays.clone(), options.gpu.clone());
        let (graph_id, shared_by_body) = (self.id, Arc::clone(shared));
        let make = move || {
            shared_by_body.take_thread();
            let task = task.map(NodeTask::begin).transpose()?;
            let gpu_of = |device| {
                let graph = &shared_by_body.graph.spec().graph().name;
                Gpu::new(device, graph, &name_of_body, attributes.priority(), task.clone())
            };
            let gpu = device.map(gpu_of);
            let measured = Measured::default();
            let (name, shared) = (name_of_body, shared_by_body);
            Ok(NodeBody { name, kernel, arrays, role, scheduling, gpu, task, graph_id, shared, measured })
        };
        worker.start(make).map_err(|error| refused(name, error, shared.needed))
    }
}

/// When frames are released, from the first release.
fn frame_releases(options: &SpawnOptions) -> impl Iterator<Item = Release> + use<> {
    let period = options.period;
    let frames = usize::try_from(options.frames().unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let release = move |index: u32| {
        let at = Instant(period.0.saturating_mul(index.into()));
        Release { index, at, deadline: at.saturating_add(period) }
    };
    (0..).map(release).take(frames)
}

/// Why the worker of `node` is not ready; `needed` is what all nodes reserve.
fn refused(node: &str, error: StartError, needed: u64) -> SpawnError {
    let node = node.to_owned();
    match error {
        StartError::Thread(error) => SpawnError::Thread { node, error },
        StartError::Cpus { cpus, error } => SpawnError::Cpus { node, cpus, error },
        StartError::Scheduling { attributes, error } => scheduling::refused(node, attributes, needed, error),
        StartError::Claim(error) => SpawnError::Claim(error),
        // Only a thread that becomes a task can be refused so.
        StartError::Body(reason) => SpawnError::Task { node, reason },
    }
}

/// Numbers that can never be.
fn check(options: &SpawnOptions) -> Result<(), SpawnError> {
    let wrong = |option, value, allowed| Err(SpawnError::Option { option, value, allowed });
    match *options {
        SpawnOptions { period, .. } if period.is_zero() || period > Nanos::LONGEST => {
            wrong("period_ns", period.0, "1 ns to a hundred years")
        }
        SpawnOptions { recorder, .. } if recorder > RECORDER_MAX => wrong("recorder", recorder.into(), "at most 2^20"),
        SpawnOptions { policy: Policy::Deadline { budgets: Budgets::Measured { frames: 0, .. } }, .. } => {
            wrong("frames to measure", 0, "1 or more")
        }
        SpawnOptions { policy: Policy::Laxity { .. }, recorder: 0, .. } => {
            wrong("recorder", 0, "1 or more under Laxity's scheduler, as it knows the deadlines of jobs")
        }
        _ => check_system(options),
    }
}

/// What goes together with a system, or without one.
fn check_system(options: &SpawnOptions) -> Result<(), SpawnError> {
    let wrong = |reason: String, way_out| Err(SpawnError::System { reason, way_out });
    let of_gpu = options.gpu.as_ref().and_then(|gpu| gpu.scheduling()).map(|scheduling| scheduling.system.name());
    let (policy, system) = (options.policy, options.system.as_ref().map(System::name));
    match (policy, system) {
        (Policy::Laxity { .. }, None) => {
            wrong("Laxity's scheduler has no system".to_owned(), "name the system whose tasks the nodes are")
        }
        _ if options.trace.is_some() && !matches!(policy, Policy::Laxity { .. }) => {
            let reason = "a trace with links is asked for of a graph that Linux schedules";
            wrong(reason.to_owned(), "record that with `laxity graph record`")
        }
        (Policy::Laxity { .. }, Some(_)) if !options.cpus.is_empty() => {
            let reason = format!("CPUs {:?} are named for nodes that Laxity's scheduler schedules", options.cpus);
            wrong(reason, "name none, as the system's clusters say where they run")
        }
        (Policy::Laxity { .. }, Some(system)) if options.gpu.is_some() && of_gpu != Some(system) => {
            let reason = format!("the nodes are tasks of system {system} and the threads of their GPU are not");
            wrong(reason, "open the device with the same system")
        }
        (Policy::Other | Policy::Fifo { .. } | Policy::Deadline { .. }, Some(system)) => {
            wrong(format!("system {system} is named and is not to schedule"), "leave it out, or take Policy::Laxity")
        }
        (Policy::Other | Policy::Fifo { .. } | Policy::Deadline { .. }, None) if of_gpu.is_some() => {
            let reason = format!("system {} schedules the threads of the GPU and not the nodes", of_gpu.unwrap_or(""));
            wrong(reason, "take Policy::Laxity, or open the device without a system")
        }
        _ => Ok(()),
    }
}

/// That of threads in C and C++ programs, whose kernels count on it.
const STACK: usize = 8 << 20;
