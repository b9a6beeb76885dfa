//! Devices whose threads Laxity's scheduler schedules: tokens and engines are locks of its system, and the thread that
//! handles interrupts is one of its tasks.
//!
//! ```text
//!            first operation       each operation                                       end_job, or release
//! (job) -------------------> (token) ---> lock engine, issue, suspend ... resume, unlock ------------------> (job)
//!        lock of the system           as klmirqd's job, the thread that handles the interrupt goes before its owner
//! ```
//!
//! Decisions 56, 59 and 60 have such locks and threads for workloads, decision 105 for graphs of programs.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use laxity_model::{CopyDirection, Engine, LockId, Nanos, ReplicaId, TaskId};
use laxity_policy::gpu::copy_engine;
use laxity_sched::{LockConfig, LockRequest, Parameters, Service, System, Task, TaskError, Urgency, Watch};
use laxity_softgpu::{Handling, HandlingThread};

use crate::device::Device;
use crate::error::DeviceError;
use crate::options::DeviceOptions;
use crate::thread::DeviceThread;

/// Laxity's scheduler schedules the threads that use a device.
#[derive(Clone, Debug)]
pub struct Scheduling {
    /// The system that they are tasks of. All processes that share managed GPUs are attached to one.
    pub system: System,
    /// The cluster of the thread that handles this process's interrupts: that of the tasks that use the device.
    pub cluster: usize,
    /// How GPUs and engines are granted. `None`: first come, first served, as a driver does it; interrupts are then
    /// handled above all jobs.
    pub management: Option<Management>,
}

/// GPUs and engines are locks of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Management {
    /// The lock of the tokens of all GPUs. Behind it come the locks of engines: for each GPU that of the execution engine,
    /// then those of its copy engines.
    pub tokens: LockId,
    /// Copies are broken into chunks of at most this many bytes; `None`: they are not.
    pub chunk: Option<u64>,
}

/// A thread that is a task, as a device needs it: [`Task`], or one whose events are recorded.
pub trait Scheduled: fmt::Debug {
    /// Its number in the system.
    fn id(&self) -> TaskId;

    /// As [`Task::lock`].
    ///
    /// # Errors
    /// [`TaskError`].
    fn lock(&self, request: LockRequest) -> Result<ReplicaId, TaskError>;

    /// As [`Task::unlock`].
    ///
    /// # Errors
    /// [`TaskError`].
    fn unlock(&self, lock: LockId, replica: ReplicaId) -> Result<(), TaskError>;

    /// As [`Task::suspend`].
    ///
    /// # Errors
    /// [`TaskError`].
    fn suspend(&self) -> Result<(), TaskError>;

    /// As [`Task::resume`].
    ///
    /// # Errors
    /// [`TaskError`].
    fn resume(&self) -> Result<(), TaskError>;
}

impl Scheduled for Task {
    fn id(&self) -> TaskId {
        Task::id(self)
    }

    fn lock(&self, request: LockRequest) -> Result<ReplicaId, TaskError> {
        Task::lock(self, request, &mut ())
    }

    fn unlock(&self, lock: LockId, _replica: ReplicaId) -> Result<(), TaskError> {
        Task::unlock(self, lock, &mut ())
    }

    fn suspend(&self) -> Result<(), TaskError> {
        Task::suspend(self).map(drop)
    }

    fn resume(&self) -> Result<(), TaskError> {
        Task::resume(self).map(drop)
    }
}

impl Scheduling {
    /// Whether the system has the locks that a device of these `options` needs.
    pub(crate) fn check(&self, options: &DeviceOptions) -> Result<(), DeviceError> {
        let system = || self.system.name().to_owned();
        if options.arbitration.is_some() {
            return Err(DeviceError::TwoManagers { system: system() });
        }
        let Some(management) = self.management else { return Ok(()) };
        let locks = &self.system.config().locks;
        let is_tokens = |lock: &LockConfig| matches!(lock, LockConfig::Tokens { gpus, .. } if *gpus == options.gpus);
        if !locks.get(management.tokens.index()).is_some_and(is_tokens) {
            let wanted = "one of tokens of as many GPUs as the device has";
            return Err(DeviceError::NoSuchLock { system: system(), lock: management.tokens, wanted });
        }
        let engines = u16::from(options.gpu.copy_engines) + 1;
        let is_mutex = |lock: LockId| matches!(locks.get(lock.index()), Some(LockConfig::Queue { replicas: 1, .. }));
        let first = management.tokens.0;
        let of_engines = (1..=options.gpus.saturating_mul(engines)).map(|number| LockId(first.saturating_add(number)));
        match of_engines.into_iter().find(|&lock| !is_mutex(lock)) {
            Some(lock) => {
                Err(DeviceError::NoSuchLock { system: system(), lock, wanted: "the queue of an engine with 1 replica" })
            }
            None => Ok(()),
        }
    }
}

