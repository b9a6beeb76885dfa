//! Data objects of a job.

use std::ffi::{c_char, c_void};

use crate::error::{answer, laxity_result};
use crate::handle::{self, out, text};
use crate::node::{laxity_job, lock};

/// The object called `object`, which the job's node reads, as it was `ago` jobs ago (0: in this job of the graph): in
/// place, valid until the job is complete. `length` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_job_read(
    job: *const laxity_job,
    object: *const c_char,
    ago: u32,
    bytes: *mut *const c_void,
    length: *mut usize,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the node is not released meanwhile, that `bytes` can be written, and that
        // `object` ends with NUL.
        let (state, bytes, object) = unsafe { (handle::get(job)?, out(bytes, "bytes")?, text(object, "object")?) };
        *bytes = std::ptr::null();
        let mut state = lock(state)?;
        let found = state.job()?.read_past(object, ago)?;
        *bytes = found.as_ptr().cast();
        // SAFETY: the caller promises that `length` can be written unless it is null.
        if let Some(length) = unsafe { length.as_mut() } {
            *length = found.len();
        }
        Ok(())
    })
}

/// The object called `object`, which the job's node writes (its content is undefined at first) or changes: in place,
/// valid until the job is complete. `length` may be NULL. If laxity_job_is_resumed, a change may be half done already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_job_write(
    job: *mut laxity_job,
    object: *const c_char,
    bytes: *mut *mut c_void,
    length: *mut usize,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the node is not released meanwhile, that `bytes` can be written, and that
        // `object` ends with NUL.
        let (state, bytes, object) =
            unsafe { (handle::get(job.cast_const())?, out(bytes, "bytes")?, text(object, "object")?) };
        *bytes = std::ptr::null_mut();
        let mut state = lock(state)?;
        let found = state.job()?.write(object)?;
        *bytes = found.as_mut_ptr().cast();
        // SAFETY: the caller promises that `length` can be written unless it is null.
        if let Some(length) = unsafe { length.as_mut() } {
            *length = found.len();
        }
        Ok(())
    })
}
