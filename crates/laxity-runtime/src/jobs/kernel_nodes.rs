//! Nodes of graphs under Laxity's scheduler in the kernel.
//!
//! ```text
//!             tokens are there: says release and deadline
//!          .---------------------------------------------------.
//!          |                                                   v
//! (job k, sends its tokens in a section) ---> (waits) ---> (job k + 1)
//!                                    sleeps: k is    the thread that sends the last token
//!                                    complete        says release and deadline, and wakes it
//! ```
//!
//! A thread that waits for tokens has no job, and so no CPU: it could not say when its next job is due. The thread that completes
//! what it waits for knows that, by the rule and the recorder of the graph.

use std::sync::Arc;

use laxity_graph::hooks::Hooks;
use laxity_graph::{Node, Releasing, WaitError};
use laxity_model::{Instant, Nanos};
use laxity_scx::{Releases, TaskRequest, Teller};
use laxity_sys::clock;

use super::kernel::KernelTask;
use super::{JobError, Jobs};
use crate::kernel::{InKernel, Place};
use crate::plan::Trigger;
use crate::shared::Shared;

/// Says of jobs of the graph's other nodes when they are released and due.
#[derive(Debug)]
struct Tells {
    teller: Teller,
    shared: Arc<Shared>,
    /// The number of the graph's first node among the tasks of the run.
    first: usize,
}

impl Hooks for Tells {
    fn tells_of_releases(&self) -> bool {
        true
    }

    fn wakes(&mut self, node: usize, release: Instant, deadline: Instant) {
        let place = self.shared.kernel.as_ref().and_then(|kernel| kernel.place(self.first + node));
        // One that is no task yet finds out by itself.
        if let Some(place) = place {
            self.teller.tell(place.entry, place.begins(release, clock::now()), deadline);
        }
    }

    fn have_woken(&mut self) {
        self.teller.end();
    }
}

impl Jobs {
    /// The jobs of this node are executed from `start` on. Whether the scheduler in the kernel releases them.
    pub(super) fn begin_node_in_kernel(&mut self, start: Instant) -> bool {
        self.kernel.as_mut().map(|own| own.start = start).is_some()
    }

    /// Waits until the next job of `node` has its tokens, its time and a CPU. Whether there may be one: what ends the node, a wait for
    /// that job then says.
    pub(super) fn await_node_in_kernel(&mut self, node: &mut Node) -> Result<bool, JobError> {
        let shared = Arc::clone(&self.shared);
        let (Some(own), Some(kernel)) = (&mut self.kernel, &shared.kernel) else { return Ok(true) };
        let stop = Arc::clone(&self.stop);
        let is_source = matches!(self.plan.trigger, Trigger::Source(..));
        let mut sleep = |until| if is_source { stop.sleep_until_release(until) } else { stop.suspend_until(until) };
        let count = |job: laxity_scx::Job| {
            if !job.is_scheduled {
                kernel.count_by_linux();
            }
            !stop.is_stopped()
        };
        if own.task.is_none() {
            let may_be_early = matches!(self.plan.trigger, Trigger::Tokens(_, Releasing::Early));
            let next = if has_next(node) { own.next_times(node, may_be_early) } else { None };
            let (release, due) = next.unwrap_or_else(|| way_to_wait(&own.request, own.start));
            let releases = Releases::Tokens { due: Some(due) };
            let request = TaskRequest { release: Some(release), releases, ..own.request.clone() };
            let Some(task) = kernel.begin(own.number, &request, &stop)? else { return Ok(false) };
            kernel.set_place(own.number, Place { entry: task.place(), start: own.start, may_be_early });
            own.hear(node, &task, &shared);
            let task = own.task.insert(task);
            let Some(job) = task.next_job_by(&mut sleep) else { return Ok(false) };
            if next.is_some() {
                return Ok(count(job));
            }
        }
        loop {
            match node.has_next() {
                Ok(true) => return own.next_job(node, kernel, sleep).map_or(Ok(false), |job| Ok(count(job))),
                Ok(false) => {}
                Err(WaitError::Lost { .. } | WaitError::TimedOut { .. }) => continue,
                Err(WaitError::Terminated { .. } | WaitError::Unreachable { .. }) => return Ok(true),
            }
            let Some(task) = own.task.as_mut().filter(|task| task.is_scheduled()) else {
                // Linux schedules it from now on, as any thread that waits for tokens.
                kernel.count_by_linux();
                return Ok(true);
            };
            let (waited, job) = task.await_event(|| node.await_next());
            let due = node.next_release().map(|(_, due)| due);
            if let Some(job) = job.filter(|job| waited.is_ok() && Some(job.deadline) == due) {
                return Ok(count(job));
            }
        }
    }

    /// The job of this node is complete, and sends its tokens from here on: until it has said so to the scheduler in the kernel no
    /// other job preempts it. One that is woken would, and the others would not be told.
    pub(super) fn boost_in_kernel(&self) {
        if let Some(task) = self.kernel.as_ref().and_then(KernelTask::task) {
            task.enter_section();
        }
    }
}

impl KernelTask {
    /// What the thread that is `task` tells others from now on by `node`.
    fn hear(&self, node: &mut Node, task: &laxity_scx::Task, shared: &Arc<Shared>) {
        let first = self.number.saturating_sub(node.position());
        let tells = Tells { teller: task.teller(), shared: Arc::clone(shared), first };
        node.schedule_by(tells).expect("they ask nothing of Linux");
    }

    /// When the next job of `node`, whose tokens are there, is to be released by the kernel, and due.
    fn next_times(&self, node: &Node, may_be_early: bool) -> Option<(Instant, Instant)> {
        let (release, due) = node.next_release()?;
        let place = Place { entry: 0, start: self.start, may_be_early };
        Some((place.begins(release, clock::now()), due))
    }

    /// Completes the present job, and waits for the next one of `node`, whose tokens are there.
    fn next_job(
        &mut self,
        node: &Node,
        kernel: &InKernel,
        sleep: impl FnMut(Instant) -> bool,
    ) -> Option<laxity_scx::Job> {
        let may_be_early = kernel.place(self.number).is_some_and(|place| place.may_be_early);
        let (release, due) = self.next_times(node, may_be_early)?;
        self.task.as_mut()?.next_job_at(release, due, sleep)
    }
}

fn has_next(node: &mut Node) -> bool {
    node.has_next().unwrap_or(false)
}

/// The first job of a node that has to wait for tokens is its thread's way to where it waits. It is released at once, and counts as
/// one that arrived a period before `start` at the latest, so that it is none of those that follow by its deadline.
fn way_to_wait(request: &TaskRequest, start: Instant) -> (Instant, Instant) {
    let now = clock::now();
    let arrival = now.min(Instant(start.0.saturating_sub(request.period.0.saturating_add(Nanos::from_micros(1).0))));
    (now, arrival.saturating_add(request.deadline))
}
