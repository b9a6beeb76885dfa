//! GPUs as jobs use them.
//!
//! ```text
//!        laxity_device_begin_job          the first operation             _end_job or _release_token
//! thread -----------------------> job ------------------------> token ------------------------------> no token
//! ```

use std::ffi::{c_char, c_void};
use std::path::PathBuf;

use ::laxity_device::{Buffer, Device, DeviceOptions, DeviceThread, Management, Scheduling, Service, Wait};
use laxity_model::{CopyDirection, LockId, Nanos};

use crate::error::{CallError, Error, answer, laxity_result};
use crate::gpu::{laxity_engine, laxity_gpus};
use crate::gpu_client::base;
use crate::handle::{self, Handle, out, text};
use crate::of_thread::OfThread;
use crate::system::laxity_system;
use crate::task::{laxity_task, of_handle};

/// The soft GPUs that this process uses. Threads share it.
pub struct laxity_device {
    _opaque: (),
}

/// A thread that uses a device. That thread alone uses and releases it.
pub struct laxity_device_thread {
    _opaque: (),
}

/// Memory of a GPU. Threads share it.
pub struct laxity_buffer {
    _opaque: (),
}

/// How the soft GPU's threads that work on behalf of others are scheduled.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum laxity_service {
    /// With the highest priority of those threads of this process that hold a token of the GPU; without an arbitration,
    /// as with LAXITY_SERVICE_AS_IS.
    LAXITY_SERVICE_OWNERS = 0,
    /// As the thread that opened the device.
    LAXITY_SERVICE_AS_IS = 1,
    /// Under SCHED_FIFO at a priority of its own.
    LAXITY_SERVICE_FIXED = 2,
}

/// The configuration of a device. All zeros but for `name`: one soft GPU with defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct laxity_device_config {
    /// The name of the soft GPU; several are called NAME.0, NAME.1 and so on.
    name: *const c_char,
    /// How many soft GPUs, 64 at most; 0: as many as the arbitration has, or one.
    gpus: u16,
    /// Copy engines of each: 1 or 2; 0: as many as the arbitration has, or 2.
    copy_engines: u8,
    /// Threads that wait for an operation spin instead of suspending.
    spins: bool,
    /// Bytes of memory of each, of which only allocated pages take memory of this machine; 0: 64 MiB.
    memory: u64,
    /// Bytes that a copy engine copies in a second at most; 0: as fast as this machine copies.
    copy_rate: u64,
    /// How the threads that handle interrupts and call callbacks are scheduled: one of enum laxity_service.
    handling: u32,
    /// How the threads that carry out kernels and copies in this process are scheduled.
    engines: u32,
    /// The priorities for LAXITY_SERVICE_FIXED, 1 to 99.
    handling_priority: u8,
    engines_priority: u8,
    /// The program that is the soft GPU's server; NULL: LAXITY_SOFTGPU_SERVER of the environment, or
    /// laxity-softgpu-server beside this program or in PATH.
    server: *const c_char,
    /// Bytes of the stack of each thread that runs kernels and copies in this process; 0: as much as an ordinary thread's,
    /// RLIMIT_STACK, or 8 MiB if that is unlimited.
    stack: usize,
    /// The bandwidth lock is held around every operation, with this budget of memory traffic for each regulated CPU, in
    /// bytes a second; 0: it is not. Needs an arbitration.
    bandwidth: u64,
    /// The system of Laxity's scheduler that schedules the threads which use the device, if one does, instead of an
    /// arbitration: jobs are suspended for its policy while they wait for the GPU, and the thread that handles interrupts is
    /// a task of it. The device keeps it. NULL: none.
    system: *const laxity_system,
    /// Of the system: the cluster of the thread that handles interrupts, that of the tasks which use the device.
    cluster: u32,
    /// Of the system: whether its locks grant GPUs and engines; operations go first come, first served otherwise.
    is_managed: bool,
    /// Of the system: the lock of the tokens of all GPUs. Behind it come, for each GPU, those of its execution engine and of
    /// its copy engines.
    first_lock: u16,
    /// Of the system: copies are broken into chunks of at most this many bytes; 0: they are not.
    chunk: u64,
}

impl Handle for laxity_device {
    type Value = Device;
    const TAG: u64 = u64::from_le_bytes(*b"lax-devi");
    const NAME: &'static str = "device";
}

