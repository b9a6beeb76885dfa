//! Contexts.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{entries, put};
use crate::context::{self, Context};
use crate::driver::Driver;
use crate::handles::lock;
use crate::types::*;

entries! { call:
    cuCtxCreate(context: *mut CUcontext, flags: c_uint, device: CUdevice) => create(context, flags, device);
    cuCtxCreate_v2(context: *mut CUcontext, flags: c_uint, device: CUdevice) => create(context, flags, device);
    cuCtxCreate_v3(context: *mut CUcontext, affinity: *mut c_void, count: c_int, flags: c_uint, device: CUdevice)
        => if affinity.is_null() && count == 0 { create(context, flags, device) } else { Err(NOT_SUPPORTED) };
    cuCtxCreate_v4(context: *mut CUcontext, parameters: *mut c_void, flags: c_uint, device: CUdevice)
        => if parameters.is_null() { create(context, flags, device) } else { Err(NOT_SUPPORTED) };
    cuCtxDestroy(context: CUcontext) => destroy(context);
    cuCtxDestroy_v2(context: CUcontext) => destroy(context);
    cuCtxPushCurrent(context: CUcontext) => push(context);
    cuCtxPushCurrent_v2(context: CUcontext) => push(context);
    cuCtxPopCurrent(context: *mut CUcontext) => pop(context);
    cuCtxPopCurrent_v2(context: *mut CUcontext) => pop(context);
    cuCtxSetCurrent(context: CUcontext) => {
        if !context.is_null() {
            Driver::get()?.contexts.get(context)?;
        }
        context::set_current(context);
        Ok(())
    };
    cuCtxGetCurrent(context: *mut CUcontext) => put(context, context::current());
    cuCtxGetDevice(device: *mut CUdevice) => put(device, Context::current()?.device.ordinal as CUdevice);
    cuCtxGetDevice_v2(device: *mut CUdevice, context: CUcontext)
        => put(device, given(context)?.device.ordinal as CUdevice);
    cuCtxGetId(context: CUcontext, id: *mut u64) => put(id, given(context)?.id);
    cuCtxGetFlags(flags: *mut c_uint) => put(flags, Context::current()?.flags.load(Ordering::Relaxed));
    cuCtxSetFlags(flags: c_uint) => {
        check_flags(flags)?;
        Context::current()?.flags.store(flags, Ordering::Relaxed);
        Ok(())
    };
    cuCtxGetApiVersion(context: CUcontext, version: *mut c_uint) => {
        given(context)?;
        put(version, 3020)
    };
    cuCtxSynchronize() => Context::current()?.synchronize();
    cuCtxSynchronize_v2(context: CUcontext) => given(context)?.synchronize();
    cuCtxGetLimit(value: *mut usize, limit: c_int) => {
        Context::current()?;
        // The stack of a GPU thread, and the buffer of printf.
        put(value, match limit { 0 => 1024, 1 => 1 << 20, 2 => 8 << 20, _ => return Err(215) })
    };
    cuCtxSetLimit(limit: c_int, value: usize) => {
        let _ = value;
        Context::current()?;
        if (0..=2).contains(&limit) { Ok(()) } else { Err(215) }
    };
    cuCtxGetCacheConfig(config: *mut c_int) => {
        Context::current()?;
        put(config, 0)
    };
    cuCtxSetCacheConfig(config: c_int) => {
        Context::current()?;
        if (0..=3).contains(&config) { Ok(()) } else { Err(INVALID_VALUE) }
    };
    cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) => {
        Context::current()?;
        // A place that is null is left out.
        let _ = put(least, 0);
        let _ = put(greatest, -5);
        Ok(())
    };
    cuCtxEnablePeerAccess(peer: CUcontext, flags: c_uint) => {
        let (own, other) = (Context::current()?, Driver::get()?.contexts.get(peer)?);
        if flags != 0 || Arc::ptr_eq(&own, &other) {
            return Err(INVALID_VALUE);
        }
        let mut peers = lock(&own.peers);
        if peers.contains(&(peer as usize)) {
            return Err(PEER_ACCESS_ALREADY_ENABLED);
        }
        peers.push(peer as usize);
        Ok(())
    };
    cuCtxDisablePeerAccess(peer: CUcontext) => {
        let own = Context::current()?;
        let mut peers = lock(&own.peers);
        let at = peers.iter().position(|known| *known == peer as usize).ok_or(PEER_ACCESS_NOT_ENABLED)?;
        peers.remove(at);
        Ok(())
    };
    cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice) => {
        if context.is_null() {
            return Err(INVALID_VALUE);
        }
        let device = Driver::get()?.device(device)?;
        let mut primary = lock(&device.primary);
        let found = match &primary.context {
            Some(found) => found.clone(),
            None => Context::create(device, primary.flags, true)?,
        };
        primary.context = Some(found.clone());
        primary.references += 1;
        put(context, found.handle())
    };
    cuDevicePrimaryCtxRelease(device: CUdevice) => release(device);
    cuDevicePrimaryCtxRelease_v2(device: CUdevice) => release(device);
    cuDevicePrimaryCtxReset(device: CUdevice) => reset(device);
    cuDevicePrimaryCtxReset_v2(device: CUdevice) => reset(device);
    cuDevicePrimaryCtxSetFlags(device: CUdevice, flags: c_uint) => set_flags(device, flags);
    cuDevicePrimaryCtxSetFlags_v2(device: CUdevice, flags: c_uint) => set_flags(device, flags);
    cuDevicePrimaryCtxGetState(device: CUdevice, flags: *mut c_uint, active: *mut c_int) => {
        let primary = lock(&Driver::get()?.device(device)?.primary);
        put(flags, primary.flags)?;
        put(active, c_int::from(primary.context.is_some()))
    };
}

