//! GPUs that processes share.
//!
//! ```text
//!           laxity_gpu_token                  laxity_gpu_engine, _peer_copy, _chunk
//!      free ----------------> holds a token --------------------------------------> holds engines, too
//!       ^                       |     ^                                                   |
//!       +--- _token_release ----+     +---------------- _engines_release -----------------+
//! ```

use std::cell::{RefCell, RefMut};
use std::ffi::c_char;
use std::ptr::NonNull;
use std::thread::{self, ThreadId};

use laxity_gpu::{Arbitration, Base, Client, Config, EngineLock, Inheritance, PeerCopy, Registry, Token, TokenRequest};
use laxity_model::{CopyDirection, Engine, EngineOrder, GpuArbitration, GpuSync, Instant, Nanos};
use laxity_sys::clock;

use crate::error::{CallError, Error, answer, laxity_result};
use crate::handle::{self, Handle, out, text};

/// An arbitration that this process is attached to: GPUs that processes share, by name. Threads share it.
pub struct laxity_gpus {
    _opaque: (),
}

/// A thread that is registered with an arbitration. That thread alone uses and releases it.
pub struct laxity_gpu_client {
    _opaque: (),
}

/// By which rules GPUs are shared.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum laxity_arbitration {
    /// GPUSync: tokens, then engine locks.
    LAXITY_GPUSYNC = 0,
    /// The k-FMLP: one token a GPU, first come, first served; the parameters of GPUSync have no meaning.
    LAXITY_K_FMLP = 1,
}

/// What a GPU's operation occupies.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum laxity_engine {
    /// The engine that executes GPU kernels.
    LAXITY_ENGINE_EXECUTION = 0,
    /// The one that copies to the GPU.
    LAXITY_ENGINE_COPY_IN = 1,
    /// The one that copies from the GPU; with one copy engine, the same.
    LAXITY_ENGINE_COPY_OUT = 2,
}

/// The GPUs of one cluster, and how they are shared. All zeros but for `cpus` and `gpus`: GPUSync's defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct laxity_gpu_config {
    /// CPUs that the threads which share them run on.
    cpus: u16,
    /// GPUs, at most 64.
    gpus: u16,
    /// Copy engines of each GPU: 1 or 2; 0 means 2.
    copy_engines: u8,
    /// Engines go to the highest priority first, not to who came first.
    engines_by_priority: bool,
    /// One of enum laxity_arbitration.
    arbitration: u32,
    /// Tokens of each GPU; 0 means 1.
    tokens: u32,
    /// The most requests in the queue of a token, its holder's included; 0: as many as it takes for all CPUs.
    fifo_length: u32,
    /// The most requests in the queues of all tokens together; 0: as there are CPUs.
    fifo_requests: u32,
    /// The most threads that may be registered at a time; 0 means 64.
    clients: u16,
    /// Copies are broken into chunks of at most this many bytes; 0: they are not.
    chunk_bytes: u64,
}

impl Handle for laxity_gpus {
    type Value = Arbitration;
    const TAG: u64 = u64::from_le_bytes(*b"lax-gpus");
    const NAME: &'static str = "gpus";
}

impl Handle for laxity_gpu_client {
    type Value = OfThread<State>;
    const TAG: u64 = u64::from_le_bytes(*b"lax-gpuc");
    const NAME: &'static str = "client";
}

/// What one thread alone may touch, though its handle may be anywhere.
pub(crate) struct OfThread<T> {
    owner: ThreadId,
    value: RefCell<T>,
}

// SAFETY: `OfThread::get` gives the value to its owner only, and the functions that release handles drop it there
// only.
unsafe impl<T> Send for OfThread<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for OfThread<T> {}

impl<T> OfThread<T> {
    pub fn new(value: T) -> Self {
        OfThread { owner: thread::current().id(), value: RefCell::new(value) }
    }

    /// The value. Called by its owner.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }

    pub fn get(&self) -> Result<RefMut<'_, T>, Error> {
        if thread::current().id() == self.owner { Ok(self.value.borrow_mut()) } else { Err(CallError::Thread.into()) }
    }
}

/// A value in a place of its own, which others in the same struct can borrow while that moves.
struct Placed<T>(NonNull<T>);

impl<T> Placed<T> {
    fn new(value: T) -> Self {
        Placed(NonNull::from(Box::leak(Box::new(value))))
    }

    /// # Safety
    /// The result is not used once this is dropped, nor while the value is borrowed exclusively.
    unsafe fn borrow<'a>(&self) -> &'a T {
        // SAFETY: from `Box::leak`; the rest is as the caller promises.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Drop for Placed<T> {
    fn drop(&mut self) {
        // SAFETY: from `Box::leak` in `Placed::new`, and dropped once. Who borrows it is gone, as `borrow` demands.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// A client and what it holds. In the order in which it is to be dropped: each borrows what comes after it.
pub(crate) struct State {
    engines: Vec<Engines>,
    token: Option<Placed<Token<'static>>>,
    client: Placed<Client>,
    config: Config,
}

/// What is let go together.
#[expect(dead_code, reason = "held until it is dropped")]
enum Engines {
    One(EngineLock<'static>),
    Two(PeerCopy<'static>),
}

impl State {
    /// The client, until the next call that changes it.
    pub fn client(&self) -> &Client {
        // SAFETY: who changes it or drops it has this exclusively, and so not while the result is used.
        unsafe { self.client.borrow() }
    }

    /// The token, for as long as `self.token` has it: every caller puts what borrows it into `self.engines`, which is
    /// emptied before the token is dropped.
    fn token(&self) -> Result<&'static Token<'static>, Error> {
        let token = self.token.as_ref().ok_or(CallError::NoToken)?;
        // SAFETY: tokens are never borrowed exclusively, and for the rest as said above.
        Ok(unsafe { token.borrow() })
    }

    /// The engine that copies in the direction that the number says.
    fn copy_engine(&self, number: u32) -> Result<Engine, Error> {
        match number {
            number if number == laxity_engine::LAXITY_ENGINE_COPY_IN as u32 => {
                Ok(self.config.copy_engine(CopyDirection::In))
            }
            number if number == laxity_engine::LAXITY_ENGINE_COPY_OUT as u32 => {
                Ok(self.config.copy_engine(CopyDirection::Out))
            }
            number => Err(CallError::NoEngine { number }.into()),
        }
    }

    fn lock(&mut self, engine: Engine, timeout_ns: u64) -> Result<(), Error> {
        let lock = self.token()?.engine(engine, deadline(timeout_ns))?;
        self.engines.push(Engines::One(lock));
        Ok(())
    }
}

impl laxity_gpu_config {
    fn config(&self) -> Result<Config, Error> {
        let or = |number: u32| (number != 0).then_some(number);
        let arbitration = match self.arbitration {
            number if number == laxity_arbitration::LAXITY_K_FMLP as u32 => {
                GpuArbitration::KFmlp { length_aware: false }
            }
            number if number == laxity_arbitration::LAXITY_GPUSYNC as u32 => GpuArbitration::GpuSync(GpuSync {
                tokens: self.tokens.max(1),
                fifo_length: or(self.fifo_length),
                fifo_requests: or(self.fifo_requests),
                engine_order: if self.engines_by_priority { EngineOrder::Priority } else { EngineOrder::Fifo },
                chunk: (self.chunk_bytes != 0).then_some(self.chunk_bytes),
                ..GpuSync::DEFAULT
            }),
            number => return Err(CallError::NoArbitration { number }.into()),
        };
        let default = Config::new(self.cpus, self.gpus);
        let copy_engines = if self.copy_engines == 0 { default.copy_engines } else { self.copy_engines };
        let clients = if self.clients == 0 { default.clients } else { self.clients };
        Ok(Config { copy_engines, clients, arbitration, ..default })
    }
}

/// Names in `directory`; in /dev/shm if it is null.
///
/// # Safety
/// `directory` is null or ends with NUL.
unsafe fn registry(directory: *const c_char) -> Result<Registry, Error> {
    if directory.is_null() {
        return Ok(Registry::default());
    }
    // SAFETY: not null, and otherwise as the caller promises.
    Ok(Registry::at(unsafe { text(directory, "directory") }?))
}

/// Writes to `gpus` what `make` makes of the registry in `directory` and of the name.
///
/// # Safety
/// `gpus` can be written, `directory` is null or ends with NUL, and `name` ends with NUL.
unsafe fn open(
    directory: *const c_char,
    name: *const c_char,
    gpus: *mut *mut laxity_gpus,
    make: impl FnOnce(&Registry, &str) -> Result<Arbitration, Error>,
) -> laxity_result {
    answer(|| {
        // SAFETY: as the caller promises.
        let gpus = unsafe { out(gpus, "gpus") }?;
        *gpus = std::ptr::null_mut();
        // SAFETY: as the caller promises.
        let (registry, name) = unsafe { (registry(directory)?, text(name, "name")?) };
        *gpus = handle::make(make(&registry, name)?);
        Ok(())
    })
}

/// Creates the arbitration called `name` in `directory` (NULL: /dev/shm), or attaches to it if it is there already: for
/// processes that all know its configuration and start in any order. LAXITY_ERROR_DIFFERENT if it is configured
/// otherwise, LAXITY_ERROR_CONFIG if it cannot be. It ends with the last process that uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_gpus_create_or_attach(
    directory: *const c_char,
    name: *const c_char,
    config: *const laxity_gpu_config,
    gpus: *mut *mut laxity_gpus,
) -> laxity_result {
    let make = |registry: &Registry, name: &str| {
        // SAFETY: the caller promises that `config` can be read unless it is null.
        let config = unsafe { config.as_ref() }.ok_or(CallError::Null { argument: "config" })?.config()?;
        Ok(registry.create_or_attach(name, &config)?)
    };
    // SAFETY: the caller promises that the texts end with NUL and that `gpus` can be written.
    unsafe { open(directory, name, gpus, make) }
}

/// Attaches to the arbitration called `name` in `directory` (NULL: /dev/shm), however it is configured.
/// LAXITY_ERROR_NO_ARBITRATION if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_gpus_attach(
    directory: *const c_char,
    name: *const c_char,
    gpus: *mut *mut laxity_gpus,
) -> laxity_result {
    let make = |registry: &Registry, name: &str| Ok(registry.attach(name)?);
    // SAFETY: the caller promises that the texts end with NUL and that `gpus` can be written.
    unsafe { open(directory, name, gpus, make) }
}

/// Releases the handle of an arbitration; its clients go on. `*gpus` is NULL then; if it is already, nothing happens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_gpus_release(gpus: *mut *mut laxity_gpus) -> laxity_result {
    // SAFETY: the caller promises that nobody uses the handle any more.
    answer(|| unsafe { handle::take(gpus) }.map(drop))
}

/// Whether Linux lets this process raise threads, so that holders really run at the priority that they inherit. If not,
/// grants are in the right order all the same.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_gpus_inherits(gpus: *const laxity_gpus, inherits: *mut bool) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `inherits` can be written.
        let (gpus, inherits) = unsafe { (handle::get(gpus)?, out(inherits, "inherits")?) };
        *inherits = gpus.inheritance() == Inheritance::Real;
        Ok(())
    })
}

