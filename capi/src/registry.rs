//! Graphs by name.

use std::ffi::{CStr, c_char};

use ::laxity_graph::Registry;
use laxity_model::{Instant, Nanos};
use laxity_sys::clock;

use crate::error::{Error, answer, laxity_result};
use crate::graph::laxity_graph;
use crate::handle::{self, Handle, out, text};
use crate::spec::{self, laxity_spec};

/// A folder of named graphs. Threads may share it.
pub struct laxity_registry {
    _opaque: (),
}

impl Handle for laxity_registry {
    type Value = Registry;
    const TAG: u64 = u64::from_le_bytes(*b"lax-regi");
    const NAME: &'static str = "registry";
    const IS_DESCRIPTION: bool = true;
}

const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => panic!("a version has no NUL"),
};

/// The version of the library, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn laxity_version() -> *const c_char {
    VERSION.as_ptr()
}

/// Names in `directory`, which must exist; in /dev/shm if it is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_registry_new(
    directory: *const c_char,
    registry: *mut *mut laxity_registry,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `registry` can be written.
        let registry = unsafe { out(registry, "registry") }?;
        *registry = std::ptr::null_mut();
        let value = if directory.is_null() {
            Registry::default()
        } else {
            // SAFETY: the caller promises that `directory` ends with NUL.
            Registry::at(unsafe { text(directory, "directory") }?)
        };
        *registry = handle::make(value);
        Ok(())
    })
}

/// Releases a registry; its graphs stay. Sets `*registry` to NULL; does nothing if it is NULL already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_registry_release(registry: *mut *mut laxity_registry) -> laxity_result {
    // SAFETY: the caller promises that the handle is not used any more.
    answer(|| unsafe { handle::take(registry) }.map(drop))
}

/// Calls `make` for the graph that `spec` describes, and writes the result to `graph`.
///
/// # Safety
/// `graph` can be written, and neither `registry` nor `spec` is released meanwhile.
unsafe fn from_spec(
    registry: *const laxity_registry,
    spec: *const laxity_spec,
    graph: *mut *mut laxity_graph,
    make: impl FnOnce(&Registry, &::laxity_graph::Spec) -> Result<::laxity_graph::Graph, Error>,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `graph` can be written.
        let graph = unsafe { out(graph, "graph") }?;
        *graph = std::ptr::null_mut();
        // SAFETY: the caller promises that neither is released meanwhile.
        let (registry, spec) = unsafe { (handle::get(registry)?, handle::get(spec)?) };
        *graph = handle::make(make(registry, &spec::check(spec)?)?);
        Ok(())
    })
}

/// Creates the graph that `spec` describes, and attaches to it. Other processes see it once it is complete. It replaces
/// a graph of this name that no living process uses. LAXITY_ERROR_SPEC if the description is invalid,
/// LAXITY_ERROR_EXISTS if the name is in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_registry_create(
    registry: *const laxity_registry,
    spec: *const laxity_spec,
    graph: *mut *mut laxity_graph,
) -> laxity_result {
    // SAFETY: as promised by the caller.
    unsafe { from_spec(registry, spec, graph, |registry, spec| Ok(registry.create(spec)?)) }
}

/// Creates the graph that `spec` describes, or attaches to it if it exists: for processes that all describe it and
/// start in any order. LAXITY_ERROR_DIFFERENT if the graph of this name is another one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_registry_create_or_attach(
    registry: *const laxity_registry,
    spec: *const laxity_spec,
    graph: *mut *mut laxity_graph,
) -> laxity_result {
    // SAFETY: as promised by the caller.
    unsafe { from_spec(registry, spec, graph, |registry, spec| Ok(registry.create_or_attach(spec)?)) }
}

/// Attaches to the graph called `name`. If there is none, waits until a process creates it: for `timeout_ns`, not at
/// all if that is 0, or for ever with LAXITY_FOREVER; then LAXITY_ERROR_NO_GRAPH.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_registry_attach(
    registry: *const laxity_registry,
    name: *const c_char,
    timeout_ns: u64,
    graph: *mut *mut laxity_graph,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `graph` can be written.
        let graph = unsafe { out(graph, "graph") }?;
        *graph = std::ptr::null_mut();
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `name` ends with NUL.
        let (registry, name) = unsafe { (handle::get(registry)?, text(name, "name")?) };
        let found = match timeout_ns {
            0 => registry.attach(name),
            u64::MAX => registry.attach_until(name, Instant::NEVER),
            _ => registry.attach_until(name, clock::now().saturating_add(Nanos::from_nanos(timeout_ns))),
        };
        *graph = handle::make(found?);
        Ok(())
    })
}

/// Removes graphs that no living process uses, as killed processes leave them. Writes their number to `removed`, which
/// may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_registry_gc(registry: *const laxity_registry, removed: *mut usize) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        let names = unsafe { handle::get(registry) }?.gc()?;
        // SAFETY: the caller promises that `removed` can be written unless it is null.
        if let Some(removed) = unsafe { removed.as_mut() } {
            *removed = names.len();
        }
        Ok(())
    })
}
