//! Copies and fills.

use std::ffi::c_void;
use std::sync::Arc;

use super::stream_entries;
use crate::context::Default0;
use crate::driver::Driver;
use crate::graph::Step;
use crate::handles::lock;
use crate::memory;
use crate::operation::{Copy, Fill, Operation, Plane, Value, Way};
use crate::stream::{self, Stream};
use crate::types::*;

stream_entries! { by:
    cuMemcpyHtoD_v2 / cuMemcpyHtoD_v2_ptds(to: CUdeviceptr, from: *const c_void, bytes: usize)
        => now(by, row(Way::In, from as u64, to, bytes)?);
    cuMemcpyDtoH_v2 / cuMemcpyDtoH_v2_ptds(to: *mut c_void, from: CUdeviceptr, bytes: usize)
        => now(by, row(Way::Out, from, to as u64, bytes)?);
    cuMemcpyDtoD_v2 / cuMemcpyDtoD_v2_ptds(to: CUdeviceptr, from: CUdeviceptr, bytes: usize)
        => now(by, row(Way::Within, from, to, bytes)?);
    cuMemcpy / cuMemcpy_ptds(to: CUdeviceptr, from: CUdeviceptr, bytes: usize)
        => now(by, row(way(from, to), from, to, bytes)?);
    cuMemcpyPeer / cuMemcpyPeer_ptds
        (to: CUdeviceptr, to_context: CUcontext, from: CUdeviceptr, from_context: CUcontext, bytes: usize)
        => now(by, peer(to, to_context, from, from_context, bytes)?);
    cuMemcpy2D_v2 / cuMemcpy2D_v2_ptds(copy: *const Copy2D) => now(by, planes(&in_three_dimensions(copy)?)?);
    cuMemcpy2DUnaligned_v2 / cuMemcpy2DUnaligned_v2_ptds(copy: *const Copy2D)
        => now(by, planes(&in_three_dimensions(copy)?)?);
    cuMemcpy3D_v2 / cuMemcpy3D_v2_ptds(copy: *const Copy3D) => now(by, planes(copy.as_ref().ok_or(INVALID_VALUE)?)?);

    cuMemcpyHtoDAsync_v2 / cuMemcpyHtoDAsync_v2_ptsz
        (to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream)
        => later(by, stream, row(Way::In, from as u64, to, bytes)?);
    cuMemcpyDtoHAsync_v2 / cuMemcpyDtoHAsync_v2_ptsz(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream)
        => later(by, stream, row(Way::Out, from, to as u64, bytes)?);
    cuMemcpyDtoDAsync_v2 / cuMemcpyDtoDAsync_v2_ptsz
        (to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream)
        => later(by, stream, row(Way::Within, from, to, bytes)?);
    cuMemcpyAsync / cuMemcpyAsync_ptsz(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream)
        => later(by, stream, row(way(from, to), from, to, bytes)?);
    cuMemcpyPeerAsync / cuMemcpyPeerAsync_ptsz(to: CUdeviceptr, to_context: CUcontext, from: CUdeviceptr,
        from_context: CUcontext, bytes: usize, stream: CUstream)
        => later(by, stream, peer(to, to_context, from, from_context, bytes)?);
    cuMemcpy2DAsync_v2 / cuMemcpy2DAsync_v2_ptsz(copy: *const Copy2D, stream: CUstream)
        => later(by, stream, planes(&in_three_dimensions(copy)?)?);
    cuMemcpy3DAsync_v2 / cuMemcpy3DAsync_v2_ptsz(copy: *const Copy3D, stream: CUstream)
        => later(by, stream, planes(copy.as_ref().ok_or(INVALID_VALUE)?)?);

    cuMemsetD8_v2 / cuMemsetD8_v2_ptds(to: CUdeviceptr, value: u8, count: usize)
        => fill(by, None, to, 0, Value::Byte(value), count, 1);
    cuMemsetD16_v2 / cuMemsetD16_v2_ptds(to: CUdeviceptr, value: u16, count: usize)
        => fill(by, None, to, 0, Value::Half(value), count, 1);
    cuMemsetD32_v2 / cuMemsetD32_v2_ptds(to: CUdeviceptr, value: u32, count: usize)
        => fill(by, None, to, 0, Value::Word(value), count, 1);
    cuMemsetD2D8_v2 / cuMemsetD2D8_v2_ptds(to: CUdeviceptr, pitch: usize, value: u8, width: usize, height: usize)
        => fill(by, None, to, pitch, Value::Byte(value), width, height);
    cuMemsetD2D16_v2 / cuMemsetD2D16_v2_ptds(to: CUdeviceptr, pitch: usize, value: u16, width: usize, height: usize)
        => fill(by, None, to, pitch, Value::Half(value), width, height);
    cuMemsetD2D32_v2 / cuMemsetD2D32_v2_ptds(to: CUdeviceptr, pitch: usize, value: u32, width: usize, height: usize)
        => fill(by, None, to, pitch, Value::Word(value), width, height);
    cuMemsetD8Async / cuMemsetD8Async_ptsz(to: CUdeviceptr, value: u8, count: usize, stream: CUstream)
        => fill(by, Some(stream), to, 0, Value::Byte(value), count, 1);
    cuMemsetD16Async / cuMemsetD16Async_ptsz(to: CUdeviceptr, value: u16, count: usize, stream: CUstream)
        => fill(by, Some(stream), to, 0, Value::Half(value), count, 1);
    cuMemsetD32Async / cuMemsetD32Async_ptsz(to: CUdeviceptr, value: u32, count: usize, stream: CUstream)
        => fill(by, Some(stream), to, 0, Value::Word(value), count, 1);
    cuMemsetD2D8Async / cuMemsetD2D8Async_ptsz
        (to: CUdeviceptr, pitch: usize, value: u8, width: usize, height: usize, stream: CUstream)
        => fill(by, Some(stream), to, pitch, Value::Byte(value), width, height);
    cuMemsetD2D16Async / cuMemsetD2D16Async_ptsz
        (to: CUdeviceptr, pitch: usize, value: u16, width: usize, height: usize, stream: CUstream)
        => fill(by, Some(stream), to, pitch, Value::Half(value), width, height);
    cuMemsetD2D32Async / cuMemsetD2D32Async_ptsz
        (to: CUdeviceptr, pitch: usize, value: u32, width: usize, height: usize, stream: CUstream)
        => fill(by, Some(stream), to, pitch, Value::Word(value), width, height);
}

