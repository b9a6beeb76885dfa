//! Streams: operations that run one after the other.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use laxity_model::{CopyDirection, Engine, Instant, Nanos};
use laxity_policy::gpu::copy_engine;
use laxity_sys::clock;
use laxity_sys::pi_mutex::{Happening, PiGuard, PiMutex};

use super::Handle;
use super::buffer::Buffer;
use super::shared::{Shared, Work};
use super::view::DeviceView;
use crate::error::GpuError;
use crate::message::{Message, Request};

/// How to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The thread is suspended: others can have its CPU.
    Blocking,
    /// The thread polls: no wake-up delays it, and no other thread gets its CPU.
    Spinning,
}

/// The result of a GPU kernel.
pub type KernelResult = Result<(), Box<dyn std::error::Error + Send + Sync>>;

pub(super) type Callback = Box<dyn FnOnce() + Send>;

/// A callback that waits: for how many operations, what it is, and whether those that synchronize wait for it.
type Waiting = (u64, Callback, bool);

/// Operations of a stream run in the order in which they were issued; those of different streams overlap where they
/// need different engines. Threads may share a stream.
#[derive(Clone, Debug)]
pub struct Stream {
    handle: Arc<Handle>,
    core: Arc<Core>,
}

/// A point of a stream: all operations that were issued before it.
#[derive(Clone, Debug)]
pub struct Event {
    handle: Arc<Handle>,
    core: Arc<Core>,
    operations: u64,
    callbacks: u64,
}

/// A copy out of device memory.
#[derive(Debug)]
pub struct CopyOut {
    event: Event,
    bytes: Arc<Mutex<Vec<u8>>>,
}

