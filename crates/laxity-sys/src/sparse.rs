//! Memory that processes share and that is there only where it was reserved.
//!
//! ```text
//! Sparse::new ---> (nothing is there) --- reserve ---> (there, and zero) --- map ---> Window
//!                            ^                                 |
//!                            +------------ release ------------+
//! ```
//!
//! One process reserves and releases pages; others get the descriptor and map what they were told is reserved. Bytes that
//! are not reserved cost nothing, and no process has them mapped: neither a stray pointer nor `mlockall`, which brings in
//! all that a process has mapped, takes memory that is not there.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, memfd_create};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::fault;

/// Without these a process could cut off what others have mapped, and they would be killed by SIGBUS.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Memory without a name. It goes when all its handles and windows are dropped, in all processes.
#[derive(Debug)]
pub struct Sparse {
    file: OwnedFd,
    length: u64,
}

/// Some pages of a [`Sparse`], mapped.
#[derive(Debug)]
pub struct Window {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping stays until the value is dropped, whichever thread does that; what is in it is reached through
// unsafe functions.
unsafe impl Send for Window {}
// SAFETY: as above.
unsafe impl Sync for Window {}

/// Bytes of a page: what is reserved, released and mapped begins and ends at multiples of it.
pub fn page() -> u64 {
    rustix::param::page_size() as u64
}

impl Sparse {
    /// `length` bytes, rounded up to pages, of which none are there; seen as `name` in `/proc`.
    ///
    /// # Errors
    /// If the limit of open files is reached, or files cannot be so long.
    pub fn new(name: &str, length: u64) -> io::Result<Sparse> {
        let length = length.checked_next_multiple_of(page()).ok_or(Errno::FBIG)?;
        fault::point("memfd_create")?;
        let file = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        fault::point("ftruncate")?;
        rustix::fs::ftruncate(&file, length)?;
        fcntl_add_seals(&file, SEALS)?;
        Ok(Sparse { file, length })
    }

    /// That in `file`, which another process handed over.
    ///
    /// # Errors
    /// If it is none: without its seals it could be cut off.
    pub fn adopt(file: OwnedFd) -> io::Result<Sparse> {
        if !fcntl_get_seals(&file)?.contains(SEALS) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        fault::point("fstat")?;
        let length = u64::try_from(rustix::fs::fstat(&file)?.st_size).map_err(|_| io::ErrorKind::InvalidData)?;
        Ok(Sparse { file, length })
    }

    /// Its bytes, there or not.
    #[expect(clippy::len_without_is_empty, reason = "an empty one is of no use")]
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Has `range` be there. Bytes that were not there are zero.
    ///
    /// # Errors
    /// If there is not as much memory by Linux's own count (`vm.overcommit_memory` 2). Where Linux counts on luck it
    /// kills processes instead: see [`available`](crate::memory::available). Some of it may be reserved then.
    pub fn reserve(&self, range: Range<u64>) -> io::Result<()> {
        self.allocate(FallocateFlags::KEEP_SIZE, range)
    }

    /// Gives the memory of `range` back to Linux.
    ///
    /// # Errors
    /// None that a caller can cause.
    pub fn release(&self, range: Range<u64>) -> io::Result<()> {
        self.allocate(FallocateFlags::KEEP_SIZE | FallocateFlags::PUNCH_HOLE, range)
    }

    fn allocate(&self, flags: FallocateFlags, range: Range<u64>) -> io::Result<()> {
        self.check(&range);
        loop {
            let allocate = || fallocate(&self.file, flags, range.start, range.end - range.start);
            match fault::point("fallocate").and_then(|()| allocate()) {
                Err(Errno::INTR) => {}
                result => return Ok(result?),
            }
        }
    }

    /// Bytes that are there, as Linux counts them.
    ///
    /// # Errors
    /// None that a caller can cause.
    pub fn reserved(&self) -> io::Result<u64> {
        // In units of 512 bytes, whatever the file system.
        Ok(rustix::fs::fstat(&self.file)?.st_blocks as u64 * 512)
    }

    /// Maps `range`, which is reserved, with all its pages: touching them is no fault.
    ///
    /// # Errors
    /// If the process has as many mappings as it may (`vm.max_map_count`), or no addresses left.
    pub fn map(&self, range: Range<u64>) -> io::Result<Window> {
        self.check(&range);
        let length = usize::try_from(range.end - range.start).map_err(|_| Errno::NOMEM)?;
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        fault::point("mmap")?;
        // SAFETY: a new mapping, at an address that Linux chooses.
        let start = unsafe { mmap(std::ptr::null_mut(), length, protection, flags, &self.file, range.start) }?;
        let start = NonNull::new(start.cast()).expect("mmap without MAP_FIXED never maps address 0");
        Ok(Window { start, length })
    }

    fn check(&self, range: &Range<u64>) {
        let is_whole = range.start.is_multiple_of(page()) && range.end.is_multiple_of(page());
        assert!(is_whole, "{range:?} is not of whole pages of {} bytes", page());
        assert!(range.start < range.end, "{range:?} is empty");
        assert!(range.end <= self.length, "{range:?} is beyond the {} bytes", self.length);
    }
}

impl AsFd for Sparse {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Window {
    /// `length` bytes from `offset` on. Panics if they are not within the window.
    ///
    /// # Safety
    /// While the slice lives no thread writes these bytes or releases their pages, in this process or another.
    pub unsafe fn bytes(&self, offset: usize, length: usize) -> &[u8] {
        // SAFETY: within the mapping, as checked, and mapped for as long as `self` lives; the file is as long as that
        // for ever, as it is sealed; any byte is a valid u8; the caller vouches for the rest.
        unsafe { std::slice::from_raw_parts(self.at(offset, length), length) }
    }

    /// `length` bytes from `offset` on, to write. Panics if they are not within the window.
    ///
    /// # Safety
    /// While the slice lives no other thread reads or writes these bytes or releases their pages, in this process or
    /// another.
    #[expect(clippy::mut_from_ref, reason = "exclusive by the caller's promise")]
    pub unsafe fn bytes_mut(&self, offset: usize, length: usize) -> &mut [u8] {
        // SAFETY: as in `bytes`.
        unsafe { std::slice::from_raw_parts_mut(self.at(offset, length), length) }
    }

    fn at(&self, offset: usize, length: usize) -> *mut u8 {
        let is_within = offset.checked_add(length).is_some_and(|end| end <= self.length);
        assert!(is_within, "offset {offset} + {length} is beyond the {} bytes of the window", self.length);
        // SAFETY: within one mapping, or just behind it.
        unsafe { self.start.as_ptr().add(offset) }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and nothing borrowed from `self` lives any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
    }
}