impl Management {
    fn engine(self, gpu: u16, engine: Engine, copy_engines: u8) -> LockId {
        LockId(self.tokens.0 + 1 + gpu * (1 + u16::from(copy_engines)) + engine.index() as u16)
    }
}

/// A lock that a task holds until this is dropped.
#[derive(Debug)]
pub(crate) struct Granted {
    task: Rc<dyn Scheduled>,
    lock: LockId,
    replica: ReplicaId,
}

impl Granted {
    fn request(task: &Rc<dyn Scheduled>, request: LockRequest) -> Result<Granted, TaskError> {
        let replica = task.lock(request)?;
        Ok(Granted { task: task.clone(), lock: request.lock, replica })
    }

    /// The GPU, of a token.
    pub fn gpu(&self, device: &Device) -> u16 {
        self.replica.0 % device.gpus().len() as u16
    }
}

impl Drop for Granted {
    fn drop(&mut self) {
        // If it fails the thread is no task any more, which has unlocked all, or the memory of the system is damaged.
        let _ = self.task.unlock(self.lock, self.replica);
    }
}

impl DeviceThread {
    /// As [`DeviceThread::occupy`], for a thread that is that task.
    pub(crate) fn occupy_as(&mut self, task: &Rc<dyn Scheduled>, buffer: Option<u16>) -> Result<u16, DeviceError> {
        let Some(management) = self.management() else { return Ok(buffer.or(self.choice).unwrap_or(0)) };
        let granted = match self.granted.take() {
            Some(granted) => granted,
            None => {
                let only = buffer.or(self.choice);
                Granted::request(task, LockRequest { only, ..LockRequest::of(management.tokens) })?
            }
        };
        let gpu = granted.gpu(&self.device);
        self.granted = Some(granted);
        match buffer {
            Some(buffer) if buffer != gpu => Err(DeviceError::Elsewhere { buffer, job: gpu }),
            _ => Ok(gpu),
        }
    }

    /// The lock of an engine, where engines are locks of a system.
    pub(crate) fn engine_as(
        &self,
        task: &Rc<dyn Scheduled>,
        gpu: u16,
        engine: Engine,
    ) -> Result<Option<Granted>, DeviceError> {
        let Some(management) = self.management() else { return Ok(None) };
        let lock = management.engine(gpu, engine, self.copy_engines());
        Ok(Some(Granted::request(task, LockRequest::of(lock))?))
    }

    /// The engine that copies in `direction`.
    pub(crate) fn copy_engine(&self, direction: CopyDirection) -> Engine {
        copy_engine(self.copy_engines(), direction)
    }

    /// Bytes of a chunk of a copy, where engines are locks of a system that says so.
    pub(crate) fn chunk(&self) -> Option<usize> {
        self.management()?.chunk.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    fn copy_engines(&self) -> u8 {
        self.device.gpus()[0].config().copy_engines
    }

    fn management(&self) -> Option<Management> {
        self.device.scheduling()?.management
    }
}

/// The longest name of a stream, in bytes.
const NAME_MAX: usize = laxity_softgpu::NAME_MAX;

/// The name of the streams of a task, by which the thread that handles their interrupts knows the owner.
pub(crate) fn owners_name(task: TaskId, name: &str) -> String {
    cut(format!("{} {name}", task.0), NAME_MAX)
}

fn owner_of(stream: &str) -> Option<TaskId> {
    let (number, _) = stream.split_once(' ')?;
    number.parse().ok().map(TaskId)
}

fn cut(mut name: String, bytes: usize) -> String {
    let end = (0..=name.len().min(bytes)).rev().find(|&end| name.is_char_boundary(end));
    name.truncate(end.unwrap_or(0));
    name
}

/// The thread that handles the interrupts of one GPU in this process, as a task of the system: klmirqd's, where GPUs are
/// managed.
pub(crate) struct Interrupts {
    scheduling: Scheduling,
    name: String,
    urgency: Urgency,
    handled: AtomicU64,
    begun: Mutex<Option<Result<TaskId, String>>>,
    recorder: Mutex<Option<Box<dyn HandlingRecorder>>>,
}

/// Hears of the jobs of the thread that handles a GPU's interrupts, on that thread.
pub trait HandlingRecorder: Send + fmt::Debug {
    /// A job begins by the call of `serve`, which tells what is decided.
    fn serves(&mut self, serve: &mut dyn FnMut(&mut dyn Watch));

