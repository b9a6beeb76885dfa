//! The thread of a task or a node: it waits for the release of its jobs, and carries them out.

use std::sync::Arc;

use laxity_gpu::Client;
use laxity_graph::{Node, WaitError};
use laxity_model::{Instant, Nanos};
use laxity_sys::scheduling;

use crate::gpus::Share;
use crate::halt::Halt;
use crate::jobs::{Cut, Jobs};
use crate::plan::{TaskPlan, Trigger};

/// What the thread of a task has.
pub(crate) struct Worker {
    name: String,
    jobs: Jobs,
    trigger: Trigger,
    relative_deadline: Nanos,
    /// If it is one.
    node: Option<Node>,
    /// If it locks GPUs.
    client: Option<Client>,
    halt: Arc<Halt>,
}

impl Worker {
    /// Makes the calling thread that of the task.
    ///
    /// # Errors
    /// What is refused, and the way out.
    pub fn new(task: &TaskPlan, jobs: Jobs, share: Option<&Share>, halt: Arc<Halt>) -> Result<Worker, String> {
        let of_task = |error: String| format!("task \"{}\": {error}", task.name);
        // A thread that is late now and then is no reason not to run.
        let _ = scheduling::expire_on_time();
        if let Some(cpus) = &task.cpus {
            scheduling::keep_on(cpus).map_err(|error| of_task(format!("cannot keep to CPUs {cpus:?}: {error}")))?;
        }
        task.attributes.apply().map_err(of_task)?;
        // When Linux schedules it as it will: whoever inherits from it asks.
        let client = share.map(|share| share.register(task)).transpose().map_err(of_task)?.flatten();
        let claim = |id: crate::plan::NodeId| {
            let graph = &halt.graphs[id.graph];
            graph.claim(&graph.spec().graph().nodes[id.node].name).map_err(|error| of_task(error.to_string()))
        };
        let node = task.trigger.node().map(claim).transpose()?;
        let (name, trigger, relative_deadline) = (task.name.clone(), task.trigger.clone(), task.deadline);
        Ok(Worker { name, jobs, trigger, relative_deadline, node, client, halt })
    }

    /// Runs all jobs, the first no earlier than `start`, unless it is stopped.
    ///
    /// # Errors
    /// Why it cannot go on.
    pub fn run(mut self, start: Instant) -> Result<(), String> {
        let outcome = self.run_jobs(start);
        // Its consumers end when they have used what it produced.
        self.node.into_iter().for_each(Node::terminate);
        match outcome {
            Ok(()) | Err(Cut::Stopped) => Ok(()),
            Err(Cut::Failed(reason)) => Err(format!("task \"{}\": {reason}", self.name)),
        }
    }

    fn run_jobs(&mut self, start: Instant) -> Result<(), Cut> {
        let absolute = |at: Instant| start.saturating_add(Nanos(at.0));
        match self.trigger.releases().cloned() {
            Some(releases) => {
                for release in releases {
                    // A futex and not `clock_nanosleep`: it has the same absolute timer, and can be ended from outside.
                    if !self.halt.control.suspend_until(absolute(release.at)) {
                        return Err(Cut::Stopped);
                    }
                    if self.node.is_some() {
                        if !self.next_job()? {
                            return Ok(());
                        }
                        continue;
                    }
                    self.jobs.carry_out(release.index, absolute(release.deadline), self.client.as_mut())?;
                }
                Ok(())
            }
            None => {
                // Tokens that are there from the start arrive then, too.
                if !self.halt.control.suspend_until(start) {
                    return Err(Cut::Stopped);
                }
                while self.next_job()? {}
                Ok(())
            }
        }
    }

    /// Waits for the tokens of the node's next job, and for room, and carries it out. Answers whether there was one.
    fn next_job(&mut self) -> Result<bool, Cut> {
        let node = self.node.as_mut().expect("only nodes wait for tokens");
        let job = match node.wait() {
            Ok(job) => job,
            // Its producers have ended, or everything has; nobody claims a lost node again.
            Err(WaitError::Terminated { .. } | WaitError::Lost { .. }) => return Ok(false),
            Err(error) => return Err(Cut::Failed(error.to_string())),
        };
        let release = job.release().expect("the graphs of runs have recorders");
        let deadline = release.saturating_add(self.relative_deadline);
        // Jobs of a trace have 32 bits, too.
        self.jobs.carry_out(job.index() as u32, deadline, self.client.as_mut())?;
        job.complete();
        Ok(true)
    }
}
