//! Copies and fills.

use laxity_policy::program::{Work, chunks};

use super::{operations, wrapper};
use crate::issue::{Place, issue};
use crate::keys::{BATCH, COPY, FILL, within_device};
use crate::layer::Layer;
use crate::real::{is_device_memory, is_within_memory};
use crate::types::*;

operations! {
    cuMemcpyPeer / cuMemcpyPeer_ptds(to, to_context, from, from_context, bytes) [] => out(bytes);
    cuMemcpyAtoD_v2 / cuMemcpyAtoD_v2_ptds(to, array, offset, bytes) [] => within_device(COPY, bytes);
    cuMemcpyDtoA_v2 / cuMemcpyDtoA_v2_ptds(array, offset, from, bytes) [] => within_device(COPY, bytes);
    cuMemcpyAtoA_v2 / cuMemcpyAtoA_v2_ptds(to, offset, from, from_offset, bytes) [] => within_device(COPY, bytes);
    cuMemcpyAtoH_v2 / cuMemcpyAtoH_v2_ptds(to, array, offset, bytes) [] => out(bytes);
    cuMemcpyHtoA_v2 / cuMemcpyHtoA_v2_ptds(array, offset, from, bytes) [] => in_(bytes);
    cuMemcpyDtoD_v2 / cuMemcpyDtoD_v2_ptds(to, from, bytes) [] => within_device(COPY, bytes);
    cuMemcpy2D_v2 / cuMemcpy2D_v2_ptds(copy) [] => two_dimensions(copy);
    cuMemcpy2DUnaligned_v2 / cuMemcpy2DUnaligned_v2_ptds(copy) [] => two_dimensions(copy);
    cuMemcpy3D_v2 / cuMemcpy3D_v2_ptds(copy) [] => three_dimensions(copy);
    cuMemcpy3DPeer / cuMemcpy3DPeer_ptds(copy) [] => out(0);

    cuMemcpyPeerAsync / cuMemcpyPeerAsync_ptsz(to, to_context, from, from_context, bytes, stream) [stream] => out(bytes);
    cuMemcpyDtoDAsync_v2 / cuMemcpyDtoDAsync_v2_ptsz(to, from, bytes, stream) [stream] => within_device(COPY, bytes);
    cuMemcpyHtoAAsync_v2 / cuMemcpyHtoAAsync_v2_ptsz(array, offset, from, bytes, stream) [stream] => in_(bytes);
    cuMemcpyAtoHAsync_v2 / cuMemcpyAtoHAsync_v2_ptsz(to, array, offset, bytes, stream) [stream] => out(bytes);
    cuMemcpy2DAsync_v2 / cuMemcpy2DAsync_v2_ptsz(copy, stream) [stream] => two_dimensions(copy);
    cuMemcpy3DAsync_v2 / cuMemcpy3DAsync_v2_ptsz(copy, stream) [stream] => three_dimensions(copy);
    cuMemcpy3DPeerAsync / cuMemcpy3DPeerAsync_ptsz(copy, stream) [stream] => out(0);
    cuMemcpyBatchAsync / cuMemcpyBatchAsync_ptsz
        (to, from, sizes, count, attributes, indices, attribute_count, failed, stream) [stream]
        => within_device(BATCH, count);
    cuMemcpyBatchAsync_v2 / cuMemcpyBatchAsync_v2_ptsz
        (to, from, sizes, count, attributes, indices, attribute_count, stream) [stream] => within_device(BATCH, count);
    cuMemcpy3DBatchAsync / cuMemcpy3DBatchAsync_ptsz(count, list, failed, flags, stream) [stream]
        => within_device(BATCH, count);
    cuMemcpy3DBatchAsync_v2 / cuMemcpy3DBatchAsync_v2_ptsz(count, list, flags, stream) [stream]
        => within_device(BATCH, count);
    cuMemcpyWithAttributesAsync / cuMemcpyWithAttributesAsync_ptsz(to, from, bytes, attributes, stream) [stream]
        => by_memory(to, from, bytes);
    cuMemcpy3DWithAttributesAsync / cuMemcpy3DWithAttributesAsync_ptsz(copy, flags, stream) [stream]
        => within_device(BATCH, 1);

    cuMemsetD8_v2 / cuMemsetD8_v2_ptds(to, value, count) [] => within_device(FILL, count);
    cuMemsetD16_v2 / cuMemsetD16_v2_ptds(to, value, count) [] => within_device(FILL, count.wrapping_mul(2));
    cuMemsetD32_v2 / cuMemsetD32_v2_ptds(to, value, count) [] => within_device(FILL, count.wrapping_mul(4));
    cuMemsetD2D8_v2 / cuMemsetD2D8_v2_ptds(to, pitch, value, width, height) [] => within_device(FILL, width.wrapping_mul(height));
    cuMemsetD2D16_v2 / cuMemsetD2D16_v2_ptds(to, pitch, value, width, height) [] => within_device(FILL, width.wrapping_mul(height));
    cuMemsetD2D32_v2 / cuMemsetD2D32_v2_ptds(to, pitch, value, width, height) [] => within_device(FILL, width.wrapping_mul(height));
    cuMemsetD8Async / cuMemsetD8Async_ptsz(to, value, count, stream) [stream] => within_device(FILL, count);
    cuMemsetD16Async / cuMemsetD16Async_ptsz(to, value, count, stream) [stream] => within_device(FILL, count.wrapping_mul(2));
    cuMemsetD32Async / cuMemsetD32Async_ptsz(to, value, count, stream) [stream] => within_device(FILL, count.wrapping_mul(4));
    cuMemsetD2D8Async / cuMemsetD2D8Async_ptsz(to, pitch, value, width, height, stream) [stream]
        => within_device(FILL, width.wrapping_mul(height));
    cuMemsetD2D16Async / cuMemsetD2D16Async_ptsz(to, pitch, value, width, height, stream) [stream]
        => within_device(FILL, width.wrapping_mul(height));
    cuMemsetD2D32Async / cuMemsetD2D32Async_ptsz(to, pitch, value, width, height, stream) [stream]
        => within_device(FILL, width.wrapping_mul(height));

    cuMemPrefetchAsync / cuMemPrefetchAsync_ptsz(address, bytes, device, stream) [stream] => in_(bytes);
    cuMemPrefetchAsync_v2 / cuMemPrefetchAsync_v2_ptsz(address, bytes, location, flags, stream) [stream] => in_(bytes);
    cuMemPrefetchBatchAsync / cuMemPrefetchBatchAsync_ptsz
        (addresses, sizes, count, locations, indices, location_count, flags, stream) [stream] => in_(count);
    cuMemDiscardAndPrefetchBatchAsync / cuMemDiscardAndPrefetchBatchAsync_ptsz
        (addresses, sizes, count, locations, indices, location_count, flags, stream) [stream] => in_(count);
}

