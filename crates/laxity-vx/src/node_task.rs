//! The thread of a node as a task of a system of Laxity's scheduler: decision 105 has the reasons.
//!
//! ```text
//!             tokens, room          link                     GPU: lock, suspend, resume          complete
//! (urgent) --------------> (ready) -----> (kernel executes) <---------------------------> ... -----------> (urgent)
//!                          with the deadline that follows from the graph                      then tokens are sent
//! ```
//!
//! The thread is urgent from its completion until it waits, so none of the consumers that it wakes preempts it before all are
//! told: paper 003's boost of producers (section 5.2.3).

use std::cell::RefCell;
use std::rc::Rc;

use laxity_device::Scheduled;
use laxity_graph::Spec;
use laxity_graph::hooks::Fifo;
use laxity_model::{Instant, LockId, ReplicaId, TaskId};
use laxity_runtime::{NodeLog, check_number};
use laxity_sched::{Job, LockRequest, NAME_MAX, Parameters, System, Task, TaskError};

use crate::error::SpawnError;
use crate::scheduling::period;

/// The thread of a node as a task.
#[derive(Debug)]
pub(crate) struct NodeTask {
    task: Task,
    /// If the graph is recorded.
    log: RefCell<Option<NodeLog>>,
}

/// What becomes the task of a node, on its thread.
#[derive(Debug)]
pub(crate) struct Planned {
    pub system: System,
    pub parameters: Parameters,
    /// The position of the node, and its log, if the graph is recorded.
    pub log: Option<(usize, NodeLog)>,
}

/// What the tasks of all nodes of `spec` are, in `cluster` of a system. Under given priorities deeper nodes are more
/// urgent, as it is more important to finish frames than to begin them (paper 003, section 5.4.1).
///
/// # Errors
/// [`SpawnError::Priority`] for a graph deeper than there are priorities.
pub(crate) fn parameters(spec: &Spec, cluster: usize) -> Result<Vec<Parameters>, SpawnError> {
    let (graph, period) = (spec.graph(), period(spec));
    let of_node = |node: usize| {
        let depth = Fifo::of(spec, node, 1).map_err(SpawnError::Priority)?.priority();
        let mut name = format!("{}.{}", graph.name, graph.nodes[node].name);
        let end = (0..=name.len().min(NAME_MAX)).rev().find(|&end| name.is_char_boundary(end));
        name.truncate(end.unwrap_or(0));
        Ok(Parameters {
            cluster,
            deadline: spec.plan().nodes()[node].deadline,
            priority: Some(u32::from(Fifo::PRIORITY_MAX - depth)),
            ..Parameters::periodic(name, period)
        })
    };
    (0..graph.nodes.len()).map(of_node).collect()
}

impl NodeTask {
    /// The calling thread becomes that task.
    ///
    /// # Errors
    /// Why it cannot, in words.
    pub fn begin(Planned { system, parameters, log }: Planned) -> Result<Rc<NodeTask>, String> {
        let task = system.begin(parameters).map_err(|error| error.to_string())?;
        if let Some((position, _)) = &log {
            check_number(&system, *position, task.id())?;
        }
        Ok(Rc::new(NodeTask { task, log: RefCell::new(log.map(|(_, log)| log)) }))
    }

    /// Job `index` has its tokens and room. Returns when the thread is placed.
    ///
    /// # Errors
    /// [`TaskError`].
    pub fn release(&self, index: u64, release: Instant, deadline: Instant) -> Result<(), TaskError> {
        let job = Job { index, release, deadline };
        match &mut *self.log.borrow_mut() {
            None => self.task.release(job).map(drop),
            Some(log) => {
                self.task.release_watched(job, &mut log.ready(index, deadline))?;
                log.executes();
                Ok(())
            }
        }
    }

    /// The kernel has returned, and its tokens are about to be sent.
    ///
    /// # Errors
    /// [`TaskError`].
    pub fn complete(&self) -> Result<(), TaskError> {
        match &mut *self.log.borrow_mut() {
            None => self.task.complete().map(drop),
            Some(log) => self.task.complete_watched(&mut log.complete()).map(drop),
        }
    }

    /// The node has ended in this job, which sends no tokens.
    ///
    /// # Errors
    /// [`TaskError`].
    pub fn end(&self) -> Result<(), TaskError> {
        match &mut *self.log.borrow_mut() {
            None => self.task.complete().map(drop),
            Some(log) => self.task.complete_watched(&mut log.end()).map(drop),
        }
    }
}

impl Scheduled for NodeTask {
    fn id(&self) -> TaskId {
        self.task.id()
    }

    fn lock(&self, request: LockRequest) -> Result<ReplicaId, TaskError> {
        let Some(log) = &mut *self.log.borrow_mut() else { return self.task.lock(request, &mut ()) };
        let replica = self.task.lock(request, &mut log.request(request.lock))?;
        log.executes();
        Ok(replica)
    }

    fn unlock(&self, lock: LockId, replica: ReplicaId) -> Result<(), TaskError> {
        let Some(log) = &mut *self.log.borrow_mut() else { return self.task.unlock(lock, &mut ()) };
        self.task.unlock(lock, &mut log.unlock(lock, replica))?;
        log.executes();
        Ok(())
    }

    fn suspend(&self) -> Result<(), TaskError> {
        let Some(log) = &mut *self.log.borrow_mut() else { return self.task.suspend().map(drop) };
        self.task.suspend_watched(&mut log.suspend()).map(drop)
    }

    fn resume(&self) -> Result<(), TaskError> {
        let Some(log) = &mut *self.log.borrow_mut() else { return self.task.resume().map(drop) };
        self.task.resume_watched(&mut log.resume())?;
        log.executes();
        Ok(())
    }
}
