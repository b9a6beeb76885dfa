//! The driver: its entry points, asked for by name and version when they are called first, as the vendor's runtime does it.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The version whose forms of entry points this runtime knows.
pub const VERSION: c_int = 12_000;

/// `CU_GET_PROC_ADDRESS_LEGACY_STREAM`: streams are told by their handles.
const FLAGS: u64 = 1;

/// An entry point.
pub struct Entry {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

/// `cuGetProcAddress_v2`: name, place of the answer, version, flags, place of the status.
pub type GetProcAddress = unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64, *mut c_int) -> c_int;

static GET_PROC_ADDRESS: LazyLock<Option<GetProcAddress>> = LazyLock::new(|| {
    // SAFETY: names; the driver's constructors run.
    let found = unsafe {
        let handle = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if handle.is_null() {
            return None;
        }
        libc::dlsym(handle, c"cuGetProcAddress_v2".as_ptr())
    };
    // SAFETY: the driver's function of that name has this type.
    (!found.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, GetProcAddress>(found) })
});

impl Entry {
    pub const fn new(name: &'static CStr) -> Self {
        Entry { name, address: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Where it is; `None`: there is no driver, or it does not have it.
    pub fn get(&self) -> Option<*mut c_void> {
        let known = self.address.load(Ordering::Relaxed);
        if !known.is_null() {
            return Some(known);
        }
        let found = find(self.name, VERSION, FLAGS)?;
        self.address.store(found, Ordering::Relaxed);
        Some(found)
    }
}

/// `cuGetProcAddress` itself.
pub fn get_proc_address() -> Option<GetProcAddress> {
    *GET_PROC_ADDRESS
}

fn find(name: &CStr, version: c_int, flags: u64) -> Option<*mut c_void> {
    let get = get_proc_address()?;
    let (mut found, mut status) = (std::ptr::null_mut(), 0);
    // SAFETY: a name, and places to write.
    let result = unsafe { get(name.as_ptr(), &mut found, version, flags, &mut status) };
    (result == 0 && !found.is_null()).then_some(found)
}

/// Calls the driver's function of that name, in the form of [`VERSION`].
macro_rules! ask {
    ($name:literal: fn($($type:ty),* $(,)?)($($value:expr),* $(,)?)) => {{
        static ENTRY: crate::driver::Entry = crate::driver::Entry::new($name);
        match ENTRY.get() {
            Some(address) => {
                type Function = unsafe extern "C" fn($($type),*) -> std::ffi::c_int;
                #[allow(unused_unsafe, reason = "most places are unsafe already")]
                // SAFETY: the driver's function of that name and version has this type, and the values are what its
                // documentation asks for, where the program keeps to that of the runtime.
                let result = unsafe { std::mem::transmute::<*mut std::ffi::c_void, Function>(address)($($value),*) };
                if result == crate::types::SUCCESS { Ok(()) } else { Err(result) }
            }
            None => Err(crate::types::INSUFFICIENT_DRIVER),
        }
    }};
}
pub(crate) use ask;