/// Who holds and waits for what, as text for people: at most `size` bytes of it to `buffer`, the last of them NUL, and
/// to `length` how many it has without that. `buffer` may be NULL if `size` is 0, and `length` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_gpus_text(
    gpus: *const laxity_gpus,
    buffer: *mut c_char,
    size: usize,
    length: *mut usize,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        let shown = unsafe { handle::get(gpus) }?.snapshot()?.to_string().replace('\0', "?");
        // SAFETY: the caller promises that `length` can be written unless it is null.
        if let Some(length) = unsafe { length.as_mut() } {
            *length = shown.len();
        }
        if size == 0 {
            return Ok(());
        }
        if buffer.is_null() {
            return Err(CallError::Null { argument: "buffer" }.into());
        }
        let fits = (0..=shown.len().min(size - 1)).rev().find(|&end| shown.is_char_boundary(end)).unwrap_or(0);
        // SAFETY: not null (checked above), the caller promises that `size` bytes can be written, and `fits` is less.
        // It does not overlap the text, which is ours.
        unsafe {
            std::ptr::copy_nonoverlapping(shown.as_ptr(), buffer.cast(), fits);
            buffer.add(fits).write(0);
        }
        Ok(())
    })
}

/// Removes arbitrations in `directory` (NULL: /dev/shm) all of whose processes were killed, and says how many they
/// were. `removed` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_gpus_gc(directory: *const c_char, removed: *mut usize) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `directory` is null or ends with NUL.
        let names = unsafe { registry(directory) }?.gc()?;
        // SAFETY: the caller promises that `removed` can be written unless it is null.
        if let Some(removed) = unsafe { removed.as_mut() } {
            *removed = names.len();
        }
        Ok(())
    })
}

