//! Copies between host and device, and within the device, of buffers.

use std::ffi::c_void;

use laxity_policy::program::{Order, Work, chunks};

use super::{below, label, list, operations};
use crate::enqueue::{Events, Request, enqueue};
use crate::keys;
use crate::layer::{self, Layer};
use crate::types::*;

list![
    clEnqueueReadBuffer,
    clEnqueueWriteBuffer,
    clEnqueueReadBufferRect,
    clEnqueueWriteBufferRect,
    clEnqueueCopyBuffer,
    clEnqueueCopyBufferRect,
    clEnqueueFillBuffer,
];

/// Copies `size` bytes from `offset` of `buffer` on in chunks, if the policy says so: `copy` makes the call for the bytes
/// from an offset on. Events before the first chunk; the last one's event stands for all. A copy that is not within the
/// buffer has no chunks: the driver is to refuse it before it copies any byte.
///
/// # Safety
/// As [`enqueue`].
unsafe fn copy(
    request: Request,
    work: impl Fn(u64) -> Work,
    (buffer, offset, size): (cl_mem, usize, usize),
    mut copy: impl FnMut(usize, usize, cl_bool, Events) -> cl_int,
) -> cl_int {
    let layer = Layer::get();
    let is_long = layer.is_on() && layer.process().chunk().is_some_and(|chunk| (size as u64) > chunk);
    // Out of order, chunks could overtake one another, and the last one's event would say nothing of the others.
    let is_within =
        || layer::buffer_size(buffer).is_some_and(|all| offset.checked_add(size).is_some_and(|end| end <= all));
    let chunk =
        if is_long && is_within() && layer.queue(request.queue).is_some_and(|queue| queue.order == Order::InOrder) {
            layer.process().chunk()
        } else {
            None
        };
    let mut parts = chunks(size as u64, chunk).peekable();
    let mut events = Events { event: std::ptr::null_mut(), ..request.events };
    let mut part_is_under_way = false;
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        if is_last {
            events.event = request.events.event;
        }
        let (start, bytes) = (part.start as usize, (part.end - part.start) as usize);
        let part =
            Request { work: work(bytes as u64), blocking: request.blocking && is_last, events, queue: request.queue };
        // SAFETY: the caller's promise, for a part of the same memory.
        let status = unsafe { enqueue(part, || None, |blocking, events| copy(start, bytes, blocking, events)) };
        if status != CL_SUCCESS {
            if request.blocking && part_is_under_way {
                // The memory is the program's again when the call returns.
                // SAFETY: the program's queue, in which parts are in order.
                Layer::target().clFinish.map(|finish| unsafe { finish(request.queue) });
            }
            return status;
        }
        part_is_under_way = true;
        events = Events::NONE;
    }
    CL_SUCCESS
}

unsafe extern "C" fn clEnqueueReadBuffer(
    queue: cl_command_queue,
    buffer: cl_mem,
    blocking: cl_bool,
    offset: usize,
    size: usize,
    data: *mut c_void,
    count: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let below = below!(clEnqueueReadBuffer);
    let events = Events { count, list, event };
    let request = Request { queue, work: Work::CopyOut { bytes: 0 }, blocking: blocking != CL_FALSE, events };
    // A null pointer is for the driver to refuse.
    let size_in_parts = if data.is_null() { 0 } else { size };
    let call = |start: usize, bytes: usize, blocking, Events { count, list, event }: Events| {
        let bytes = if data.is_null() { size } else { bytes };
        // SAFETY: the program's call, for a part of what it copies.
        unsafe { below(queue, buffer, blocking, offset + start, bytes, data.byte_add(start), count, list, event) }
    };
    // SAFETY: `call` makes the program's call.
    unsafe { copy(request, |bytes| Work::CopyOut { bytes }, (buffer, offset, size_in_parts), call) }
}

unsafe extern "C" fn clEnqueueWriteBuffer(
    queue: cl_command_queue,
    buffer: cl_mem,
    blocking: cl_bool,
    offset: usize,
    size: usize,
    data: *const c_void,
    count: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let below = below!(clEnqueueWriteBuffer);
    let events = Events { count, list, event };
    let request = Request { queue, work: Work::CopyIn { bytes: 0 }, blocking: blocking != CL_FALSE, events };
    let size_in_parts = if data.is_null() { 0 } else { size };
    let call = |start: usize, bytes: usize, blocking, Events { count, list, event }: Events| {
        let bytes = if data.is_null() { size } else { bytes };
        // SAFETY: the program's call, for a part of what it copies.
        unsafe { below(queue, buffer, blocking, offset + start, bytes, data.byte_add(start), count, list, event) }
    };
    // SAFETY: `call` makes the program's call.
    unsafe { copy(request, |bytes| Work::CopyIn { bytes }, (buffer, offset, size_in_parts), call) }
}

/// The bytes of a region; 0 where there is none, which the driver refuses.
///
/// # Safety
/// `region` is null or has three numbers.
pub(super) unsafe fn volume(region: *const usize) -> u64 {
    if region.is_null() {
        return 0;
    }
    // SAFETY: the caller's promise.
    (0..3).map(|at| unsafe { *region.add(at) } as u64).fold(1, u64::saturating_mul)
}

operations! {
    clEnqueueReadBufferRect(buffer: cl_mem; blocking; buffer_origin: *const usize, host_origin: *const usize,
        region: *const usize, buffer_row: usize, buffer_slice: usize, host_row: usize, host_slice: usize,
        data: *mut c_void)
        // SAFETY: the driver reads the region, too.
        => Work::CopyOut { bytes: unsafe { volume(region) } };
    clEnqueueWriteBufferRect(buffer: cl_mem; blocking; buffer_origin: *const usize, host_origin: *const usize,
        region: *const usize, buffer_row: usize, buffer_slice: usize, host_row: usize, host_slice: usize,
        data: *const c_void)
        // SAFETY: the driver reads the region, too.
        => Work::CopyIn { bytes: unsafe { volume(region) } };
    clEnqueueCopyBuffer(from: cl_mem, to: cl_mem, from_offset: usize, to_offset: usize, size: usize)
        => keys::within_device(keys::COPY, size as u64);
    clEnqueueCopyBufferRect(from: cl_mem, to: cl_mem, from_origin: *const usize, to_origin: *const usize,
        region: *const usize, from_row: usize, from_slice: usize, to_row: usize, to_slice: usize)
        // SAFETY: the driver reads the region, too.
        => keys::within_device(keys::COPY, unsafe { volume(region) });
    clEnqueueFillBuffer(buffer: cl_mem, pattern: *const c_void, pattern_size: usize, offset: usize, size: usize)
        => keys::within_device(keys::FILL, size as u64);
}
