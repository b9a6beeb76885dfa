//! Memory.

use std::ffi::{c_int, c_uint, c_void};

use super::{entries, put, stream_entries};
use crate::context::Context;
use crate::driver::Driver;
use crate::event::of_gpu;
use crate::graph;
use crate::memory::{self, Allocation, Kind};
use crate::stream::{self, Command};
use crate::types::*;

entries! { call:
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize) => {
        let gpu = Context::current()?.device.gpu()?;
        let usage = gpu.usage().map_err(|error| of_gpu(&error))?;
        put(free, usage.config.memory.saturating_sub(usage.used) as usize)?;
        put(total, usage.config.memory as usize)
    };
    cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize) => {
        if address.is_null() {
            return Err(INVALID_VALUE);
        }
        put(address, device(bytes, false)?)
    };
    cuMemAllocPitch_v2(address: *mut CUdeviceptr, pitch: *mut usize, width: usize, height: usize, element: c_uint) => {
        if address.is_null() || pitch.is_null() || ![4, 8, 16].contains(&element) {
            return Err(INVALID_VALUE);
        }
        let row = width.checked_next_multiple_of(512).ok_or(OUT_OF_MEMORY)?;
        let bytes = row.checked_mul(height).ok_or(OUT_OF_MEMORY)?;
        put(address, device(bytes, false)?)?;
        put(pitch, row)
    };
    cuMemAllocManaged(address: *mut CUdeviceptr, bytes: usize, flags: c_uint) => {
        // To all streams, or to the host first.
        if address.is_null() || ![1, 2].contains(&flags) {
            return Err(INVALID_VALUE);
        }
        put(address, device(bytes, true)?)
    };
    cuMemFree_v2(address: CUdeviceptr) => {
        if address == 0 {
            return Ok(());
        }
        Context::current()?.quiesce()?;
        memory::remove(address, |kind| matches!(kind, Kind::Device(_) | Kind::Managed(_))).map(drop)
    };
    cuMemAllocHost_v2(address: *mut *mut c_void, bytes: usize) => host(address, bytes, 0);
    cuMemHostAlloc(address: *mut *mut c_void, bytes: usize, flags: c_uint)
        => if flags & !7 == 0 { host(address, bytes, flags) } else { Err(INVALID_VALUE) };
    cuMemFreeHost(address: *mut c_void) => {
        Context::current()?.quiesce()?;
        memory::remove(address as u64, |kind| matches!(kind, Kind::Host { .. })).map(drop)
    };
    cuMemHostRegister_v2(address: *mut c_void, bytes: usize, flags: c_uint)
        => {
            graph::refuse_unsafe()?;
            memory::register(&Context::current()?, address as u64, bytes, flags)
        };
    cuMemHostUnregister(address: *mut c_void) => {
        Context::current()?.quiesce()?;
        let is_registered = |kind: &Kind| matches!(kind, Kind::Registered { .. });
        memory::remove(address as u64, is_registered).map(drop).map_err(|_| HOST_MEMORY_NOT_REGISTERED)
    };
    cuMemHostGetDevicePointer_v2(address: *mut CUdeviceptr, host: *mut c_void, flags: c_uint) => {
        let allocation = memory::find(host as u64).ok_or(INVALID_VALUE)?;
        if flags != 0 || allocation.is_device() {
            return Err(INVALID_VALUE);
        }
        put(address, host as u64)
    };
    cuMemHostGetFlags(flags: *mut c_uint, host: *mut c_void) => {
        let allocation = memory::find(host as u64).ok_or(INVALID_VALUE)?;
        match allocation.kind {
            Kind::Host { flags: given, .. } | Kind::Registered { flags: given } => put(flags, given),
            _ => Err(INVALID_VALUE),
        }
    };
    cuMemGetAddressRange_v2(base: *mut CUdeviceptr, bytes: *mut usize, address: CUdeviceptr) => {
        let allocation = memory::find(address).filter(|found| found.is_device()).ok_or(NOT_FOUND)?;
        // A place that is null is left out.
        let _ = put(base, allocation.start);
        let _ = put(bytes, allocation.length);
        Ok(())
    };
    cuPointerGetAttribute(data: *mut c_void, attribute: c_int, pointer: CUdeviceptr) => {
        let allocation = memory::find(pointer).ok_or(INVALID_VALUE)?;
        put_attribute(data, attribute, Some(&allocation), pointer)
    };
    cuPointerGetAttributes(count: c_uint, attributes: *const c_int, data: *const *mut c_void, pointer: CUdeviceptr) => {
        if count == 0 || attributes.is_null() || data.is_null() {
            return Err(INVALID_VALUE);
        }
        let allocation = memory::find(pointer);
        for at in 0..count as usize {
            let (place, attribute) = (*data.add(at), *attributes.add(at));
            put_attribute(place, attribute, allocation.as_deref(), pointer)?;
        }
        Ok(())
    };
}

