//! What a kernel sees: device memory. The only `unsafe` code of the crate.
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
    view: DeviceView<'a>,
    claim: Claim,
}

/// Bytes of a buffer, to read and write.
#[derive(Debug)]
pub struct Writing<'a> {
    view: DeviceView<'a>,
    claim: Claim,
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
        Ok(Reading { view: *self, claim: self.claim(buffer, range, false)? })
    }

    /// `range` of `buffer`, to read and write.
    ///
    /// # Errors
    /// [`GpuError::Range`]; [`GpuError::Foreign`]; [`GpuError::Race`] if something uses them at this time.
    pub fn write(&self, buffer: &Buffer, range: Range<usize>) -> Result<Writing<'a>, GpuError> {
        Ok(Writing { view: *self, claim: self.claim(buffer, range, true)? })
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
        let (start, length) = self.claim.place();
        // SAFETY: the server gave these bytes to this process, which keeps them for as long as the claim has the
        // buffer, and gives them to another only when this one is gone or closed, which waits for the thread that has
        // this view. Within the process the claim keeps writers out.
        unsafe { self.view.shared.memory.bytes(start, length) }
    }
}

impl Deref for Writing<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let (start, length) = self.claim.place();
        // SAFETY: as for `Reading`; who writes is this value, which is borrowed.
        unsafe { self.view.shared.memory.bytes(start, length) }
    }
}

impl DerefMut for Writing<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        let (start, length) = self.claim.place();
        // SAFETY: as for `Reading`; the claim keeps everyone else out, and this value is borrowed exclusively.
        unsafe { self.view.shared.memory.bytes_mut(start, length) }
    }
}
