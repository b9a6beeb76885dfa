//! Shared virtual memory.

use std::ffi::c_void;

use laxity_policy::program::Work;

use super::{below, label, list, operations};
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

operations! {
    clEnqueueSVMMemcpy(; blocking; to: *mut c_void, from: *const c_void, size: usize)
        => keys::within_device(keys::COPY, size as u64);
    clEnqueueSVMMemFill(memory: *mut c_void, pattern: *const c_void, pattern_size: usize, size: usize)
        => keys::within_device(keys::FILL, size as u64);
    clEnqueueSVMMap(; blocking; flags: cl_bitfield, memory: *mut c_void, size: usize)
        => Work::CopyOut { bytes: size as u64 };
    clEnqueueSVMUnmap(memory: *mut c_void) => Work::CopyIn { bytes: 0 };
    clEnqueueSVMMigrateMem(number: cl_uint, memory: *const *const c_void, sizes: *const usize, flags: cl_bitfield)
        => keys::migration(flags);
    clEnqueueSVMFree(number: cl_uint, memory: *mut *mut c_void, function: FreeCallback, data: *mut c_void)
        => Work::Marker;
}
