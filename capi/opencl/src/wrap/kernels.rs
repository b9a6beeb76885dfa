//! Launches.

use std::ffi::c_void;

use laxity_interpose::Label;

use super::{below, list};
use crate::enqueue::{Events, Request, enqueue};
use crate::keys;
use crate::layer::Layer;
use crate::types::*;

list![clEnqueueNDRangeKernel, clEnqueueTask, clEnqueueNativeKernel,];

/// The name of a kernel, for logs.
fn name(kernel: cl_kernel) -> Option<Label> {
    let get = Layer::target().clGetKernelInfo?;
    let mut text = [0_u8; 256];
    let mut length = 0;
    // SAFETY: the size is that of the text; an invalid kernel is the program's error, as in its own calls.
    let status = unsafe { get(kernel, CL_KERNEL_FUNCTION_NAME, text.len(), text.as_mut_ptr().cast(), &mut length) };
    let text = text.get(..length.saturating_sub(1)).filter(|_| status == CL_SUCCESS)?;
    Some(String::from_utf8_lossy(text).as_ref().into())
}

unsafe extern "C" fn clEnqueueNDRangeKernel(
    queue: cl_command_queue,
    kernel: cl_kernel,
    dimensions: cl_uint,
    offset: *const usize,
    global: *const usize,
    local: *const usize,
    count: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let below = below!(clEnqueueNDRangeKernel);
    let work = keys::kernel(kernel);
    let request = Request { queue, work, blocking: false, events: Events { count, list, event } };
    let call = |_, Events { count, list, event }: Events| {
        // SAFETY: the program's call.
        unsafe { below(queue, kernel, dimensions, offset, global, local, count, list, event) }
    };
    // SAFETY: `call` makes the program's call.
    unsafe { enqueue(request, || name(kernel), call) }
}

unsafe extern "C" fn clEnqueueTask(
    queue: cl_command_queue,
    kernel: cl_kernel,
    count: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let below = below!(clEnqueueTask);
    let work = keys::kernel(kernel);
    let request = Request { queue, work, blocking: false, events: Events { count, list, event } };
    let call = |_, Events { count, list, event }: Events| {
        // SAFETY: the program's call.
        unsafe { below(queue, kernel, count, list, event) }
    };
    // SAFETY: `call` makes the program's call.
    unsafe { enqueue(request, || name(kernel), call) }
}

unsafe extern "C" fn clEnqueueNativeKernel(
    queue: cl_command_queue,
    function: NativeKernel,
    arguments: *mut c_void,
    size: usize,
    objects: cl_uint,
    memory: *const cl_mem,
    places: *const *const c_void,
    count: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let below = below!(clEnqueueNativeKernel);
    let work = keys::within_device(keys::NATIVE, 1);
    let request = Request { queue, work, blocking: false, events: Events { count, list, event } };
    let call = |_, Events { count, list, event }: Events| {
        // SAFETY: the program's call.
        unsafe { below(queue, function, arguments, size, objects, memory, places, count, list, event) }
    };
    // SAFETY: `call` makes the program's call.
    unsafe { enqueue(request, || Some("a native kernel".into()), call) }
}