impl Handle for laxity_device_thread {
    type Value = OfThread<DeviceThread>;
    const TAG: u64 = u64::from_le_bytes(*b"lax-devt");
    const NAME: &'static str = "thread";
}

impl Handle for laxity_buffer {
    type Value = Buffer;
    const TAG: u64 = u64::from_le_bytes(*b"lax-buff");
    const NAME: &'static str = "buffer";
}

impl laxity_device_config {
    /// # Safety
    /// Its texts are null or end with NUL, and its system is null or not released meanwhile.
    unsafe fn options(&self, arbitration: Option<&laxity_gpu::Arbitration>) -> Result<DeviceOptions, Error> {
        // SAFETY: as the caller promises.
        let mut options = DeviceOptions::new(unsafe { text(self.name, "config->name") }?);
        let or = |number: u64| (number != 0).then_some(number);
        let arbitrated = arbitration.map(laxity_gpu::Arbitration::config);
        options.gpus = match self.gpus {
            0 => arbitrated.map_or(1, |config| config.gpus),
            gpus => gpus,
        };
        options.gpu.copy_engines = match self.copy_engines {
            0 => arbitrated.map_or(options.gpu.copy_engines, |config| config.copy_engines),
            engines => engines,
        };
        options.gpu.memory = or(self.memory).unwrap_or(options.gpu.memory);
        options.gpu.copy_rate = or(self.copy_rate);
        options.arbitration = arbitration.cloned();
        if !self.system.is_null() {
            // SAFETY: not null, and otherwise as the caller promises.
            let system = unsafe { handle::get(self.system) }?.clone();
            let (tokens, chunk) = (LockId(self.first_lock), or(self.chunk));
            let management = self.is_managed.then_some(Management { tokens, chunk });
            options.scheduling = Some(Scheduling { system, cluster: self.cluster as usize, management });
        }
        options.stack = (self.stack != 0).then_some(self.stack);
        options.bandwidth = or(self.bandwidth);
        options.wait = if self.spins { Wait::Spinning } else { Wait::Blocking };
        options.handling = service("config->handling", self.handling, self.handling_priority)?;
        options.engines = service("config->engines", self.engines, self.engines_priority)?;
        if !self.server.is_null() {
            // SAFETY: not null, and otherwise as the caller promises.
            options.server = Some(PathBuf::from(unsafe { text(self.server, "config->server") }?));
        }
        Ok(options)
    }
}

fn service(argument: &'static str, number: u32, priority: u8) -> Result<Service, Error> {
    match number {
        number if number == laxity_service::LAXITY_SERVICE_OWNERS as u32 => Ok(Service::Owners),
        number if number == laxity_service::LAXITY_SERVICE_AS_IS as u32 => Ok(Service::AsIs),
        number if number == laxity_service::LAXITY_SERVICE_FIXED as u32 => Ok(Service::Fixed(priority)),
        value => Err(CallError::Value { argument, value, of: "enum laxity_service" }.into()),
    }
}

/// Opens soft GPUs, and starts their servers if there are none. `gpus` is the arbitration that decides which thread
/// uses them when; the device keeps it. With NULL the GPUs serve operations first come, first served.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_device_open(
    config: *const laxity_device_config,
    gpus: *const laxity_gpus,
    device: *mut *mut laxity_device,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `device` can be written.
        let place = unsafe { out(device, "device") }?;
        *place = std::ptr::null_mut();
        // SAFETY: the caller promises that `config` can be read unless it is null.
        let config = unsafe { config.as_ref() }.ok_or(CallError::Null { argument: "config" })?;
        // SAFETY: the caller promises that the handle is not released meanwhile.
        let arbitration = if gpus.is_null() { None } else { Some(unsafe { handle::get(gpus) }?) };
        // SAFETY: the caller promises that texts end with NUL, and that the system is not released meanwhile.
        let options = unsafe { config.options(arbitration) }?;
        *place = handle::make(Device::open(&options)?);
        Ok(())
    })
}

/// Releases the handle of a device; its threads and buffers stay. Sets `*device` to NULL; does nothing if it is NULL
/// already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_device_release(device: *mut *mut laxity_device) -> laxity_result {
    // SAFETY: the caller promises that the handle is not used any more.
    answer(|| unsafe { handle::take(device) }.map(drop))
}

