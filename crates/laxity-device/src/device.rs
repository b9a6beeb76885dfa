//! The GPUs that the threads of a process use.

use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use laxity_gpu::{Arbitration, Base, GPUS_MAX};
use laxity_model::TaskId;
use laxity_softgpu::{self as softgpu, SoftGpu, Wait};

use crate::error::DeviceError;
use crate::options::DeviceOptions;
use crate::scheduling::{HandlingRecorder, HandlingRecording, Interrupts, Scheduled, Scheduling};
use crate::service::{self, Servants};
use crate::thread::DeviceThread;

/// Soft GPUs, and the arbitration that grants them: one for a process. Cheap to clone; threads share it.
#[derive(Clone, Debug)]
pub struct Device {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    // Before the GPUs: their threads are scheduled by themselves again before they end.
    _servants: Vec<Servants>,
    gpus: Vec<SoftGpu>,
    arbitration: Option<Arbitration>,
    scheduling: Option<Scheduling>,
    /// Of each GPU, if there is a system.
    interrupts: Vec<Arc<Interrupts>>,
    wait: Wait,
    /// The budget of the bandwidth lock around operations.
    bandwidth: Option<u64>,
}

/// Device memory of one GPU, freed with the last handle and the last operation that uses it. Kernels read and write it
/// through their view.
#[derive(Clone, Debug)]
pub struct Buffer {
    gpu: u16,
    memory: softgpu::Buffer,
}

impl Device {
    /// Opens the soft GPUs, whose servers are started if there are none.
    ///
    /// # Errors
    /// [`DeviceError`].
    pub fn open(options: &DeviceOptions) -> Result<Device, DeviceError> {
        if options.gpus == 0 {
            return Err(DeviceError::NoGpus);
        }
        if options.gpus > GPUS_MAX {
            return Err(DeviceError::TooManyGpus { gpus: options.gpus });
        }
        service::check(options)?;
        if options.bandwidth.is_some() && options.arbitration.is_none() {
            return Err(DeviceError::NoLock);
        }
        if let Some(arbitration) = &options.arbitration {
            agree("GPUs", options.gpus, arbitration.config().gpus)?;
            agree("copy engines", options.gpu.copy_engines, arbitration.config().copy_engines)?;
        }
        if let Some(scheduling) = &options.scheduling {
            scheduling.check(options)?;
        }
        let open = |gpu| {
            let name = options.gpu_name(gpu);
            let interrupts = options.scheduling.as_ref().map(|scheduling| {
                let gpus = options.gpus;
                Arc::new(Interrupts::new(scheduling.clone(), &name, (gpu, gpus)))
            });
            let mut threads = softgpu::Options {
                server: options.server.clone(),
                stack: options.stack,
                ..softgpu::Options::default()
            };
            if let Some(interrupts) = &interrupts {
                threads.handling = interrupts.clone();
            }
            let opened = SoftGpu::open_with(&name, options.gpu, &threads).map_err(DeviceError::Open)?;
            match interrupts.as_ref().and_then(|interrupts| interrupts.begun()) {
                Some(Err(reason)) => Err(DeviceError::Interrupts { reason }),
                Some(Ok(_)) | None => Ok((opened, interrupts)),
            }
        };
        // Their threads are the last tasks of a system, and that of the last GPU the very last.
        let mut opened = (0..options.gpus).rev().map(open).collect::<Result<Vec<_>, _>>()?;
        opened.reverse();
        let (gpus, interrupts): (Vec<SoftGpu>, Vec<_>) = opened.into_iter().unzip();
        let servants = (0..).zip(&gpus).map(|(number, gpu)| Servants::engage(options, number, gpu));
        Ok(Device {
            shared: Arc::new(Shared {
                _servants: servants.collect::<Result<_, _>>()?,
                gpus,
                arbitration: options.arbitration.clone(),
                scheduling: options.scheduling.clone(),
                interrupts: interrupts.into_iter().flatten().collect(),
                wait: options.wait,
                bandwidth: options.bandwidth,
            }),
        })
    }

