//! A job of a vision graph, while its kernel runs.

use std::sync::Arc;

use laxity_graph::{Access, Graph};
use laxity_vx::{Action, Delay, Format, Job, KernelError};
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;

use super::gpu::{self, VxGpu};
use super::memory::Memory;
use crate::live::message::Message;

/// An object that a node uses, and how.
pub type Used = (u32, Delay<Format>, Access);

/// What a kernel gets: the objects of its node in one frame, as buffers.
#[pyclass(frozen, module = "laxity._native", name = "_VxJob")]
pub struct VxJob {
    #[pyo3(get)]
    index: u64,
    #[pyo3(get)]
    release_ns: Option<u64>,
    #[pyo3(get)]
    deadline_ns: Option<u64>,
    buffers: Vec<(u32, Access, Py<Message>)>,
    /// If the graph was spawned with one.
    gpu: Option<VxGpu>,
}

#[pymethods]
impl VxJob {
    /// An input, or what was in it so many jobs ago: a read-only buffer; None if the node does not declare that.
    fn read(&self, py: Python<'_>, object: u32, ago: u32) -> Option<Py<Message>> {
        self.find(py, object, |access| access == Access::Read { ago })
    }

    /// An output, or what the node changes: a buffer; None if the node does not declare that.
    fn write(&self, py: Python<'_>, object: u32) -> Option<Py<Message>> {
        self.find(py, object, |access| matches!(access, Access::Write | Access::Change))
    }

    /// The GPU; None if the graph has none.
    #[getter]
    fn gpu(&self) -> Option<VxGpu> {
        self.gpu.clone()
    }
}

impl VxJob {
    fn find(&self, py: Python<'_>, object: u32, is_wanted: impl Fn(Access) -> bool) -> Option<Py<Message>> {
        let is_it = |(number, access, _): &&(u32, Access, _)| *number == object && is_wanted(*access);
        self.buffers.iter().find(is_it).map(|(_, _, buffer)| buffer.clone_ref(py))
    }
}

/// Calls `kernel` with `job`, whose node uses `used`. It says that there is no frame by answering False, Python's or numpy's. All else
/// that it may answer means nothing: kernels of one line answer arrays.
pub fn call(kernel: &Py<PyAny>, job: &mut Job<'_>, used: &[Used]) -> Result<Action, KernelError> {
    let gpu = gpu::keep(job);
    let called = Python::attach(|py| {
        // A view keeps the memory mapped. The job is not completed then, so that no other node writes there.
        let memory = Memory::of(job.live().clone());
        let given = Py::new(py, lend(py, job, used, &memory, gpu)?)?;
        let answer = kernel.call1(py, (given,));
        // From here on no view is made, and while this thread holds the GIL no other thread is making one.
        let views = memory.close();
        if views > 0 {
            // They keep the memory. Without its name the graph can be run again. If that cannot be removed, it is no worse than
            // before.
            let _ = job.live().unlink();
        }
        let answer = answer?;
        match views {
            0 => Ok(if answer.extract::<bool>(py).is_ok_and(|is_frame| !is_frame) { Action::End } else { Action::Continue }),
            views => Err(PyBufferError::new_err(format!(
                "{views} of its job's objects are still in use, by numpy arrays or other views that the kernel has kept; \
                 copy what must live longer"
            ))
            .into()),
        }
    });
    gpu::give_back(job);
    called
}

fn lend(
    py: Python<'_>,
    job: &mut Job<'_>,
    used: &[Used],
    memory: &Arc<Memory<Graph>>,
    gpu: Option<VxGpu>,
) -> Result<VxJob, KernelError> {
    let (index, release_ns, deadline_ns) = (job.index(), job.release(), job.deadline());
    let (inputs, mut outputs) = job.objects();
    let mut buffers = Vec::with_capacity(used.len());
    for &(number, object, access) in used {
        let buffer = match access {
            Access::Read { ago } => Message::read(memory.clone(), inputs.read(object.ago(ago))?),
            Access::Write | Access::Change => Message::written(memory.clone(), outputs.write(object)?),
        };
        buffers.push((number, access, Py::new(py, buffer)?));
    }
    let [release_ns, deadline_ns] = [release_ns, deadline_ns].map(|at| at.map(|at| at.0));
    Ok(VxJob { index, release_ns, deadline_ns, buffers, gpu })
}
