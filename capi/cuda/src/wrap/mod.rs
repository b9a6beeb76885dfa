//! The entry points that the layer has in the place of the driver's: a line each.
//!
//! Arguments that are only passed on are words, whatever their types: integers, pointers and handles, and structures of
//! eight bytes, are passed alike.
#![allow(non_snake_case)]

mod contexts;
mod copies;
mod kernels;
mod order;
mod start;
mod streams;
mod waits;

use std::ffi::c_void;

/// All wrappers, by the symbol of the driver.
pub fn rows() -> Vec<(&'static str, *const c_void)> {
    [
        contexts::rows(),
        copies::rows(),
        copies::chunked_rows(),
        kernels::rows(),
        order::rows(),
        start::rows(),
        streams::rows(),
        waits::rows(),
    ]
    .concat()
}

/// A wrapper: the audit finds it by the symbol of the driver behind a prefix. `real` is the driver's function, which takes
/// the arguments.
macro_rules! wrapper {
    ($symbol:ident, ($($name:ident: $type:ty),*), $real:ident => $body:expr) => {
        #[unsafe(export_name = concat!("laxity_wrap_", stringify!($symbol)))]
        unsafe extern "C" fn $symbol($($name: $type),*) -> crate::types::CUresult {
            static REAL: crate::real::Real = crate::real::Real::new(
                // A name with a zero byte behind it is C text.
                match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($symbol), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("a name has no zero byte"),
                },
            );
            type Function = unsafe extern "C" fn($($type),*) -> crate::types::CUresult;
            let Some(address) = REAL.get() else { return crate::types::NOT_FOUND };
            // SAFETY: the driver's function of that name takes these words.
            let $real = unsafe { std::mem::transmute::<*mut std::ffi::c_void, Function>(address) };
            $body
        }
    };
}
use wrapper;

/// Wrappers: `symbol(arguments) => what they do with real;`.
macro_rules! wrappers {
    ($real:ident: $($symbol:ident($($name:ident: $type:ty),* $(,)?) => $body:expr;)*) => {
        $(crate::wrap::wrapper!($symbol, ($($name: $type),*), $real => $body);)*

        /// By symbol.
        pub fn rows() -> Vec<(&'static str, *const std::ffi::c_void)> {
            vec![$((stringify!($symbol), $symbol as *const std::ffi::c_void)),*]
        }
    };
}
use wrappers;

/// Wrappers with a form for per-thread default streams: `default` stands for what 0 means.
macro_rules! stream_wrappers {
    ($real:ident, $default:ident: $($symbol:ident / $variant:ident($($name:ident: $type:ty),* $(,)?) => $body:expr;)*) => {
        $(
            crate::wrap::wrapper!($symbol, ($($name: $type),*), $real => {
                let $default = crate::types::Default0::Legacy;
                $body
            });
            crate::wrap::wrapper!($variant, ($($name: $type),*), $real => {
                let $default = crate::types::Default0::PerThread;
                $body
            });
        )*

        /// By symbol.
        pub fn rows() -> Vec<(&'static str, *const std::ffi::c_void)> {
            vec![$(
                (stringify!($symbol), $symbol as *const std::ffi::c_void),
                (stringify!($variant), $variant as *const std::ffi::c_void),
            )*]
        }
    };
}
use stream_wrappers;

/// One operation each: `symbol / form for per-thread streams (arguments) [its stream] => what it is, named what;`. Without
/// a stream the call returns when the operation is complete.
macro_rules! operations {
    ($($symbol:ident / $variant:ident($($name:ident),* $(,)?) [$($stream:ident)?] => $work:expr $(, named $label:expr)?;)*)
        => {
        $(
            crate::wrap::operation!($symbol, Legacy, ($($name),*), [$($stream)?], $work, [$($label)?]);
            crate::wrap::operation!($variant, PerThread, ($($name),*), [$($stream)?], $work, [$($label)?]);
        )*

        /// By symbol.
        pub fn rows() -> Vec<(&'static str, *const std::ffi::c_void)> {
            vec![$(
                (stringify!($symbol), $symbol as *const std::ffi::c_void),
                (stringify!($variant), $variant as *const std::ffi::c_void),
            )*]
        }
    };
}
use operations;

macro_rules! operation {
    ($symbol:ident, $default:ident, ($($name:ident),*), [$($stream:ident)?], $work:expr, [$($label:expr)?]) => {
        crate::wrap::wrapper!($symbol, ($($name: crate::types::Word),*), real => {
            let default = crate::types::Default0::$default;
            let streams: &[crate::types::Word] = &[$($stream)?];
            let place = crate::issue::Place {
                handle: streams.first().copied().unwrap_or(0) as crate::types::CUstream,
                default,
                blocking: streams.is_empty(),
            };
            let label = || {
                let labels: [Option<laxity_interpose::Label>; 0 $(+ { let _ = stringify!($label); 1 })?] = [$($label)?];
                labels.into_iter().flatten().next()
            };
            // SAFETY: the program's call.
            crate::issue::issue(place, || $work, label, || unsafe { real($($name),*) })
        });
    };
}
use operation;