/// How urgent a thread is, from two numbers.
pub(crate) fn base(priority: u8, deadline_ns: u64) -> Base {
    match (priority, deadline_ns) {
        (0, 0) => Base::Background,
        (0, _) => Base::Deadline(Instant(deadline_ns)),
        _ => Base::Fixed(priority),
    }
}

/// Registers this thread under a name for those who watch. `priority` says how urgent it is among those that wait: 1 to
/// 99 as of SCHED_FIFO, the larger the more urgent; 0 means that `deadline_ns` on CLOCK_MONOTONIC does, the earlier the
/// more urgent, or nothing if that is 0, too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_gpus_register(
    gpus: *const laxity_gpus,
    name: *const c_char,
    priority: u8,
    deadline_ns: u64,
    client: *mut *mut laxity_gpu_client,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `client` can be written.
        let place = unsafe { out(client, "client") }?;
        *place = std::ptr::null_mut();
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `name` ends with NUL.
        let (gpus, name) = unsafe { (handle::get(gpus)?, text(name, "name")?) };
        let client = gpus.register(name, base(priority, deadline_ns))?;
        let state = State { engines: Vec::new(), token: None, client: Placed::new(client), config: *gpus.config() };
        *place = handle::make(OfThread::new(state));
        Ok(())
    })
}

/// This thread is as urgent as this from now on, as for laxity_gpus_register: a job with another deadline begins. To be
/// called without a token.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_gpu_client_rebase(
    client: *mut laxity_gpu_client,
    priority: u8,
    deadline_ns: u64,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        let mut state = unsafe { handle::get(client) }?.get()?;
        if state.token.is_some() {
            return Err(CallError::HasToken.into());
        }
        // SAFETY: only a token borrows the client, and there is none (checked above).
        let client = unsafe { state.client.0.as_mut() };
        Ok(client.rebase(base(priority, deadline_ns))?)
    })
}

/// Lets go of whatever the client holds, and forgets the thread. `*client` is NULL then; if it is already, nothing
/// happens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_gpu_client_release(client: *mut *mut laxity_gpu_client) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `client` can be written.
        let place = unsafe { out(client, "client") }?;
        if place.is_null() {
            return Ok(());
        }
        // SAFETY: the caller promises that nobody uses the handle any more.
        drop(unsafe { handle::get(*place) }?.get()?);
        // SAFETY: as above.
        unsafe { handle::take(place) }.map(drop)
    })
}

