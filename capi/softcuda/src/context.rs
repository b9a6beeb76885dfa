//! Contexts, and which of them a thread has.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use crate::driver::{Device, Driver};
use crate::event::Mark;
use crate::graph;
use crate::handles::lock;
use crate::stream::{Kind, Stream};
use crate::types::*;

/// A context.
pub struct Context {
    pub device: Arc<Device>,
    pub id: u64,
    pub flags: AtomicU32,
    pub is_primary: bool,
    legacy: Mutex<Option<Arc<Stream>>>,
    /// By thread.
    per_thread: Mutex<BTreeMap<u64, Arc<Stream>>>,
    streams: Mutex<Vec<Weak<Stream>>>,
    /// Contexts whose memory may be used, by handle.
    pub peers: Mutex<Vec<usize>>,
    /// Streams that have no handle any more and are not complete, each with the mark that is passed when it is.
    retired: Mutex<Vec<(Arc<Stream>, Arc<Mark>)>>,
}

/// The primary context of a device.
#[derive(Default)]
pub struct Primary {
    pub context: Option<Arc<Context>>,
    pub references: u32,
    pub flags: u32,
}

/// Which stream a call means by 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Default0 {
    Legacy,
    PerThread,
}

/// The streams of a thread, by its number and their contexts. They go with the thread.
struct Own(RefCell<Vec<(u64, Weak<Context>)>>);

impl Drop for Own {
    fn drop(&mut self) {
        if Driver::get().is_err() {
            // A forked child has no part in its parent's streams.
            return;
        }
        for (thread, context) in self.0.get_mut().drain(..) {
            let stream = context.upgrade().and_then(|context| lock(&context.per_thread).remove(&thread));
            stream.iter().for_each(Stream::let_go);
        }
    }
}

static NEXT: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// The last is current.
    static STACK: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    static THREAD: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
    static OWN: Own = const { Own(RefCell::new(Vec::new())) };
    /// How its calls are judged while streams are captured.
    static MODE: Cell<i32> = const { Cell::new(0) };
    /// This thread runs a host function, which may not call the driver.
    static IS_HOST: Cell<bool> = const { Cell::new(false) };
}

impl Context {
    /// A new one; its handle is that of `driver.contexts`.
    pub fn create(device: &Arc<Device>, flags: u32, is_primary: bool) -> Outcome<Arc<Context>> {
        device.gpu()?;
        let context = Arc::new(Context {
            device: device.clone(),
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            flags: AtomicU32::new(flags),
            is_primary,
            legacy: Mutex::default(),
            per_thread: Mutex::default(),
            streams: Mutex::default(),
            peers: Mutex::default(),
            retired: Mutex::default(),
        });
        Driver::get()?.contexts.add_as(context.handle() as usize, context.clone());
        Ok(context)
    }

    /// No other context gets it, even if this one is destroyed: threads may still have it as their current one.
    pub fn handle(&self) -> CUcontext {
        (self.id << 12) as CUcontext
    }

    /// That of the calling thread.
    pub fn current() -> Outcome<Arc<Context>> {
        let handle = current();
        let context = Driver::get()?.contexts.get(handle);
        context.map_err(|error| if handle.is_null() { error } else { CONTEXT_IS_DESTROYED })
    }

    /// A new stream of the context.
    pub fn add_stream(self: &Arc<Self>, kind: Kind, flags: u32, priority: i32) -> Outcome<Arc<Stream>> {
        let stream = Stream::new(self, kind, flags, priority)?;
        let mut streams = lock(&self.streams);
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(Arc::downgrade(&stream));
        Ok(stream)
    }

    /// The stream that all threads share.
    pub fn legacy(self: &Arc<Self>) -> Outcome<Arc<Stream>> {
        let mut legacy = lock(&self.legacy);
        match &*legacy {
            Some(stream) => Ok(stream.clone()),
            None => Ok(legacy.insert(self.add_stream(Kind::Legacy, 0, 0)?).clone()),
        }
    }

