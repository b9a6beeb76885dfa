//! The soft GPUs of a run, and how its threads share them.
//!
//! A run has GPUs of its own, whose servers are threads of this process: it leaves none behind, however it ends.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, process, thread};

use laxity_gpu::{Arbitration, Base, Client, Follower, Registry};
use laxity_model::{Instant, Nanos};
use laxity_softgpu::server::Server;
use laxity_softgpu::{Config, Handling, HandlingThread, Options, SoftGpu, Stream};
use laxity_sys::scheduling;

use crate::linux::{LinuxScheduler, PRIORITY_MAX};
use crate::log::{JobStep, Writer};
use crate::plan::{LivePlan, TaskPlan};

/// How long the server of a GPU stays while it has no client: longer than it takes to open it, however busy the machine.
const LINGER: Nanos = Nanos::from_secs(10);

/// Operations only take time: nothing is stored.
const MEMORY: u64 = 4096;

/// Numbers the runs of this process.
static RUNS: AtomicU32 = AtomicU32::new(0);

/// The soft GPUs of a run.
#[derive(Debug, Default)]
pub(crate) struct Gpus {
    pub gpus: Vec<SoftGpu>,
    /// For each pool.
    arbitrations: Vec<Arbitration>,
    /// Where the bandwidth lock is, if there is one.
    pub bandwidth: Option<Arbitration>,
    /// Threads that handle interrupts and are as urgent as the holders of tokens.
    _followers: Vec<Follower>,
}

/// The share of a task in them.
#[derive(Debug)]
pub(crate) struct Share {
    /// A stream of each GPU.
    pub streams: Vec<Stream>,
    /// That of the pool that the task uses, if GPUs are locked.
    arbitration: Option<Arbitration>,
    /// That of the bandwidth lock.
    bandwidth: Option<Arbitration>,
}

impl Gpus {
    /// Opens those of `plan`; `writers` note what the threads do that handle their interrupts, one each.
    ///
    /// # Errors
    /// What is refused.
    pub fn open(plan: &LivePlan, writers: Vec<Writer>) -> Result<Gpus, String> {
        if plan.gpus.is_empty() {
            return Ok(Gpus::default());
        }
        let run = format!("run-{}-{}", process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
        let mut gpus = Vec::new();
        for (number, (gpu, writer)) in plan.gpus.iter().zip(writers).enumerate() {
            let thread = plan.tasks.len() + number;
            // Threads of `SCHED_DEADLINE` go before it, others must not.
            let is_fixed = plan.linux() != LinuxScheduler::Other && !plan.follows_owners;
            let priority = is_fixed.then_some(PRIORITY_MAX);
            let handler = Handler { cpus: plan.placement.cpus(thread), priority, log: Mutex::new((0, writer)) };
            let config = Config { copy_engines: gpu.copy_engines, memory: MEMORY, copy_rate: None, linger: LINGER };
            let opened = open(format!("{run}-{number}"), config, handler);
            gpus.push(opened.map_err(|error| format!("GPU \"{}\": {error}", gpu.name))?);
        }
        let (mut arbitrations, mut followers) = (Vec::new(), Vec::new());
        for (number, pool) in plan.pools.iter().enumerate() {
            let created = Registry::default().create(&format!("{run}-{number}"), &pool.arbitration);
            let arbitration = created.map_err(|error| format!("GPUs cannot be shared: {error}"))?;
            for (position, gpu) in pool.gpus.iter().enumerate().filter(|_| plan.follows_owners) {
                let [interrupts, _] = gpus[gpu.index()].handling_threads();
                let follower = arbitration.follow(position as u16, interrupts);
                followers.push(follower.map_err(|error| format!("GPU \"{}\": {error}", plan.gpus[gpu.index()].name))?);
            }
            arbitrations.push(arbitration);
        }
        let bandwidth = plan.protection.as_ref().map(|protection| {
            let created = Registry::default().create(&format!("{run}-bandwidth"), &protection.arbitration);
            created.map_err(|error| format!("`bandwidth_lock`: {error}"))
        });
        Ok(Gpus { gpus, arbitrations, bandwidth: bandwidth.transpose()?, _followers: followers })
    }

    /// The share of `task`, if it uses a GPU.
    ///
    /// # Errors
    /// What is refused.
    pub fn share(&self, plan: &LivePlan, task: &TaskPlan) -> Result<Option<Share>, String> {
        if !task.uses_gpu() {
            return Ok(None);
        }
        let name = short(&task.name);
        let streams: Result<Vec<Stream>, _> = self.gpus.iter().map(|gpu| gpu.stream(name)).collect();
        let streams = streams.map_err(|error| format!("task \"{}\": {error}", task.name))?;
        let arbitration = task.pool(plan).map(|pool| self.arbitrations[pool].clone());
        let bandwidth = task.bandwidth.and(self.bandwidth.clone());
        Ok(Some(Share { streams, arbitration, bandwidth }))
    }
}

impl Share {
    /// Registers the calling thread, if GPUs are locked.
    ///
    /// # Errors
    /// What is refused.
    pub fn register(&self, task: &TaskPlan) -> Result<Option<Client>, String> {
        register(self.arbitration.as_ref(), task)
    }

