//! Which device a thread uses, and the primary contexts of devices.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::driver::ask;
use crate::types::*;

thread_local! {
    static DEVICE: Cell<c_int> = const { Cell::new(0) };
    /// The primary context of that device, where this runtime made it the thread's own; else 0.
    static ENTERED: Cell<usize> = const { Cell::new(0) };
}

/// Primary contexts that this runtime retained, by device.
static PRIMARY: Mutex<BTreeMap<c_int, usize>> = Mutex::new(BTreeMap::new());

/// `cuInit`, once.
pub fn init() -> Outcome {
    static INITIALIZED: OnceLock<Outcome> = OnceLock::new();
    *INITIALIZED.get_or_init(|| ask!(c"cuInit": fn(c_uint)(0)))
}

pub fn count() -> Outcome<c_int> {
    init()?;
    let mut count = 0;
    ask!(c"cuDeviceGetCount": fn(*mut c_int)(&mut count))?;
    Ok(count)
}

/// A device that there is.
pub fn check(device: c_int) -> Outcome<c_int> {
    if (0..count()?).contains(&device) { Ok(device) } else { Err(INVALID_DEVICE) }
}

/// That of the calling thread: of its context, or the one that it chose.
pub fn current() -> Outcome<c_int> {
    init()?;
    device_of_context()?.map_or_else(|| check(DEVICE.get()), Ok)
}

/// The calling thread uses this one from now on.
pub fn set(device: c_int) -> Outcome {
    let device = check(device)?;
    let context = primary(device)?;
    DEVICE.set(device);
    ask!(c"cuCtxSetCurrent": fn(Handle)(context as Handle))?;
    ENTERED.set(context);
    Ok(())
}

/// Has the calling thread have a context: a new primary one if another thread has reset the device.
pub fn enter() -> Outcome {
    init()?;
    if device_of_context()?.is_some() { Ok(()) } else { set(DEVICE.get()) }
}

/// The primary context of a device.
pub fn primary(device: c_int) -> Outcome<usize> {
    let mut primary = lock();
    if let Some(known) = primary.get(&device) {
        return Ok(*known);
    }
    let mut context: Handle = std::ptr::null_mut();
    ask!(c"cuDevicePrimaryCtxRetain": fn(*mut Handle, c_int)(&mut context, device))?;
    primary.insert(device, context as usize);
    Ok(context as usize)
}

/// Ends all that the process has of the calling thread's device.
pub fn reset() -> Outcome {
    let device = current()?;
    // Held until the old context is destroyed: no other thread gets that one any more.
    let mut primary = lock();
    primary.remove(&device);
    crate::binaries::forget_kernels();
    ask!(c"cuDevicePrimaryCtxReset": fn(c_int)(device))?;
    drop(primary);
    ask!(c"cuCtxSetCurrent": fn(Handle)(std::ptr::null_mut()))
}

pub fn attribute(device: c_int, attribute: c_int) -> Outcome<c_int> {
    let mut value = 0;
    ask!(c"cuDeviceGetAttribute": fn(*mut c_int, c_int, c_int)(&mut value, attribute, device))?;
    Ok(value)
}

/// The device of the calling thread's context. `None`: the thread has no context, or it has one from this runtime that a
/// reset of the device destroyed. A context that the program itself made and destroyed is an error.
fn device_of_context() -> Outcome<Option<c_int>> {
    let mut context: Handle = std::ptr::null_mut();
    ask!(c"cuCtxGetCurrent": fn(*mut Handle)(&mut context))?;
    if context.is_null() {
        return Ok(None);
    }
    let mut device = 0;
    match ask!(c"cuCtxGetDevice": fn(*mut c_int)(&mut device)) {
        Ok(()) => Ok(Some(device)),
        Err(CONTEXT_IS_DESTROYED) if context as usize == ENTERED.get() => Ok(None),
        Err(error) => Err(error),
    }
}

fn lock() -> MutexGuard<'static, BTreeMap<c_int, usize>> {
    PRIMARY.lock().unwrap_or_else(PoisonError::into_inner)
}
