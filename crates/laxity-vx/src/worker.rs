//! The thread of a node.
//!
//! ```text
//! claim, schedule --ready--> wait for the start
//!     +--> [input callback: sleep until the release] --> wait for tokens --> kernel --> complete --+
//!     '----------------------------------------------------------------------------------------+
//! ```
//!
//! Source: paper 003, section 5.4.1 and Fig. 5.5.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, MutexGuard, PoisonError, TryLockError};

use laxity_device::Device;
use laxity_graph::{Graph, Node, WaitError};
use laxity_model::Nanos;
use laxity_sys::{clock, scheduling};

use crate::error::{Failure, FailureReason, SpawnError};
use crate::gpu::Gpu;
use crate::graph::{Action, Kernel};
use crate::job::Job;
use crate::scheduling::{Scheduling, keep_on, period};
use crate::shared::Shared;
use crate::verified::Executable;

/// What the thread of a node is given.
pub(crate) struct Worker {
    pub position: usize,
    pub executable: Executable,
    pub scheduling: Scheduling,
    pub cpus: Vec<usize>,
    pub device: Option<Device>,
    /// Tells graphs of this process apart.
    pub graph_id: u64,
    pub shared: Arc<Shared>,
}

/// What a node does beyond executing its kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Input,
    Node,
    Output,
}

impl Worker {
    /// The thread's life. `ready` is called once, when it may start or why it cannot.
    pub fn run(self, ready: impl FnOnce(Result<(), SpawnError>)) {
        let shared = self.shared.clone();
        let executable = self.executable.clone();
        // Held until the end, so that no other run has it meanwhile.
        let kernel = match executable.kernel.try_lock() {
            Ok(kernel) => Ok(kernel),
            // It panicked in an earlier run, and may try again.
            Err(TryLockError::Poisoned(error)) => Ok(PoisonError::into_inner(error)),
            Err(TryLockError::WouldBlock) => {
                Err(SpawnError::Scheduled { graph: shared.graph.spec().graph().name.clone() })
            }
        };
        match kernel.and_then(|kernel| Ok((self.prepare()?, kernel))) {
            Ok((node, kernel)) => {
                ready(Ok(()));
                shared.control.wait_for_start();
                self.execute(node, kernel);
            }
            Err(error) => ready(Err(error)),
        }
        shared.frames.leave();
    }

    /// Claims the node for the calling thread, which is scheduled as it will run.
    fn prepare(&self) -> Result<Node, SpawnError> {
        let name = || self.executable.name.clone();
        keep_on(&self.cpus).map_err(|error| SpawnError::Cpus { node: name(), cpus: self.cpus.clone(), error })?;
        // Of threads that are not real-time; if it cannot be, they are woken a little later.
        let _ = scheduling::expire_on_time();
        let graph: &Graph = &self.shared.graph;
        let mut node = graph.claim(&self.executable.name).map_err(SpawnError::Claim)?;
        self.scheduling.apply(&mut node, graph.spec(), self.shared.needed)?;
        Ok(node)
    }

    fn execute(&self, node: Node, mut kernel: MutexGuard<'_, Kernel>) {
        let role = match self.position {
            0 => Role::Input,
            position if position + 1 == self.shared.graph.spec().graph().nodes.len() => Role::Output,
            _ => Role::Node,
        };
        let gpu = self.device.clone().map(|device| {
            let graph = &self.shared.graph.spec().graph().name;
            Gpu::new(device, graph, &self.executable.name, self.scheduling.priority())
        });
        let mut state = Execution { worker: self, node, role, gpu, longest: Nanos::ZERO };
        let mut frame = 0;
        let ended = loop {
            match state.job(frame, &mut kernel) {
                Ok(true) => frame += 1,
                Ok(false) => break Ok(()),
                Err(reason) => break Err(reason),
            }
        };
        if let Err((frame, reason)) = ended {
            self.shared.fail(Failure {
                graph: self.shared.graph.spec().graph().name.clone(),
                node: self.executable.name.clone(),
                frame,
                reason,
            });
        }
        // Consumers use up what there is, and end, too.
        state.node.terminate();
    }
}

/// A node while it is executed.
struct Execution<'a> {
    worker: &'a Worker,
    node: Node,
    role: Role,
    gpu: Option<Gpu>,
    /// The most CPU time that a job needed, for those that are measured.
    longest: Nanos,
}

impl Execution<'_> {
    /// Executes job `frame`. Answers whether there may be another one; with why not, and the frame, if it failed.
    fn job(&mut self, frame: u64, kernel: &mut Kernel) -> Result<bool, (Option<u64>, FailureReason)> {
        let shared = &self.worker.shared;
        if self.role == Role::Input {
            let is_over = shared.frames_wanted.is_some_and(|frames| frame >= frames);
            if is_over || !shared.control.sleep_until(shared.frames.release(frame)) {
                return Ok(false);
            }
        }
        let cpu_time = clock::thread_cpu_time();
        let job = loop {
            match self.node.wait() {
                Ok(job) => break job,
                Err(WaitError::Terminated { .. }) => return Ok(false),
                // A thread of this graph has failed, which is said there; or another process has claimed its node and
                // was killed: then it may come back.
                Err(WaitError::Lost { .. } | WaitError::TimedOut { .. }) => {}
                Err(error @ WaitError::Unreachable { .. }) => return Err((Some(frame), FailureReason::Wait(error))),
            }
        };
        let mut job = Job::new(job, &shared.graph, self.worker.graph_id, &mut self.gpu);
        job.clear(&self.worker.executable.arrays);
        let result = catch_unwind(AssertUnwindSafe(|| kernel(&mut job)));
        job.end_gpu();
        let action = match result {
            Ok(Ok(action)) => action,
            Ok(Err(error)) => return Err((Some(frame), FailureReason::Kernel(error))),
            Err(payload) => return Err((Some(frame), FailureReason::Panic(text(&*payload)))),
        };
        if action == Action::End {
            return Ok(false);
        }
        match self.role {
            Role::Input => shared.frames.begin(),
            Role::Node => {}
            Role::Output => shared.frames.complete(clock::now()),
        }
        job.complete();
        self.measure(frame, Nanos(clock::thread_cpu_time().0.saturating_sub(cpu_time.0)))
            .map_err(|error| (None, FailureReason::Budget(Box::new(error))))?;
        Ok(true)
    }

    /// Job `frame` needed `cost`: if enough were measured, Linux reserves it from now on.
    fn measure(&mut self, frame: u64, cost: Nanos) -> Result<(), SpawnError> {
        let Scheduling::Measured { frames, margin_percent } = self.worker.scheduling else { return Ok(()) };
        if frame >= frames.into() {
            return Ok(());
        }
        self.longest = self.longest.max(cost);
        if frame + 1 < frames.into() {
            return Ok(());
        }
        let spec = self.worker.shared.graph.spec();
        let margin = u128::from(self.longest.0) * u128::from(margin_percent) / 100;
        let budget = u64::try_from(u128::from(self.longest.0) + margin).unwrap_or(u64::MAX);
        let budget = Nanos(budget).max(crate::Budgets::MIN).min(period(spec));
        Scheduling::Deadline { budget }.apply(&mut self.node, spec, self.worker.shared.reserve(budget))
    }
}

/// What a panic says.
fn text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}
