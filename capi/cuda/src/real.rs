//! The driver: its functions, found by name when they are called first.

use std::ffi::{CStr, c_int, c_void};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::types::*;

/// A function of the driver.
pub struct Real {
    symbol: &'static CStr,
    address: AtomicPtr<c_void>,
}

/// The driver, which the program has loaded: as an address, as handles are not to be shared by their type.
static DRIVER: LazyLock<usize> = LazyLock::new(|| {
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
    let open = |name: &CStr| {
        // SAFETY: a name; nothing is loaded that is not there.
        unsafe { libc::dlopen(name.as_ptr(), flags) as usize }
    };
    match open(c"libcuda.so.1") {
        0 => open(c"libcuda.so"),
        handle => handle,
    }
});

impl Real {
    pub const fn new(symbol: &'static CStr) -> Self {
        Real { symbol, address: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Where it is; `None`: this driver does not have it.
    #[inline]
    pub fn get(&self) -> Option<*mut c_void> {
        let known = self.address.load(Ordering::Relaxed);
        if known.is_null() { self.find() } else { Some(known) }
    }

    #[cold]
    fn find(&self) -> Option<*mut c_void> {
        if *DRIVER == 0 {
            return None;
        }
        // SAFETY: the handle is that of the driver.
        let found = unsafe { libc::dlsym(*DRIVER as *mut c_void, self.symbol.as_ptr()) };
        self.address.store(found, Ordering::Relaxed);
        Some(found).filter(|found| !found.is_null())
    }
}

/// A function of the driver, as the type that its headers give it.
macro_rules! real {
    ($symbol:literal: fn($($type:ty),* $(,)?)) => {{
        static REAL: crate::real::Real = crate::real::Real::new($symbol);
        REAL.get().map(|address| {
            // SAFETY: the driver's function of that name has this type.
            unsafe {
                std::mem::transmute::<*mut std::ffi::c_void, unsafe extern "C" fn($($type),*) -> crate::types::CUresult>(
                    address,
                )
            }
        })
    }};
}
pub(crate) use real;

/// Calls a function of the driver. [`NOT_FOUND`]: it has none of that name.
macro_rules! ask {
    ($symbol:literal: fn($($type:ty),*)($($value:expr),*)) => {
        match crate::real::real!($symbol: fn($($type),*)) {
            // SAFETY: values of these types, as the driver's documentation asks for them.
            Some(function) => unsafe { function($($value),*) },
            None => crate::types::NOT_FOUND,
        }
    };
}
pub(crate) use ask;

/// The calling thread's context; null: it has none.
pub fn current_context() -> CUcontext {
    let mut context = std::ptr::null_mut();
    ask!(c"cuCtxGetCurrent": fn(*mut CUcontext)(&mut context));
    context
}

/// The number of the current context's device.
pub fn current_device() -> Option<c_int> {
    let mut device = 0;
    (ask!(c"cuCtxGetDevice": fn(*mut c_int)(&mut device)) == SUCCESS).then_some(device)
}

pub fn attribute(device: c_int, attribute: c_int) -> Option<c_int> {
    let mut value = 0;
    let result = ask!(c"cuDeviceGetAttribute": fn(*mut c_int, c_int, c_int)(&mut value, attribute, device));
    (result == SUCCESS).then_some(value)
}

/// Whether so many bytes from an address on are of one allocation of the driver's, or the driver knows none there.
pub fn is_within_memory(address: Word, bytes: Word) -> bool {
    let (mut base, mut size) = (0_u64, 0_usize);
    let result = ask!(c"cuMemGetAddressRange_v2": fn(*mut u64, *mut usize, u64)(&mut base, &mut size, address as u64));
    let at = (address as u64).saturating_sub(base) as usize;
    result != SUCCESS || at.checked_add(bytes).is_some_and(|end| end <= size)
}

/// Whether an address is of device memory.
pub fn is_device_memory(address: Word) -> bool {
    let mut kind = MEMORY_HOST;
    let value = (&raw mut kind).cast();
    let result =
        ask!(c"cuPointerGetAttribute": fn(*mut c_void, c_int, u64)(value, POINTER_MEMORY_TYPE, address as u64));
    result == SUCCESS && kind == MEMORY_DEVICE
}
