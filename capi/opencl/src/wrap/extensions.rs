//! Entry points that programs ask for by name: what a driver answers bypasses the layer.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_void};
use std::sync::{Mutex, PoisonError};

use super::{below, command_buffers, list};
use crate::layer::Layer;
use crate::types::*;

list![clGetExtensionFunctionAddress, clGetExtensionFunctionAddressForPlatform];

unsafe extern "C" fn clGetExtensionFunctionAddress(name: Name) -> *mut c_void {
    // SAFETY: the program's call.
    let found = unsafe { below!(clGetExtensionFunctionAddress)(name) };
    // SAFETY: a name that the driver knows is one.
    unsafe { instead(name, found) }
}

unsafe extern "C" fn clGetExtensionFunctionAddressForPlatform(platform: cl_platform_id, name: Name) -> *mut c_void {
    // SAFETY: the program's call.
    let found = unsafe { below!(clGetExtensionFunctionAddressForPlatform)(platform, name) };
    // SAFETY: a name that the driver knows is one.
    unsafe { instead(name, found) }
}

/// What the program gets for `found`, which the driver has under `name`: a function of the layer where there is one. The
/// user is told once of one that issues operations and is not arbitrated.
///
/// # Safety
/// `name` is text if `found` is not null.
unsafe fn instead(name: Name, found: *mut c_void) -> *mut c_void {
    if found.is_null() || name.is_null() || !Layer::get().is_on() {
        return found;
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    if let Some(ours) = command_buffers::instead(&name, found) {
        return ours;
    }
    // By its older name, of the same type.
    let core =
        if name == "clCreateCommandQueueWithPropertiesKHR" { "clCreateCommandQueueWithProperties" } else { &name };
    let in_table = Layer::target().clCreateCommandQueueWithProperties.is_some() || core == name;
    if let Some((_, ours)) = super::overrides().into_iter().find(|(known, _)| *known == core && in_table) {
        return ours.cast_mut();
    }
    if name.starts_with("clEnqueue") {
        static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
        if TOLD.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone().into_owned()) {
            Layer::get().process().notice(format_args!("{name}: this layer does not know it: it is not arbitrated"));
        }
    }
    found
}
