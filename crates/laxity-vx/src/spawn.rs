//! Starting the threads of a graph.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::{Builder, JoinHandle};

use laxity_graph::{Graph, RECORDER_MAX, RegistryError};
use laxity_model::Nanos;
use laxity_sys::{clock, memory};

use crate::control::Control;
use crate::error::SpawnError;
use crate::frames::Frames;
use crate::options::{Budgets, Policy, SpawnOptions};
use crate::run::Run;
use crate::scheduling;
use crate::shared::Shared;
use crate::verified::Verified;
use crate::worker::Worker;

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
        let graph = self.registry.create(&spec).map_err(|error| match error {
            RegistryError::Exists { name } => SpawnError::Scheduled { graph: name },
            error => SpawnError::Memory(error),
        })?;
        let shared = Arc::new(Shared {
            control: Control::default(),
            frames: Frames::new(options.period, self.nodes.len(), options.frames()),
            frames_wanted: options.frames(),
            needed: scheduling::needed(&planned, options.period),
            measured: AtomicU64::new(0),
            failure: OnceLock::new(),
            graph,
        });
        let worker = |(position, &scheduling): (usize, &scheduling::Scheduling)| Worker {
            position,
            executable: self.nodes[position].clone(),
            scheduling,
            cpus: options.cpus.clone(),
            device: options.gpu.clone(),
            graph_id: self.id,
            shared: shared.clone(),
        };
        // From here on whatever fails ends the threads that there are.
        let mut run = Run::new(shared.clone());
        let workers = planned.iter().enumerate().map(worker);
        start_threads(workers.collect(), &mut run)?;
        if options.lock_memory {
            memory::lock_all().map_err(|error| SpawnError::Lock { error })?;
        }
        settle(&shared.graph, &shared.frames, options);
        shared.control.run();
        Ok(run)
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
        _ => Ok(()),
    }
}

/// That of threads in C and C++ programs, whose kernels count on it.
const STACK: usize = 8 << 20;

/// Starts a thread for each worker, and answers when all of them are ready.
fn start_threads(workers: Vec<Worker>, run: &mut Run) -> Result<(), SpawnError> {
    let (count, (sender, ready)) = (workers.len(), mpsc::channel());
    for worker in workers {
        let (sender, node) = (sender.clone(), worker.executable.name.clone());
        // Linux shows the first 15 bytes; a NUL would be no name.
        let thread = Builder::new().name(node.replace('\0', "?")).stack_size(STACK);
        let thread: JoinHandle<()> = thread
            .spawn(move || {
                worker.run(|outcome| {
                    // Nobody listens if another one failed first.
                    let _ = sender.send(outcome);
                });
            })
            .map_err(|error| SpawnError::Thread { node, error })?;
        run.add(thread);
    }
    ready.into_iter().take(count).collect()
}

/// Settles when frames are due.
fn settle(graph: &Graph, frames: &Frames, options: &SpawnOptions) {
    let first = options.start.unwrap_or_else(clock::now).saturating_add(options.phase);
    // Nobody else knows the graph long enough to have said anything.
    frames.start(graph.start(first));
}