    /// The shared stream, if it was used.
    pub fn used_legacy(&self) -> Option<Arc<Stream>> {
        lock(&self.legacy).clone()
    }

    /// The calling thread's stream.
    pub fn per_thread(self: &Arc<Self>) -> Outcome<Arc<Stream>> {
        let thread = THREAD.with(|thread| *thread);
        if let Some(stream) = lock(&self.per_thread).get(&thread) {
            return Ok(stream.clone());
        }
        let stream = self.add_stream(Kind::Blocking, 0, 0)?;
        lock(&self.per_thread).insert(thread, stream.clone());
        // A thread that is ending may have none any more: then its stream stays.
        let _ = OWN.try_with(|own| own.0.borrow_mut().push((thread, Arc::downgrade(self))));
        Ok(stream)
    }

    /// A stream that has no handle any more is kept until `mark` is passed.
    pub fn retire(&self, stream: Arc<Stream>, mark: Arc<Mark>) {
        let mut retired = lock(&self.retired);
        retired.retain(|(_, mark)| mark.passed().is_none());
        retired.push((stream, mark));
    }

    /// All its streams.
    pub fn streams(&self) -> Vec<Arc<Stream>> {
        lock(&self.streams).iter().filter_map(Weak::upgrade).collect()
    }

    /// Waits for all. `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED`: one of its streams is captured, which ends the capture.
    pub fn synchronize(&self) -> Outcome {
        let results: Vec<Outcome> = self.streams().iter().map(|stream| stream.synchronize()).collect();
        results.into_iter().collect()
    }

    /// Waits for all work that may use the memory or kernels that the program frees now: such a call is unsafe while
    /// streams are captured.
    pub fn quiesce(&self) -> Outcome {
        graph::refuse_unsafe()?;
        let results: Vec<Outcome> = self.streams().iter().map(|stream| stream.wait()).collect();
        results.into_iter().collect()
    }

    /// After this its handle is none.
    pub fn destroy(self: &Arc<Self>) -> Outcome {
        self.streams().iter().for_each(graph::abandon);
        let result = self.synchronize();
        if let Ok(driver) = Driver::get() {
            let _ = driver.contexts.remove(self.handle());
        }
        crate::export::forget_context(self);
        lock(&self.legacy).take();
        lock(&self.per_thread).clear();
        lock(&self.retired).clear();
        result
    }
}

/// The calling thread's context; null: it has none.
pub fn current() -> CUcontext {
    STACK.with_borrow(|stack| stack.last().copied().unwrap_or(0)) as CUcontext
}

/// Another one in its place; null: the one below it. Source: CUDA's documentation of `cuCtxSetCurrent`.
pub fn set_current(context: CUcontext) {
    STACK.with_borrow_mut(|stack| {
        stack.pop();
        if !context.is_null() {
            stack.push(context as usize);
        }
    });
}

pub fn push(context: CUcontext) {
    STACK.with_borrow_mut(|stack| stack.push(context as usize));
}

/// The one that was current.
pub fn pop() -> Option<CUcontext> {
    STACK.with_borrow_mut(Vec::pop).map(|context| context as CUcontext)
}

/// Forgets a context that is destroyed where it is current.
pub fn drop_current(context: CUcontext) {
    STACK.with_borrow_mut(|stack| {
        if stack.last() == Some(&(context as usize)) {
            stack.pop();
        }
    });
}

/// The calling thread runs a host function.
pub fn enter_host() {
    IS_HOST.set(true);
}

pub fn is_host() -> bool {
    IS_HOST.get()
}

/// How the thread's calls are judged while streams are captured.
pub fn capture_mode() -> i32 {
    MODE.get()
}

/// Sets another mode, and answers the old one.
pub fn exchange_capture_mode(mode: i32) -> i32 {
    MODE.replace(mode)
}

/// A number of the calling thread.
pub fn thread() -> u64 {
    THREAD.with(|thread| *thread)
}
