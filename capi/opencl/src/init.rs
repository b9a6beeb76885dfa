//! What loaders call: Khronos' (any version) and ocl-icd.

use std::ffi::c_void;
use std::ptr;

use laxity_interpose::Process;

use crate::layer::{FRONT, Layer};
use crate::target::Target;
use crate::types::*;
use crate::{table, wrap};

const LAYER_NAME: &[u8] = b"Laxity: GPU arbitration\0";

/// Says what the layer is.
///
/// # Safety
/// `value` is null or has `size` bytes, `size_out` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clGetLayerInfo(
    name: cl_uint,
    size: usize,
    value: *mut c_void,
    size_out: *mut usize,
) -> cl_int {
    let version = CL_LAYER_API_VERSION_100.to_ne_bytes();
    let bytes: &[u8] = match name {
        CL_LAYER_API_VERSION => &version,
        CL_LAYER_NAME => LAYER_NAME,
        _ => return CL_INVALID_VALUE,
    };
    if !value.is_null() {
        if size < bytes.len() {
            return CL_INVALID_VALUE;
        }
        // SAFETY: it has `size` bytes, as the caller promises.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), value.cast::<u8>(), bytes.len()) };
    }
    if !size_out.is_null() {
        // SAFETY: the caller's promise.
        unsafe { size_out.write(bytes.len()) };
    }
    CL_SUCCESS
}

/// Puts the layer on top of `target`, a table of `count` entry points. The loader keeps the table that it gets for ever.
///
/// # Safety
/// `target` has `count` entries of the types that OpenCL gives them; the other pointers can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clInitLayer(
    count: cl_uint,
    target: *const *const c_void,
    count_out: *mut cl_uint,
    table_out: *mut *const *const c_void,
) -> cl_int {
    if target.is_null() || count_out.is_null() || table_out.is_null() {
        return CL_INVALID_VALUE;
    }
    // SAFETY: the caller's promise.
    let below = unsafe { std::slice::from_raw_parts(target, count as usize) };
    // SAFETY: as above.
    Layer::set_target(unsafe { Target::of(below) });
    let mut table: Box<[*const c_void]> = below.into();
    for (name, function) in wrap::overrides() {
        // A null entry is one that the driver does not have, unless the loader fills it in.
        if let Some(entry) = table.get_mut(table::index(name)).filter(|entry| !entry.is_null()) {
            *entry = function;
        }
    }
    // SAFETY: the caller's promise.
    unsafe {
        count_out.write(count);
        table_out.write(Box::leak(table).as_ptr());
    }
    Process::loaded(FRONT);
    CL_SUCCESS
}

/// As [`clInitLayer`], for loaders from 2026 on, which need it. There is no property that the layer knows.
///
/// # Safety
/// As [`clInitLayer`]; `properties` is null or a list that ends with 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clInitLayerWithProperties(
    count: cl_uint,
    target: *const *const c_void,
    count_out: *mut cl_uint,
    table_out: *mut *const *const c_void,
    properties: *const u64,
) -> cl_int {
    // SAFETY: the caller's promise.
    if !properties.is_null() && unsafe { *properties } != 0 {
        return CL_INVALID_PROPERTY;
    }
    // SAFETY: the caller's promise.
    unsafe { clInitLayer(count, target, count_out, table_out) }
}

/// The loader is about to close the layer: no thread of it is left afterwards.
#[unsafe(no_mangle)]
pub extern "C" fn clDeinitLayer() -> cl_int {
    if let Some(layer) = Layer::started() {
        layer.process().unload();
    }
    CL_SUCCESS
}

/// For programs and schedulers that know when their jobs begin: the calling process begins one, which is due at
/// `deadline_ns` of `CLOCK_MONOTONIC`; 0: it has no deadline. With the setting `job = announced`.
#[unsafe(no_mangle)]
pub extern "C" fn laxity_program_begin_job(deadline_ns: u64) {
    let deadline = (deadline_ns != 0).then_some(laxity_model::Instant(deadline_ns));
    Layer::get().process().announce(laxity_interpose::Announced::Begins(deadline));
    if let Some(next) = next(c"laxity_program_begin_job") {
        // SAFETY: another interposer's function of that name, which is as this one.
        unsafe { std::mem::transmute::<usize, extern "C" fn(u64)>(next)(deadline_ns) };
    }
}

/// The job that [`laxity_program_begin_job`] began is over.
#[unsafe(no_mangle)]
pub extern "C" fn laxity_program_end_job() {
    Layer::get().process().announce(laxity_interpose::Announced::Ends);
    if let Some(next) = next(c"laxity_program_end_job") {
        // SAFETY: as above.
        unsafe { std::mem::transmute::<usize, extern "C" fn()>(next)() };
    }
}

/// The function of that name in the libraries behind this one: a program that uses both interfaces finds the first
/// interposer's, and the other one is told, too.
fn next(symbol: &std::ffi::CStr) -> Option<usize> {
    // SAFETY: a name; the caller's address says which library is this one.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, symbol.as_ptr()) };
    Some(found as usize).filter(|&found| found != 0)
}