/// Copies of bytes in a row, which long ones are broken into chunks of: `symbol / form for per-thread streams [stream] =>
/// what a part is;`.
macro_rules! chunked {
    ($($symbol:ident / $variant:ident($to:ident, $from:ident, $bytes:ident $(, $stream:ident)?) => $work:expr;)*) => {
        $(
            chunked!(@ $symbol, Legacy, $to, $from, $bytes, [$($stream)?], $work);
            chunked!(@ $variant, PerThread, $to, $from, $bytes, [$($stream)?], $work);
        )*

        /// By symbol.
        pub fn chunked_rows() -> Vec<(&'static str, *const std::ffi::c_void)> {
            vec![$(
                (stringify!($symbol), $symbol as *const std::ffi::c_void),
                (stringify!($variant), $variant as *const std::ffi::c_void),
            )*]
        }
    };
    (@ $symbol:ident, $default:ident, $to:ident, $from:ident, $bytes:ident, [$($stream:ident)?], $work:expr) => {
        wrapper!($symbol, ($to: Word, $from: Word, $bytes: Word $(, $stream: Word)?), real => {
            let streams: &[Word] = &[$($stream)?];
            let handle = streams.first().copied().unwrap_or(0) as CUstream;
            let place = Place { handle, default: Default0::$default, blocking: streams.is_empty() };
            let work = |$to: Word, $from: Word, $bytes: Word| $work;
            in_chunks(place, $to, $from, $bytes, work, |to, from, bytes| {
                // SAFETY: the program's call, or a part of it.
                unsafe { real(to, from, bytes $(, $stream)?) }
            })
        });
    };
}

