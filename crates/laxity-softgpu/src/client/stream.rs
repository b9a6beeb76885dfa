//! Streams: operations that run one after the other.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use laxity_model::{CopyDirection, Engine, Nanos};
use laxity_policy::gpu::copy_engine;

use super::buffer::Buffer;
use super::shared::{Shared, Work};
use super::view::DeviceView;
use super::{Handle, inside};
use crate::error::GpuError;

/// How to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Suspended: the CPU is others'.
    Blocking,
    /// Looking again and again: nobody need wake the thread, and nobody else gets its CPU.
    Spinning,
}

/// What a GPU kernel answers.
pub type KernelResult = Result<(), Box<dyn std::error::Error + Send + Sync>>;

pub(super) type Callback = Box<dyn FnOnce() + Send>;

/// Operations of a stream run in the order in which they were issued; those of different streams overlap where they
/// need different engines. Threads may share a stream.
#[derive(Clone, Debug)]
pub struct Stream {
    handle: Arc<Handle>,
    core: Arc<Core>,
}

/// A point of a stream: everything that was issued before it.
#[derive(Clone, Debug)]
pub struct Event {
    handle: Arc<Handle>,
    core: Arc<Core>,
    operations: u64,
    callbacks: u64,
}

/// Bytes on their way out of device memory.
#[derive(Debug)]
pub struct CopyOut {
    event: Event,
    bytes: Arc<Mutex<Vec<u8>>>,
}

/// What the library's threads know of a stream.
#[derive(Debug)]
pub(super) struct Core {
    pub number: u32,
    pub name: String,
    /// For which job of the owner operations are issued now, and one more; 0: nobody says.
    job: AtomicU64,
    /// Operations that are complete, and callbacks that have returned.
    completed: AtomicU64,
    called: AtomicU64,
    is_gone: AtomicBool,
    progress: Mutex<Progress>,
    changed: Condvar,
}

#[derive(Default)]
struct Progress {
    issued: u64,
    /// Callbacks that were added.
    added: u64,
    /// Those that wait, each with how many operations must be complete.
    callbacks: VecDeque<(u64, Callback)>,
    failure: Option<GpuError>,
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Progress").field("issued", &self.issued).field("added", &self.added).finish_non_exhaustive()
    }
}

impl Stream {
    pub(super) fn new(handle: Arc<Handle>, number: u32, name: &str) -> Stream {
        let core = Core {
            number,
            name: name.to_owned(),
            job: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            called: AtomicU64::new(0),
            is_gone: AtomicBool::new(false),
            progress: Mutex::default(),
            changed: Condvar::new(),
        };
        Stream { handle, core: Arc::new(core) }
    }

    /// Its number, which no other stream of this soft GPU's server has.
    pub fn number(&self) -> u32 {
        self.core.number
    }

    /// What is issued from now on is for job number `job` of the stream's owner, as traces say then.
    pub fn set_job(&self, job: Option<u32>) {
        self.core.job.store(job.map_or(0, |job| u64::from(job) + 1), Ordering::Relaxed);
    }

    /// Issues a copy of `bytes` to `offset` of `buffer`, and goes on.
    ///
    /// # Errors
    /// [`GpuError`].
    pub fn copy_in<B>(&self, buffer: &Buffer, offset: usize, bytes: B) -> Result<Event, GpuError>
    where
        B: AsRef<[u8]> + Send + 'static,
    {
        let length = bytes.as_ref().len();
        let range = self.check(buffer, offset..offset.saturating_add(length))?;
        let (buffer, shared) = (buffer.clone(), self.shared().clone());
        let work = move || {
            let view = DeviceView::new(&shared);
            view.write(&buffer, range)?.copy_from_slice(bytes.as_ref());
            Ok(())
        };
        self.issue(self.engine(CopyDirection::In), self.shared().config.copy_time(length), Some(Box::new(work)))
    }

