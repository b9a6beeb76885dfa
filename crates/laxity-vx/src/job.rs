//! The objects of a node in one frame, as its kernel sees them.

use laxity_device::{DeviceError, DeviceThread};
use laxity_graph::{Graph, ObjectError, ObjectInputs, ObjectOutputs};
use laxity_model::Instant;
use thiserror::Error;

use crate::exemplar::Exemplar;
use crate::gpu::{Gpu, TakenGpu};
use crate::object::{Key, Readable, Writable};

/// A job of a node: one frame.
#[derive(Debug)]
pub struct Job<'a> {
    job: laxity_graph::Job<'a>,
    live: &'a Graph,
    graph: u64,
    /// If the graph was spawned with one, and the kernel has not taken it.
    gpu: &'a mut Option<Gpu>,
}

/// What a job reads.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    objects: ObjectInputs<'a>,
    graph: u64,
}

/// What a job writes or changes, each of which can be had once.
#[derive(Debug)]
pub struct Outputs<'a> {
    /// By position among the graph's objects; `None` once it is lent.
    objects: Vec<(usize, Option<&'a mut [u8]>)>,
    graph: u64,
}

/// Why a job may not use an object so, or the GPU.
#[derive(Debug, Error)]
pub enum JobError {
    /// It is an object of another graph.
    #[error("the object belongs to another graph; use one of this graph")]
    Scope,
    /// The node does not say so, or not so.
    #[error("{0}")]
    Object(#[source] ObjectError),
    /// Not among those that the node writes, or had already.
    #[error(
        "object {object} of the graph is no output of the node, or the job has it already; declare it, and get it once"
    )]
    NotThere {
        /// The position of the object among those of the graph.
        object: usize,
    },
    /// The graph was spawned without a GPU.
    #[error("the graph has no GPU; spawn it with one")]
    NoGpu,
    /// What the GPU says.
    #[error("{0}")]
    Gpu(#[source] DeviceError),
}

impl<'a> Job<'a> {
    pub(crate) fn new(job: laxity_graph::Job<'a>, live: &'a Graph, graph: u64, gpu: &'a mut Option<Gpu>) -> Self {
        Job { job, live, graph, gpu }
    }