    /// Registers the calling thread as one that may hold the bandwidth lock, if its jobs do.
    ///
    /// # Errors
    /// What is refused.
    pub fn register_bandwidth(&self, task: &TaskPlan) -> Result<Option<Client>, String> {
        register(self.bandwidth.as_ref(), task)
    }
}

fn register(arbitration: Option<&Arbitration>, task: &TaskPlan) -> Result<Option<Client>, String> {
    let base = base(task.urgency, Instant::NEVER);
    let register = |arbitration: &Arbitration| arbitration.register(short(&task.name), base);
    arbitration.map(register).transpose().map_err(|error| error.to_string())
}

/// How urgent a job is that is due at `deadline`.
pub(crate) fn base(urgency: Option<u8>, deadline: Instant) -> Base {
    urgency.map_or(Base::Deadline(deadline), Base::Fixed)
}

/// The GPU's server as a thread of this process, and a connection whose threads are scheduled as `handler` wants.
fn open(name: String, config: Config, handler: Handler) -> Result<SoftGpu, String> {
    let server = Server::new(&name, config).map_err(|error| error.to_string())?;
    let run = thread::Builder::new().name("softgpu-server".to_owned()).spawn(|| server.run());
    run.map_err(|error| format!("cannot start its thread: {error}"))?;
    // Threads are scheduled as the one is that starts them: a thread that is like them, and goes.
    let opener = thread::spawn(move || {
        handler.take_place()?;
        SoftGpu::open_with(&name, config, &Options { handling: Arc::new(handler), ..Options::default() })
            .map_err(|error| error.to_string())
    });
    opener.join().unwrap_or_else(|_| Err("its thread panicked".to_owned()))
}

/// Handles the interrupts of a GPU.
struct Handler {
    cpus: Vec<usize>,
    /// Where tasks are real-time threads.
    priority: Option<u8>,
    /// How many interrupts it has handled, and where it notes that it does.
    log: Mutex<(u32, Writer)>,
}

impl Handler {
    /// Schedules the calling thread as one that handles interrupts.
    fn take_place(&self) -> Result<(), String> {
        let place = || {
            scheduling::keep_on(&self.cpus)?;
            self.priority.map_or(Ok(()), scheduling::set_fifo)
        };
        place().map_err(|error: std::io::Error| format!("the thread that handles interrupts: {error}"))
    }
}

impl Handling for Handler {
    fn serve(&self, thread: HandlingThread, _stream: &str) {
        if thread == HandlingThread::Interrupts {
            let (handled, log) = &mut *self.log.lock().unwrap_or_else(PoisonError::into_inner);
            log.note(*handled, JobStep::Begin);
        }
    }

    fn done(&self, thread: HandlingThread) {
        if thread == HandlingThread::Interrupts {
            let (handled, log) = &mut *self.log.lock().unwrap_or_else(PoisonError::into_inner);
            log.note(*handled, JobStep::Complete);
            *handled = handled.wrapping_add(1);
        }
    }
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler").field("cpus", &self.cpus).field("priority", &self.priority).finish_non_exhaustive()
    }
}

/// The part of a name that the libraries of GPUs take.
fn short(name: &str) -> &str {
    let end = (0..=name.len().min(SHORT)).rev().find(|&end| name.is_char_boundary(end));
    &name[..end.unwrap_or(0)]
}

/// The shorter of what the two take.
const SHORT: usize =
    if laxity_gpu::NAME_MAX < laxity_softgpu::NAME_MAX { laxity_gpu::NAME_MAX } else { laxity_softgpu::NAME_MAX };
