//! Threads that use shared GPUs.
//!
//! ```text
//!           laxity_gpu_token                  laxity_gpu_engine, _peer_copy, _chunk
//!      free ----------------> holds a token --------------------------------------> holds engines, too
//!       ^                       |     ^                                                   |
//!       +--- _token_release ----+     +---------------- _engines_release -----------------+
//! ```

use std::ffi::c_char;
use std::ptr::NonNull;

use laxity_gpu::{Base, Client, Config, EngineLock, PeerCopy, Token, TokenRequest};
use laxity_model::{CopyDirection, Engine, Instant, Nanos};
use laxity_sys::clock;

use crate::error::{CallError, Error, answer, laxity_result};
use crate::gpu::{laxity_engine, laxity_gpus};
use crate::handle::{self, Handle, out, text};
use crate::of_thread::OfThread;

/// A thread that is registered with an arbitration. That thread alone uses and releases it.
pub struct laxity_gpu_client {
    _opaque: (),
}

impl Handle for laxity_gpu_client {
    type Value = OfThread<State>;
    const TAG: u64 = u64::from_le_bytes(*b"lax-gpuc");
    const NAME: &'static str = "client";
}

/// A value on the heap, which other fields of the same struct can borrow while the struct moves.
struct OnHeap<T>(NonNull<T>);

impl<T> OnHeap<T> {
    fn new(value: T) -> Self {
        OnHeap(NonNull::from(Box::leak(Box::new(value))))
    }

    /// # Safety
    /// The result is not used once this is dropped, nor while the value is borrowed exclusively.
    unsafe fn borrow<'a>(&self) -> &'a T {
        // SAFETY: from `Box::leak`; the rest is as the caller promises.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Drop for OnHeap<T> {
    fn drop(&mut self) {
        // SAFETY: from `Box::leak` in `OnHeap::new`, and dropped once. Its borrows are gone, as `borrow` demands.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// A client and its locks. Fields are dropped in this order: each borrows from the next ones.
pub(crate) struct State {
    engines: Vec<Engines>,
    token: Option<OnHeap<Token<'static>>>,
    client: OnHeap<Client>,
    config: Config,
}

/// Engines that are released together.
#[expect(dead_code, reason = "held until it is dropped")]
enum Engines {
    One(EngineLock<'static>),
    Two(PeerCopy<'static>),
}

impl State {
    /// The client, until the next call that changes it.
    pub fn client(&self) -> &Client {
        // SAFETY: only code that has this exclusively changes or drops the client, so not while the result is used.
        unsafe { self.client.borrow() }
    }

    /// The token, valid while `self.token` has it: every caller puts the locks that borrow it into `self.engines`,
    /// which is emptied before the token is dropped.
    fn token(&self) -> Result<&'static Token<'static>, Error> {
        let token = self.token.as_ref().ok_or(CallError::NoToken)?;
        // SAFETY: tokens are never borrowed exclusively; for the rest see above.
        Ok(unsafe { token.borrow() })
    }

    /// The engine that copies in direction `number`.
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

/// A thread's priority, from C's two numbers.
pub(crate) fn base(priority: u8, deadline_ns: u64) -> Base {
    match (priority, deadline_ns) {
        (0, 0) => Base::Background,
        (0, _) => Base::Deadline(Instant(deadline_ns)),
        _ => Base::Fixed(priority),
    }
}

/// Registers this thread under a name for people. `priority` is its priority among waiters: 1 to 99 as of SCHED_FIFO,
/// the larger the more urgent. With 0 the deadline `deadline_ns` on CLOCK_MONOTONIC decides, the earlier the more
/// urgent; if that is 0, too, the thread is the least urgent.
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
        let state = State { engines: Vec::new(), token: None, client: OnHeap::new(client), config: *gpus.config() };
        *place = handle::make(OfThread::new(state));
        Ok(())
    })
}

/// Changes the thread's priority, as for laxity_gpus_register: a job with another deadline begins. The client must hold
/// no token.
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

/// Releases all locks of the client, and the client. If a thread ends without doing so, its locks go to the next
/// waiters, and its registration ends; any thread may release the handle then, whose memory stays and keeps this process attached. Sets
/// `*client` to NULL; does nothing if it is NULL already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_gpu_client_release(client: *mut *mut laxity_gpu_client) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not used any more.
        unsafe { OfThread::release(client) }
    })
}

/// The end of a time-out.
fn deadline(timeout_ns: u64) -> Instant {
    match timeout_ns {
        0 => Instant::ZERO,
        u64::MAX => Instant::NEVER,
        _ => clock::now().saturating_add(Nanos::from_nanos(timeout_ns)),
    }
}

/// Waits for a token of GPU `only`, or of any if that is negative: for `timeout_ns`, not at all if that is 0, or for
/// ever with LAXITY_FOREVER. Writes to `gpu`, which may be NULL, the GPU that the job may use.
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
        state.token = Some(OnHeap::new(token));
        Ok(())
    })
}

/// Releases all engines and then the token: the job is over.
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

/// Waits for the engines that a copy from GPU `from` to the token's GPU occupies, in the order that all threads follow.
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
/// copy before laxity_gpu_engines_release: one chunk, so that a more urgent copy waits no longer than that. Call it
/// until all is copied. Time-outs are as for tokens.
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

/// Releases all engines that the client holds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_gpu_engines_release(client: *mut laxity_gpu_client) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        unsafe { handle::get(client) }?.get()?.engines.clear();
        Ok(())
    })
}
