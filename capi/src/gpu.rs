//! GPUs that processes share.

use std::ffi::c_char;

use laxity_gpu::{Arbitration, Config, Inheritance, Registry};
use laxity_model::{EngineOrder, GpuArbitration, GpuSync};

use crate::error::{CallError, Error, answer, laxity_result};
use crate::handle::{self, Handle, out, text};

/// An arbitration that this process is attached to: GPUs that processes share, by name. Threads share it.
pub struct laxity_gpus {
    _opaque: (),
}

/// The rules by which GPUs are shared.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum laxity_arbitration {
    /// GPUSync: tokens, then engine locks.
    LAXITY_GPUSYNC = 0,
    /// The k-FMLP: one token a GPU, first come, first served; the parameters of GPUSync have no meaning.
    LAXITY_K_FMLP = 1,
}

/// An engine of a GPU.
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
    /// Engines serve the request of highest priority first, instead of the first one.
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

/// Calls `make` with the registry in `directory` and the name, and writes the result to `gpus`.
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

/// Releases the handle of an arbitration; its clients go on. Sets `*gpus` to NULL; does nothing if it is NULL already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_gpus_release(gpus: *mut *mut laxity_gpus) -> laxity_result {
    // SAFETY: the caller promises that the handle is not used any more.
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

/// The holders and waiters of each lock, as text for people. Writes at most `size` bytes of it to `buffer`, the last of
/// them NUL, and its length without NUL to `length`. `buffer` may be NULL if `size` is 0, and `length` may be NULL.
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
        // It does not overlap the text, which belongs to this function.
        unsafe {
            std::ptr::copy_nonoverlapping(shown.as_ptr(), buffer.cast(), fits);
            buffer.add(fits).write(0);
        }
        Ok(())
    })
}

/// Removes arbitrations in `directory` (NULL: /dev/shm) all of whose processes were killed. Writes their number to
/// `removed`, which may be NULL.
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
