//! The soft GPUs of a run, and how its threads share them.
//!
//! A run has GPUs of its own, whose servers are threads of this process: it leaves none behind, however it ends.

use std::sync::{Arc, Mutex};
use std::thread;

use laxity_gpu::{Arbitration, Base, Client, Follower, Registry};
use laxity_model::{Instant, Nanos, TaskId};
use laxity_plan::Op;
use laxity_sched::{Parameters, System, Urgency};
use laxity_softgpu::server::Server;
use laxity_softgpu::{Buffer, Config, Options, SoftGpu, Stream};
use laxity_trace::LockKind;

use crate::handler::{Class, Handler, ServiceLog, owners_name};
use crate::linux::{LinuxScheduler, PRIORITY_MAX};
use crate::log::Writer;
use crate::plan::{LivePlan, Pool, TaskPlan, truncated};
use crate::run_names;
use crate::shared::Shared;

/// How long the server of a GPU stays while it has no client: longer than it takes to open it, however busy the machine.
const LINGER: Nanos = Nanos::from_secs(10);

/// Where tasks have no state there, operations only take time: nothing is stored.
const MEMORY: u64 = 4096;

/// The soft GPUs of a run.
#[derive(Debug, Default)]
pub(crate) struct Gpus {
    pub gpus: Vec<SoftGpu>,
    /// For each pool.
    arbitrations: Vec<Option<Arbitration>>,
    /// Where the bandwidth lock is, if there is one.
    pub bandwidth: Option<Arbitration>,
    names: Vec<String>,
    /// Threads that handle interrupts and are as urgent as the holders of tokens.
    _followers: Vec<Follower>,
}

/// The share of a task in them.
#[derive(Debug)]
pub(crate) struct Share {
    /// A stream of each GPU.
    pub streams: Vec<Stream>,
    /// Memory of each GPU for the task's state, if that moves with it.
    pub state: Vec<Buffer>,
    /// That of the pool that the task uses, if GPUs are locked, and not by Laxity's scheduler.
    arbitration: Option<Arbitration>,
    /// That of the bandwidth lock.
    bandwidth: Option<Arbitration>,
}

impl Gpus {
    /// Those that a program has opened, whose threads share them by other means.
    pub fn of(gpus: Vec<SoftGpu>) -> Gpus {
        Gpus { gpus, ..Gpus::default() }
    }

    /// Opens those of `plan`; `writers` note what the threads do that handle their interrupts, one each. `system` is that
    /// of Laxity's scheduler, if that schedules, and `shared` has its scheduler in the kernel, if that does.
    ///
    /// # Errors
    /// What is refused.
    pub fn open(
        plan: &LivePlan,
        writers: Vec<Writer>,
        system: Option<&System>,
        shared: &Arc<Shared>,
    ) -> Result<Gpus, String> {
        if plan.gpus.is_empty() {
            return Ok(Gpus::default());
        }
        let run = run_names::next();
        let states = plan.tasks.iter().filter(|task| moves(task)).count() as u64;
        // In whole pages, and with as much again so that they fit however they come.
        let memory =
            plan.state.map_or(MEMORY, |state| (state.bytes as u64).next_multiple_of(1 << 16) * 2 * states.max(1));
        let mut gpus = Vec::new();
        for (number, (gpu, writer)) in plan.gpus.iter().zip(writers).enumerate() {
            let handler = Handler {
                cpus: plan.placement.cpus(plan.tasks.len() + number),
                class: class(plan, number, system, shared),
                log: Mutex::new(ServiceLog::new(writer)),
                failed: Mutex::new(None),
            };
            let config = Config { copy_engines: gpu.copy_engines, memory, copy_rate: None, linger: LINGER };
            let opened = open(format!("{run}-{number}"), config, handler);
            gpus.push(opened.map_err(|error| format!("GPU \"{}\": {error}", gpu.name))?);
        }
        let (mut arbitrations, mut followers) = (Vec::new(), Vec::new());
        let names: Vec<String> = (0..plan.pools.len()).map(|number| format!("{run}-{number}")).collect();
        for (number, pool) in plan.pools.iter().enumerate() {
            let Some(config) = &pool.arbitration else {
                arbitrations.push(None);
                continue;
            };
            let created = Registry::default().create(&names[number], config);
            let arbitration = created.map_err(|error| format!("GPUs cannot be shared: {error}"))?;
            for (position, gpu) in pool.gpus.iter().enumerate().filter(|_| plan.follows_owners) {
                let [interrupts, _] = gpus[gpu.index()].handling_threads();
                let follower = arbitration.follow(position as u16, interrupts);
                followers.push(follower.map_err(|error| format!("GPU \"{}\": {error}", plan.gpus[gpu.index()].name))?);
            }
            arbitrations.push(Some(arbitration));
        }
        let bandwidth = plan.protection.as_ref().map(|protection| {
            let created = Registry::default().create(&format!("{run}-bandwidth"), &protection.arbitration);
            created.map_err(|error| format!("`bandwidth_lock`: {error}"))
        });
        let names = names.into_iter().chain(plan.protection.as_ref().map(|_| format!("{run}-bandwidth"))).collect();
        Ok(Gpus { gpus, arbitrations, names, bandwidth: bandwidth.transpose()?, _followers: followers })
    }

