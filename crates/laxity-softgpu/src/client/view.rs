//! A kernel's view of device memory. The only `unsafe` code of the crate.
#![allow(unsafe_code, reason = "slices of memory that is shared with other processes")]

use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use super::buffer::{Buffer, Claim};
use super::shared::Shared;
use crate::error::GpuError;

/// Device memory, for a kernel while it runs.
#[derive(Clone, Copy, Debug)]
pub struct DeviceView<'a> {
    shared: &'a Arc<Shared>,
}

/// Bytes of a buffer, to read.
#[derive(Debug)]
pub struct Reading<'a> {
    claim: Claim,
    _view: DeviceView<'a>,
}

/// Bytes of a buffer, to read and write.
#[derive(Debug)]
pub struct Writing<'a> {
    claim: Claim,
    _view: DeviceView<'a>,
}

impl Buffer {
    /// Where its bytes are in this process, for work that takes addresses as a GPU does: no claim keeps operations apart
    /// that use the same bytes at the same time. Valid until the last handle is dropped.
    pub fn address(&self) -> *mut u8 {
        // SAFETY: a slice of no bytes: no reference to any of them is made.
        unsafe { self.window().bytes(0, 0) }.as_ptr().cast_mut()
    }
}

impl<'a> DeviceView<'a> {
    pub(super) fn new(shared: &'a Arc<Shared>) -> Self {
        DeviceView { shared }
    }

    /// `range` of `buffer`, to read.
    ///
    /// # Errors
    /// [`GpuError::Range`]; [`GpuError::Foreign`]; [`GpuError::Race`] if an operation writes there at this time.
    pub fn read(&self, buffer: &Buffer, range: Range<usize>) -> Result<Reading<'a>, GpuError> {
        Ok(Reading { claim: self.claim(buffer, range, false)?, _view: *self })
    }

    /// `range` of `buffer`, to read and write.
    ///
    /// # Errors
    /// [`GpuError::Range`]; [`GpuError::Foreign`]; [`GpuError::Race`] if an operation uses them at this time.
    pub fn write(&self, buffer: &Buffer, range: Range<usize>) -> Result<Writing<'a>, GpuError> {
        Ok(Writing { claim: self.claim(buffer, range, true)?, _view: *self })
    }

    fn claim(&self, buffer: &Buffer, range: Range<usize>, writes: bool) -> Result<Claim, GpuError> {
        if !buffer.is_of(self.shared) {
            return Err(GpuError::Foreign);
        }
        buffer.claim(range, writes)
    }
}

impl Deref for Reading<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let (window, start, length) = self.claim.place();
        // SAFETY: the server gave these bytes to this process. The claim keeps the buffer, and so the bytes: the server
        // gives them to another process only after this one gave them back, died, or closed the soft GPU, which waits
        // for the thread that has this view. Within the process the claim keeps writers out.
        unsafe { window.bytes(start, length) }
    }
}

impl Deref for Writing<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let (window, start, length) = self.claim.place();
        // SAFETY: as for `Reading`; only this value writes, and it is borrowed.
        unsafe { window.bytes(start, length) }
    }
}

impl DerefMut for Writing<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        let (window, start, length) = self.claim.place();
        // SAFETY: as for `Reading`; the claim keeps everyone else out, and this value is borrowed exclusively.
        unsafe { window.bytes_mut(start, length) }
    }
}
