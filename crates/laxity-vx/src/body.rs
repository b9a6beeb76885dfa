//! The body of a node's worker: it executes the node's kernel, once a frame.
//!
//! Source: paper 003, section 5.4.1 and Fig. 5.5.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use laxity_graph::{Node, WaitError};
use laxity_model::{Instant, Nanos};
use laxity_runtime::worker::{self, Interrupted};
use laxity_runtime::{Attributes, worker::Body};
use laxity_sys::clock;

use crate::Budgets;
use crate::error::{Failure, FailureReason};
use crate::gpu::Gpu;
use crate::graph::{Action, Kernel};
use crate::job::Job;
use crate::node_task::NodeTask;
use crate::scheduling::{self, Scheduling, period};
use crate::shared::Shared;

/// The body of a node's worker.
pub(crate) struct NodeBody {
    pub name: String,
    pub kernel: TakenKernel,
    /// Positions of the arrays that the node writes: they are empty at first.
    pub arrays: Vec<usize>,
    pub role: Role,
    pub scheduling: Scheduling,
    pub gpu: Option<Gpu>,
    /// If Laxity's scheduler schedules the node. Behind the GPU, whose locks it holds.
    pub task: Option<Rc<NodeTask>>,
    /// Tells graphs of this process apart.
    pub graph_id: u64,
    pub shared: Arc<Shared>,
    pub measured: Measured,
}

/// The CPU time of a node whose budget is measured.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    /// The frame that comes next.
    frame: u64,
    /// The thread's CPU time when it was done with the frame before: a frame includes the wait for its tokens.
    since: Option<Nanos>,
    /// The most that a frame needed.
    longest: Nanos,
}

/// The part of a node in a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Input,
    Node,
    Output,
}

/// A kernel that one run has, so that no other run has it meanwhile. Dropped, it is put back.
pub(crate) struct TakenKernel {
    place: Arc<Mutex<Option<Kernel>>>,
    kernel: Option<Kernel>,
}

/// Why a node cannot go on, and in which frame, if it was in one.
#[derive(Debug)]
pub(crate) struct NodeError {
    frame: Option<u64>,
    reason: FailureReason,
}

impl From<WaitError> for NodeError {
    fn from(error: WaitError) -> NodeError {
        NodeError { frame: None, reason: FailureReason::Wait(error) }
    }
}

impl TakenKernel {
    /// Nothing if another run has it.
    pub fn take(place: &Arc<Mutex<Option<Kernel>>>) -> Option<TakenKernel> {
        let kernel = place.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(TakenKernel { place: Arc::clone(place), kernel: Some(kernel) })
    }
}

impl Drop for TakenKernel {
    fn drop(&mut self) {
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = self.kernel.take();
    }
}

impl Body for NodeBody {
    type Error = NodeError;

    fn execute(&mut self, job: worker::Job<'_>) -> Result<(), Interrupted<NodeError>> {
        let worker::Job::Node(job) = job else { unreachable!("tokens release the jobs of nodes") };
        let frame = job.index();
        let failed = |reason| Interrupted::Failed(NodeError { frame: Some(frame), reason });
        self.measured.since.get_or_insert_with(clock::thread_cpu_time);
        if let Some(task) = &self.task {
            // A graph under Laxity's scheduler has a recorder, which knows both.
            let (release, deadline) = (job.release(), job.deadline());
            let (release, deadline) = (release.unwrap_or(Instant::ZERO), deadline.unwrap_or(Instant::NEVER));
            task.release(frame, release, deadline).map_err(|error| failed(FailureReason::Scheduler(error)))?;
        }
        let mut job = Job::new(job, &self.shared.graph, self.graph_id, &mut self.gpu);
        job.clear(&self.arrays);
        let kernel = self.kernel.kernel.as_mut().expect("it is there until it is put back");
        let result = catch_unwind(AssertUnwindSafe(|| kernel(&mut job)));
        job.end_gpu();
        match result {
            Ok(Ok(Action::Continue)) => {}
            Ok(Ok(Action::End)) => {
                // A trace says so: a task that goes with its job released is one that its policy forgets.
                let ended = self.task.as_ref().map_or(Ok(()), |task| task.end());
                ended.map_err(|error| failed(FailureReason::Scheduler(error)))?;
                return Err(Interrupted::Stopped);
            }
            Ok(Err(error)) => return Err(failed(FailureReason::Kernel(error))),
            Err(payload) => return Err(failed(FailureReason::Panic(text(&*payload)))),
        }
        match self.role {
            Role::Input => self.shared.frames.begin(),
            Role::Node => {}
            Role::Output => self.shared.frames.complete(clock::now()),
        }
        // Before the tokens are there: the thread is urgent until all consumers are told.
        if let Some(task) = &self.task {
            task.complete().map_err(|error| failed(FailureReason::Scheduler(error)))?;
        }
        job.complete();
        Ok(())
    }

    /// If enough frames were measured, Linux reserves the budget that follows from now on.
    fn after_job(&mut self, node: &mut Node) -> Result<(), Interrupted<NodeError>> {
        let Scheduling::Measured { frames, margin_percent } = self.scheduling else { return Ok(()) };
        let Some(longest) = self.measured.add_frame(frames.into()) else { return Ok(()) };
        let spec = self.shared.graph.spec();
        let margin = u128::from(longest.0) * u128::from(margin_percent) / 100;
        let budget = u64::try_from(u128::from(longest.0) + margin).unwrap_or(u64::MAX);
        let budget = Nanos(budget).max(Budgets::MIN).min(period(spec));
        let attributes = Attributes::deadline_of(spec, node.position(), budget);
        let needed = self.shared.reserve(budget);
        node.schedule_by(attributes).map_err(|refused| {
            let error = scheduling::refused(refused.node, attributes, needed, refused.error);
            Interrupted::Failed(NodeError { frame: None, reason: FailureReason::Budget(Box::new(error)) })
        })
    }

    fn end(self, outcome: Result<(), NodeError>) -> Result<(), String> {
        if let Err(NodeError { frame, reason }) = outcome {
            let graph = self.shared.graph.spec().graph().name.clone();
            self.shared.fail(Failure { graph, node: self.name.clone(), frame, reason });
        }
        let shared = Arc::clone(&self.shared);
        // The next run of the graph gets the kernel: it is put back before this one has ended.
        drop(self);
        shared.frames.leave();
        Ok(())
    }
}

impl Measured {
    /// A frame is done. Answers the most CPU time that a frame needed, when so many `frames` are measured.
    fn add_frame(&mut self, frames: u64) -> Option<Nanos> {
        if self.frame >= frames {
            return None;
        }
        let now = clock::thread_cpu_time();
        let since = self.since.replace(now).unwrap_or(now);
        self.longest = self.longest.max(Nanos(now.0.saturating_sub(since.0)));
        self.frame += 1;
        (self.frame == frames).then_some(self.longest)
    }
}

/// The message of a panic.
fn text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}
