//! What the layer knows in its process: streams, and what was recorded in events.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use laxity_interpose::Process;
use laxity_interpose::settings::{Settings, Wait};
use laxity_policy::program::{EngineUse, Policy};

use crate::real::{self, ask};
use crate::stream::{Kind, Stream};
use crate::types::*;
use crate::watch::Position;

/// The name of the front in reports.
pub const FRONT: &str = "CUDA";

static LAYER: OnceLock<Layer> = OnceLock::new();

/// The layer in its process.
pub struct Layer {
    process: Arc<Process>,
    streams: RwLock<BTreeMap<Key, Arc<Stream>>>,
    /// Events, each with the stream and the place that it was recorded at.
    events: Mutex<BTreeMap<usize, (Arc<Stream>, Position)>>,
    /// Captures that have begun and not ended.
    captures: AtomicUsize,
}

/// Which stream: a handle; or a default stream, of a context, and of a thread where each has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Handle(usize),
    Legacy(usize),
    PerThread(usize, u64),
}

thread_local! {
    /// Closes the thread's default streams when it ends.
    static THREAD: Thread = Thread(NEXT.fetch_add(1, Ordering::Relaxed) as u64);
}

static NEXT: AtomicUsize = AtomicUsize::new(0);

struct Thread(u64);

impl Drop for Thread {
    fn drop(&mut self) {
        let own = self.0;
        if let Some(layer) = LAYER.get() {
            layer
                .take(|key, _| matches!(key, Key::PerThread(_, thread) if *thread == own))
                .iter()
                .for_each(|s| s.close());
        }
    }
}