stream_entries! { default:
    cuMemAllocAsync / cuMemAllocAsync_ptsz(address: *mut CUdeviceptr, bytes: usize, handle: CUstream) => {
        let stream = stream::find(handle, default)?;
        stream.refuse_in_capture()?;
        if address.is_null() {
            return Err(INVALID_VALUE);
        }
        put(address, memory::device(&stream.context, bytes, false)?.start)
    };
    cuMemFreeAsync / cuMemFreeAsync_ptsz(address: CUdeviceptr, handle: CUstream) => {
        let stream = stream::find(handle, default)?;
        stream.refuse_in_capture()?;
        let memory = memory::remove(address, |kind| matches!(kind, Kind::Device(_)))?;
        stream.enqueue([Command::Release(memory)])
    };
    cuMemPrefetchAsync / cuMemPrefetchAsync_ptsz(address: CUdeviceptr, bytes: usize, device: CUdevice, handle: CUstream) => {
        // To the host, or to a device: memory is where it is.
        if device != -1 {
            Driver::get()?.device(device)?;
        }
        memory::check(address, bytes)?;
        stream::find(handle, default).map(drop)
    };
}

fn device(bytes: usize, is_managed: bool) -> Outcome<CUdeviceptr> {
    graph::refuse_unsafe()?;
    Ok(memory::device(&Context::current()?, bytes, is_managed)?.start)
}

unsafe fn host(address: *mut *mut c_void, bytes: usize, flags: c_uint) -> Outcome {
    if address.is_null() {
        return Err(INVALID_VALUE);
    }
    graph::refuse_unsafe()?;
    let allocation = memory::host(&Context::current()?, bytes, flags)?;
    // SAFETY: the program's place.
    unsafe { put(address, allocation.start as *mut c_void) }
}

/// `CUpointer_attribute`; of memory that the driver does not know, zeros.
unsafe fn put_attribute(
    data: *mut c_void,
    attribute: c_int,
    allocation: Option<&Allocation>,
    pointer: CUdeviceptr,
) -> Outcome {
    let is_device = allocation.is_some_and(Allocation::is_device);
    let is_managed = allocation.is_some_and(|found| matches!(found.kind, Kind::Managed(_)));
    let kind = if is_device { MEMORY_DEVICE } else { MEMORY_HOST };
    let of = |value: fn(&Allocation) -> u64| allocation.map_or(0, value);
    // SAFETY: the program's place has the type of the attribute.
    unsafe {
        match attribute {
            1 => put(data.cast(), of(|found| found.context as u64)),
            2 => put(data.cast(), allocation.map_or(0, |_| kind)),
            3 => put(data.cast(), allocation.map_or(0, |_| pointer)),
            4 => put(data.cast(), if is_device && !is_managed { 0 } else { allocation.map_or(0, |_| pointer) }),
            6 => put(data.cast(), 1_u32),
            7 => put(data.cast(), of(|found| found.id)),
            8 => put(data.cast(), is_managed),
            9 => put(data.cast(), allocation.map_or(-2, |found| found.device as c_int)),
            11 => put(data.cast(), of(|found| found.start)),
            12 => put(data.cast(), of(|found| found.length as u64) as usize),
            13 => put(data.cast(), allocation.is_some()),
            _ => Err(NOT_SUPPORTED),
        }
    }
}