fn check_flags(flags: c_uint) -> Outcome {
    // One way to wait at most: automatic, spinning, yielding, blocking.
    let is_way = [0, 1, 2, 4].contains(&(flags & CTX_SCHED_MASK));
    if flags & !CTX_FLAGS == 0 && is_way { Ok(()) } else { Err(INVALID_VALUE) }
}

unsafe fn create(context: *mut CUcontext, flags: c_uint, device: CUdevice) -> Outcome {
    check_flags(flags)?;
    if context.is_null() {
        return Err(INVALID_VALUE);
    }
    let created = Context::create(Driver::get()?.device(device)?, flags, false)?;
    context::push(created.handle());
    // SAFETY: the program's place.
    unsafe { put(context, created.handle()) }
}

fn destroy(handle: CUcontext) -> Outcome {
    let context = Driver::get()?.contexts.get(handle)?;
    if context.is_primary {
        return Err(INVALID_CONTEXT);
    }
    let result = context.destroy();
    context::drop_current(handle);
    result
}

fn push(handle: CUcontext) -> Outcome {
    Driver::get()?.contexts.get(handle)?;
    context::push(handle);
    Ok(())
}

unsafe fn pop(context: *mut CUcontext) -> Outcome {
    let popped = context::pop().ok_or(INVALID_CONTEXT)?;
    // A program need not want it.
    // SAFETY: the program's place.
    let _ = unsafe { put(context, popped) };
    Ok(())
}

/// The context of a handle; null: the current one.
fn given(context: CUcontext) -> Outcome<Arc<Context>> {
    if context.is_null() { Context::current() } else { Driver::get()?.contexts.get(context) }
}

fn release(device: CUdevice) -> Outcome {
    let device = Driver::get()?.device(device)?;
    let mut primary = lock(&device.primary);
    if primary.references == 0 {
        return Err(INVALID_CONTEXT);
    }
    primary.references -= 1;
    let last = if primary.references == 0 { primary.context.take() } else { None };
    drop(primary);
    last.map_or(Ok(()), |context| context.destroy())
}

fn reset(device: CUdevice) -> Outcome {
    let device = Driver::get()?.device(device)?;
    let mut primary = lock(&device.primary);
    primary.references = 0;
    let last = primary.context.take();
    drop(primary);
    last.map_or(Ok(()), |context| context.destroy())
}

fn set_flags(device: CUdevice, flags: c_uint) -> Outcome {
    check_flags(flags)?;
    let mut primary = lock(&Driver::get()?.device(device)?.primary);
    primary.flags = flags;
    if let Some(context) = &primary.context {
        context.flags.store(flags, Ordering::Relaxed);
    }
    Ok(())
}