/// Allocates `size` bytes of the memory of GPU `gpu`, which are zero. LAXITY_ERROR_MEMORY if the GPU has too few in one
/// piece, or this machine has too few left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_buffer_alloc(
    device: *const laxity_device,
    gpu: u32,
    size: usize,
    buffer: *mut *mut laxity_buffer,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `buffer` can be written.
        let place = unsafe { out(buffer, "buffer") }?;
        *place = std::ptr::null_mut();
        // SAFETY: the caller promises that the handle is not released meanwhile.
        let device = unsafe { handle::get(device) }?;
        *place = handle::make(device.alloc_on(u16::try_from(gpu).unwrap_or(u16::MAX), size)?);
        Ok(())
    })
}

/// Releases the handle of a buffer, whose memory is free once the last operation that uses it is complete. Sets
/// `*buffer` to NULL; does nothing if it is NULL already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_buffer_release(buffer: *mut *mut laxity_buffer) -> laxity_result {
    // SAFETY: the caller promises that the handle is not used any more.
    answer(|| unsafe { handle::take(buffer) }.map(drop))
}

/// Registers this thread with the device under a name of 1 to 64 bytes, which traces show. `priority` and `deadline_ns`
/// are its priority, as for laxity_gpus_register, until a job changes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_device_register(
    device: *const laxity_device,
    name: *const c_char,
    priority: u8,
    deadline_ns: u64,
    thread: *mut *mut laxity_device_thread,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `thread` can be written.
        let place = unsafe { out(thread, "thread") }?;
        *place = std::ptr::null_mut();
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `name` ends with NUL.
        let (device, name) = unsafe { (handle::get(device)?, text(name, "name")?) };
        *place = handle::make(OfThread::new(device.thread(name, base(priority, deadline_ns))?));
        Ok(())
    })
}

/// Registers this thread, which is `task`, with a device of the task's system, under a name of 1 to 64 bytes. The task's jobs
/// are those of the thread: laxity_device_begin_job numbers them, and what it says of priorities has no meaning here. The
/// thread's handle keeps the task.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_device_register_task(
    device: *const laxity_device,
    name: *const c_char,
    task: *const laxity_task,
    thread: *mut *mut laxity_device_thread,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `thread` can be written.
        let place = unsafe { out(thread, "thread") }?;
        *place = std::ptr::null_mut();
        // SAFETY: the caller promises that the handles are not released meanwhile, and that `name` ends with NUL.
        let (device, name, task) = unsafe { (handle::get(device)?, text(name, "name")?, of_handle(task)?) };
        *place = handle::make(OfThread::new(device.scheduled_thread(name, task)?));
        Ok(())
    })
}

/// Releases all locks of the thread, and the thread's handle. If the thread ends without doing so, any thread may release
/// the handle, whose memory stays and keeps this process attached. Sets `*thread` to NULL; does nothing if it is NULL already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_device_thread_release(thread: *mut *mut laxity_device_thread) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not used any more.
        unsafe { OfThread::release(thread) }
    })
}

/// Does `call` with the thread.
///
/// # Safety
/// `thread` is null, or a handle that is not released meanwhile.
pub(crate) unsafe fn with(
    thread: *mut laxity_device_thread,
    call: impl FnOnce(&mut DeviceThread) -> Result<(), Error>,
) -> laxity_result {
    // SAFETY: as the caller promises.
    answer(|| call(&mut *unsafe { handle::get(thread) }?.get()?))
}

/// Begins a job, number `number` of its task in traces, with the priority that `priority` and `deadline_ns` state. A
/// job that has not ended ends now. The thread must be scheduled as when it registered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_device_begin_job(
    thread: *mut laxity_device_thread,
    number: u32,
    priority: u8,
    deadline_ns: u64,
) -> laxity_result {
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(thread, |thread| Ok(thread.begin_job(number, base(priority, deadline_ns))?)) }
}

/// Ends the job: releases the token.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_device_end_job(thread: *mut laxity_device_thread) -> laxity_result {
    let end = |thread: &mut DeviceThread| {
        thread.end_job();
        Ok(())
    };
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(thread, end) }
}

/// Releases the token early, when the job needs no GPU any more. Its next operation takes another.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_device_release_token(thread: *mut laxity_device_thread) -> laxity_result {
    let release = |thread: &mut DeviceThread| {
        thread.release();
        Ok(())
    };
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(thread, release) }
}

