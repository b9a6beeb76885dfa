//! Copies of images.

use std::ffi::c_void;

use laxity_policy::program::Work;

use super::buffers::volume;
use super::{below, label, list, operations};
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

operations! {
    clEnqueueReadImage(image: cl_mem; blocking; origin: *const usize, region: *const usize, row: usize, slice: usize,
        data: *mut c_void)
        // SAFETY: the driver reads the region, too.
        => Work::CopyOut { bytes: unsafe { volume(region) } };
    clEnqueueWriteImage(image: cl_mem; blocking; origin: *const usize, region: *const usize, row: usize, slice: usize,
        data: *const c_void)
        // SAFETY: the driver reads the region, too.
        => Work::CopyIn { bytes: unsafe { volume(region) } };
    clEnqueueCopyImage(from: cl_mem, to: cl_mem, from_origin: *const usize, to_origin: *const usize,
        region: *const usize)
        // SAFETY: the driver reads the region, too.
        => keys::within_device(keys::IMAGE, unsafe { volume(region) });
    clEnqueueCopyImageToBuffer(from: cl_mem, to: cl_mem, origin: *const usize, region: *const usize, offset: usize)
        // SAFETY: the driver reads the region, too.
        => keys::within_device(keys::IMAGE, unsafe { volume(region) });
    clEnqueueCopyBufferToImage(from: cl_mem, to: cl_mem, offset: usize, origin: *const usize, region: *const usize)
        // SAFETY: the driver reads the region, too.
        => keys::within_device(keys::IMAGE, unsafe { volume(region) });
    clEnqueueFillImage(image: cl_mem, color: *const c_void, origin: *const usize, region: *const usize)
        // SAFETY: the driver reads the region, too.
        => keys::within_device(keys::IMAGE, unsafe { volume(region) });
}
