//! A soft GPU as a process sees it.

mod buffer;
mod inside;
mod shared;
mod start;
mod stream;
mod threads;
mod view;

use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;

use laxity_model::Engine;

pub use self::buffer::Buffer;
pub use self::start::SERVER_VARIABLE;
pub use self::stream::{CopyOut, Event, KernelResult, Stream, Wait};
pub use self::threads::{Handling, Server as HandlingThread, Unmanaged};
pub use self::view::{DeviceView, Reading, Writing};

use self::shared::Shared;
use self::stream::lock;
use self::threads::Threads;
use crate::config::{Config, NAME_MAX};
use crate::error::{GpuError, OpenError};
use crate::message::{Reply, Request};
use crate::server::history::Entry;
use crate::usage::Usage;

/// A soft GPU, shared with all processes of this user that open one of its name. Cheap to clone.
///
/// When the last handle, stream and event of a process are dropped, what it has not completed is dropped, too.
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
        SoftGpu::open_with(name, config, None, Arc::new(Unmanaged))
    }

    /// As [`SoftGpu::open`], with `server` to start if there is none, and threads that `handling` manages.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_with(
        name: &str,
        config: Config,
        server: Option<&Path>,
        handling: Arc<dyn Handling>,
    ) -> Result<SoftGpu, OpenError> {
        let connection = start::connect(name, &config, server)?;
        let (answer, answers) = channel();
        let shared = Arc::new(Shared::new(name, config, connection, answers));
        let threads = Threads::start(&shared, answer, &handling)
            .map_err(|error| OpenError::System { action: "start threads", error })?;
        Ok(SoftGpu { handle: Arc::new(Handle { shared, threads: Mutex::new(Some(threads)) }) })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.handle.shared.name
    }

    /// What it is like.
    pub fn config(&self) -> &Config {
        &self.handle.shared.config
    }

    /// The process that is the soft GPU; `None` if Linux does not say.
    pub fn server(&self) -> Option<u32> {
        self.handle.shared.packets.peer().ok()
    }

    /// `bytes` of device memory, which are zero: nobody sees what another process left there. They take whole pages.
    ///
    /// # Errors
    /// [`GpuError::Memory`] if the device has not as much left in one piece, [`GpuError::Shortage`] if the machine has
    /// not; [`GpuError::Map`], [`GpuError::Gone`], [`GpuError::Inside`].
    pub fn alloc(&self, bytes: usize) -> Result<Buffer, GpuError> {
        match self.ask(&Request::Allocate(bytes as u64))? {
            Reply::Allocated(offset) => Buffer::new(self.handle.shared.clone(), offset, bytes),
            Reply::NoMemory(largest) => Err(GpuError::Memory { asked: bytes as u64, largest }),
            Reply::Shortage(left) => Err(GpuError::Shortage { asked: bytes as u64, left }),
            _ => Err(self.handle.shared.gone()),
        }
    }

    /// How much of it is used, by all processes.
    ///
    /// # Errors
    /// [`GpuError::Gone`], [`GpuError::Inside`].
    pub fn usage(&self) -> Result<Usage, GpuError> {
        match self.ask(&Request::Look)? {
            Reply::Seen(usage) => Ok(usage),
            _ => Err(self.handle.shared.gone()),
        }
    }

    /// A new stream, called `name` in traces.
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

    /// The numbers, as Linux has them, of the threads that work on behalf of the owners of streams: the handling thread
    /// and the callback thread.
    pub fn handling_threads(&self) -> [u32; 2] {
        self.threads(Threads::handling)
    }

    /// The numbers, as Linux has them, of the threads that carry out the work of the engines in this process, in the
    /// order of [`Engine::ALL`]: they stand for hardware, which does not wait for a CPU, though they do.
    pub fn engine_threads(&self) -> [u32; Engine::ALL.len()] {
        self.threads(Threads::engines)
    }

    /// What the engines did lately, for all processes, from entry number `from` on: some entries, and the number of the
    /// first of them. None: there are no more yet.
    ///
    /// # Errors
    /// [`GpuError::Gone`], [`GpuError::Inside`].
    pub fn history(&self, from: u64) -> Result<(u64, Vec<Entry>), GpuError> {
        match self.ask(&Request::History(from))? {
            Reply::History { first, entries } => Ok((first, entries)),
            _ => Err(self.handle.shared.gone()),
        }
    }

    /// The name of the stream of that number, of any process; empty if it is long gone.
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
        numbers(threads.as_ref().expect("they go with the last handle, and this is one"))
    }

    fn ask(&self, request: &Request) -> Result<Reply, GpuError> {
        self.handle.shared.ask(request)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let Some(threads) = lock(&self.threads).take() else { return };
        let shared = self.shared.clone();
        if !inside::is_inside() {
            threads.close(&shared);
            return;
        }
        // A kernel or a callback had the last handle: its thread cannot wait for itself. If there can be no other, they
        // go with the process.
        let _ = thread::Builder::new().name("softgpu-close".to_owned()).spawn(move || threads.close(&shared));
    }
}
