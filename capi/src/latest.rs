//! The values of latest-value edges.

use std::ffi::c_void;

use crate::error::{CallError, Error, answer, laxity_result};
use crate::handle::{self, out};
use crate::node::{State, laxity_job, lock};

/// What the newest complete job of the producer wrote over the latest-value edge numbered `edge`, as it was when this job
/// began: in place, valid until the job is complete. `value` is NULL if no job was complete then. `length` and `writer`, the
/// number of the job that wrote it, may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_job_latest(
    job: *const laxity_job,
    edge: usize,
    value: *mut *const c_void,
    length: *mut usize,
    writer: *mut u64,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the node is not released meanwhile, and that `value` can be written.
        let (state, value) = unsafe { (handle::get(job)?, out(value, "value")?) };
        *value = std::ptr::null();
        let mut state = lock(state)?;
        let found = state.job()?.latest(edge);
        let found = found.map(|found| found.map(|found| (found.bytes.as_ptr(), found.bytes.len(), found.job)));
        let (start, bytes, number) = match found.map_err(|error| named(&state, edge, error))? {
            Some(found) => found,
            None => (std::ptr::null(), 0, 0),
        };
        *value = start.cast();
        // SAFETY: the caller promises that both can be written unless they are null.
        let (length, writer) = unsafe { (length.as_mut(), writer.as_mut()) };
        length.into_iter().for_each(|length| *length = bytes);
        writer.into_iter().for_each(|writer| *writer = number);
        Ok(())
    })
}

/// What this job writes over the latest-value edge numbered `edge`: in place, to be written until the job is complete, which
/// makes it the newest value. Its content is undefined at first. It has the greatest length, written to `length` (which may be
/// NULL), unless laxity_job_latest_truncate shortens it; a value that is never asked for is empty.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_job_latest_output(
    job: *mut laxity_job,
    edge: usize,
    value: *mut *mut c_void,
    length: *mut usize,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the node is not released meanwhile, and that `value` can be written.
        let (state, value) = unsafe { (handle::get(job.cast_const())?, out(value, "value")?) };
        *value = std::ptr::null_mut();
        let mut state = lock(state)?;
        let found = state.job()?.latest_output(edge).map(|bytes| (bytes.as_mut_ptr(), bytes.len()));
        let (start, bytes) = found.map_err(|error| named(&state, edge, error))?;
        *value = start.cast();
        // SAFETY: the caller promises that `length` can be written unless it is null.
        if let Some(length) = unsafe { length.as_mut() } {
            *length = bytes;
        }
        Ok(())
    })
}

/// Sets the length of what this job writes over the latest-value edge numbered `edge`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_job_latest_truncate(job: *mut laxity_job, edge: usize, length: usize) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the node is not released meanwhile.
        let mut state = lock(unsafe { handle::get(job.cast_const()) }?)?;
        let done = state.job()?.truncate_latest(edge, length);
        done.map_err(|error| named(&state, edge, error))
    })
}

fn named(state: &State, edge: usize, error: ::laxity_graph::MessageError) -> Error {
    let graph = state.graph().spec().graph();
    let name = |node: usize| graph.nodes[node].name.clone();
    let ends = graph.latest.get(edge).map(|edge| (name(edge.producer), name(edge.consumer)));
    CallError::Message { node: state.name().to_owned(), edge: ends, error }.into()
}
