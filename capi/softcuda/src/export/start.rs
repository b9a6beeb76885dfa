//! Beginning, errors, and the addresses of entry points.

use std::ffi::{c_char, c_int, c_uint, c_void};

use super::{entries, put, text};
use crate::driver::Driver;
use crate::names::{self, Found};
use crate::results;
use crate::types::*;

/// `CUdriverProcAddressQueryResult`.
const FOUND: c_int = 0;
const SYMBOL_NOT_FOUND: c_int = 1;
const VERSION_NOT_SUFFICIENT: c_int = 2;

entries! { call_always:
    cuInit(flags: c_uint) => if flags == 0 { Driver::init().map(drop) } else { Err(INVALID_VALUE) };
    cuDriverGetVersion(version: *mut c_int) => put(version, names::VERSION);
    cuGetErrorName(error: CUresult, name: *mut *const c_char) => of_result(error, name);
    cuGetErrorString(error: CUresult, name: *mut *const c_char) => of_result(error, name);
    cuGetProcAddress_v2(symbol: Name, function: *mut *mut c_void, version: c_int, flags: u64, status: *mut c_int)
        => address(symbol, function, version, flags, status);
    cuGetProcAddress(symbol: Name, function: *mut *mut c_void, version: c_int, flags: u64)
        => address(symbol, function, version, flags, std::ptr::null_mut());
    cuGetExportTable(table: *mut *const c_void, id: *const Uuid) => {
        // Of the vendor's own libraries. There are none here, and nothing stands in for them.
        let _ = id;
        put(table, std::ptr::null())?;
        Err(NOT_FOUND)
    };
}

unsafe fn of_result(error: CUresult, name: *mut *const c_char) -> Outcome {
    let found = results::name(error);
    // SAFETY: the program's place.
    unsafe { put(name, found.map_or(std::ptr::null(), std::ffi::CStr::as_ptr)) }?;
    found.map(drop).ok_or(INVALID_VALUE)
}

unsafe fn address(symbol: Name, function: *mut *mut c_void, version: c_int, flags: u64, status: *mut c_int) -> Outcome {
    // SAFETY: the program's name.
    let name = unsafe { text(symbol) }?;
    if function.is_null() || flags & !(names::LEGACY_STREAM | names::PER_THREAD_STREAM) != 0 {
        return Err(INVALID_VALUE);
    }
    let (address, found, result) = match names::find(name, version, flags) {
        Found::Function(address) => (address.cast_mut(), FOUND, Ok(())),
        Found::Later => (std::ptr::null_mut(), VERSION_NOT_SUFFICIENT, Err(NOT_FOUND)),
        Found::Unknown => (std::ptr::null_mut(), SYMBOL_NOT_FOUND, Err(NOT_FOUND)),
    };
    // SAFETY: the program's places.
    unsafe { put(function, address) }?;
    if status.is_null() {
        return result;
    }
    // SAFETY: as above. A program that asks for the status gets success whatever that says.
    unsafe { put(status, found) }
}