/// When a time-out is over.
fn deadline(timeout_ns: u64) -> Instant {
    match timeout_ns {
        0 => Instant::ZERO,
        u64::MAX => Instant::NEVER,
        _ => clock::now().saturating_add(Nanos::from_nanos(timeout_ns)),
    }
}

/// Waits for a token of GPU `only`, or of any if that is negative: for `timeout_ns`, not at all if that is 0, or for
/// ever with LAXITY_FOREVER. Writes to `gpu`, which may be NULL, which GPU the job may use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_gpu_token(
    client: *mut laxity_gpu_client,
    only: i32,
    timeout_ns: u64,
    gpu: *mut u32,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        let mut state = unsafe { handle::get(client) }?.get()?;
        // SAFETY: it is used in `state.token` only, which is dropped before the client, and without which the client is
        // never borrowed exclusively.
        let borrowed = unsafe { state.client.borrow() };
        // A number that is too large for a GPU is none.
        let only = (only >= 0).then(|| u16::try_from(only).unwrap_or(u16::MAX));
        let ask = TokenRequest { gpu: only, deadline: deadline(timeout_ns), ..TokenRequest::default() };
        let token = borrowed.request(ask)?;
        // SAFETY: the caller promises that `gpu` can be written unless it is null.
        if let Some(gpu) = unsafe { gpu.as_mut() } {
            *gpu = token.gpu().into();
        }
        state.token = Some(Placed::new(token));
        Ok(())
    })
}

/// The job is over: lets go of the token, and before that of all engines.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_gpu_token_release(client: *mut laxity_gpu_client) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        let mut state = unsafe { handle::get(client) }?.get()?;
        state.token()?;
        state.engines.clear();
        state.token = None;
        Ok(())
    })
}

/// Waits for an engine of the GPU whose token the client holds: one of enum laxity_engine. Time-outs are as for tokens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_gpu_engine(
    client: *mut laxity_gpu_client,
    engine: u32,
    timeout_ns: u64,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        let mut state = unsafe { handle::get(client) }?.get()?;
        let engine = if engine == laxity_engine::LAXITY_ENGINE_EXECUTION as u32 {
            Engine::Execution
        } else {
            state.copy_engine(engine)?
        };
        state.lock(engine, timeout_ns)
    })
}

/// Waits for the engines that a copy from GPU `from` to the token's occupies, in the order that is the same for all.
/// Time-outs are as for tokens, for each of the two.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_gpu_peer_copy(
    client: *mut laxity_gpu_client,
    from: u32,
    timeout_ns: u64,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        let mut state = unsafe { handle::get(client) }?.get()?;
        let from = u16::try_from(from).unwrap_or(u16::MAX);
        let both = state.token()?.peer_copy(from, deadline(timeout_ns))?;
        state.engines.push(Engines::Two(both));
        Ok(())
    })
}

/// Waits for the engine that copies in the direction of `engine`, and writes to `length` how many of `bytes` bytes to
/// copy before laxity_gpu_engines_release: a chunk, so that a more urgent copy waits no longer than that. Called until
/// nothing is left to copy. Time-outs are as for tokens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_gpu_chunk(
    client: *mut laxity_gpu_client,
    engine: u32,
    bytes: u64,
    timeout_ns: u64,
    length: *mut u64,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `length` can be written.
        let (client, length) = unsafe { (handle::get(client)?, out(length, "length")?) };
        let mut state = client.get()?;
        let engine = state.copy_engine(engine)?;
        state.lock(engine, timeout_ns)?;
        *length = state.config.chunk().map_or(bytes, |chunk| chunk.min(bytes));
        Ok(())
    })
}

/// Lets go of all engines that the client holds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_gpu_engines_release(client: *mut laxity_gpu_client) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        unsafe { handle::get(client) }?.get()?.engines.clear();
        Ok(())
    })
}
