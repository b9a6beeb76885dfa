//! A thread that uses a device, and its jobs.

use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use laxity_gpu::{BandwidthLock, Base, Budget, Client, OwnedToken, TokenRequest};
use laxity_softgpu::Stream;

use crate::device::Device;
use crate::error::DeviceError;
use crate::scheduling::{self, Granted, Scheduled};

/// A thread that uses a device, which alone has this. When it is dropped it lets go of whatever it holds.
///
/// Operations are synchronous: a call returns when the GPU has done it. The first one takes a token if the thread holds
/// none, which it keeps until [`DeviceThread::end_job`] or [`DeviceThread::release`].
#[derive(Debug)]
pub struct DeviceThread {
    // In this order: others need not wait for its token until threads of the soft GPU have ended.
    pub(crate) token: Option<OwnedToken>,
    /// The token that Laxity's scheduler granted.
    pub(crate) granted: Option<Granted>,
    client: Option<Rc<Client>>,
    /// If Laxity's scheduler schedules the thread.
    pub(crate) task: Option<Rc<dyn Scheduled>>,
    /// One of each GPU.
    pub(crate) streams: Vec<Stream>,
    pub(crate) device: Device,
    base: Base,
    /// The GPU to use.
    pub(crate) choice: Option<u16>,
    /// The budget of the bandwidth lock around operations.
    bandwidth: Option<u64>,
}

/// A job of a [`DeviceThread`], which ends when it is dropped.
#[derive(Debug)]
#[must_use = "the job ends at once"]
pub struct Job<'a>(&'a mut DeviceThread);

impl DeviceThread {
    pub(crate) fn new(device: Device, name: &str, base: Base) -> Result<Self, DeviceError> {
        if device.scheduling().is_some_and(|scheduling| scheduling.management.is_some()) {
            let reason = "it is no task of the system that grants the device's GPUs; become one, and register with it";
            return Err(DeviceError::Unscheduled { thread: name.to_owned(), reason });
        }
        let register = |arbitration: &laxity_gpu::Arbitration| arbitration.register(name, base);
        let client = device.arbitration().map(register).transpose().map_err(DeviceError::Register)?;
        let streams = device.gpus().iter().map(|gpu| gpu.stream(name)).collect::<Result<_, _>>()?;
        let bandwidth = device.bandwidth();
        let (client, granted, task) = (client.map(Rc::new), None, None);
        Ok(DeviceThread { device, streams, token: None, granted, client, task, base, choice: None, bandwidth })
    }

    pub(crate) fn of_task(device: Device, name: &str, task: Rc<dyn Scheduled>) -> Result<Self, DeviceError> {
        if device.scheduling().is_none() {
            let reason = "the device has no system whose task it could be; open the device with that of the thread";
            return Err(DeviceError::Unscheduled { thread: name.to_owned(), reason });
        }
        // The thread that handles interrupts knows owners by the names of their streams.
        let name = scheduling::owners_name(task.id(), name);
        let streams = device.gpus().iter().map(|gpu| gpu.stream(&name)).collect::<Result<_, _>>()?;
        let (token, granted, client, task) = (None, None, None, Some(task));
        let (base, choice, bandwidth) = (Base::Background, None, None);
        Ok(DeviceThread { device, streams, token, granted, client, task, base, choice, bandwidth })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Has jobs use `gpu` from now on, or, with `None`, whichever the arbitration gives them: with a migration cost in
    /// its configuration the one that GPUSync's affinity predictor advises. At first it is `None`. A buffer always has
    /// its own GPU used. Without an arbitration `None` is GPU 0. A token that is held stays what it is.
    ///
    /// # Errors
    /// [`DeviceError::NoSuchGpu`].
    pub fn use_gpu(&mut self, gpu: Option<u16>) -> Result<(), DeviceError> {
        gpu.map_or(Ok(()), |gpu| self.device.check(gpu))?;
        self.choice = gpu;
        Ok(())
    }

    /// Has the bandwidth lock be held with this budget around the operations of this thread from now on, rather than with
    /// that of [`DeviceOptions::bandwidth`](crate::DeviceOptions::bandwidth); `None`: it is not held.
    ///
    /// # Errors
    /// [`DeviceError::NoLock`] without an arbitration.
    pub fn protect(&mut self, bandwidth: Option<u64>) -> Result<(), DeviceError> {
        if bandwidth.is_some() && self.client.is_none() {
            return Err(DeviceError::NoLock);
        }
        self.bandwidth = bandwidth;
        Ok(())
    }

    /// The bandwidth lock for an operation that is about to be issued, until it is complete and this is dropped. Taken
    /// after the engine, so that no CPU is throttled while the thread waits for that.
    pub(crate) fn protection(&self) -> Result<Option<BandwidthLock<'_>>, DeviceError> {
        let locked = self.client.as_ref().zip(self.bandwidth).map(|(client, budget)| client.lock_bandwidth(budget));
        Ok(locked.transpose()?)
    }

