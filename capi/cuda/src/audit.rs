//! What ld.so calls (rtld-audit(7)), in the copy of this library that has a namespace of its own: it finds, for each symbol
//! that a program binds to the driver, the wrapper in the copy that is in the program's namespace.
//!
//! The namespace has a C library of its own. So this copy only answers: it starts no thread, and calls no driver.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::symbols::LinkMap;

/// The version of the interface that this library knows (glibc 2.35 and later: the symbols of programs that are bound when
/// they start are asked for, too).
const LAV_CURRENT: c_uint = 2;
const LM_ID_BASE: c_int = 0;
/// Bindings of an object's symbols are asked for; bindings to its symbols are.
const FROM: c_uint = 2;
const TO: c_uint = 1;
/// No calls by this binding are asked for.
const NO_CALLS: c_uint = 1 | 2;

/// What an object is, as its cookie says. Others have the address of their link map before they are told of.
const LAYER: usize = 1;
const DRIVER: usize = 2;
const OTHER: usize = 3;

/// The copy of this library in the program's namespace.
static OURS: AtomicPtr<LinkMap> = AtomicPtr::new(std::ptr::null_mut());

/// The names of wrappers are those of the driver behind this.
const PREFIX: &str = "laxity_wrap_";

#[unsafe(no_mangle)]
extern "C" fn la_version(offered: c_uint) -> c_uint {
    offered.min(LAV_CURRENT)
}

/// An object is loaded.
#[unsafe(no_mangle)]
unsafe extern "C" fn la_objopen(map: *mut LinkMap, namespace: c_int, cookie: *mut usize) -> c_uint {
    if namespace != LM_ID_BASE || map.is_null() {
        return 0;
    }
    // SAFETY: ld.so passes the object, whose name is text, and a cookie to write.
    let name = unsafe { CStr::from_ptr((*map).name) }.to_bytes();
    let file = name.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let (kind, asked) = if file.starts_with(b"liblaxity_cuda.so") {
        OURS.store(map, Ordering::Release);
        (LAYER, 0)
    } else if file.starts_with(b"libcuda.so") {
        (DRIVER, TO)
    } else {
        (OTHER, FROM)
    };
    // SAFETY: as above.
    unsafe { cookie.write(kind) };
    asked
}

/// A symbol of the driver is bound: answers what to.
#[unsafe(no_mangle)]
unsafe extern "C" fn la_symbind64(
    symbol: *const Symbol,
    _index: c_uint,
    from: *const usize,
    to: *const usize,
    flags: *mut c_uint,
    name: *const c_char,
) -> usize {
    // SAFETY: ld.so passes a symbol, whose value is its address, its name, cookies of both objects, and flags to write.
    let (found, name, from, to) = unsafe {
        *flags |= NO_CALLS;
        ((*symbol).value, CStr::from_ptr(name).to_bytes(), *from, *to)
    };
    let ours = OURS.load(Ordering::Acquire);
    // For `dlsym` glibc asks if either object's bindings are asked for: also of what the layer itself looks up.
    if ours.is_null() || from == LAYER || to != DRIVER || !name.starts_with(b"cu") {
        return found;
    }
    let mut wanted = [0_u8; 128];
    let length = PREFIX.len() + name.len();
    if length >= wanted.len() {
        return found;
    }
    wanted[..PREFIX.len()].copy_from_slice(PREFIX.as_bytes());
    wanted[PREFIX.len()..length].copy_from_slice(name);
    // SAFETY: the object stays loaded (`nodelete`).
    unsafe { (*ours).find(&wanted[..length]) }.unwrap_or(found)
}

/// `Elf64_Sym`.
#[repr(C)]
pub struct Symbol {
    pub name: u32,
    pub info: u8,
    pub other: u8,
    pub section: u16,
    pub value: usize,
    pub size: usize,
}
