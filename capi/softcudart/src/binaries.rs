//! Fat binaries that a program registers before it begins, and kernels by the addresses of the host functions that stand for
//! them. The driver gets a binary when its first kernel is wanted.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::devices;
use crate::driver::ask;
use crate::types::*;

#[derive(Default)]
struct Binaries {
    /// By handle.
    binaries: BTreeMap<usize, Binary>,
    /// By the address of the host function.
    functions: BTreeMap<usize, Function>,
    /// Kernels that programs may have handles of.
    kernels: BTreeMap<usize, ()>,
    next: usize,
}

struct Binary {
    image: usize,
    /// What the driver made of it.
    library: Option<usize>,
}

struct Function {
    binary: usize,
    name: CString,
    kernel: Option<usize>,
}

/// `__fatBinC_Wrapper_t` of `fatbinary_section.h`.
#[repr(C)]
struct Wrapper {
    magic: c_uint,
    version: c_uint,
    data: *const c_void,
    file: *const c_void,
}

const MAGIC: c_uint = 0x4662_43B1;

static BINARIES: Mutex<Binaries> =
    Mutex::new(Binaries { binaries: BTreeMap::new(), functions: BTreeMap::new(), kernels: BTreeMap::new(), next: 1 });

/// A binary of the program; answers its handle.
///
/// # Safety
/// `wrapper` is null, or what the compiler wrote.
pub unsafe fn register(wrapper: *const c_void) -> usize {
    // SAFETY: the caller's promise.
    let image = match unsafe { wrapper.cast::<Wrapper>().as_ref() } {
        Some(known) if known.magic == MAGIC => known.data as usize,
        _ => wrapper as usize,
    };
    let mut all = lock();
    let handle = all.next;
    all.next += 1;
    all.binaries.insert(handle, Binary { image, library: None });
    handle
}

/// The program ends, or unloads the code that registered it.
pub fn unregister(handle: usize) {
    let mut all = lock();
    let gone = all.binaries.remove(&handle);
    all.functions.retain(|_, function| function.binary != handle);
    drop(all);
    if let Some(library) = gone.and_then(|binary| binary.library) {
        // At the end of a program the driver may have ended already.
        let _ = ask!(c"cuLibraryUnload": fn(Handle)(library as Handle));
    }
}

/// `host` stands for the kernel called `name` of a binary.
pub fn register_function(handle: usize, host: usize, name: &CStr) {
    let function = Function { binary: handle, name: name.to_owned(), kernel: None };
    lock().functions.insert(host, function);
}

/// The kernel that `host` stands for, or that it is a handle of.
pub fn kernel(host: usize) -> Outcome<usize> {
    devices::enter()?;
    let mut guard = lock();
    let all = &mut *guard;
    let Some(function) = all.functions.get_mut(&host) else {
        return all.kernels.get(&host).map(|()| host).ok_or(INVALID_DEVICE_FUNCTION);
    };
    if let Some(known) = function.kernel {
        return Ok(known);
    }
    let binary = all.binaries.get_mut(&function.binary).ok_or(INVALID_DEVICE_FUNCTION)?;
    let library = match binary.library {
        Some(library) => library,
        None => *binary.library.insert(load(binary.image)?),
    };
    let found = of_library(library, &function.name);
    let kernel = found.map_err(|error| if error == SYMBOL_NOT_FOUND { INVALID_DEVICE_FUNCTION } else { error })?;
    function.kernel = Some(kernel);
    all.kernels.insert(kernel, ());
    Ok(kernel)
}

/// The kernel called `name` of a library of the driver's.
pub fn of_library(library: usize, name: &CStr) -> Outcome<usize> {
    let mut kernel: Handle = std::ptr::null_mut();
    let (library, name) = (library as Handle, name.as_ptr());
    ask!(c"cuLibraryGetKernel": fn(*mut Handle, Handle, Name)(&mut kernel, library, name))?;
    Ok(kernel as usize)
}

/// A program has a handle of it.
pub fn know(kernel: usize) {
    lock().kernels.insert(kernel, ());
}

/// The name of the kernel that `host` stands for.
pub fn name(host: usize) -> Outcome<*const c_char> {
    kernel(host)?;
    // A function keeps its name while its binary is registered.
    lock().functions.get(&host).map(|function| function.name.as_ptr()).ok_or(INVALID_DEVICE_FUNCTION)
}

/// Libraries do not outlive a reset of their device everywhere: each is loaded again.
pub fn forget_kernels() {
    let mut all = lock();
    let libraries: Vec<usize> = all.binaries.values_mut().filter_map(|binary| binary.library.take()).collect();
    all.functions.values_mut().for_each(|function| function.kernel = None);
    all.kernels.clear();
    drop(all);
    for library in libraries {
        let _ = ask!(c"cuLibraryUnload": fn(Handle)(library as Handle));
    }
}

fn load(image: usize) -> Outcome<usize> {
    type Options = *mut c_int;
    type Values = *mut *mut c_void;
    let mut library: Handle = std::ptr::null_mut();
    let (no_options, no_values): (Options, Values) = (std::ptr::null_mut(), std::ptr::null_mut());
    ask!(c"cuLibraryLoadData": fn(*mut Handle, *const c_void, Options, Values, c_uint, Options, Values, c_uint)(
        &mut library, image as *const c_void, no_options, no_values, 0, no_options, no_values, 0
    ))?;
    Ok(library as usize)
}

fn lock() -> MutexGuard<'static, Binaries> {
    BINARIES.lock().unwrap_or_else(PoisonError::into_inner)
}
