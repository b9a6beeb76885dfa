//! The entry points: a line each.
#![allow(non_snake_case)]

mod contexts;
mod copies;
mod devices;
mod events;
mod graphs;
mod kernels;
mod memory;
mod start;
mod streams;
pub mod unsupported;

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::context::{self, Context};
use crate::driver::Driver;
use crate::types::*;

/// All entry points that are carried out, by symbol.
pub fn rows() -> Vec<(&'static str, *const c_void)> {
    [
        contexts::rows(),
        copies::stream_rows(),
        devices::rows(),
        events::rows(),
        events::stream_rows(),
        graphs::rows(),
        graphs::stream_rows(),
        kernels::rows(),
        kernels::stream_rows(),
        memory::rows(),
        memory::stream_rows(),
        start::rows(),
        streams::rows(),
        streams::stream_rows(),
    ]
    .concat()
}

/// What belongs to a context that is destroyed has no handles any more.
pub fn forget_context(context: &Arc<Context>) {
    crate::stream::STREAMS.remove_where(|stream| Arc::ptr_eq(&stream.context, context));
    crate::event::EVENTS.remove_where(|event| Arc::ptr_eq(&event.context, context));
    let is_of = |of: &Option<Arc<Context>>| of.as_ref().is_some_and(|of| Arc::ptr_eq(of, context));
    for module in crate::module::MODULES.remove_where(|module| is_of(&module.context)) {
        module.unload();
    }
    crate::memory::forget_context(context.handle() as usize);
}

/// An entry point: refused before `cuInit`, in a forked child, and in a host function.
fn call(body: impl FnOnce() -> Outcome) -> CUresult {
    call_always(|| {
        if context::is_host() {
            return Err(NOT_PERMITTED);
        }
        Driver::get()?;
        body()
    })
}

/// As [`call`], at any time.
fn call_always(body: impl FnOnce() -> Outcome) -> CUresult {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => SUCCESS,
        Ok(Err(error)) => error,
        Err(_) => UNKNOWN,
    }
}

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

/// Text of the program.
///
/// # Safety
/// `text` is null or ends with a zero byte, and outlives the answer.
unsafe fn text<'a>(text: Name) -> Outcome<&'a str> {
    if text.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: not null, and the caller's promise.
    unsafe { std::ffi::CStr::from_ptr(text) }.to_str().map_err(|_| INVALID_VALUE)
}

/// Entry points: `symbol(parameters) => what it does;`. Each is called with what CUDA's documentation asks of programs:
/// pointers are null, or of what their type says.
macro_rules! entries {
    ($by:ident: $($symbol:ident($($name:ident: $type:ty),* $(,)?) => $body:expr;)*) => {
        $(
            #[unsafe(no_mangle)]
            #[allow(unused_unsafe, reason = "some need none")]
            unsafe extern "C" fn $symbol($($name: $type),*) -> CUresult {
                // SAFETY: what the documentation asks of the program.
                crate::export::$by(|| unsafe { $body })
            }
        )*

        /// By symbol.
        pub fn rows() -> Vec<(&'static str, *const std::ffi::c_void)> {
            vec![$((stringify!($symbol), $symbol as *const std::ffi::c_void)),*]
        }
    };
}
use entries;

/// As [`entries!`], for those that have a form for per-thread default streams: `default` stands for what 0 means.
macro_rules! stream_entries {
    ($default:ident: $($symbol:ident / $variant:ident($($name:ident: $type:ty),* $(,)?) => $body:expr;)*) => {
        $(
            #[unsafe(no_mangle)]
            #[allow(unused_unsafe, reason = "some need none")]
            unsafe extern "C" fn $symbol($($name: $type),*) -> CUresult {
                let $default = crate::context::Default0::Legacy;
                // SAFETY: what the documentation asks of the program.
                crate::export::call(|| unsafe { $body })
            }

            #[unsafe(no_mangle)]
            #[allow(unused_unsafe, reason = "some need none")]
            unsafe extern "C" fn $variant($($name: $type),*) -> CUresult {
                let $default = crate::context::Default0::PerThread;
                // SAFETY: as above.
                crate::export::call(|| unsafe { $body })
            }
        )*

        /// By symbol.
        pub fn stream_rows() -> Vec<(&'static str, *const std::ffi::c_void)> {
            vec![$(
                (stringify!($symbol), $symbol as *const std::ffi::c_void),
                (stringify!($variant), $variant as *const std::ffi::c_void),
            )*]
        }
    };
}
use stream_entries;