impl Layer {
    /// The layer, which begins its work now if it has not.
    #[inline]
    pub fn get() -> &'static Layer {
        LAYER.get_or_init(|| {
            let process = Process::start(FRONT);
            if process.is_arbitrating() {
                extern "C" fn leave() {
                    if let Some(layer) = LAYER.get() {
                        layer.process.exit();
                    }
                }
                // SAFETY: `leave` needs nothing that ends before the process.
                unsafe { libc::atexit(leave) };
            }
            let captures = AtomicUsize::new(0);
            Layer { process: Arc::new(process), streams: RwLock::default(), events: Mutex::default(), captures }
        })
    }

    /// The process.
    pub fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// Whether there is an arbitration.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.process.is_arbitrating()
    }

    /// Whether threads are to wait suspended.
    pub fn suspends(&self) -> bool {
        self.is_on() && self.process.settings.wait == Wait::Suspend
    }

    /// The stream that the program means; `None`: it is not arbitrated.
    pub fn stream(&self, handle: CUstream, default: Default0) -> Option<Arc<Stream>> {
        let key = self.key(handle, default)?;
        if let Some(stream) = self.read().get(&key) {
            return Some(stream.clone());
        }
        let made = Arc::new(self.describe(key)?);
        let mut streams = self.streams.write().unwrap_or_else(PoisonError::into_inner);
        let made = streams.entry(key).or_insert(made).clone();
        let ordered: Vec<_> = streams.values().filter(|stream| stream.is_ordered_with(&made)).cloned().collect();
        drop(streams);
        if !ordered.is_empty() {
            ordered.iter().chain([&made]).for_each(|stream| stream.begin_order());
        }
        Some(made)
    }

    /// The stream, if something was issued to it.
    pub fn known_stream(&self, handle: CUstream, default: Default0) -> Option<Arc<Stream>> {
        let key = self.key(handle, default)?;
        self.read().get(&key).cloned()
    }

    /// What is issued to a stream of this thread's context next may be captured. An event of ours that is recorded then, in that
    /// stream or in one that is ordered with it, would end the capture or be part of it.
    pub fn close_tails(&self) {
        if self.is_on() {
            self.streams_of(real::current_context()).iter().for_each(|stream| stream.close_tail());
        }
    }

    /// All streams of a context.
    pub fn streams_of(&self, context: CUcontext) -> Vec<Arc<Stream>> {
        self.read().values().filter(|stream| stream.context == context as usize).cloned().collect()
    }

    /// Whether what is issued to `stream` now is behind operations of other streams: the order of the shared stream and
    /// the others.
    pub fn is_behind_others(&self, stream: &Stream) -> bool {
        let other = match stream.kind {
            Kind::NonBlocking => return false,
            Kind::Legacy => Kind::Blocking,
            Kind::Blocking => Kind::Legacy,
        };
        let streams = self.read();
        if streams.len() < 2 {
            return false;
        }
        let is_before = |known: &Arc<Stream>| known.kind == other && known.context == stream.context && known.is_busy();
        streams.values().any(is_before)
    }

    /// The program destroys a stream. The driver may use its handle again.
    pub fn forget_stream(&self, handle: CUstream) {
        let key = Key::Handle(handle as usize);
        self.take(|known, _| *known == key).iter().for_each(|stream| stream.close());
    }

    /// A context is about to be destroyed.
    pub fn forget_context(&self, context: CUcontext) {
        let gone = self.take(|_, stream| stream.context == context as usize);
        self.lock_events().retain(|_, (stream, _)| stream.context != context as usize);
        gone.iter().for_each(|stream| stream.end());
    }

    /// An event was recorded in a stream.
    pub fn record(&self, event: CUevent, stream: &Arc<Stream>) {
        let mut events = self.lock_events();
        match stream.position() {
            Some(position) => drop(events.insert(event as usize, (stream.clone(), position))),
            None => drop(events.remove(&(event as usize))),
        }
    }

    /// What was recorded in it.
    pub fn recorded(&self, event: CUevent) -> Option<(Arc<Stream>, Position)> {
        self.lock_events().get(&(event as usize)).cloned()
    }

    /// The driver may use the address of `event` for another one.
    pub fn forget_event(&self, event: CUevent) {
        self.lock_events().remove(&(event as usize));
    }

    pub fn begin_capture(&self) {
        self.captures.fetch_add(1, Ordering::AcqRel);
    }

    pub fn end_capture(&self) {
        let _ = self.captures.fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| count.checked_sub(1));
    }

    /// Whether any stream may be captured.
    pub fn is_any_captured(&self) -> bool {
        self.captures.load(Ordering::Acquire) > 0
    }

    /// Whether calls to the stream are captured, not carried out; also where the driver would refuse them because others
    /// are. Nothing of ours is issued then.
    pub fn is_captured(&self, handle: CUstream, default: Default0) -> bool {
        if !self.is_any_captured() {
            return false;
        }
        let mut status = 0;
        let handle = real_handle(handle, default);
        let result = ask!(c"cuStreamIsCapturing": fn(CUstream, *mut std::ffi::c_int)(handle as CUstream, &mut status));
        result != SUCCESS || status != 0
    }

    fn key(&self, handle: CUstream, default: Default0) -> Option<Key> {
        Some(match real_handle(handle, default) {
            0 | STREAM_LEGACY => Key::Legacy(context()?),
            STREAM_PER_THREAD => Key::PerThread(context()?, THREAD.try_with(|thread| thread.0).ok()?),
            handle => Key::Handle(handle),
        })
    }

    /// What a stream is like that was not used before.
    fn describe(&self, key: Key) -> Option<Stream> {
        let context = match key {
            Key::Legacy(context) | Key::PerThread(context, _) => context,
            Key::Handle(handle) => context_of(handle as CUstream)?,
        };
        let (kind, handle) = match key {
            Key::Legacy(_) => (Kind::Legacy, STREAM_LEGACY),
            Key::PerThread(..) => (Kind::Blocking, STREAM_PER_THREAD),
            Key::Handle(handle) => {
                let mut flags = 0;
                ask!(c"cuStreamGetFlags": fn(CUstream, *mut u32)(handle as CUstream, &mut flags));
                (if flags & STREAM_NON_BLOCKING != 0 { Kind::NonBlocking } else { Kind::Blocking }, handle)
            }
        };
        let device = real::current_device()?;
        let config = self.process.arbitration()?.config();
        let settings = &self.process.settings;
        let gpu = settings.gpu.checked_add(u16::try_from(device).ok()?)?;
        if gpu >= config.gpus {
            static ONCE: std::sync::Once = std::sync::Once::new();
            let gpus = config.gpus;
            ONCE.call_once(|| {
                self.process.notice(format_args!(
                    "device {device} is GPU {gpu} of the arbitration, which has {gpus}: it is not arbitrated; create the \
                     arbitration with more GPUs"
                ));
            });
            return None;
        }
        let policy = Policy { engines: engines(settings, device, config.copy_engines), ..settings.policy };
        Some(Stream::new(&self.process, policy, gpu, kind, context as CUcontext, handle as CUstream))
    }

    fn take(&self, goes: impl Fn(&Key, &Stream) -> bool) -> Vec<Arc<Stream>> {
        let mut streams = self.streams.write().unwrap_or_else(PoisonError::into_inner);
        let keys: Vec<Key> = streams.iter().filter(|(key, stream)| goes(key, stream)).map(|(key, _)| *key).collect();
        keys.iter().filter_map(|key| streams.remove(key)).collect()
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<Key, Arc<Stream>>> {
        self.streams.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_events(&self) -> MutexGuard<'_, BTreeMap<usize, (Arc<Stream>, Position)>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The handle by which any form of the driver's functions knows the stream.
fn real_handle(handle: CUstream, default: Default0) -> usize {
    match (handle as usize, default) {
        (0, Default0::Legacy) => STREAM_LEGACY,
        (0, Default0::PerThread) => STREAM_PER_THREAD,
        (handle, _) => handle,
    }
}

fn context() -> Option<usize> {
    Some(real::current_context() as usize).filter(|&context| context != 0)
}

/// A bad handle has none: the driver names the error.
fn context_of(stream: CUstream) -> Option<usize> {
    let mut context: CUcontext = std::ptr::null_mut();
    let result = ask!(c"cuStreamGetCtx": fn(CUstream, *mut CUcontext)(stream, &mut context));
    (result == SUCCESS).then_some(context as usize)
}

/// What the settings say, or else: one engine where memory is the host's or nothing copies, separate ones elsewhere.
fn engines(settings: &Settings, device: i32, copy_engines: u8) -> EngineUse {
    match settings.engines {
        Some(EngineUse::Separate { .. }) => EngineUse::Separate { copy_engines },
        Some(EngineUse::One) => EngineUse::One,
        None => {
            let is_integrated = real::attribute(device, ATTRIBUTE_INTEGRATED).is_some_and(|value| value != 0);
            let copies = real::attribute(device, ATTRIBUTE_ASYNC_ENGINES).is_some_and(|engines| engines > 0);
            if copies && !is_integrated { EngineUse::Separate { copy_engines } } else { EngineUse::One }
        }
    }
}
