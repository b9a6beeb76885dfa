//! A soft GPU as a process sees it.

mod buffer;
mod inside;
mod options;
mod shared;
mod start;
mod stream;
mod threads;
mod view;

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use laxity_model::Engine;

pub use self::buffer::Buffer;
pub use self::options::Options;
pub use self::start::SERVER_VARIABLE;
pub use self::stream::{CopyOut, Event, KernelResult, Stream, Wait};
pub use self::threads::{Handling, Server as HandlingThread, Unmanaged};
pub use self::view::{DeviceView, Reading, Writing};

use self::shared::Shared;
use self::stream::lock;
use self::threads::Threads;
use crate::config::{Config, NAME_MAX};
use crate::error::{GpuError, OpenError};
use crate::message::{Reply, Request, VERSION};
use crate::server::history::Entry;
use crate::usage::Usage;

/// A soft GPU, shared with all processes of this user that open one of its name. Cheap to clone.
///
/// When the last handle, stream and event of a process are dropped, its operations that are not complete are dropped,
/// too.
#[derive(Clone, Debug)]
pub struct SoftGpu {
    handle: Arc<Handle>,
}

/// The connection of a process; its last owner ends it.
#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
    threads: Mutex<Option<Threads>>,
}

impl SoftGpu {
    /// The soft GPU `name`, whose server is started if there is none. The threads that it needs in this process are
    /// scheduled as the calling thread is.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(name: &str, config: Config) -> Result<SoftGpu, OpenError> {
        SoftGpu::open_with(name, config, &Options::default())
    }

    /// As [`SoftGpu::open`], with options.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_with(name: &str, config: Config, options: &Options) -> Result<SoftGpu, OpenError> {
        let connection = start::connect(name, &config, options.server.as_deref())?;
        let (answer, answers) = channel();
        let shared = Arc::new(Shared::new(name, config, connection, answers));
        let threads = Threads::start(&shared, answer, options)
            .map_err(|error| OpenError::System { action: "start threads", error })?;
        Ok(SoftGpu { handle: Arc::new(Handle { shared, threads: Mutex::new(Some(threads)) }) })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.handle.shared.name
    }

    /// Its configuration.
    pub fn config(&self) -> &Config {
        &self.handle.shared.config
    }

    /// The process of its server; `None` if Linux does not tell.
    pub fn server(&self) -> Option<u32> {
        self.handle.shared.packets.peer().ok()
    }

    /// Allocates `bytes` of device memory, in whole pages. They are zero: no process sees what another left there.
    ///
    /// # Errors
    /// [`GpuError::Memory`] if the device has too little left in one piece, [`GpuError::Shortage`] if the machine has
    /// too little; [`GpuError::Map`], [`GpuError::Gone`], [`GpuError::Inside`].
    pub fn alloc(&self, bytes: usize) -> Result<Buffer, GpuError> {
        match self.ask(&Request::Allocate(bytes as u64))? {
            Reply::Allocated(offset) => Buffer::new(self.handle.shared.clone(), offset, bytes),
            Reply::NoMemory(largest) => Err(GpuError::Memory { asked: bytes as u64, largest }),
            Reply::Shortage(left) => Err(GpuError::Shortage { asked: bytes as u64, left }),
            _ => Err(self.handle.shared.gone()),
        }
    }

    /// How much of it all processes together use.
    ///
    /// # Errors
    /// [`GpuError::Gone`], [`GpuError::Inside`].
    pub fn usage(&self) -> Result<Usage, GpuError> {
        match self.ask(&Request::Look(VERSION))? {
            Reply::Seen(usage) => Ok(usage),
            _ => Err(self.handle.shared.gone()),
        }
    }

    /// A new stream, called `name` in traces. It is released with its last handle and event, once its operations are
    /// complete. A process may have 65,536 streams at a time; the server disconnects a process that makes more.
    ///
    /// # Errors
    /// [`GpuError::Name`], [`GpuError::Gone`], [`GpuError::Inside`].
    pub fn stream(&self, name: &str) -> Result<Stream, GpuError> {
        if name.len() > NAME_MAX {
            return Err(GpuError::Name(name.to_owned()));
        }
        match self.ask(&Request::Stream(name.to_owned()))? {
            Reply::Stream(number) => Ok(Stream::new(self.handle.clone(), number, name)),
            _ => Err(self.handle.shared.gone()),
        }
    }

    /// Linux's numbers of the threads that work for the owners of streams: the handling thread and the callback thread.
    pub fn handling_threads(&self) -> [u32; 2] {
        self.threads(Threads::handling)
    }

    /// Linux's numbers of the threads that carry out the work of the engines in this process, in the order of
    /// [`Engine::ALL`]. They stand for hardware; unlike hardware, they need CPUs.
    pub fn engine_threads(&self) -> [u32; Engine::ALL.len()] {
        self.threads(Threads::engines)
    }

    /// What the engines did last for all processes, from entry number `from` on: some entries, and the number of the
    /// first of them. No entries: there are no more yet.
    ///
    /// # Errors
    /// [`GpuError::Gone`], [`GpuError::Inside`].
    pub fn history(&self, from: u64) -> Result<(u64, Vec<Entry>), GpuError> {
        match self.ask(&Request::History(from))? {
            Reply::History { first, entries } => Ok((first, entries)),
            _ => Err(self.handle.shared.gone()),
        }
    }

    /// The name of the stream with that number, of any process; empty if the server has forgotten it.
    ///
    /// # Errors
    /// [`GpuError::Gone`], [`GpuError::Inside`].
    pub fn stream_name(&self, number: u32) -> Result<String, GpuError> {
        match self.ask(&Request::Name(number))? {
            Reply::Name(name) => Ok(name),
            _ => Err(self.handle.shared.gone()),
        }
    }

    fn threads<T>(&self, numbers: impl FnOnce(&Threads) -> T) -> T {
        let threads = lock(&self.handle.threads);
        numbers(threads.as_ref().expect("the last handle ends them, and this is a handle"))
    }

    fn ask(&self, request: &Request) -> Result<Reply, GpuError> {
        self.handle.shared.ask(request)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.shared.is_ours() {
            // The threads are the other process's. Here they can neither be told nor waited for.
            std::mem::forget(std::mem::take(&mut *self.threads.get_mut().unwrap_or_else(PoisonError::into_inner)));
            return;
        }
        let Some(threads) = lock(&self.threads).take() else { return };
        let shared = self.shared.clone();
        if !inside::is_inside() {
            threads.close(&shared);
            return;
        }
        // A kernel or a callback had the last handle, and its thread cannot wait for itself. If Linux starts no other
        // thread, the process's end ends them.
        let _ = thread::Builder::new().name("softgpu-close".to_owned()).spawn(move || threads.close(&shared));
    }
}
