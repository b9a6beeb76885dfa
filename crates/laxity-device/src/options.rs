//! What a device is like.

use std::path::PathBuf;

use laxity_gpu::Arbitration;
use laxity_softgpu::{Config, Wait};

use crate::scheduling::Scheduling;

/// What a device is like.
#[derive(Clone, Debug)]
pub struct DeviceOptions {
    /// The name of the soft GPU; if there are several, theirs are `name.0`, `name.1` and so on.
    pub name: String,
    /// How many soft GPUs, at least 1 and at most [`GPUS_MAX`](laxity_gpu::GPUS_MAX).
    pub gpus: u16,
    /// What each is like.
    pub gpu: Config,
    /// The arbitration that grants GPUs and engines. It has as many GPUs and copy engines. `None`: first come, first
    /// served, as a driver does it.
    pub arbitration: Option<Arbitration>,
    /// Laxity's scheduler, if it schedules the threads that use the device: it then grants GPUs and engines in place of an
    /// arbitration, and the thread that handles interrupts is a task of it, whatever `handling` says.
    pub scheduling: Option<Scheduling>,
    /// How threads wait for the completion of operations. Those that wait for a token or an engine are suspended.
    pub wait: Wait,
    /// How the threads are scheduled that handle interrupts and call callbacks.
    pub handling: Service,
    /// How the threads are scheduled that carry out kernels and copies in this process: a GPU's hardware, which in a
    /// soft GPU needs CPUs.
    pub engines: Service,
    /// The program that is the soft GPU's server; `None`: the one that lies beside this program.
    pub server: Option<PathBuf>,
    /// The bandwidth lock is held around every operation of its threads: at most so many bytes of memory traffic a second
    /// on each regulated CPU, meanwhile. `None`: no lock is taken. Needs an arbitration, which has the lock.
    pub bandwidth: Option<u64>,
    /// Bytes of the stack of each thread that runs kernels, copies or callbacks; `None`: as much as an ordinary thread's.
    pub stack: Option<usize>,
}

/// How a thread is scheduled that works on behalf of the owners of GPU operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// As the thread that opened the device.
    AsIs,
    /// Under `SCHED_FIFO` at this priority, 1 to 99.
    Fixed(u8),
    /// As urgently as the most urgent thread of this process that holds a token of the GPU, with what that inherits,
    /// if Linux lets it be raised (GPUSync's rule, as klmirqd's in paper 000, section III). Without an arbitration
    /// owners are not known: as it is. Under Laxity's scheduler the threads that carry out kernels and copies are above all
    /// tasks, as hardware is.
    Owners,
}

impl DeviceOptions {
    /// One soft GPU of that name with two copy engines, as arbitrations have them, without an arbitration; threads
    /// suspend, and those that work for others are scheduled as their owners.
    pub fn new(name: &str) -> Self {
        DeviceOptions {
            name: name.to_owned(),
            gpus: 1,
            gpu: Config { copy_engines: 2, ..Config::default() },
            arbitration: None,
            scheduling: None,
            wait: Wait::Blocking,
            handling: Service::Owners,
            engines: Service::Owners,
            server: None,
            bandwidth: None,
            stack: None,
        }
    }

    /// What soft GPU `gpu` is called.
    pub(crate) fn gpu_name(&self, gpu: u16) -> String {
        if self.gpus == 1 { self.name.clone() } else { format!("{}.{gpu}", self.name) }
    }
}
