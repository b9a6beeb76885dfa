//! Launches.

use std::ffi::c_void;

use laxity_interpose::Label;

use super::{below, label, list, operations};
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

operations! {
    clEnqueueNDRangeKernel(kernel: cl_kernel, dimensions: cl_uint, offset: *const usize, global: *const usize,
        local: *const usize) => keys::kernel(kernel), named name(kernel);
    clEnqueueTask(kernel: cl_kernel) => keys::kernel(kernel), named name(kernel);
    clEnqueueNativeKernel(function: NativeKernel, arguments: *mut c_void, size: usize, objects: cl_uint,
        memory: *const cl_mem, places: *const *const c_void)
        => keys::within_device(keys::NATIVE, 1), named Some("a native kernel".into());
}
