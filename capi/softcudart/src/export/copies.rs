//! Copies and fills.

use std::ffi::{c_int, c_uint};

use super::stream_entries;
use crate::devices::{self, enter};
use crate::driver::ask;
use crate::types::*;

stream_entries! { default:
    cudaMemcpy / cudaMemcpy_ptds(to: usize, from: usize, bytes: usize, kind: c_int)
        => now(default, |stream| copy(to, from, bytes, kind, stream));
    cudaMemcpyAsync / cudaMemcpyAsync_ptsz(to: usize, from: usize, bytes: usize, kind: c_int, stream: Stream) => {
        enter()?;
        copy(to, from, bytes, kind, default.stream(stream))
    };
    cudaMemcpy2D / cudaMemcpy2D_ptds(to: usize, to_pitch: usize, from: usize, from_pitch: usize, width: usize,
        height: usize, kind: c_int)
        => now(default, |stream| copy_rows(to, to_pitch, from, from_pitch, width, height, kind, stream));
    cudaMemcpy2DAsync / cudaMemcpy2DAsync_ptsz(to: usize, to_pitch: usize, from: usize, from_pitch: usize, width: usize,
        height: usize, kind: c_int, stream: Stream) => {
        enter()?;
        copy_rows(to, to_pitch, from, from_pitch, width, height, kind, default.stream(stream))
    };
    cudaMemset / cudaMemset_ptds(to: usize, value: c_int, bytes: usize)
        => now(default, |stream| fill(to, 0, value, bytes, 1, stream));
    cudaMemsetAsync / cudaMemsetAsync_ptsz(to: usize, value: c_int, bytes: usize, stream: Stream) => {
        enter()?;
        fill(to, 0, value, bytes, 1, default.stream(stream))
    };
    cudaMemset2D / cudaMemset2D_ptds(to: usize, pitch: usize, value: c_int, width: usize, height: usize)
        => now(default, |stream| fill(to, pitch, value, width, height, stream));
    cudaMemset2DAsync / cudaMemset2DAsync_ptsz
        (to: usize, pitch: usize, value: c_int, width: usize, height: usize, stream: Stream) => {
        enter()?;
        fill(to, pitch, value, width, height, default.stream(stream))
    };
}

/// Between devices, on the shared stream of the calling thread's.
#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemcpyPeer(
    to: usize,
    to_device: c_int,
    from: usize,
    from_device: c_int,
    bytes: usize,
) -> cudaError {
    crate::errors::call(|| {
        now(Default0::Legacy, |stream| copy_between(to, to_device, from, from_device, bytes, stream))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemcpyPeerAsync(
    to: usize,
    to_device: c_int,
    from: usize,
    from_device: c_int,
    bytes: usize,
    stream: Stream,
) -> cudaError {
    crate::errors::call(|| {
        enter()?;
        copy_between(to, to_device, from, from_device, bytes, stream)
    })
}

/// What `issue` issues to the default stream is complete when this returns.
fn now(default: Default0, issue: impl FnOnce(Stream) -> Outcome) -> Outcome {
    enter()?;
    let stream = default.stream(std::ptr::null_mut());
    issue(stream)?;
    ask!(c"cuStreamSynchronize": fn(Stream)(stream))
}

fn copy(to: usize, from: usize, bytes: usize, kind: c_int, stream: Stream) -> Outcome {
    if bytes == 0 {
        return Ok(());
    }
    match kind {
        HOST_TO_DEVICE => ask!(c"cuMemcpyHtoDAsync": fn(usize, usize, usize, Stream)(to, from, bytes, stream)),
        DEVICE_TO_HOST => ask!(c"cuMemcpyDtoHAsync": fn(usize, usize, usize, Stream)(to, from, bytes, stream)),
        DEVICE_TO_DEVICE => ask!(c"cuMemcpyDtoDAsync": fn(usize, usize, usize, Stream)(to, from, bytes, stream)),
        BY_ADDRESS => ask!(c"cuMemcpyAsync": fn(usize, usize, usize, Stream)(to, from, bytes, stream)),
        HOST_TO_HOST => {
            ask!(c"cuStreamSynchronize": fn(Stream)(stream))?;
            if to == 0 || from == 0 {
                return Err(INVALID_VALUE);
            }
            // SAFETY: the program promises that all bytes are there.
            unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes) };
            Ok(())
        }
        _ => Err(INVALID_MEMCPY_DIRECTION),
    }
}

#[expect(clippy::too_many_arguments, reason = "as many as CUDA's copy has")]
fn copy_rows(
    to: usize,
    to_pitch: usize,
    from: usize,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: c_int,
    stream: Stream,
) -> Outcome {
    if width == 0 || height == 0 {
        return Ok(());
    }
    let (source, target) = match kind {
        HOST_TO_HOST => (MEMORY_HOST, MEMORY_HOST),
        HOST_TO_DEVICE => (MEMORY_HOST, MEMORY_DEVICE),
        DEVICE_TO_HOST => (MEMORY_DEVICE, MEMORY_HOST),
        DEVICE_TO_DEVICE => (MEMORY_DEVICE, MEMORY_DEVICE),
        BY_ADDRESS => (MEMORY_UNIFIED, MEMORY_UNIFIED),
        _ => return Err(INVALID_MEMCPY_DIRECTION),
    };
    let end = |kind, address, pitch| CopyEnd { x: 0, y: 0, kind, host: address, device: address, array: 0, pitch };
    let copy = Copy2D { source: end(source, from, from_pitch), target: end(target, to, to_pitch), width, height };
    ask!(c"cuMemcpy2DAsync": fn(*const Copy2D, Stream)(&copy, stream))
}

fn copy_between(to: usize, to_device: c_int, from: usize, from_device: c_int, bytes: usize, stream: Stream) -> Outcome {
    let context = |device| -> Outcome<Handle> { Ok(devices::primary(devices::check(device)?)? as Handle) };
    let (to_context, from_context) = (context(to_device)?, context(from_device)?);
    ask!(c"cuMemcpyPeerAsync": fn(usize, Handle, usize, Handle, usize, Stream)(
        to, to_context, from, from_context, bytes, stream
    ))
}

fn fill(to: usize, pitch: usize, value: c_int, width: usize, height: usize, stream: Stream) -> Outcome {
    if width == 0 || height == 0 {
        return Ok(());
    }
    // The low byte counts. A calling convention passes it as a word.
    let value = c_uint::from(value as u8);
    if height == 1 {
        return ask!(c"cuMemsetD8Async": fn(usize, c_uint, usize, Stream)(to, value, width, stream));
    }
    ask!(c"cuMemsetD2D8Async": fn(usize, usize, c_uint, usize, usize, Stream)(to, pitch, value, width, height, stream))
}