/// Whether an address is of device memory.
fn is_device(address: u64) -> bool {
    memory::find(address).is_some_and(|found| found.is_device())
}

/// Which way a copy goes, by the memory at its ends.
fn way(from: u64, to: u64) -> Way {
    match (is_device(from), is_device(to)) {
        (true, true) => Way::Within,
        (true, false) => Way::Out,
        (false, _) => Way::In,
    }
}

/// A copy of `bytes` bytes in a row.
fn row(way: Way, from: u64, to: u64, bytes: usize) -> Outcome<Copy> {
    let plane = |address: u64| Plane { address: address as usize, pitch: bytes, slice: bytes };
    let copy = Copy { way, from: plane(from), to: plane(to), width: bytes, height: 1, depth: 1, staged: None };
    if bytes == 0 {
        return Ok(copy);
    }
    if from == 0 || to == 0 {
        return Err(INVALID_VALUE);
    }
    // An end that is to be of the device; memory of the host that the driver knows will do.
    if matches!(way, Way::Out | Way::Within) {
        memory::check(from, bytes)?;
    }
    if way == Way::Within || (way == Way::In && memory::find(to).is_some()) {
        memory::check(to, bytes)?;
    } else if way == Way::In && memory::find(from).is_none() {
        return Err(INVALID_VALUE);
    }
    Ok(copy)
}

fn peer(to: u64, to_context: CUcontext, from: u64, from_context: CUcontext, bytes: usize) -> Outcome<Copy> {
    for context in [to_context, from_context] {
        Driver::get()?.contexts.get(context)?;
    }
    let copy = row(Way::Within, from, to, bytes)?;
    let is_same = Driver::get()?.contexts.get(to_context)?.device.ordinal
        == Driver::get()?.contexts.get(from_context)?.device.ordinal;
    // Between devices the copy engine of the stream's device copies.
    Ok(Copy { way: if is_same { Way::Within } else { Way::Out }, ..copy })
}

unsafe fn in_three_dimensions(copy: *const Copy2D) -> Outcome<Copy3D> {
    // SAFETY: null, or the program's description.
    let copy = unsafe { copy.as_ref() }.ok_or(INVALID_VALUE)?;
    let end = |end: &CopyEnd2D| CopyEnd {
        x: end.x,
        y: end.y,
        z: 0,
        level: 0,
        kind: end.kind,
        host: end.host,
        device: end.device,
        array: end.array,
        context: std::ptr::null_mut(),
        pitch: end.pitch,
        height: copy.height,
    };
    let (source, target) = (end(&copy.source), end(&copy.target));
    Ok(Copy3D { source, target, width: copy.width, height: copy.height, depth: 1 })
}

