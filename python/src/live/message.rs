//! A message or data object of a job, lent to Python in place.
//!
//! ```text
//! memoryview, numpy array ... --> Message --> Claimed: the node, and with it the memory
//!        |                                       |
//!        '------ counted while it lives ---------' no job is complete, and no node released, while the count is not 0
//! ```
#![allow(unsafe_code, reason = "Python asks for memory through a C structure; each block argues its case")]

use std::ffi::c_int;
use std::sync::Arc;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use super::claimed::Claimed;

/// A message or data object of a job: what `memoryview.obj` of its views is.
#[pyclass(frozen, module = "laxity.live", name = "Message")]
pub struct Message {
    lender: Arc<dyn Lender>,
    /// How many jobs the node had completed, and swaps it had made, when this was lent.
    epoch: u64,
    /// Its first byte: an address, which any thread may have.
    start: usize,
    length: usize,
    is_input: bool,
}

/// The owner of memory that is lent. Called with the GIL.
pub trait Lender: Send + Sync {
    /// Counts one more view, if the job is still the one of `epoch`. While any is counted the memory stays mapped, and
    /// the job is not complete.
    fn lend(&self, epoch: u64) -> bool;

    /// Counts one view less.
    fn give_back(&self);
}

impl Message {
    /// What the job only reads. `bytes` are those of the job that `claimed` has begun.
    pub fn input(claimed: &Arc<Claimed>, bytes: &[u8]) -> Message {
        let (start, length) = (bytes.as_ptr().expose_provenance(), bytes.len());
        Message { lender: claimed.clone(), epoch: claimed.epoch(), start, length, is_input: true }
    }

    /// What the job writes. `bytes` are those of the job that `claimed` has begun.
    pub fn output(claimed: &Arc<Claimed>, bytes: &mut [u8]) -> Message {
        let (start, length) = (bytes.as_mut_ptr().expose_provenance(), bytes.len());
        Message { lender: claimed.clone(), epoch: claimed.epoch(), start, length, is_input: false }
    }

    /// What the only job of `lender` reads.
    pub fn read(lender: Arc<dyn Lender>, bytes: &[u8]) -> Message {
        let (start, length) = (bytes.as_ptr().expose_provenance(), bytes.len());
        Message { lender, epoch: 0, start, length, is_input: true }
    }

    /// What the only job of `lender` writes.
    pub fn written(lender: Arc<dyn Lender>, bytes: &mut [u8]) -> Message {
        let (start, length) = (bytes.as_mut_ptr().expose_provenance(), bytes.len());
        Message { lender, epoch: 0, start, length, is_input: false }
    }
}

#[pymethods]
impl Message {
    /// Lends the bytes: read-only if they came in.
    ///
    /// # Safety
    /// Called by Python, with a `view` to fill.
    unsafe fn __getbuffer__(slf: &Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let message = slf.get();
        let (start, length) = (std::ptr::with_exposed_provenance_mut(message.start), message.length as ffi::Py_ssize_t);
        // Counted before it is lent. This thread holds the GIL from here on, and a thread that completes the job holds it, too.
        let filled = if message.lender.lend(message.epoch) {
            // SAFETY: `view` is Python's. `start` and `length` are those of a slice that `Job::input`,
            // `output`, `read_past` or `write` answered for a job that is still begun (`lend` says so). The
            // memory stays mapped, and no other node writes what it reads or touches what it writes, until the node is
            // released or the job is complete; both are refused, or put off, while the view is counted. Or they are
            // those of device memory that a GPU kernel was given and which still runs: the lender keeps it mapped and
            // this process's, and what is still viewed behind the kernel stays claimed for good (`device/kernel.rs`).
            // No reference of Rust to these bytes lives beyond the function that made it.
            let result = unsafe {
                ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, length, c_int::from(message.is_input), flags)
            };
            if result == 0 {
                return Ok(());
            }
            message.lender.give_back();
            PyErr::fetch(slf.py())
        } else {
            PyBufferError::new_err(
                "its job is complete, or has swapped messages since, and the memory is gone; ask the job for it again, or the next",
            )
        };
        if !view.is_null() {
            // SAFETY: Python's, as above; this is how it learns that nothing was lent.
            unsafe { (*view).obj = std::ptr::null_mut() };
        }
        Err(filled)
    }

    /// Takes a view back.
    ///
    /// # Safety
    /// Called by Python, once for each view that was lent.
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.lender.give_back();
    }

    fn __len__(&self) -> usize {
        self.length
    }
}
