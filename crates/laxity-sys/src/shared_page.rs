//! Memory behind a descriptor that another process handed over, mapped word by word: a map of BPF, or any file.

use std::io;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::fault;

/// Shared memory as words. Whatever the other side writes there is a number.
#[derive(Debug)]
pub struct SharedPage {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: it is only used through atomic words.
unsafe impl Send for SharedPage {}
// SAFETY: as above.
unsafe impl Sync for SharedPage {}

impl SharedPage {
    /// The first `length` bytes behind `descriptor`, of which there must be as many: touching others ends the process.
    ///
    /// # Errors
    /// If it cannot be mapped to be read and written.
    pub fn map(descriptor: impl AsFd, length: usize) -> io::Result<SharedPage> {
        fault::point("mmap")?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, at an address that Linux chooses.
        let start = unsafe { mmap(std::ptr::null_mut(), length, protection, MapFlags::SHARED, descriptor, 0) }?;
        let start = NonNull::new(start.cast()).expect("mmap without MAP_FIXED never maps address 0");
        Ok(SharedPage { start, length })
    }

    /// The word at `offset`. Panics if it is not aligned or not within the memory.
    #[inline]
    pub fn u32(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: within the mapping and aligned, as `at` checks; every number is an AtomicU32; all access is atomic here,
        // and word by word on the other side.
        unsafe { self.at::<AtomicU32>(offset).as_ref() }
    }

    /// As [`SharedPage::u32`].
    #[inline]
    pub fn u64(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: as of `u32`.
        unsafe { self.at::<AtomicU64>(offset).as_ref() }
    }

    fn at<T>(&self, offset: usize) -> NonNull<T> {
        let size = size_of::<T>();
        let is_within = offset.checked_add(size).is_some_and(|end| end <= self.length);
        assert!(is_within, "{size} bytes at offset {offset} are beyond the {} bytes of the page", self.length);
        assert!(offset.is_multiple_of(size), "offset {offset} is not a multiple of {size}");
        // SAFETY: within one mapping.
        unsafe { self.start.add(offset).cast() }
    }
}

impl Drop for SharedPage {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and nothing borrowed from `self` lives any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn what_is_written_to_a_page_is_in_the_file_behind_it() {
        let file = File::from(rustix::fs::memfd_create("page", rustix::fs::MemfdFlags::CLOEXEC).expect("memory"));
        file.set_len(4096).expect("room");
        let page = SharedPage::map(&file, 4096).expect("a mapping");
        page.u64(16).store(0x0102_0304_0506_0708, Ordering::Relaxed);
        page.u32(24).store(7, Ordering::Relaxed);
        let mut bytes = [0; 28];
        (&file).read_exact(&mut bytes).expect("it is there");
        assert_eq!(bytes[16..24], 0x0102_0304_0506_0708_u64.to_ne_bytes());
        assert_eq!(bytes[24..], 7_u32.to_ne_bytes());
    }

    #[test]
    #[should_panic(expected = "beyond the 4096 bytes")]
    fn a_word_beyond_the_page_is_refused() {
        let file = File::from(rustix::fs::memfd_create("page", rustix::fs::MemfdFlags::CLOEXEC).expect("memory"));
        file.set_len(4096).expect("room");
        SharedPage::map(&file, 4096).expect("a mapping").u32(4096);
    }
}