chunked! {
    cuMemcpyHtoD_v2 / cuMemcpyHtoD_v2_ptds(_to, _from, bytes) => in_(bytes);
    cuMemcpyDtoH_v2 / cuMemcpyDtoH_v2_ptds(_to, _from, bytes) => out(bytes);
    cuMemcpy / cuMemcpy_ptds(to, from, bytes) => by_memory(to, from, bytes);
    cuMemcpyHtoDAsync_v2 / cuMemcpyHtoDAsync_v2_ptsz(_to, _from, bytes, stream) => in_(bytes);
    cuMemcpyDtoHAsync_v2 / cuMemcpyDtoHAsync_v2_ptsz(_to, _from, bytes, stream) => out(bytes);
    cuMemcpyAsync / cuMemcpyAsync_ptsz(to, from, bytes, stream) => by_memory(to, from, bytes);
}

/// A copy, in chunks if the policy says so. A chunk that fails ends the copy, with the driver's result. A copy beyond the end of
/// its memory has no chunks: the driver is to refuse it before it copies any byte.
fn in_chunks(
    place: Place,
    to: Word,
    from: Word,
    bytes: Word,
    work: impl Fn(Word, Word, Word) -> Work,
    call: impl Fn(Word, Word, Word) -> CUresult,
) -> CUresult {
    let layer = Layer::get();
    if !layer.is_on() {
        return call(to, from, bytes);
    }
    let is_within = || is_within_memory(to, bytes) && is_within_memory(from, bytes);
    let chunk = layer.process().chunk().filter(|&chunk| bytes as u64 > chunk && is_within());
    if chunk.is_none() || layer.is_captured(place.handle, place.default) {
        return issue(place, || work(to, from, bytes), || None, || call(to, from, bytes));
    }
    for part in chunks(bytes as u64, chunk) {
        let (start, length) = (part.start as usize, (part.end - part.start) as usize);
        let (to, from) = (to.wrapping_add(start), from.wrapping_add(start));
        let result = issue(place, || work(to, from, length), || None, || call(to, from, length));
        if result != SUCCESS {
            return result;
        }
    }
    SUCCESS
}

fn in_(bytes: Word) -> Work {
    Work::CopyIn { bytes: bytes as u64 }
}

fn out(bytes: Word) -> Work {
    Work::CopyOut { bytes: bytes as u64 }
}

/// Which way a copy goes, by the memory at its ends (paper 003, section 5.4.2).
fn by_memory(to: Word, from: Word, bytes: Word) -> Work {
    match (is_device_memory(from), is_device_memory(to)) {
        (true, true) => within_device(COPY, bytes),
        (true, false) => out(bytes),
        (false, _) => in_(bytes),
    }
}

/// `CUDA_MEMCPY2D_v2`: 16 words, of which the third of each end is what memory it is.
fn two_dimensions(copy: Word) -> Work {
    // SAFETY: null, or the program's description, which the driver reads, too.
    let Some(words) = (unsafe { (copy as *const [Word; 16]).as_ref() }) else { return in_(0) };
    between(words[2] as u32, words[9] as u32, words[14].wrapping_mul(words[15]))
}

/// `CUDA_MEMCPY3D_v2`: 25 words, of which the fifth of each end is what memory it is.
fn three_dimensions(copy: Word) -> Work {
    // SAFETY: as above.
    let Some(words) = (unsafe { (copy as *const [Word; 25]).as_ref() }) else { return in_(0) };
    let bytes = words[22].wrapping_mul(words[23]).wrapping_mul(words[24]);
    between(words[4] as u32, words[15] as u32, bytes)
}

fn between(from: u32, to: u32, bytes: Word) -> Work {
    match (from == MEMORY_HOST, to == MEMORY_HOST) {
        (false, false) => within_device(COPY, bytes),
        (false, true) => out(bytes),
        (true, _) => in_(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_in_dimensions_goes_the_way_of_its_memory() {
        let (host, device) = (MEMORY_HOST as Word, MEMORY_DEVICE as Word);
        let mut flat = [0_usize; 16];
        (flat[2], flat[9], flat[14], flat[15]) = (device, host, 100, 7);
        assert_eq!(two_dimensions(flat.as_ptr() as Word), out(700));
        let mut deep = [0_usize; 25];
        (deep[4], deep[15], deep[22], deep[23], deep[24]) = (host, device, 10, 7, 3);
        assert_eq!(three_dimensions(deep.as_ptr() as Word), in_(210));
        (deep[4], deep[15]) = (device, 4);
        assert_eq!(three_dimensions(deep.as_ptr() as Word), within_device(COPY, 210));
        assert_eq!(two_dimensions(0), in_(0), "the driver names the error");
    }
}
