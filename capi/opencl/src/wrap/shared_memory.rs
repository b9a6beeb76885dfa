//! Shared virtual memory.

use std::ffi::c_void;

use laxity_policy::program::Work;

use super::{below, list};
use crate::enqueue::{Events, Request, enqueue};
use crate::keys;
use crate::types::*;

list![
    clEnqueueSVMMemcpy,
    clEnqueueSVMMemFill,
    clEnqueueSVMMap,
    clEnqueueSVMUnmap,
    clEnqueueSVMMigrateMem,
    clEnqueueSVMFree,
];

unsafe extern "C" fn clEnqueueSVMMemcpy(
    queue: cl_command_queue,
    blocking: cl_bool,
    to: *mut c_void,
    from: *const c_void,
    size: usize,
    count: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let below = below!(clEnqueueSVMMemcpy);
    let work = keys::within_device(keys::COPY, size as u64);
    let request = Request { queue, work, blocking: blocking != CL_FALSE, events: Events { count, list, event } };
    let call = |blocking, Events { count, list, event }: Events| {
        // SAFETY: the program's call.
        unsafe { below(queue, blocking, to, from, size, count, list, event) }
    };
    // SAFETY: `call` makes the program's call.
    unsafe { enqueue(request, || None, call) }
}

unsafe extern "C" fn clEnqueueSVMMemFill(
    queue: cl_command_queue,
    memory: *mut c_void,
    pattern: *const c_void,
    pattern_size: usize,
    size: usize,
    count: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let below = below!(clEnqueueSVMMemFill);
    let work = keys::within_device(keys::FILL, size as u64);
    let request = Request { queue, work, blocking: false, events: Events { count, list, event } };
    let call = |_, Events { count, list, event }: Events| {
        // SAFETY: the program's call.
        unsafe { below(queue, memory, pattern, pattern_size, size, count, list, event) }
    };
    // SAFETY: `call` makes the program's call.
    unsafe { enqueue(request, || None, call) }
}

unsafe extern "C" fn clEnqueueSVMMap(
    queue: cl_command_queue,
    blocking: cl_bool,
    flags: cl_bitfield,
    memory: *mut c_void,
    size: usize,
    count: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let below = below!(clEnqueueSVMMap);
    let work = Work::CopyOut { bytes: size as u64 };
    let request = Request { queue, work, blocking: blocking != CL_FALSE, events: Events { count, list, event } };
    let call = |blocking, Events { count, list, event }: Events| {
        // SAFETY: the program's call.
        unsafe { below(queue, blocking, flags, memory, size, count, list, event) }
    };
    // SAFETY: `call` makes the program's call.
    unsafe { enqueue(request, || None, call) }
}

unsafe extern "C" fn clEnqueueSVMUnmap(
    queue: cl_command_queue,
    memory: *mut c_void,
    count: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let below = below!(clEnqueueSVMUnmap);
    let work = Work::CopyIn { bytes: 0 };
    let request = Request { queue, work, blocking: false, events: Events { count, list, event } };
    let call = |_, Events { count, list, event }: Events| {
        // SAFETY: the program's call.
        unsafe { below(queue, memory, count, list, event) }
    };
    // SAFETY: `call` makes the program's call.
    unsafe { enqueue(request, || None, call) }
}

unsafe extern "C" fn clEnqueueSVMMigrateMem(
    queue: cl_command_queue,
    number: cl_uint,
    memory: *const *const c_void,
    sizes: *const usize,
    flags: cl_bitfield,
    count: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let below = below!(clEnqueueSVMMigrateMem);
    let work = keys::migration(flags);
    let request = Request { queue, work, blocking: false, events: Events { count, list, event } };
    let call = |_, Events { count, list, event }: Events| {
        // SAFETY: the program's call.
        unsafe { below(queue, number, memory, sizes, flags, count, list, event) }
    };
    // SAFETY: `call` makes the program's call.
    unsafe { enqueue(request, || None, call) }
}

unsafe extern "C" fn clEnqueueSVMFree(
    queue: cl_command_queue,
    number: cl_uint,
    memory: *mut *mut c_void,
    function: FreeCallback,
    data: *mut c_void,
    count: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let below = below!(clEnqueueSVMFree);
    let work = Work::Marker;
    let request = Request { queue, work, blocking: false, events: Events { count, list, event } };
    let call = |_, Events { count, list, event }: Events| {
        // SAFETY: the program's call.
        unsafe { below(queue, number, memory, function, data, count, list, event) }
    };
    // SAFETY: `call` makes the program's call.
    unsafe { enqueue(request, || None, call) }
}
