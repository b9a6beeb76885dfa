//! The GPU of a job of a vision graph, while its kernel runs.
//!
//! A thread that uses a GPU may not leave it, objects of Python may go anywhere: so the former stays, in memory of the
//! node's thread, and the latter have no more than a number.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvError, channel};
use std::thread::{self, ThreadId};

use laxity_device::{Buffer, DeviceError, DeviceThread, DeviceView};
use laxity_model::{CopyDirection, Nanos};
use laxity_vx::{Job, TakenGpu};
use pyo3::buffer::PyBuffer as PythonBuffer;
use pyo3::prelude::*;

use crate::device::{Kernel, PyBuffer, device_error};
use crate::errors::value_error;
use crate::gpu::errors::{bad_argument, misuse};

thread_local! {
    /// The GPU of the job that this thread carries out, and its number.
    static TAKEN: RefCell<Option<(u64, TakenGpu)>> = const { RefCell::new(None) };
}

/// Numbers are those of one job ever.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// The GPU as the kernel of a node uses it, in the node's thread and until it returns; `laxity.vx.Gpu` documents it.
#[pyclass(frozen, module = "laxity._native", name = "_VxGpu")]
#[derive(Clone)]
pub struct VxGpu {
    number: u64,
    thread: ThreadId,
}

/// Keeps the GPU of `job` for its kernel, if the graph has one.
pub fn keep(job: &mut Job<'_>) -> Option<VxGpu> {
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    let taken = job.take_gpu()?;
    TAKEN.with_borrow_mut(|place| *place = Some((number, taken)));
    Some(VxGpu { number, thread: thread::current().id() })
}

/// The kernel has returned.
pub fn give_back(job: &mut Job<'_>) {
    if let Some((_, taken)) = TAKEN.with_borrow_mut(Option::take) {
        job.put_gpu_back(taken);
    }
}

impl VxGpu {
    /// Uses the GPU, without the GIL.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut DeviceThread) -> Result<T, DeviceError> + Send,
    ) -> PyResult<T> {
        if thread::current().id() != self.thread {
            return Err(misuse(py, "this is the GPU of a job in another thread; use it where its kernel runs"));
        }
        let act = |place: &RefCell<Option<(u64, TakenGpu)>>| match &mut *place.borrow_mut() {
            Some((number, taken)) if *number == self.number => Some(taken.thread().and_then(act)),
            _ => None,
        };
        let outcome = py.detach(|| TAKEN.with(act));
        let outcome =
            outcome.ok_or_else(|| misuse(py, "the job is over, and its GPU with it; use that of the next"))?;
        outcome.map_err(|error| device_error(py, &error))
    }
}

/// Has `act` use the GPU of that number, if it says one and the job holds no token.
fn on<T>(
    thread: &mut DeviceThread,
    gpu: Option<u16>,
    act: impl FnOnce(&mut DeviceThread) -> Result<T, DeviceError>,
) -> Result<T, DeviceError> {
    thread.use_gpu(gpu)?;
    let outcome = act(thread);
    // What the next operation asks for is its own business.
    thread.use_gpu(None)?;
    outcome
}

/// Refuses a buffer of another GPU than the one whose token the job holds.
fn check(thread: &DeviceThread, buffer: Option<u16>) -> Result<(), DeviceError> {
    match (buffer, thread.token_gpu()) {
        (Some(buffer), Some(job)) if buffer != job => Err(DeviceError::Elsewhere { buffer, job }),
        _ => Ok(()),
    }
}

fn nanos(text: Option<&str>) -> PyResult<Nanos> {
    Ok(text.map(str::parse).transpose().map_err(value_error)?.unwrap_or_default())
}

#[pymethods]
impl VxGpu {
    /// Copies `bytes` to the start of `buffer`.
    fn copy_in(&self, py: Python<'_>, buffer: &PyBuffer, bytes: PythonBuffer<u8>) -> PyResult<()> {
        let (buffer, bytes) = (buffer.get().clone(), bytes.to_vec(py)?);
        self.with(py, move |thread| thread.copy_in(&buffer, 0, &bytes))
    }

    /// Copies from the start of `buffer` to `bytes`, which can be written.
    fn copy_out(&self, py: Python<'_>, buffer: &PyBuffer, bytes: PythonBuffer<u8>) -> PyResult<()> {
        let (buffer, mut copied) = (buffer.get().clone(), vec![0; bytes.len_bytes()]);
        let copied = self.with(py, move |thread| {
            thread.copy_out(&buffer, 0, &mut copied)?;
            Ok(copied)
        })?;
        bytes.copy_from_slice(py, &copied)
    }

    /// Calls `kernel` with memory of what it reads and then of what it writes, as a GPU kernel.
    fn launch(
        &self,
        py: Python<'_>,
        kernel: Py<PyAny>,
        reads: Vec<PyRef<'_, PyBuffer>>,
        writes: Vec<PyRef<'_, PyBuffer>>,
        duration: Option<&str>,
    ) -> PyResult<()> {
        let duration = nanos(duration)?;
        let [reads, writes] =
            [reads, writes].map(|buffers| buffers.iter().map(|buffer| buffer.get().clone()).collect::<Vec<Buffer>>());
        let gpu = reads.iter().chain(&writes).map(Buffer::gpu).next();
        self.with(py, move |thread| {
            check(thread, gpu)?;
            let kernel = Kernel::new(kernel, reads, writes, thread.device().clone());
            let (running, over) = channel::<()>();
            let run = move |view: &DeviceView<'_>| {
                let _running = running;
                kernel.run(view)
            };
            let launched = on(thread, gpu, |thread| thread.launch_for(duration, run));
            // If the soft GPU is gone, the kernel may still run; what it refers to is the caller's when this returns.
            let Err(RecvError) = over.recv() else { unreachable!("nothing is ever sent") };
            launched
        })
    }

    fn launch_timed(&self, py: Python<'_>, duration: &str) -> PyResult<()> {
        let duration = nanos(Some(duration))?;
        self.with(py, move |thread| thread.launch_timed(duration))
    }

    fn copy_timed(&self, py: Python<'_>, direction: &str, nbytes: usize) -> PyResult<()> {
        let direction = match direction {
            "h2d" => CopyDirection::In,
            "d2h" => CopyDirection::Out,
            _ => {
                let text = format!("direction {direction:?} is none; write \"h2d\" (to the GPU) or \"d2h\" (from it)");
                return Err(bad_argument(py, text));
            }
        };
        self.with(py, move |thread| thread.copy_timed(direction, nbytes))
    }

    fn acquire(&self, py: Python<'_>, gpu: Option<u16>) -> PyResult<u16> {
        self.with(py, move |thread| on(thread, gpu, DeviceThread::acquire))
    }

    fn release(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |thread| {
            thread.release();
            Ok(())
        })
    }

    /// The GPU whose token it holds.
    #[getter]
    fn token_gpu(&self, py: Python<'_>) -> PyResult<Option<u16>> {
        self.with(py, |thread| Ok(thread.token_gpu()))
    }
}