/// Whether the thread holds a token.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_device_holds_token(
    thread: *mut laxity_device_thread,
    holds: *mut bool,
) -> laxity_result {
    let ask = |thread: &mut DeviceThread| {
        // SAFETY: the caller promises that `holds` can be written.
        *unsafe { out(holds, "holds") }? = thread.holds_token();
        Ok(())
    };
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(thread, ask) }
}

/// Takes a token now, if there is an arbitration and the thread holds none, rather than with the first operation.
/// Writes to `gpu`, which may be NULL, which GPU the job uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_device_acquire_token(
    thread: *mut laxity_device_thread,
    gpu: *mut u32,
) -> laxity_result {
    let acquire = |thread: &mut DeviceThread| {
        let acquired = thread.acquire()?;
        // SAFETY: the caller promises that `gpu` can be written unless it is null.
        if let Some(gpu) = unsafe { gpu.as_mut() } {
            *gpu = acquired.into();
        }
        Ok(())
    };
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(thread, acquire) }
}

/// Has jobs of the thread use GPU `gpu` from now on, or, if that is negative, whichever the arbitration gives them. A
/// buffer always has its own GPU used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_device_use_gpu(thread: *mut laxity_device_thread, gpu: i32) -> laxity_result {
    // A number that is too large for a GPU matches none.
    let gpu = (gpu >= 0).then(|| u16::try_from(gpu).unwrap_or(u16::MAX));
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(thread, |thread| Ok(thread.use_gpu(gpu)?)) }
}

/// Copies `size` bytes from `bytes` to `offset` of `buffer`, chunk by chunk if the arbitration says so, and returns
/// when the GPU has done it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_device_copy_in(
    thread: *mut laxity_device_thread,
    buffer: *const laxity_buffer,
    offset: usize,
    bytes: *const c_void,
    size: usize,
) -> laxity_result {
    let copy = |thread: &mut DeviceThread| {
        // SAFETY: the caller promises that `size` bytes can be read and do not change.
        let bytes = unsafe { handle::slice(bytes.cast(), size, "bytes") }?;
        // SAFETY: the caller promises that the handle is not released meanwhile.
        Ok(thread.copy_in(unsafe { handle::get(buffer) }?, offset, bytes)?)
    };
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(thread, copy) }
}

/// Copies `size` bytes from `offset` of `buffer` to `bytes`, chunk by chunk if the arbitration says so, and returns
/// when the GPU has done it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_device_copy_out(
    thread: *mut laxity_device_thread,
    buffer: *const laxity_buffer,
    offset: usize,
    bytes: *mut c_void,
    size: usize,
) -> laxity_result {
    let copy = |thread: &mut DeviceThread| {
        // SAFETY: the caller promises that no other thread uses these `size` bytes. All values of bytes are valid.
        let bytes = unsafe { handle::slice_mut(bytes.cast(), size, "bytes") }?;
        // SAFETY: the caller promises that the handle is not released meanwhile.
        Ok(thread.copy_out(unsafe { handle::get(buffer) }?, offset, bytes)?)
    };
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(thread, copy) }
}

/// Occupies the copy engine of a direction, LAXITY_ENGINE_COPY_IN or LAXITY_ENGINE_COPY_OUT, for as long as a copy of
/// `size` bytes takes by `copy_rate`. Nothing is copied, and no CPU is used meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_device_copy_timed(
    thread: *mut laxity_device_thread,
    direction: u32,
    size: usize,
) -> laxity_result {
    let copy = |thread: &mut DeviceThread| {
        let direction = match direction {
            number if number == laxity_engine::LAXITY_ENGINE_COPY_IN as u32 => CopyDirection::In,
            number if number == laxity_engine::LAXITY_ENGINE_COPY_OUT as u32 => CopyDirection::Out,
            number => return Err(CallError::NoEngine { number }.into()),
        };
        Ok(thread.copy_timed(direction, size)?)
    };
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(thread, copy) }
}

/// Occupies the execution engine for `duration_ns`. No CPU is used meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_device_launch_timed(
    thread: *mut laxity_device_thread,
    duration_ns: u64,
) -> laxity_result {
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(thread, |thread| Ok(thread.launch_timed(Nanos(duration_ns))?)) }
}
