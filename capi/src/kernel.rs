//! GPU kernels in C.

use std::ffi::c_void;
use std::fmt;
use std::sync::mpsc::{RecvError, channel};
use std::sync::{Mutex, PoisonError};

use ::laxity_device::{DeviceThread, DeviceView};
use laxity_model::Nanos;
use laxity_softgpu::{Reading, Writing};

use crate::device::{laxity_buffer, laxity_device_thread, with};
use crate::error::{CallError, Error, answer, laxity_result};
use crate::handle::{self, out};

/// A kernel's view of device memory, while it runs.
pub struct laxity_view {
    _opaque: (),
}

/// A GPU kernel: a function that runs in this process, on a thread of the soft GPU, while it holds the execution
/// engine. It returns 0, or a number of its own that says what went wrong; it must not throw. It cannot issue
/// operations. The size of its stack is laxity_device_config's.
pub type laxity_kernel = Option<unsafe extern "C" fn(argument: *mut c_void, view: *const laxity_view) -> i32>;

const TAG: u64 = u64::from_le_bytes(*b"lax-view");
const NAME: &str = "view";

/// The memory of a `laxity_view`. It begins with its tag, which is 0 once the kernel has returned.
#[repr(C)]
struct View<'a> {
    tag: u64,
    device: DeviceView<'a>,
    /// The bytes that the kernel got: its own until it returns. Threads that it starts may ask, too.
    given: Mutex<Vec<Given<'a>>>,
}

/// Held until it is dropped.
#[expect(dead_code, reason = "held until it is dropped")]
enum Given<'a> {
    Reading(Reading<'a>),
    Writing(Writing<'a>),
}

/// The function of a kernel and its argument.
struct Kernel {
    function: unsafe extern "C" fn(argument: *mut c_void, view: *const laxity_view) -> i32,
    argument: *mut c_void,
}

// SAFETY: the caller of `laxity_device_launch` promises that the function may use its argument on another thread.
unsafe impl Send for Kernel {}

/// A kernel that did not return 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unsuccessful(i32);

impl Kernel {
    fn run(self, device: &DeviceView<'_>) -> Result<(), Unsuccessful> {
        let view = View { tag: TAG, device: *device, given: Mutex::default() };
        // SAFETY: the caller of `laxity_device_launch` promises that the function can be called so; the view is there
        // until it returns.
        match unsafe { (self.function)(self.argument, (&raw const view).cast()) } {
            0 => Ok(()),
            number => Err(Unsuccessful(number)),
        }
    }
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        self.tag = 0;
    }
}

/// Runs a GPU kernel, and returns when it has returned; the execution engine is busy for `duration_ns` at least.
/// `argument` is the kernel's. LAXITY_ERROR_KERNEL with the number that it returned if that is not 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_device_launch(
    thread: *mut laxity_device_thread,
    kernel: laxity_kernel,
    argument: *mut c_void,
    duration_ns: u64,
) -> laxity_result {
    let launch = |thread: &mut DeviceThread| {
        let kernel = Kernel { function: kernel.ok_or(CallError::Null { argument: "kernel" })?, argument };
        let (running, over) = channel::<()>();
        let run = move |view: &DeviceView<'_>| {
            let _running = running;
            let kernel = kernel;
            Ok(kernel.run(view)?)
        };
        let launched = thread.launch_for(Nanos(duration_ns), run);
        // If the soft GPU is gone, the kernel may still run; its argument is the caller's again when this returns.
        let Err(RecvError) = over.recv() else { unreachable!("nothing is ever sent") };
        Ok(launched?)
    };
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(thread, launch) }
}

/// The view behind `view`.
///
/// # Safety
/// `view` is null, or points to 8 bytes that can be read; if they are the tag, it is what a kernel got that runs.
unsafe fn get<'a>(view: *const laxity_view) -> Result<&'a View<'a>, Error> {
    if view.is_null() {
        return Err(CallError::Null { argument: NAME }.into());
    }
    if !view.cast::<View<'_>>().is_aligned() {
        return Err(CallError::Handle { expected: NAME }.into());
    }
    // SAFETY: not null and aligned (checked above), and the caller promises that it can be read.
    if unsafe { view.cast::<u64>().read() } != TAG {
        return Err(CallError::Handle { expected: NAME }.into());
    }
    // SAFETY: as the caller promises.
    Ok(unsafe { &*view.cast() })
}

impl<'a> View<'a> {
    fn keep(&self, given: Given<'a>) {
        self.given.lock().unwrap_or_else(PoisonError::into_inner).push(given);
    }
}

/// `size` bytes of `buffer` from `offset` on, to read until the kernel returns. LAXITY_ERROR_RACE if an operation, this
/// kernel included, writes there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_view_read(
    view: *const laxity_view,
    buffer: *const laxity_buffer,
    offset: usize,
    size: usize,
    bytes: *mut *const c_void,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `bytes` can be written.
        let place = unsafe { out(bytes, "bytes") }?;
        *place = std::ptr::null();
        // SAFETY: the caller promises that the kernel runs, and that the handle is not released meanwhile.
        let (view, buffer) = unsafe { (get(view)?, handle::get(buffer)?) };
        let reading = view.device.read(buffer, offset..offset.saturating_add(size))?;
        *place = reading.as_ptr().cast();
        view.keep(Given::Reading(reading));
        Ok(())
    })
}

/// `size` bytes of `buffer` from `offset` on, to read and write until the kernel returns. LAXITY_ERROR_RACE if an
/// operation, this kernel included, uses them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_view_write(
    view: *const laxity_view,
    buffer: *const laxity_buffer,
    offset: usize,
    size: usize,
    bytes: *mut *mut c_void,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `bytes` can be written.
        let place = unsafe { out(bytes, "bytes") }?;
        *place = std::ptr::null_mut();
        // SAFETY: the caller promises that the kernel runs, and that the handle is not released meanwhile.
        let (view, buffer) = unsafe { (get(view)?, handle::get(buffer)?) };
        let mut writing = view.device.write(buffer, offset..offset.saturating_add(size))?;
        *place = writing.as_mut_ptr().cast();
        view.keep(Given::Writing(writing));
        Ok(())
    })
}

impl fmt::Display for Unsuccessful {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the GPU kernel returned {}", self.0)
    }
}

impl std::error::Error for Unsuccessful {}
