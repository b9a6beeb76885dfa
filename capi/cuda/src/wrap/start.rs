//! Beginning, and the addresses of entry points: what the driver answers bypasses the layer.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt::Display;
use std::sync::{Mutex, PoisonError};

use super::wrappers;
use crate::layer::Layer;
use crate::names::{self, Known};
use crate::types::*;

wrappers! { real:
    cuInit(flags: Word) => {
        // It attaches, and reports to the launcher.
        Layer::get();
        unsafe { real(flags) }
    };
    cuGetProcAddress(name: *const c_char, function: *mut *mut c_void, version: c_int, flags: u64) => unsafe {
        let result = real(name, function, version, flags);
        instead(name, function, version, flags);
        result
    };
    cuGetProcAddress_v2(name: *const c_char, function: *mut *mut c_void, version: c_int, flags: u64, status: *mut c_int)
        => unsafe {
            let result = real(name, function, version, flags, status);
            instead(name, function, version, flags);
            result
        };
}

/// Puts the layer's function in the place of the one that the driver found.
///
/// # Safety
/// The name is text if the driver found something, and the function's place can be written.
unsafe fn instead(name: *const c_char, function: *mut *mut c_void, version: c_int, flags: u64) {
    // SAFETY: the driver wrote there.
    if name.is_null() || function.is_null() || unsafe { (*function).is_null() } {
        return;
    }
    // SAFETY: the driver read it.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    match names::find(&name, version, flags) {
        // SAFETY: as above.
        Known::Wrapped(ours) => unsafe { function.write(ours) },
        Known::PassedOn => {}
        Known::Newer => tell(&name, format_args!("in a form of CUDA {}.{}", version / 1000, version % 1000 / 10)),
        Known::Unknown => tell(&name, "of a later CUDA"),
    }
}

/// Tells the user, once, of an entry point that the layer does not know.
fn tell(name: &str, form: impl Display) {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if Layer::get().is_on() && TOLD.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned()) {
        Layer::get().process().notice(format_args!("{name}, {form}, is not known: what it issues is not arbitrated"));
    }
}

/// For programs and schedulers that know when their jobs begin: the calling process begins one, which is due at
/// `deadline_ns` of `CLOCK_MONOTONIC`; 0: it has no deadline. With the setting `job = announced`.
#[unsafe(no_mangle)]
extern "C" fn laxity_program_begin_job(deadline_ns: u64) {
    let deadline = (deadline_ns != 0).then_some(laxity_model::Instant(deadline_ns));
    Layer::get().process().announce(laxity_interpose::Announced::Begins(deadline));
    if let Some(next) = next(c"laxity_program_begin_job") {
        // SAFETY: another interposer's function of that name, which is as this one.
        unsafe { std::mem::transmute::<usize, extern "C" fn(u64)>(next)(deadline_ns) };
    }
}

/// The job that [`laxity_program_begin_job`] began is over.
#[unsafe(no_mangle)]
extern "C" fn laxity_program_end_job() {
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
