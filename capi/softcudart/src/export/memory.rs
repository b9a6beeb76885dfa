//! Memory.

use std::ffi::{c_int, c_uint, c_void};

use super::{entries, put, stream_entries};
use crate::devices::enter;
use crate::driver::ask;
use crate::types::*;

entries! {
    cudaMalloc(address: *mut usize, bytes: usize) => {
        enter()?;
        if bytes == 0 {
            return put(address, 0);
        }
        ask!(c"cuMemAlloc": fn(*mut usize, usize)(address, bytes))
    };
    cudaMallocPitch(address: *mut usize, pitch: *mut usize, width: usize, height: usize) => {
        enter()?;
        // Elements of 4 bytes or less.
        ask!(c"cuMemAllocPitch": fn(*mut usize, *mut usize, usize, usize, c_uint)(address, pitch, width, height, 4))
    };
    cudaMallocManaged(address: *mut usize, bytes: usize, flags: c_uint) => {
        enter()?;
        ask!(c"cuMemAllocManaged": fn(*mut usize, usize, c_uint)(address, bytes, flags))
    };
    cudaFree(address: usize) => {
        enter()?;
        if address == 0 {
            return Ok(());
        }
        ask!(c"cuMemFree": fn(usize)(address))
    };
    cudaMallocHost(address: *mut *mut c_void, bytes: usize) => {
        enter()?;
        ask!(c"cuMemAllocHost": fn(*mut *mut c_void, usize)(address, bytes))
    };
    cudaHostAlloc(address: *mut *mut c_void, bytes: usize, flags: c_uint) => {
        enter()?;
        ask!(c"cuMemHostAlloc": fn(*mut *mut c_void, usize, c_uint)(address, bytes, flags))
    };
    cudaFreeHost(address: *mut c_void) => {
        enter()?;
        if address.is_null() {
            return Ok(());
        }
        ask!(c"cuMemFreeHost": fn(*mut c_void)(address))
    };
    cudaHostRegister(address: *mut c_void, bytes: usize, flags: c_uint) => {
        enter()?;
        ask!(c"cuMemHostRegister": fn(*mut c_void, usize, c_uint)(address, bytes, flags))
    };
    cudaHostUnregister(address: *mut c_void) => {
        enter()?;
        ask!(c"cuMemHostUnregister": fn(*mut c_void)(address))
    };
    cudaHostGetDevicePointer(address: *mut usize, host: *mut c_void, flags: c_uint) => {
        enter()?;
        ask!(c"cuMemHostGetDevicePointer": fn(*mut usize, *mut c_void, c_uint)(address, host, flags))
    };
    cudaHostGetFlags(flags: *mut c_uint, host: *mut c_void) => {
        enter()?;
        ask!(c"cuMemHostGetFlags": fn(*mut c_uint, *mut c_void)(flags, host))
    };
    cudaMemGetInfo(free: *mut usize, total: *mut usize) => {
        enter()?;
        ask!(c"cuMemGetInfo": fn(*mut usize, *mut usize)(free, total))
    };
    cudaPointerGetAttributes(to: *mut PointerAttributes, pointer: usize) => {
        enter()?;
        // Kind of memory, device, addresses for the device and for the host, and whether it is managed.
        let names: [c_int; 5] = [2, 9, 3, 4, 8];
        let (mut kind, mut device, mut managed) = (0_u32, 0_i32, 0_u32);
        let (mut on_device, mut on_host) = (0_usize, 0_usize);
        let mut places: [*mut c_void; 5] = [
            (&raw mut kind).cast(),
            (&raw mut device).cast(),
            (&raw mut on_device).cast(),
            (&raw mut on_host).cast(),
            (&raw mut managed).cast(),
        ];
        ask!(c"cuPointerGetAttributes": fn(c_uint, *const c_int, *mut *mut c_void, usize)(
            names.len() as c_uint, names.as_ptr(), places.as_mut_ptr(), pointer
        ))?;
        // `cudaMemoryType`: not known, of the host, of the device, managed.
        let kind = if managed & 1 != 0 { 3 } else { kind as c_int };
        let (device_pointer, host_pointer) = (on_device, on_host);
        put(to, PointerAttributes { kind, device, device_pointer, host_pointer, ..PointerAttributes::default() })
    };
}

stream_entries! { default:
    cudaMallocAsync / cudaMallocAsync_ptsz(address: *mut usize, bytes: usize, stream: Stream) => {
        enter()?;
        ask!(c"cuMemAllocAsync": fn(*mut usize, usize, Stream)(address, bytes, default.stream(stream)))
    };
    cudaFreeAsync / cudaFreeAsync_ptsz(address: usize, stream: Stream) => {
        enter()?;
        ask!(c"cuMemFreeAsync": fn(usize, Stream)(address, default.stream(stream)))
    };
}