/// The state of a stream. The server forgets the stream when this is dropped.
#[derive(Debug)]
pub(super) struct Core {
    pub number: u32,
    pub name: String,
    /// The number of the owner's job that operations are issued for, plus 1; 0 if the owner did not say.
    job: AtomicU64,
    /// How many operations are complete.
    completed: AtomicU64,
    /// How many callbacks have returned.
    called: AtomicU64,
    is_gone: AtomicBool,
    progress: PiMutex<Progress>,
    changed: Happening,
    /// For the server. An outstanding operation keeps both alive, until it completes or the link ends.
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Progress {
    issued: u64,
    /// How many callbacks were added.
    added: u64,
    /// Those that wait, each with the number of operations that must be complete before.
    callbacks: VecDeque<Waiting>,
    /// Times to note, each with the number of operations that must be complete before.
    times: VecDeque<(u64, Arc<OnceLock<Instant>>)>,
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
            progress: PiMutex::default(),
            changed: Happening::default(),
            shared: handle.shared.clone(),
        };
        Stream { handle, core: Arc::new(core) }
    }

    /// Its number, unique among the streams of this soft GPU's server.
    pub fn number(&self) -> u32 {
        self.core.number
    }

    /// Operations that are issued from now on are for job number `job` of the stream's owner. Traces show that.
    pub fn set_job(&self, job: Option<u32>) {
        self.core.job.store(job.map_or(0, |job| u64::from(job) + 1), Ordering::Relaxed);
    }

    /// Issues a copy of `bytes` to `offset` of `buffer`, and returns.
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

    /// Issues a copy of `range` of `buffer` to the host, and returns.
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

    /// Issues a copy that `work` makes between device memory and the host's, and returns. It runs in this process, on its
    /// thread for the copy engine, which is busy for `duration` at least.
    ///
    /// # Errors
    /// [`GpuError`].
    pub fn copy_for<W>(&self, direction: CopyDirection, duration: Nanos, work: W) -> Result<Event, GpuError>
    where
        W: FnOnce(&DeviceView<'_>) -> KernelResult + Send + 'static,
    {
        let shared = self.shared().clone();
        let work = move || work(&DeviceView::new(&shared));
        self.issue(self.engine(direction), duration, Some(Box::new(work)))
    }

    /// Issues a copy of all of `from`, memory of another soft GPU that this process has open, to `to`, which is as long, and
    /// returns. This soft GPU's engine for copies in is busy for `duration` at least; the other's engine for copies out is
    /// busy only if an operation is issued there, too.
    ///
    /// # Errors
    /// [`GpuError`]; [`GpuError::Range`] if the lengths differ.
    pub fn copy_from_peer(&self, from: &Buffer, to: &Buffer, duration: Nanos) -> Result<Event, GpuError> {
        let range = self.check(to, 0..from.len())?;
        from.check(&(0..to.len()))?;
        let (from, to, shared) = (from.clone(), to.clone(), self.shared().clone());
        let work = move || {
            let peer = DeviceView::new(from.shared());
            let source = peer.read(&from, range.clone())?;
            DeviceView::new(&shared).write(&to, range)?.copy_from_slice(&source);
            Ok(())
        };
        self.issue(self.engine(CopyDirection::In), duration, Some(Box::new(work)))
    }

    /// Issues a GPU kernel, and returns. The host function runs in this process, on its thread for the execution
    /// engine, while the engine of the soft GPU is busy with it.
    ///
    /// # Errors
    /// [`GpuError`].
    pub fn launch<K>(&self, kernel: K) -> Result<Event, GpuError>
    where
        K: FnOnce(&DeviceView<'_>) -> KernelResult + Send + 'static,
    {
        self.launch_for(Nanos::ZERO, kernel)
    }

    /// As [`Stream::launch`]; the engine is busy for `duration` at least.
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

    /// Issues a GPU kernel that only occupies the execution engine for `duration`, and returns. It uses no CPU.
    ///
    /// # Errors
    /// [`GpuError`].
    pub fn launch_timed(&self, duration: Nanos) -> Result<Event, GpuError> {
        self.issue(Engine::Execution, duration, None)
    }

    /// Issues a copy of `bytes` bytes that `work` makes, and returns. It runs in this process, on its thread for the copy
    /// engine, which is busy for as long as the configured rate says at least.
    ///
    /// # Errors
    /// [`GpuError`].
    pub fn copy_by<W>(&self, direction: CopyDirection, bytes: usize, work: W) -> Result<Event, GpuError>
    where
        W: FnOnce() -> KernelResult + Send + 'static,
    {
        self.issue(self.engine(direction), self.shared().config.copy_time(bytes), Some(Box::new(work)))
    }

    /// Issues a copy that only occupies a copy engine for `duration`, and returns. It uses no CPU.
    ///
    /// # Errors
    /// [`GpuError`].
    pub fn copy_timed_for(&self, direction: CopyDirection, duration: Nanos) -> Result<Event, GpuError> {
        self.issue(self.engine(direction), duration, None)
    }

    /// Issues a copy that only occupies a copy engine for as long as a copy of `bytes` takes at the configured rate
    /// ([`Config::copy_time`](crate::Config::copy_time)), and returns. It uses no CPU.
    ///
    /// # Errors
    /// [`GpuError`].
    pub fn copy_timed(&self, direction: CopyDirection, bytes: usize) -> Result<Event, GpuError> {
        self.issue(self.engine(direction), self.shared().config.copy_time(bytes), None)
    }

    /// Adds a callback. The process's callback thread calls it once all operations issued before are complete, after
    /// the callbacks added before. Operations issued later do not wait for it.
    ///
    /// # Errors
    /// [`GpuError::Gone`], [`GpuError::Inside`].
    pub fn add_callback(&self, callback: impl FnOnce() + Send + 'static) -> Result<(), GpuError> {
        self.shared().refuse()?;
        let mut progress = self.core.lock();
        if self.core.is_gone.load(Ordering::Acquire) || self.shared().is_gone() {
            return Err(self.shared().gone());
        }
        progress.added += 1;
        if self.core.completed.load(Ordering::Acquire) >= progress.issued && progress.callbacks.is_empty() {
            self.shared().call_back(&self.core, Box::new(callback), true);
        } else {
            let after = progress.issued;
            progress.callbacks.push_back((after, Box::new(callback), true));
        }
        Ok(())
    }

    /// The point after all operations issued, and all callbacks added, until now.
    pub fn event(&self) -> Event {
        let progress = self.core.lock();
        let (operations, callbacks) = (progress.issued, progress.added);
        Event { handle: self.handle.clone(), core: self.core.clone(), operations, callbacks }
    }

    /// Waits until all operations are complete and all callbacks have returned.
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
        self.shared().refuse()?;
        let permit = self.shared().make_room()?;
        // Held while it is sent: operations of a stream reach the server in the order of their numbers.
        let mut progress = self.core.lock();
        self.shared().issue(&self.core, progress.issued, engine, duration, work, permit)?;
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

    /// Has the process's callback thread call `callback` once all operations before the event are complete. Unlike
    /// callbacks of [`Stream::add_callback`], no thread that synchronizes waits for it.
    ///
    /// # Errors
    /// [`GpuError::Gone`], [`GpuError::Forked`].
    pub fn on_complete(&self, callback: impl FnOnce() + Send + 'static) -> Result<(), GpuError> {
        let shared = &self.handle.shared;
        if !shared.is_ours() {
            return Err(GpuError::Forked);
        }
        let mut progress = self.core.lock();
        if self.core.is_gone.load(Ordering::Acquire) || shared.is_gone() {
            return Err(shared.gone());
        }
        if self.core.completed.load(Ordering::Acquire) >= self.operations {
            shared.call_back(&self.core, Box::new(callback), false);
        } else {
            let at = progress.callbacks.partition_point(|(after, ..)| *after <= self.operations);
            progress.callbacks.insert(at, (self.operations, Box::new(callback), false));
        }
        Ok(())
    }

    /// When the last operation before the event completed; the present if all are complete. It is noted before
    /// [`Event::is_complete`] says so, and never if the server is gone before.
    pub fn completion(&self) -> Arc<OnceLock<Instant>> {
        let time = Arc::<OnceLock<Instant>>::default();
        let mut progress = self.core.lock();
        if self.core.completed.load(Ordering::Acquire) >= self.operations {
            let _ = time.set(clock::now());
        } else {
            let at = progress.times.partition_point(|(after, _)| *after <= self.operations);
            progress.times.insert(at, (self.operations, time.clone()));
        }
        time
    }

    /// Waits until everything before it is complete.
    ///
    /// # Errors
    /// As [`Stream::synchronize`].
    pub fn wait(&self, wait: Wait) -> Result<(), GpuError> {
        self.handle.shared.refuse()?;
        let shared = &self.handle.shared;
        let is_over = || self.is_complete() || self.core.is_gone.load(Ordering::Acquire) || shared.is_gone();
        while wait == Wait::Spinning && !is_over() {
            std::hint::spin_loop();
        }
        self.core.changed.wait_until(is_over);
        let failure = self.core.lock().failure.take();
        match failure {
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
    fn lock(&self) -> PiGuard<'_, Progress> {
        self.progress.lock()
    }

    /// The job of its owner that operations are issued for now.
    pub fn job(&self) -> Option<u32> {
        self.job.load(Ordering::Relaxed).checked_sub(1).map(|job| job as u32)
    }

    /// Another operation is complete. Passes on the callbacks that waited for it.
    pub fn complete(self: &Arc<Self>, shared: &Shared, failure: Option<GpuError>) {
        self.update(|progress| {
            // Others change it under the lock only.
            let completed = self.completed.load(Ordering::Acquire) + 1;
            while progress.times.front().is_some_and(|(after, _)| *after <= completed) {
                if let Some((_, time)) = progress.times.pop_front() {
                    let _ = time.set(clock::now());
                }
            }
            self.completed.store(completed, Ordering::Release);
            if progress.failure.is_none() {
                progress.failure = failure;
            }
            while progress.callbacks.front().is_some_and(|(after, ..)| *after <= completed) {
                if let Some((_, callback, is_counted)) = progress.callbacks.pop_front() {
                    shared.call_back(self, callback, is_counted);
                }
            }
        });
    }

    /// Another callback has returned.
    pub fn note_called(&self) {
        self.update(|_| {
            self.called.fetch_add(1, Ordering::AcqRel);
        });
    }

    /// Pending operations will not complete.
    pub fn lose(&self) {
        let mut dropped = VecDeque::new();
        self.update(|progress| {
            self.is_gone.store(true, Ordering::Release);
            dropped = std::mem::take(&mut progress.callbacks);
        });
        // Not under the lock: dropping what they captured may run any code.
        drop(dropped);
    }

    fn update(&self, change: impl FnOnce(&mut Progress)) {
        let mut progress = self.lock();
        change(&mut progress);
        drop(progress);
        self.changed.happen();
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        if !self.shared.is_ours() {
            return;
        }
        // Its operations are complete, as each of them keeps it. A server that is gone has forgotten all streams.
        let _ = self.shared.packets.send(&Request::Release(self.number).encode());
    }
}

/// No code that panics runs under these locks, and no thread waits for one that a less urgent thread may have: those are
/// [`PiMutex`]es.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
