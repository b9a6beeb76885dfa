//! The entry points: a line each.
#![allow(non_snake_case)]

mod copies;
mod devices;
mod kernels;
mod memory;
mod streams;
pub mod unsupported;

use crate::types::*;

/// Writes an answer where the program wants it.
///
/// # Safety
/// `to` is null or can be written.
unsafe fn put<T>(to: *mut T, value: T) -> Outcome {
    if to.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: not null, and the caller's promise.
    unsafe { to.write(value) };
    Ok(())
}

/// Entry points: `symbol(parameters) => what it does;`. Each is called with what CUDA's documentation asks of programs:
/// pointers are null, or of what their type says. An error is kept as the thread's last one.
macro_rules! entries {
    ($($symbol:ident($($name:ident: $type:ty),* $(,)?) => $body:expr;)*) => {
        $(
            #[unsafe(no_mangle)]
            #[allow(unused_unsafe, reason = "some need none")]
            unsafe extern "C" fn $symbol($($name: $type),*) -> cudaError {
                // SAFETY: what the documentation asks of the program.
                crate::errors::call(|| unsafe { $body })
            }
        )*

        /// Their symbols.
        #[cfg(test)]
        pub const NAMES: &[&str] = &[$(stringify!($symbol)),*];
    };
}
use entries;

/// As [`entries!`], for those that have a form for per-thread default streams: `default` stands for what 0 means.
macro_rules! stream_entries {
    ($default:ident: $($symbol:ident / $variant:ident($($name:ident: $type:ty),* $(,)?) => $body:expr;)*) => {
        $(
            #[unsafe(no_mangle)]
            #[allow(unused_unsafe, reason = "some need none")]
            unsafe extern "C" fn $symbol($($name: $type),*) -> cudaError {
                let $default = Default0::Legacy;
                // SAFETY: what the documentation asks of the program.
                crate::errors::call(|| unsafe { $body })
            }

            #[unsafe(no_mangle)]
            #[allow(unused_unsafe, reason = "some need none")]
            unsafe extern "C" fn $variant($($name: $type),*) -> cudaError {
                let $default = Default0::PerThread;
                // SAFETY: as above.
                crate::errors::call(|| unsafe { $body })
            }
        )*

        /// Their symbols.
        #[cfg(test)]
        pub const STREAM_NAMES: &[&str] = &[$(stringify!($symbol), stringify!($variant)),*];
    };
}
use stream_entries;

#[cfg(test)]
mod tests {
    /// The symbols of the vendor's library, one a line.
    const TABLE: &str = include_str!("../../entry_points.txt");

    /// Those that are written out.
    const PLAIN: &[&str] = &[
        "cudaGetLastError",
        "cudaPeekAtLastError",
        "cudaGetErrorName",
        "cudaGetErrorString",
        "cudaCreateChannelDesc",
        "cudaMemcpyPeer",
        "cudaMemcpyPeerAsync",
        "__cudaRegisterFatBinary",
        "__cudaRegisterFatBinaryEnd",
        "__cudaUnregisterFatBinary",
        "__cudaRegisterFunction",
        "__cudaRegisterVar",
        "__cudaRegisterHostVar",
        "__cudaRegisterManagedVar",
        "__cudaRegisterUnifiedTable",
        "__cudaInitModule",
        "__cudaPushCallConfiguration",
    ];

    #[test]
    fn every_entry_point_is_carried_out_or_refused_by_name() {
        use super::{copies, devices, kernels, memory, streams, unsupported};
        let lists = [
            copies::STREAM_NAMES,
            devices::NAMES,
            kernels::NAMES,
            kernels::STREAM_NAMES,
            memory::NAMES,
            memory::STREAM_NAMES,
            streams::NAMES,
            streams::STREAM_NAMES,
            PLAIN,
            unsupported::NAMES,
        ];
        for symbol in TABLE.lines() {
            let count = lists.iter().flat_map(|list| list.iter()).filter(|known| **known == symbol).count();
            assert_eq!(count, 1, "{symbol}");
        }
        let ours = lists.iter().map(|list| list.len()).sum::<usize>();
        assert_eq!(ours, TABLE.lines().count(), "the vendor's library has each of ours");
    }
}