    /// `bytes` of the memory of GPU 0.
    ///
    /// # Errors
    /// [`DeviceError::Gpu`].
    pub fn alloc(&self, bytes: usize) -> Result<Buffer, DeviceError> {
        self.alloc_on(0, bytes)
    }

    /// `bytes` of the memory of `gpu`.
    ///
    /// # Errors
    /// [`DeviceError::Gpu`], [`DeviceError::NoSuchGpu`].
    pub fn alloc_on(&self, gpu: u16, bytes: usize) -> Result<Buffer, DeviceError> {
        self.check(gpu)?;
        Ok(Buffer { gpu, memory: self.shared.gpus[usize::from(gpu)].alloc(bytes)? })
    }

    /// Has the calling thread use the device, called `name` in traces and snapshots, as urgent as `base` among
    /// waiting threads until a job says otherwise. A name has 1 to 64 bytes.
    ///
    /// # Errors
    /// [`DeviceError`]; [`DeviceError::Unscheduled`] if the system of Laxity's scheduler is to grant GPUs.
    pub fn thread(&self, name: &str, base: Base) -> Result<DeviceThread, DeviceError> {
        DeviceThread::new(self.clone(), name, base)
    }

    /// As [`Device::thread`], for a calling thread that is a task of the device's system.
    ///
    /// # Errors
    /// [`DeviceError`]; [`DeviceError::Unscheduled`] if the device has no system.
    pub fn scheduled_thread(&self, name: &str, task: Rc<dyn Scheduled>) -> Result<DeviceThread, DeviceError> {
        DeviceThread::of_task(self.clone(), name, task)
    }

    /// The soft GPUs, which know what their engines did: [`SoftGpu::trace`].
    pub fn gpus(&self) -> &[SoftGpu] {
        &self.shared.gpus
    }

    /// The arbitration that grants GPUs and engines.
    pub fn arbitration(&self) -> Option<&Arbitration> {
        self.shared.arbitration.as_ref()
    }

    /// The budget of the bandwidth lock around operations, bytes a second.
    pub fn bandwidth(&self) -> Option<u64> {
        self.shared.bandwidth
    }

    /// How Laxity's scheduler schedules the threads that use it, if it does.
    pub fn scheduling(&self) -> Option<&Scheduling> {
        self.shared.scheduling.as_ref()
    }

    /// The tasks of the system that the threads are which handle interrupts in this process, one a GPU; none without a system.
    pub fn handlers(&self) -> Vec<TaskId> {
        let begun = self.shared.interrupts.iter().map(|interrupts| interrupts.begun());
        begun.map(|begun| begun.and_then(Result::ok).expect("the device was not opened otherwise")).collect()
    }

    /// Has `recorders`, one a GPU, hear of the jobs of these threads; those before hear no more.
    pub fn record_handling(&self, recorders: Vec<Box<dyn HandlingRecorder>>) -> HandlingRecording {
        HandlingRecording::begin(&self.shared.interrupts, recorders)
    }

    pub(crate) fn wait(&self) -> Wait {
        self.shared.wait
    }

    /// Whether there is a GPU of that number.
    pub(crate) fn check(&self, gpu: u16) -> Result<(), DeviceError> {
        match self.gpus().len() as u16 {
            gpus if gpu < gpus => Ok(()),
            gpus => Err(DeviceError::NoSuchGpu { gpu, gpus }),
        }
    }
}

fn agree(what: &'static str, device: impl Into<u64>, arbitration: impl Into<u64>) -> Result<(), DeviceError> {
    let (device, arbitration) = (device.into(), arbitration.into());
    if device == arbitration { Ok(()) } else { Err(DeviceError::Different { what, device, arbitration }) }
}

impl Buffer {
    /// The GPU in whose memory it is.
    pub fn gpu(&self) -> u16 {
        self.gpu
    }
}

impl Deref for Buffer {
    type Target = softgpu::Buffer;

    fn deref(&self) -> &softgpu::Buffer {
        &self.memory
    }
}
