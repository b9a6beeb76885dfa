//! Copies of images.

use std::ffi::c_void;

use laxity_policy::program::Work;

use super::buffers::volume;
use super::{below, list};
use crate::enqueue::{Events, Request, enqueue};
use crate::keys;
use crate::types::*;

list![
    clEnqueueReadImage,
    clEnqueueWriteImage,
    clEnqueueCopyImage,
    clEnqueueCopyImageToBuffer,
    clEnqueueCopyBufferToImage,
    clEnqueueFillImage,
];

unsafe extern "C" fn clEnqueueReadImage(
    queue: cl_command_queue,
    image: cl_mem,
    blocking: cl_bool,
    origin: *const usize,
    region: *const usize,
    row: usize,
    slice: usize,
    data: *mut c_void,
    count: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let below = below!(clEnqueueReadImage);
    let work = {
        // SAFETY: the driver reads the region, too.
        let bytes = unsafe { volume(region) };
        Work::CopyOut { bytes }
    };
    let request = Request { queue, work, blocking: blocking != CL_FALSE, events: Events { count, list, event } };
    let call = |blocking, Events { count, list, event }: Events| {
        // SAFETY: the program's call.
        unsafe { below(queue, image, blocking, origin, region, row, slice, data, count, list, event) }
    };
    // SAFETY: `call` makes the program's call.
    unsafe { enqueue(request, || None, call) }
}

unsafe extern "C" fn clEnqueueWriteImage(
    queue: cl_command_queue,
    image: cl_mem,
    blocking: cl_bool,
    origin: *const usize,
    region: *const usize,
    row: usize,
    slice: usize,
    data: *const c_void,
    count: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let below = below!(clEnqueueWriteImage);
    let work = {
        // SAFETY: the driver reads the region, too.
        let bytes = unsafe { volume(region) };
        Work::CopyIn { bytes }
    };
    let request = Request { queue, work, blocking: blocking != CL_FALSE, events: Events { count, list, event } };
    let call = |blocking, Events { count, list, event }: Events| {
        // SAFETY: the program's call.
        unsafe { below(queue, image, blocking, origin, region, row, slice, data, count, list, event) }
    };
    // SAFETY: `call` makes the program's call.
    unsafe { enqueue(request, || None, call) }
}

unsafe extern "C" fn clEnqueueCopyImage(
    queue: cl_command_queue,
    from: cl_mem,
    to: cl_mem,
    from_origin: *const usize,
    to_origin: *const usize,
    region: *const usize,
    count: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let below = below!(clEnqueueCopyImage);
    let work = {
        // SAFETY: the driver reads the region, too.
        let bytes = unsafe { volume(region) };
        keys::within_device(keys::IMAGE, bytes)
    };
    let request = Request { queue, work, blocking: false, events: Events { count, list, event } };
    let call = |_, Events { count, list, event }: Events| {
        // SAFETY: the program's call.
        unsafe { below(queue, from, to, from_origin, to_origin, region, count, list, event) }
    };
    // SAFETY: `call` makes the program's call.
    unsafe { enqueue(request, || None, call) }
}

unsafe extern "C" fn clEnqueueCopyImageToBuffer(
    queue: cl_command_queue,
    from: cl_mem,
    to: cl_mem,
    origin: *const usize,
    region: *const usize,
    offset: usize,
    count: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let below = below!(clEnqueueCopyImageToBuffer);
    let work = {
        // SAFETY: the driver reads the region, too.
        let bytes = unsafe { volume(region) };
        keys::within_device(keys::IMAGE, bytes)
    };
    let request = Request { queue, work, blocking: false, events: Events { count, list, event } };
    let call = |_, Events { count, list, event }: Events| {
        // SAFETY: the program's call.
        unsafe { below(queue, from, to, origin, region, offset, count, list, event) }
    };
    // SAFETY: `call` makes the program's call.
    unsafe { enqueue(request, || None, call) }
}

unsafe extern "C" fn clEnqueueCopyBufferToImage(
    queue: cl_command_queue,
    from: cl_mem,
    to: cl_mem,
    offset: usize,
    origin: *const usize,
    region: *const usize,
    count: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let below = below!(clEnqueueCopyBufferToImage);
    let work = {
        // SAFETY: the driver reads the region, too.
        let bytes = unsafe { volume(region) };
        keys::within_device(keys::IMAGE, bytes)
    };
    let request = Request { queue, work, blocking: false, events: Events { count, list, event } };
    let call = |_, Events { count, list, event }: Events| {
        // SAFETY: the program's call.
        unsafe { below(queue, from, to, offset, origin, region, count, list, event) }
    };
    // SAFETY: `call` makes the program's call.
    unsafe { enqueue(request, || None, call) }
}

unsafe extern "C" fn clEnqueueFillImage(
    queue: cl_command_queue,
    image: cl_mem,
    color: *const c_void,
    origin: *const usize,
    region: *const usize,
    count: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let below = below!(clEnqueueFillImage);
    let work = {
        // SAFETY: the driver reads the region, too.
        let bytes = unsafe { volume(region) };
        keys::within_device(keys::IMAGE, bytes)
    };
    let request = Request { queue, work, blocking: false, events: Events { count, list, event } };
    let call = |_, Events { count, list, event }: Events| {
        // SAFETY: the program's call.
        unsafe { below(queue, image, color, origin, region, count, list, event) }
    };
    // SAFETY: `call` makes the program's call.
    unsafe { enqueue(request, || None, call) }
}