    /// The graph as all processes see it, whose memory objects are in.
    pub fn live(&self) -> &'a Graph {
        self.live
    }

    /// The frame, from 0.
    pub fn index(&self) -> u64 {
        self.job.index()
    }

    /// What the job's deadline is counted from ([`laxity_graph::Job::release`]). Nothing without a recorder.
    pub fn release(&self) -> Option<Instant> {
        self.job.release()
    }

    /// When it should be complete: its release and the graph's period. Nothing without a recorder.
    pub fn deadline(&self) -> Option<Instant> {
        self.job.deadline()
    }

    /// What is in an object, or was in a slot of a delay: one that is an input of the node.
    ///
    /// # Errors
    /// [`JobError`].
    pub fn read<S: Readable>(&self, source: S) -> Result<<S::Exemplar as Exemplar>::Ref<'_>, JobError> {
        let slot = source.slot();
        let bytes = self.job.read_past(checked(slot.key(), self.graph)?, slot.jobs_ago());
        Ok(slot.exemplar().view(bytes.map_err(JobError::Object)?))
    }

    /// An object that is an output of the node, in which anything may be (only arrays are empty), or one that it changes.
    /// Several at a time, or beside inputs: [`Job::objects`].
    ///
    /// # Errors
    /// [`JobError`].
    pub fn write<T: Writable>(&mut self, target: T) -> Result<<T::Exemplar as Exemplar>::Mut<'_>, JobError> {
        let object = target.current();
        let bytes = self.job.write(checked(object.key, self.graph)?);
        Ok(object.exemplar.view_mut(bytes.map_err(JobError::Object)?))
    }

    /// All that the job reads, and all that it writes or changes.
    pub fn objects(&mut self) -> (Inputs<'_>, Outputs<'_>) {
        let graph = self.graph;
        let (inputs, outputs) = self.job.objects();
        (Inputs { objects: inputs, graph }, Outputs::of(outputs, graph))
    }

    /// The GPU as this node's thread uses it. The first operation of a job takes a token, if there is an arbitration; the
    /// end of the job lets it go, or, earlier, [`DeviceThread::release`] (paper 003, section 5.4.3).
    ///
    /// # Errors
    /// [`JobError::NoGpu`], [`JobError::Gpu`].
    pub fn gpu(&mut self) -> Result<&mut DeviceThread, JobError> {
        let (index, deadline) = (self.index(), self.deadline());
        self.gpu.as_mut().ok_or(JobError::NoGpu)?.of_job(index, deadline).map_err(JobError::Gpu)
    }

    /// As [`Job::gpu`], for languages that cannot borrow it from the job: to be [returned](Job::return_gpu) before the kernel
    /// returns. If it is not, the next job registers another thread.
    ///
    /// # Errors
    /// As [`Job::gpu`].
    pub fn lend_gpu(&mut self) -> Result<DeviceThread, JobError> {
        self.gpu()?;
        self.gpu.as_mut().and_then(|gpu| gpu.lend()).ok_or(JobError::NoGpu)
    }

    /// Takes back what [`Job::lend_gpu`] has lent.
    pub fn return_gpu(&mut self, thread: DeviceThread) {
        if let Some(gpu) = self.gpu {
            gpu.take_back(thread);
        }
    }

    /// As [`Job::lend_gpu`], and the thread registers only if the result is used; `None` without a GPU. To be
    /// [put back](Job::put_gpu_back) before the kernel returns: jobs have no GPU until it is.
    pub fn take_gpu(&mut self) -> Option<TakenGpu> {
        let (index, deadline) = (self.index(), self.deadline());
        self.gpu.take().map(|gpu| TakenGpu { gpu, index, deadline })
    }

    /// Puts back what [`Job::take_gpu`] has taken.
    pub fn put_gpu_back(&mut self, taken: TakenGpu) {
        *self.gpu = Some(taken.gpu);
    }

    /// As [`Job::objects`] and [`Job::gpu`], at the same time: for copies between objects and the GPU.
    ///
    /// # Errors
    /// As [`Job::gpu`].
    pub fn objects_and_gpu(&mut self) -> Result<(Inputs<'_>, Outputs<'_>, &mut DeviceThread), JobError> {
        let (index, deadline, graph) = (self.index(), self.deadline(), self.graph);
        let Job { job, gpu, .. } = self;
        let gpu = gpu.as_mut().ok_or(JobError::NoGpu)?.of_job(index, deadline).map_err(JobError::Gpu)?;
        let (inputs, outputs) = job.objects();
        Ok((Inputs { objects: inputs, graph }, Outputs::of(outputs, graph), gpu))
    }

    /// Empties the arrays at these positions, which the node writes.
    pub(crate) fn clear(&mut self, arrays: &[usize]) {
        for &array in arrays {
            let bytes = self.job.write(array).expect("the node declares that it writes the array");
            // No items: see `Array`.
            bytes[..size_of::<u64>()].fill(0);
        }
    }

    /// The kernel has returned: whatever it holds of the GPU is let go.
    pub(crate) fn end_gpu(&mut self) {
        self.gpu.iter_mut().for_each(Gpu::end_job);
    }

    pub(crate) fn complete(self) {
        self.job.complete();
    }
}

impl<'a> Inputs<'a> {
    /// As [`Job::read`], until the job ends.
    ///
    /// # Errors
    /// [`JobError`].
    pub fn read<S: Readable>(&self, source: S) -> Result<<S::Exemplar as Exemplar>::Ref<'a>, JobError> {
        let slot = source.slot();
        let bytes = self.objects.past(checked(slot.key(), self.graph)?, slot.jobs_ago());
        Ok(slot.exemplar().view(bytes.map_err(JobError::Object)?))
    }
}

impl<'a> Outputs<'a> {
    fn of(objects: ObjectOutputs<'a>, graph: u64) -> Self {
        Outputs { objects: objects.into_all().map(|(object, bytes)| (object, Some(bytes))).collect(), graph }
    }

    /// As [`Job::write`], until the job ends; each object once.
    ///
    /// # Errors
    /// [`JobError`].
    pub fn write<T: Writable>(&mut self, target: T) -> Result<<T::Exemplar as Exemplar>::Mut<'a>, JobError> {
        let object = target.current();
        let position = checked(object.key, self.graph)?;
        let found = self.objects.iter_mut().find(|(object, _)| *object == position);
        let bytes = found.and_then(|(_, bytes)| bytes.take());
        bytes.map(|bytes| object.exemplar.view_mut(bytes)).ok_or(JobError::NotThere { object: position })
    }
}

/// The position of an object that belongs to `graph`.
fn checked(key: Key, graph: u64) -> Result<usize, JobError> {
    if key.graph == graph { Ok(key.position) } else { Err(JobError::Scope) }
}
