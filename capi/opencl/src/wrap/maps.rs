//! Maps of memory objects, and migrations.

use std::ffi::c_void;

use laxity_policy::program::Work;

use super::{below, label, list, operations};
use crate::enqueue::{Events, Request, enqueue};
use crate::keys;
use crate::types::*;

list![clEnqueueMapBuffer, clEnqueueMapImage, clEnqueueUnmapMemObject, clEnqueueMigrateMemObjects,];

unsafe extern "C" fn clEnqueueMapBuffer(
    queue: cl_command_queue,
    buffer: cl_mem,
    blocking: cl_bool,
    flags: cl_bitfield,
    offset: usize,
    size: usize,
    count: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
    status_out: *mut cl_int,
) -> *mut c_void {
    let below = below!(clEnqueueMapBuffer);
    let work = Work::CopyOut { bytes: size as u64 };
    let request = Request { queue, work, blocking: blocking != CL_FALSE, events: Events { count, list, event } };
    let mut mapped = std::ptr::null_mut();
    let call = |blocking, Events { count, list, event }: Events| {
        let mut status = CL_SUCCESS;
        // SAFETY: the program's call.
        mapped = unsafe { below(queue, buffer, blocking, flags, offset, size, count, list, event, &mut status) };
        status
    };
    // SAFETY: `call` makes the program's call.
    let status = unsafe { enqueue(request, || None, call) };
    // SAFETY: the program's place for the status, or null.
    unsafe { answer(mapped, status, status_out) }
}

unsafe extern "C" fn clEnqueueMapImage(
    queue: cl_command_queue,
    image: cl_mem,
    blocking: cl_bool,
    flags: cl_bitfield,
    origin: *const usize,
    region: *const usize,
    row: *mut usize,
    slice: *mut usize,
    count: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
    status_out: *mut cl_int,
) -> *mut c_void {
    let below = below!(clEnqueueMapImage);
    // SAFETY: the driver reads the region, too.
    let work = Work::CopyOut { bytes: unsafe { super::buffers::volume(region) } };
    let request = Request { queue, work, blocking: blocking != CL_FALSE, events: Events { count, list, event } };
    let mut mapped = std::ptr::null_mut();
    let call = |blocking, Events { count, list, event }: Events| {
        let mut status = CL_SUCCESS;
        // SAFETY: the program's call.
        mapped = unsafe {
            below(queue, image, blocking, flags, origin, region, row, slice, count, list, event, &mut status)
        };
        status
    };
    // SAFETY: `call` makes the program's call.
    let status = unsafe { enqueue(request, || None, call) };
    // SAFETY: the program's place for the status, or null.
    unsafe { answer(mapped, status, status_out) }
}

/// Answers as a driver does.
///
/// # Safety
/// `status_out` is null or may be written to.
unsafe fn answer(mapped: *mut c_void, status: cl_int, status_out: *mut cl_int) -> *mut c_void {
    if !status_out.is_null() {
        // SAFETY: the caller's promise.
        unsafe { status_out.write(status) };
    }
    if status == CL_SUCCESS { mapped } else { std::ptr::null_mut() }
}

operations! {
    clEnqueueUnmapMemObject(memory: cl_mem, data: *mut c_void) => Work::CopyIn { bytes: 0 };
    clEnqueueMigrateMemObjects(number: cl_uint, memory: *const cl_mem, flags: cl_bitfield) => keys::migration(flags);
}
