//! The GPU as the thread of a node uses it.

use std::rc::Rc;

use laxity_device::{Device, DeviceError, DeviceThread};
use laxity_gpu::Base;
use laxity_model::Instant;

use crate::node_task::NodeTask;

/// The GPU as the thread of a node uses it. Most nodes use none: a node registers with its first operation.
#[derive(Debug)]
pub(crate) struct Gpu {
    device: Device,
    name: String,
    /// The thread's, under `SCHED_FIFO`.
    priority: Option<u8>,
    /// The thread's, under Laxity's scheduler.
    task: Option<Rc<NodeTask>>,
    thread: Option<DeviceThread>,
    is_in_job: bool,
}

/// The GPU of one job by value, for languages that cannot borrow it from the job ([`Job::take_gpu`](crate::Job::take_gpu)).
#[derive(Debug)]
pub struct TakenGpu {
    pub(crate) gpu: Gpu,
    pub(crate) index: u64,
    pub(crate) deadline: Option<Instant>,
}

impl TakenGpu {
    /// As [`Job::gpu`](crate::Job::gpu): the first call registers the node's thread, which must be the one that calls.
    ///
    /// # Errors
    /// [`DeviceError`], if the thread cannot register.
    pub fn thread(&mut self) -> Result<&mut DeviceThread, DeviceError> {
        self.gpu.of_job(self.index, self.deadline)
    }
}

/// The longest name that an arbitration takes, in bytes.
const NAME_MAX: usize = 64;

impl Gpu {
    /// For the thread of `node` of `graph`, which has this priority under `SCHED_FIFO`, or is that task.
    pub fn new(device: Device, graph: &str, node: &str, priority: Option<u8>, task: Option<Rc<NodeTask>>) -> Gpu {
        let mut name = format!("{graph}.{node}");
        let end = (0..=NAME_MAX).rev().find(|&end| name.is_char_boundary(end));
        name.truncate(end.unwrap_or(0));
        Gpu { device, name, priority, task, thread: None, is_in_job: false }
    }

    /// For job `index` of the node, due at `deadline`: jobs are as urgent to the GPU as to Linux.
    ///
    /// # Errors
    /// [`DeviceError`], if the thread cannot register.
    pub fn of_job(&mut self, index: u64, deadline: Option<Instant>) -> Result<&mut DeviceThread, DeviceError> {
        let base = match (self.priority, deadline) {
            // Its system knows how urgent its jobs are.
            _ if self.task.is_some() => Base::Background,
            (Some(priority), _) => Base::Fixed(priority),
            (None, Some(deadline)) => Base::Deadline(deadline),
            (None, None) => Base::Background,
        };
        let thread = match (self.thread.take(), &self.task) {
            (Some(thread), _) => thread,
            (None, Some(task)) => self.device.scheduled_thread(&self.name, task.clone())?,
            (None, None) => self.device.thread(&self.name, base)?,
        };
        let thread = self.thread.insert(thread);
        if !self.is_in_job {
            // As traces count jobs.
            thread.begin_job(index as u32, base)?;
            self.is_in_job = true;
        }
        Ok(thread)
    }

    /// The thread that [`Gpu::of_job`] answered with, by value.
    pub fn lend(&mut self) -> Option<DeviceThread> {
        self.thread.take()
    }

    /// The thread that was lent.
    pub fn take_back(&mut self, thread: DeviceThread) {
        self.thread = Some(thread);
    }

    /// The job is over: lets go of its token.
    pub fn end_job(&mut self) {
        if std::mem::take(&mut self.is_in_job)
            && let Some(thread) = &mut self.thread
        {
            thread.end_job();
        }
    }
}
