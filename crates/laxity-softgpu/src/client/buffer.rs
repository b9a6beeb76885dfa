//! Buffers in device memory, and the bytes of them that operations use.

use std::ops::Range;
use std::sync::Arc;

use laxity_sys::pi_mutex::PiMutex;
use laxity_sys::sparse::{Window, page};

use super::shared::Shared;
use crate::error::GpuError;
use crate::message::{Message, Request};

/// Device memory of one process, zero at first. It is freed with the last handle and the last operation that uses it.
#[derive(Clone, Debug)]
pub struct Buffer {
    allocation: Arc<Allocation>,
}

#[derive(Debug)]
struct Allocation {
    length: usize,
    uses: PiMutex<Vec<Use>>,
    // Unmapped before it is given back: another process may get it next.
    window: Window,
    given: Given,
}

/// Memory that the server gave to this process, which is given back when this is dropped.
#[derive(Debug)]
struct Given {
    shared: Arc<Shared>,
    offset: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Use {
    range: Range<usize>,
    writes: bool,
}

/// Bytes that no other operation writes, or, if this claim writes, uses, while the claim lives.
#[derive(Debug)]
pub(super) struct Claim {
    allocation: Arc<Allocation>,
    used: Use,
}

impl Buffer {
    /// The `length` bytes that the server gave to this process at `offset`.
    pub(super) fn new(shared: Arc<Shared>, offset: u64, length: usize) -> Result<Buffer, GpuError> {
        let given = Given { shared, offset };
        let asked = length as u64;
        // Rounded as the server rounds: all of these pages are this process's.
        let end = offset + asked.max(1).next_multiple_of(page());
        let window = given.shared.memory.map(offset..end);
        let window = window.map_err(|error| GpuError::Map { asked, error: Arc::new(error) })?;
        Ok(Buffer { allocation: Arc::new(Allocation { length, uses: PiMutex::default(), window, given }) })
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.allocation.length
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where it is mapped in this process.
    pub(super) fn window(&self) -> &Window {
        &self.allocation.window
    }

    /// The soft GPU in whose memory it is.
    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.allocation.given.shared
    }

    pub(super) fn is_of(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.allocation.given.shared, shared)
    }

    /// Whether `range` is within the buffer.
    pub(super) fn check(&self, range: &Range<usize>) -> Result<(), GpuError> {
        let length = self.len();
        if range.start <= range.end && range.end <= length {
            return Ok(());
        }
        Err(GpuError::Range { start: range.start, end: range.end, length })
    }

    /// Claims `range`. [`GpuError::Race`] if another operation uses some of it and one of both writes.
    pub(super) fn claim(&self, range: Range<usize>, writes: bool) -> Result<Claim, GpuError> {
        self.check(&range)?;
        let used = Use { range, writes };
        let mut uses = self.allocation.uses.lock();
        if let Some(other) = uses.iter().find(|other| other.conflicts(&used)) {
            let (start, end) = (other.range.start.max(used.range.start), other.range.end.min(used.range.end));
            return Err(GpuError::Race { start, end });
        }
        uses.push(used.clone());
        Ok(Claim { allocation: self.allocation.clone(), used })
    }
}

impl Use {
    fn conflicts(&self, other: &Use) -> bool {
        let overlap = self.range.start.max(other.range.start) < self.range.end.min(other.range.end);
        overlap && (self.writes || other.writes)
    }
}

impl Claim {
    /// The bytes: the window they are in, where they begin in it, and how many they are.
    pub fn place(&self) -> (&Window, usize, usize) {
        (&self.allocation.window, self.used.range.start, self.used.range.len())
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut uses = self.allocation.uses.lock();
        // It does not matter which of several equal uses goes.
        if let Some(position) = uses.iter().position(|used| *used == self.used) {
            uses.swap_remove(position);
        }
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        if !self.shared.is_ours() {
            return;
        }
        // A server that is gone has freed all.
        let _ = self.shared.packets.send(&Request::Free(self.offset).encode());
    }
}