    /// Issues a copy of `range` of `buffer` to the host, and goes on.
    ///
    /// # Errors
    /// [`GpuError`].
    pub fn copy_out(&self, buffer: &Buffer, range: Range<usize>) -> Result<CopyOut, GpuError> {
        let range = self.check(buffer, range)?;
        let length = range.len();
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (target, buffer, shared) = (bytes.clone(), buffer.clone(), self.shared().clone());
        let work = move || {
            let view = DeviceView::new(&shared);
            let copied = view.read(&buffer, range)?.to_vec();
            *lock(&target) = copied;
            Ok(())
        };
        let duration = self.shared().config.copy_time(length);
        let event = self.issue(self.engine(CopyDirection::Out), duration, Some(Box::new(work)))?;
        Ok(CopyOut { event, bytes })
    }

    /// Issues a GPU kernel, and goes on: the host function runs in this process, on a thread of the execution engine's,
    /// for as long as the engine of the soft GPU is busy with it.
    ///
    /// # Errors
    /// [`GpuError`].
    pub fn launch<K>(&self, kernel: K) -> Result<Event, GpuError>
    where
        K: FnOnce(&DeviceView<'_>) -> KernelResult + Send + 'static,
    {
        self.launch_for(Nanos::ZERO, kernel)
    }

    /// As [`Stream::launch`], and the engine is busy for `duration` at least.
    ///
    /// # Errors
    /// [`GpuError`].
    pub fn launch_for<K>(&self, duration: Nanos, kernel: K) -> Result<Event, GpuError>
    where
        K: FnOnce(&DeviceView<'_>) -> KernelResult + Send + 'static,
    {
        let shared = self.shared().clone();
        let work = move || kernel(&DeviceView::new(&shared));
        self.issue(Engine::Execution, duration, Some(Box::new(work)))
    }

    /// Issues a GPU kernel that does nothing but take `duration`, of which no CPU knows, and goes on.
    ///
    /// # Errors
    /// [`GpuError`].
    pub fn launch_timed(&self, duration: Nanos) -> Result<Event, GpuError> {
        self.issue(Engine::Execution, duration, None)
    }

    /// Issues a copy that moves nothing and takes `duration`, of which no CPU knows, and goes on.
    ///
    /// # Errors
    /// [`GpuError`].
    pub fn copy_timed_for(&self, direction: CopyDirection, duration: Nanos) -> Result<Event, GpuError> {
        self.issue(self.engine(direction), duration, None)
    }

    /// Issues a copy of as many bytes that nobody has: it takes the time that a copy of them takes by the configured
    /// rate ([`Config::copy_time`](crate::Config::copy_time)), of which no CPU knows, and goes on.
    ///
    /// # Errors
    /// [`GpuError`].
    pub fn copy_timed(&self, direction: CopyDirection, bytes: usize) -> Result<Event, GpuError> {
        self.issue(self.engine(direction), self.shared().config.copy_time(bytes), None)
    }

    /// Has `callback` called once all that was issued before is complete: by the process's callback thread, after those
    /// added before. What is issued after it does not wait for it.
    ///
    /// # Errors
    /// [`GpuError::Gone`], [`GpuError::Inside`].
    pub fn add_callback(&self, callback: impl FnOnce() + Send + 'static) -> Result<(), GpuError> {
        inside::refuse()?;
        let mut progress = self.core.lock();
        if self.core.is_gone.load(Ordering::Acquire) || self.shared().is_gone() {
            return Err(self.shared().gone());
        }
        progress.added += 1;
        if self.core.completed.load(Ordering::Acquire) >= progress.issued && progress.callbacks.is_empty() {
            self.shared().call_back(&self.core, Box::new(callback));
        } else {
            let after = progress.issued;
            progress.callbacks.push_back((after, Box::new(callback)));
        }
        Ok(())
    }

    /// The point after all that was issued, and all callbacks that were added.
    pub fn event(&self) -> Event {
        let progress = self.core.lock();
        let (operations, callbacks) = (progress.issued, progress.added);
        Event { handle: self.handle.clone(), core: self.core.clone(), operations, callbacks }
    }

    /// Waits until all that was issued is complete and all callbacks have returned.
    ///
    /// # Errors
    /// [`GpuError::Gone`]; [`GpuError::Failed`], once, if an operation failed; [`GpuError::Inside`].
    pub fn synchronize(&self, wait: Wait) -> Result<(), GpuError> {
        self.event().wait(wait)
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    fn engine(&self, direction: CopyDirection) -> Engine {
        copy_engine(self.shared().config.copy_engines, direction)
    }

    fn check(&self, buffer: &Buffer, range: Range<usize>) -> Result<Range<usize>, GpuError> {
        if !buffer.is_of(self.shared()) {
            return Err(GpuError::Foreign);
        }
        buffer.check(&range)?;
        Ok(range)
    }

    fn issue(&self, engine: Engine, duration: Nanos, work: Option<Work>) -> Result<Event, GpuError> {
        inside::refuse()?;
        let outstanding = self.shared().make_room()?;
        // Held while it is sent: operations of a stream reach the server in the order in which they are counted.
        let mut progress = self.core.lock();
        self.shared().issue(&self.core, progress.issued, engine, duration, work, outstanding)?;
        progress.issued += 1;
        let (operations, callbacks) = (progress.issued, 0);
        Ok(Event { handle: self.handle.clone(), core: self.core.clone(), operations, callbacks })
    }
}

impl Event {
    /// Whether everything before it is complete.
    pub fn is_complete(&self) -> bool {
        self.core.completed.load(Ordering::Acquire) >= self.operations
            && self.core.called.load(Ordering::Acquire) >= self.callbacks
    }

    /// Waits until everything before it is complete.
    ///
    /// # Errors
    /// As [`Stream::synchronize`].
    pub fn wait(&self, wait: Wait) -> Result<(), GpuError> {
        inside::refuse()?;
        let shared = &self.handle.shared;
        let is_over = || self.is_complete() || self.core.is_gone.load(Ordering::Acquire) || shared.is_gone();
        while wait == Wait::Spinning && !is_over() {
            std::hint::spin_loop();
        }
        let mut progress = self.core.lock();
        while !is_over() {
            progress = self.core.changed.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
        match progress.failure.take() {
            Some(failure) => Err(failure),
            None if self.is_complete() => Ok(()),
            None => Err(shared.gone()),
        }
    }
}

impl CopyOut {
    /// Whether the bytes are there.
    pub fn is_complete(&self) -> bool {
        self.event.is_complete()
    }

    /// Waits for the bytes.
    ///
    /// # Errors
    /// As [`Stream::synchronize`].
    pub fn wait(self, wait: Wait) -> Result<Vec<u8>, GpuError> {
        self.event.wait(wait)?;
        Ok(std::mem::take(&mut lock(&self.bytes)))
    }
}

impl Core {
    fn lock(&self) -> MutexGuard<'_, Progress> {
        lock(&self.progress)
    }

    /// The job of its owner that operations are issued for now.
    pub fn job(&self) -> Option<u32> {
        self.job.load(Ordering::Relaxed).checked_sub(1).map(|job| job as u32)
    }

    /// Another operation is complete, and so the time of some callbacks has come.
    pub fn complete(self: &Arc<Self>, shared: &Shared, failure: Option<GpuError>) {
        self.tell(|progress| {
            let completed = self.completed.fetch_add(1, Ordering::AcqRel) + 1;
            if progress.failure.is_none() {
                progress.failure = failure;
            }
            while progress.callbacks.front().is_some_and(|(after, _)| *after <= completed) {
                if let Some((_, callback)) = progress.callbacks.pop_front() {
                    shared.call_back(self, callback);
                }
            }
        });
    }

    /// Another callback has returned.
    pub fn note_called(&self) {
        self.tell(|_| {
            self.called.fetch_add(1, Ordering::AcqRel);
        });
    }

    /// Nothing will become complete any more.
    pub fn lose(&self) {
        let mut dropped = VecDeque::new();
        self.tell(|progress| {
            self.is_gone.store(true, Ordering::Release);
            dropped = std::mem::take(&mut progress.callbacks);
        });
        // Not under the lock: what they captured may be anything.
        drop(dropped);
    }

    fn tell(&self, change: impl FnOnce(&mut Progress)) {
        let mut progress = self.lock();
        change(&mut progress);
        drop(progress);
        self.changed.notify_all();
    }
}

/// Nothing that panics is done while one of these is held.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