/// A copy of rows and planes.
fn planes(copy: &Copy3D) -> Outcome<Copy> {
    let Copy3D { source, target, width, height, depth } = *copy;
    let end = |end: &CopyEnd| -> Outcome<(Plane, u64)> {
        let start = match end.kind {
            MEMORY_HOST => end.host as u64,
            MEMORY_DEVICE | MEMORY_UNIFIED => end.device,
            // Arrays, of which there are none.
            _ => return Err(NOT_SUPPORTED),
        };
        let pitch = if end.pitch == 0 { width } else { end.pitch };
        if pitch < width || start == 0 {
            return Err(INVALID_VALUE);
        }
        let slice = pitch.checked_mul(end.height.max(height)).ok_or(INVALID_VALUE)?;
        let offset = sum([end.z.checked_mul(slice), end.y.checked_mul(pitch), Some(end.x)])?;
        let address = sum([Some(start as usize), Some(offset)])?;
        if width > 0 && height > 0 && depth > 0 {
            let bytes = sum([(depth - 1).checked_mul(slice), (height - 1).checked_mul(pitch), Some(width)])?;
            sum([Some(address), Some(bytes)])?;
            // A unified address is of the host's own memory where the driver does not know it.
            let is_known = || [start, address as u64].into_iter().any(|address| memory::find(address).is_some());
            if end.kind == MEMORY_DEVICE || (end.kind == MEMORY_UNIFIED && is_known()) {
                memory::check(address as u64, bytes)?;
            }
        }
        Ok((Plane { address, pitch, slice }, address as u64))
    };
    let ((from, first), (to, second)) = (end(&source)?, end(&target)?);
    Ok(Copy { way: way(first, second), from, to, width, height, depth, staged: None })
}

/// `CUDA_ERROR_INVALID_VALUE`, if the sum is too large for an address.
fn sum<const COUNT: usize>(parts: [Option<usize>; COUNT]) -> Outcome<usize> {
    parts.into_iter().try_fold(0_usize, |sum, part| sum.checked_add(part?)).ok_or(INVALID_VALUE)
}

/// Copies, and returns when that is done.
fn now(default: Default0, copy: Copy) -> Outcome {
    let stream = stream::find(std::ptr::null_mut(), default)?;
    stream.refuse_in_capture()?;
    stream.issue([Step::Operation(Operation::Copy(copy))])?;
    stream.synchronize()
}

/// Copies in the order of a stream. Memory of the host that the driver does not know may be changed when the call has
/// returned, and is read and written before that.
fn later(default: Default0, handle: CUstream, mut copy: Copy) -> Outcome {
    let stream = stream::find(handle, default)?;
    let is_captured = lock(&stream.captured).is_some();
    let is_pageable = |address: usize| memory::find(address as u64).is_none();
    if copy.way == Way::In && !is_captured && is_pageable(copy.from.address) {
        // SAFETY: the program promises that its bytes are there.
        unsafe { copy.stage() };
    }
    let waits = copy.way == Way::Out && !is_captured && is_pageable(copy.to.address);
    stream.issue([Step::Operation(Operation::Copy(copy))])?;
    if waits { stream.synchronize() } else { Ok(()) }
}

fn fill(
    default: Default0,
    handle: Option<CUstream>,
    to: CUdeviceptr,
    pitch: usize,
    value: Value,
    width: usize,
    height: usize,
) -> Outcome {
    let size = match value {
        Value::Byte(_) => 1,
        Value::Half(_) => 2,
        Value::Word(_) => 4,
    };
    let row = width.checked_mul(size).ok_or(INVALID_VALUE)?;
    let is_aligned = to.is_multiple_of(size as u64) && pitch.is_multiple_of(size);
    if !is_aligned || (height > 1 && pitch < row) {
        return Err(INVALID_VALUE);
    }
    if row > 0 && height > 0 {
        memory::check(to, sum([(height - 1).checked_mul(pitch), Some(row)])?)?;
    }
    let stream: Arc<Stream> = stream::find(handle.unwrap_or(std::ptr::null_mut()), default)?;
    let fill = Fill { address: to as usize, pitch, width, height, value };
    stream.issue([Step::Operation(Operation::Fill(fill))])?;
    // Without a stream the call returns when it is done.
    if handle.is_none() { stream.synchronize() } else { Ok(()) }
}
