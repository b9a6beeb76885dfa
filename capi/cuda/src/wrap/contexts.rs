//! Contexts: how threads wait in them, and that nothing of ours is left in one that goes.

use std::ffi::c_int;

use super::wrappers;
use crate::layer::Layer;
use crate::real::ask;
use crate::types::*;

wrappers! { real:
    cuCtxCreate(context: Word, flags: Word, device: Word) => unsafe { real(context, waiting(flags), device) };
    cuCtxCreate_v2(context: Word, flags: Word, device: Word) => unsafe { real(context, waiting(flags), device) };
    cuCtxCreate_v3(context: Word, affinity: Word, count: Word, flags: Word, device: Word)
        => unsafe { real(context, affinity, count, waiting(flags), device) };
    cuCtxCreate_v4(context: Word, parameters: Word, flags: Word, device: Word)
        => unsafe { real(context, parameters, waiting(flags), device) };
    cuCtxSetFlags(flags: Word) => unsafe { real(waiting(flags)) };
    cuDevicePrimaryCtxSetFlags(device: Word, flags: Word) => unsafe { real(device, waiting(flags)) };
    cuDevicePrimaryCtxSetFlags_v2(device: Word, flags: Word) => unsafe { real(device, waiting(flags)) };
    cuDevicePrimaryCtxRetain(context: Word, device: Word) => {
        if Layer::get().suspends() {
            let (device, mut flags, mut active) = (device as c_int, 0_u32, 0);
            let found = ask!(c"cuDevicePrimaryCtxGetState": fn(c_int, *mut u32, *mut c_int)
                (device, &mut flags, &mut active));
            if found == SUCCESS && active == 0 {
                let flags = waiting(flags as Word) as u32;
                ask!(c"cuDevicePrimaryCtxSetFlags_v2": fn(c_int, u32)(device, flags));
            }
        }
        unsafe { real(context, device) }
    };
    cuCtxDestroy(context: Word) => {
        Layer::get().forget_context(context as CUcontext);
        unsafe { real(context) }
    };
    cuCtxDestroy_v2(context: Word) => {
        Layer::get().forget_context(context as CUcontext);
        unsafe { real(context) }
    };
    cuDevicePrimaryCtxRelease(device: Word) => {
        forget_primary(device as c_int);
        unsafe { real(device) }
    };
    cuDevicePrimaryCtxRelease_v2(device: Word) => {
        forget_primary(device as c_int);
        unsafe { real(device) }
    };
    cuDevicePrimaryCtxReset(device: Word) => {
        forget_primary(device as c_int);
        unsafe { real(device) }
    };
    cuDevicePrimaryCtxReset_v2(device: Word) => {
        forget_primary(device as c_int);
        unsafe { real(device) }
    };
}

/// The flags of a context whose threads wait suspended, where that is asked for.
fn waiting(flags: Word) -> Word {
    if Layer::get().suspends() { (flags & !(CTX_SCHED_MASK as Word)) | CTX_SCHED_BLOCKING_SYNC as Word } else { flags }
}

/// The primary context may go: streams of it that are used again are found again.
fn forget_primary(device: c_int) {
    let layer = Layer::get();
    let (mut flags, mut active) = (0_u32, 0);
    let found = ask!(c"cuDevicePrimaryCtxGetState": fn(c_int, *mut u32, *mut c_int)(device, &mut flags, &mut active));
    if !layer.is_on() || found != SUCCESS || active == 0 {
        return;
    }
    // A reference more tells the handle, and is given back at once.
    let mut context: CUcontext = std::ptr::null_mut();
    if ask!(c"cuDevicePrimaryCtxRetain": fn(*mut CUcontext, c_int)(&mut context, device)) == SUCCESS {
        layer.forget_context(context);
        ask!(c"cuDevicePrimaryCtxRelease_v2": fn(c_int)(device));
    }
}