    /// The numbers in Linux of the threads that handle interrupts.
    pub fn threads(&self) -> Vec<u32> {
        self.gpus.iter().map(|gpu| gpu.handling_threads()[0]).collect()
    }

    /// The names of the arbitrations.
    pub fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    /// The share of `task`, which has that number, if it uses a GPU.
    ///
    /// # Errors
    /// What is refused.
    pub fn share(&self, plan: &LivePlan, number: usize, task: &TaskPlan) -> Result<Option<Share>, String> {
        if !task.uses_gpu() {
            return Ok(None);
        }
        // Threads that handle interrupts know owners by the names of their streams.
        let name = if plan.system.is_some() { owners_name(number, &task.name) } else { task.name.clone() };
        let name = short(&name);
        let streams: Result<Vec<Stream>, _> = self.gpus.iter().map(|gpu| gpu.stream(name)).collect();
        let streams = streams.map_err(|error| format!("task \"{}\": {error}", task.name))?;
        let state = match plan.state.filter(|_| moves(task)) {
            None => Vec::new(),
            Some(state) => {
                let buffers: Result<Vec<Buffer>, _> = self.gpus.iter().map(|gpu| gpu.alloc(state.bytes)).collect();
                buffers.map_err(|error| format!("task \"{}\": its state: {error}", task.name))?
            }
        };
        let arbitration = task.pool(plan).and_then(|pool| self.arbitrations[pool].clone());
        let bandwidth = task.bandwidth.and(self.bandwidth.clone());
        Ok(Some(Share { streams, state, arbitration, bandwidth }))
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

/// Whether the task has state that moves with it. One that says which GPU it wants has nothing copied when it leaves.
fn moves(task: &TaskPlan) -> bool {
    let names_one = |op: &Op| matches!(op, Op::Lock { only: Some(_), .. });
    task.ops.iter().any(|op| matches!(op, Op::UnlessMoved(_))) && !task.ops.iter().any(names_one)
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
        let handler = Arc::new(handler);
        let options = Options { handling: handler.clone(), ..Options::default() };
        let opened = SoftGpu::open_with(&name, config, &options).map_err(|error| error.to_string());
        handler.failure().map_or(opened, Err)
    });
    opener.join().unwrap_or_else(|_| Err("its thread panicked".to_owned()))
}

/// How the thread that handles the interrupts of GPU `number` is scheduled.
fn class(plan: &LivePlan, number: usize, system: Option<&System>, shared: &Arc<Shared>) -> Class {
    if plan.is_in_kernel() && plan.follows_owners {
        let cluster = plan.header().tasks[plan.tasks.len() + number].cluster;
        return Class::Kernel { shared: Arc::clone(shared), gpu: number, cluster };
    }
    let Some(system) = system.filter(|_| plan.header().is_linked) else {
        // Threads of `SCHED_DEADLINE` go before it, others must not.
        let is_fixed = plan.linux() != LinuxScheduler::Other && !plan.follows_owners;
        return is_fixed.then_some(PRIORITY_MAX).map_or(Class::Inherited, Class::Fifo);
    };
    let thread = plan.tasks.len() + number;
    let info = &plan.header().tasks[thread];
    // Its jobs have no deadlines of their own; the name is that of the trace.
    let parameters =
        Parameters { cluster: info.cluster, ..Parameters::periodic(truncated(&info.name), Nanos::from_secs(1)) };
    let urgency = if plan.follows_owners { owners_urgency(plan, number) } else { Urgency::Fixed };
    Class::Laxity { system: system.clone(), parameters, number: TaskId(thread as u32), urgency }
}

/// How urgent klmirqd's thread for that GPU is: as the holders of its tokens are, where there are any.
fn owners_urgency(plan: &LivePlan, gpu: usize) -> Urgency {
    let holders = |pool: &Pool| {
        let position = pool.gpus.iter().position(|other| other.index() == gpu)?;
        let has_tokens = matches!(plan.header().locks[pool.lock.index()].kind, LockKind::Tokens { .. });
        let gpus = pool.gpus.len() as u16;
        has_tokens.then_some(Urgency::Holders { lock: pool.lock, gpu: position as u16, gpus })
    };
    plan.pools.iter().find_map(holders).unwrap_or(Urgency::Owner)
}

/// The part of a name that the libraries of GPUs take.
fn short(name: &str) -> &str {
    let end = (0..=name.len().min(SHORT)).rev().find(|&end| name.is_char_boundary(end));
    &name[..end.unwrap_or(0)]
}

/// The shorter of what the two take.
const SHORT: usize =
    if laxity_gpu::NAME_MAX < laxity_softgpu::NAME_MAX { laxity_gpu::NAME_MAX } else { laxity_softgpu::NAME_MAX };
