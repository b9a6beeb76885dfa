//! User data of nodes and edges.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

use ::laxity_graph::{Graph, UserData};

use crate::error::{CallError, Error, answer, laxity_result};
use crate::graph::{laxity_graph, position};
use crate::handle::{self, out, text};

/// The length of the user data of the node called `node`, or of the edge numbered `edge` if that is NULL, as declared
/// with laxity_spec_node_data or laxity_spec_edge_data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_data_length(
    graph: *const laxity_graph,
    node: *const c_char,
    edge: usize,
    length: *mut usize,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, that `length` can be written, and that
        // `node` ends with NUL unless it is null.
        let (graph, length) = unsafe { (handle::get(graph)?, out(length, "length")?) };
        // SAFETY: as above.
        *length = unsafe { find(graph, node, edge) }?.len();
        Ok(())
    })
}

/// Copies the user data of the node called `node`, or of the edge numbered `edge` if that is NULL, to `bytes`: one
/// value as it was written, never parts of two. Writes to `version`, which may be NULL, how often it was written.
/// LAXITY_ERROR_VALUE if `length` is not the data's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_data_read(
    graph: *const laxity_graph,
    node: *const c_char,
    edge: usize,
    bytes: *mut c_void,
    length: usize,
    version: *mut u64,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `node` ends with NUL unless
        // it is null.
        let data = unsafe { find(handle::get(graph)?, node, edge) }?;
        if bytes.is_null() {
            return Err(CallError::Null { argument: "bytes" }.into());
        }
        data.check_length(length)?;
        // SAFETY: the caller promises that `length` bytes can be written there and no other thread uses them.
        let place = unsafe { handle::slice_mut(bytes.cast::<MaybeUninit<u8>>(), length, "bytes") }?;
        place.fill(MaybeUninit::new(0));
        // SAFETY: all of `place`, which was just written and is not used meanwhile.
        let bytes = unsafe { std::slice::from_raw_parts_mut(place.as_mut_ptr().cast::<u8>(), place.len()) };
        let found = data.read_into(bytes)?;
        // SAFETY: the caller promises that `version` can be written unless it is null.
        if let Some(version) = unsafe { version.as_mut() } {
            *version = found;
        }
        Ok(())
    })
}

/// Replaces the user data of the node called `node`, or of the edge numbered `edge` if that is NULL, by `bytes`. If
/// `version` is not NULL and the data has another version, writes nothing and returns LAXITY_CHANGED: for programs that
/// compute the new value from the old one. LAXITY_ERROR_VALUE if `length` is not the data's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_data_write(
    graph: *const laxity_graph,
    node: *const c_char,
    edge: usize,
    bytes: *const c_void,
    length: usize,
    version: *const u64,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `node` ends with NUL unless
        // it is null.
        let data = unsafe { find(handle::get(graph)?, node, edge) }?;
        if bytes.is_null() {
            return Err(CallError::Null { argument: "bytes" }.into());
        }
        // SAFETY: the caller promises that `length` bytes can be read there and do not change.
        let bytes = unsafe { handle::slice(bytes.cast::<u8>(), length, "bytes") }?;
        // SAFETY: the caller promises that `version` can be read unless it is null.
        match unsafe { version.as_ref() } {
            None => Ok(data.write(bytes)?),
            Some(&version) if data.write_if(version, bytes)? => Ok(()),
            Some(&expected) => Err(CallError::Changed { expected, found: data.version() }.into()),
        }
    })
}

/// # Safety
/// `node` is null, or ends with NUL and does not change.
unsafe fn find(graph: &Graph, node: *const c_char, edge: usize) -> Result<UserData<'_>, Error> {
    if !node.is_null() {
        // SAFETY: as the caller promises.
        let name = unsafe { text(node, "node") }?;
        return Ok(graph.node_data(position(graph, name)?));
    }
    let edges = graph.spec().graph().edges.len();
    if edge >= edges {
        return Err(CallError::NoPosition { edge, edges }.into());
    }
    Ok(graph.edge_data(edge))
}