    /// A job is complete by the call of `complete`, which tells what is decided. It may have begun before there was a recorder.
    fn completes(&mut self, complete: &mut dyn FnMut(&mut dyn Watch));
}

/// Recorders of a device's interrupts, which hear no more when this is dropped.
#[derive(Debug)]
#[must_use = "nothing is recorded when this is dropped"]
pub struct HandlingRecording(Vec<Arc<Interrupts>>);

impl HandlingRecording {
    pub(crate) fn begin(of: &[Arc<Interrupts>], recorders: Vec<Box<dyn HandlingRecorder>>) -> HandlingRecording {
        for (interrupts, recorder) in of.iter().zip(recorders) {
            *locked(&interrupts.recorder) = Some(recorder);
        }
        HandlingRecording(of.to_vec())
    }
}

impl Drop for HandlingRecording {
    fn drop(&mut self) {
        self.0.iter().for_each(|interrupts| *locked(&interrupts.recorder) = None);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// The calling thread as that task.
    static TASK: RefCell<Option<Task>> = const { RefCell::new(None) };
}

impl Interrupts {
    /// Of the GPU of that name, which is number `gpu` of `gpus`.
    pub fn new(scheduling: Scheduling, name: &str, (gpu, gpus): (u16, u16)) -> Interrupts {
        let holders = |management: Management| Urgency::Holders { lock: management.tokens, gpu, gpus };
        let urgency = scheduling.management.map_or(Urgency::Fixed, holders);
        let name = cut(format!("interrupts of {name}"), laxity_sched::NAME_MAX);
        let (begun, recorder) = (Mutex::new(None), Mutex::new(None));
        Interrupts { scheduling, name, urgency, handled: AtomicU64::new(0), begun, recorder }
    }

    /// The task that the thread is, if it has begun; or why it is none.
    pub fn begun(&self) -> Option<Result<TaskId, String>> {
        locked(&self.begun).clone()
    }
}

impl Handling for Interrupts {
    fn begin(&self, thread: HandlingThread) {
        if thread != HandlingThread::Interrupts {
            return;
        }
        // Its jobs are interrupts, which have no deadlines of their own.
        let periodic = Parameters::periodic(self.name.clone(), Nanos::from_secs(1));
        let parameters = Parameters { cluster: self.scheduling.cluster, ..periodic };
        let begun = self.scheduling.system.begin_behind(parameters).map_err(|error| error.to_string());
        *locked(&self.begun) = Some(begun.as_ref().map(Task::id).map_err(String::clone));
        TASK.set(begun.ok());
    }

    fn serve(&self, thread: HandlingThread, stream: &str) {
        if thread != HandlingThread::Interrupts {
            return;
        }
        let owner = owner_of(stream).filter(|_| self.urgency != Urgency::Fixed);
        let index = self.handled.fetch_add(1, Ordering::Relaxed);
        let service = Service { owner, urgency: self.urgency };
        // If the system is damaged its tasks say so; if the thread is no task the device was not opened.
        TASK.with_borrow(|task| {
            let Some(task) = task else { return };
            let mut serve = |mut watch: &mut dyn Watch| drop(task.serve(index, service, &mut watch));
            match &mut *locked(&self.recorder) {
                Some(recorder) => recorder.serves(&mut serve),
                None => serve(&mut ()),
            }
        });
    }

    fn done(&self, thread: HandlingThread) {
        if thread != HandlingThread::Interrupts {
            return;
        }
        TASK.with_borrow(|task| {
            let Some(task) = task else { return };
            let mut complete = |mut watch: &mut dyn Watch| drop(task.complete_watched(&mut watch));
            match &mut *locked(&self.recorder) {
                Some(recorder) => recorder.completes(&mut complete),
                None => complete(&mut ()),
            }
        });
    }
}

impl fmt::Debug for Interrupts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupts").field("name", &self.name).field("urgency", &self.urgency).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_known_by_the_names_of_their_streams_however_long_these_are() {
        assert_eq!(owner_of(&owners_name(TaskId(12), "detect 3")), Some(TaskId(12)));
        let long = owners_name(TaskId(1023), &"ä".repeat(NAME_MAX));
        assert!(long.len() <= NAME_MAX);
        assert_eq!(owner_of(&long), Some(TaskId(1023)));
        assert_eq!(owner_of("another program"), None);
    }

    #[test]
    fn locks_of_engines_lie_behind_that_of_the_tokens_gpu_by_gpu() {
        let management = Management { tokens: LockId(3), chunk: None };
        let locks =
            |gpu| [Engine::Execution, Engine::Copy(0), Engine::Copy(1)].map(|it| management.engine(gpu, it, 2).0);
        assert_eq!((locks(0), locks(1)), ([4, 5, 6], [7, 8, 9]));
    }
}