    /// A job begins, number `number` of its task as traces have it, as urgent as `base`: under fixed priorities always
    /// the same, under EDF its deadline. One that has not ended ends now. Linux is to schedule the thread as it did when
    /// it began to use the device.
    ///
    /// # Errors
    /// [`DeviceError::Register`] if it cannot have that priority.
    pub fn begin_job(&mut self, number: u32, base: Base) -> Result<(), DeviceError> {
        self.end_job();
        self.streams.iter().for_each(|stream| stream.set_job(Some(number)));
        if base == self.base {
            return Ok(());
        }
        if let Some(client) = &mut self.client {
            let client = Rc::get_mut(client).expect("only the token shares it, which was let go");
            client.begin_job(base).map_err(DeviceError::Register)?;
        }
        self.base = base;
        Ok(())
    }

    /// As [`DeviceThread::begin_job`], for the scope of the result: however it is left, the job ends then.
    ///
    /// # Errors
    /// As [`DeviceThread::begin_job`].
    pub fn job(&mut self, number: u32, base: Base) -> Result<Job<'_>, DeviceError> {
        self.begin_job(number, base)?;
        Ok(Job(self))
    }

    /// The job needs no GPU any more, though it goes on: lets go of the token early (paper 003, Fig. 5.7). The next
    /// operation would take another.
    pub fn release(&mut self) {
        self.token = None;
        self.granted = None;
    }

    /// The job is over: lets go of the token. Operations issued from now on belong to no job.
    pub fn end_job(&mut self) {
        self.release();
        self.streams.iter().for_each(|stream| stream.set_job(None));
    }

    /// Whether it holds a token.
    pub fn holds_token(&self) -> bool {
        self.token.is_some() || self.granted.is_some()
    }

    /// The GPU whose token it holds.
    pub fn token_gpu(&self) -> Option<u16> {
        let granted = self.granted.as_ref().map(|granted| granted.gpu(&self.device));
        self.token.as_ref().map(|token| token.token().gpu()).or(granted)
    }

    /// Takes a token now, if there is an arbitration and it holds none, rather than with the first operation; says
    /// which GPU the job uses.
    ///
    /// # Errors
    /// [`DeviceError::Lock`].
    pub fn acquire(&mut self) -> Result<u16, DeviceError> {
        self.occupy(None)
    }

    /// What is told when a job has exhausted its budget; there is none without an arbitration. A job that holds a token
    /// then has its next operation fail with [`DeviceError::Exhausted`], after what was under way is complete, and lets
    /// go; one that holds none waits for a token, and for budget.
    pub fn budget(&self) -> Option<Budget> {
        self.client.as_ref().map(|client| client.budget())
    }

    /// The GPU that the job uses, which must be that of `buffer`: with a token, taken if there is none.
    pub(crate) fn occupy(&mut self, buffer: Option<u16>) -> Result<u16, DeviceError> {
        if let Some(task) = self.task.clone() {
            return self.occupy_as(&task, buffer);
        }
        let Some(client) = &self.client else {
            return Ok(buffer.or(self.choice).unwrap_or(0));
        };
        let token = match self.token.take() {
            // All that it launched is complete, as operations are synchronous: it unwinds (GPUSync, *budget*).
            Some(_) if client.is_exhausted() => return Err(DeviceError::Exhausted),
            Some(token) => token,
            None => {
                OwnedToken::request(client, TokenRequest { gpu: buffer.or(self.choice), ..TokenRequest::default() })?
            }
        };
        let gpu = self.token.insert(token).token().gpu();
        match buffer {
            Some(buffer) if buffer != gpu => Err(DeviceError::Elsewhere { buffer, job: gpu }),
            _ => Ok(gpu),
        }
    }
}

impl Deref for Job<'_> {
    type Target = DeviceThread;

    fn deref(&self) -> &DeviceThread {
        self.0
    }
}

impl DerefMut for Job<'_> {
    fn deref_mut(&mut self) -> &mut DeviceThread {
        self.0
    }
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        self.0.end_job();
    }
}
