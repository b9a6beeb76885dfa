//! Memory with a name that processes share.
//!
//! ```text
//! Segment::draft ---> (no name) --- publish ---> (named) --- unlink ---> (no name, until the last mapping goes)
//! ```
//!
//! A segment is a file in a file system that lives in memory, usually below `/dev/shm`. It gets its name only when it is
//! whole: a creator that dies earlier leaves nothing behind. All of it is reserved beforehand, so that too little
//! memory is an error of the creator and not a signal to the first writer.
//!
//! A segment belongs to one user. A file of another user, or one that others may write to, is refused: its contents
//! decide what this process does. Bytes that the user's own processes write are checked where they are read; that none
//! of them shortens the file, which ends the others with SIGBUS, cannot be enforced for files with names.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use laxity_model::Nanos;
use rustix::fs::{AtFlags, CWD, FallocateFlags, FileType, Mode, OFlags, RawMode, Stat};
use rustix::io::{Errno, retry_on_intr};
use rustix::mm::{MapFlags, ProtFlags};
use rustix::process::geteuid;

use crate::fork::{Unshared, unshare};
use crate::process::{IdentityError, boot};
use crate::{fault, fork};

mod lock;

pub use lock::Locked;

/// What a segment contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// The first eight bytes.
    pub magic: [u8; 8],
    /// Of the layout; processes with different versions cannot share a segment.
    pub version: u32,
}

/// Bytes at the start that say what the segment is. The user's bytes come after them.
pub const HEADER: usize = 64;

const MAGIC: usize = 0;
const VERSION: usize = 8;
const LENGTH: usize = 16;

/// Why there is no segment.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    /// Creating: the name is taken.
    #[error("{}: exists already", path.display())]
    Exists {
        /// The name.
        path: PathBuf,
    },
    /// Opening: no segment has the name.
    #[error("{}: there is no such segment", path.display())]
    NotFound {
        /// The name.
        path: PathBuf,
    },
    /// Opening: the file is something else.
    #[error("{}: not one of ours: {reason}", path.display())]
    Foreign {
        /// The name.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Opening: the file belongs to another user.
    #[error(
        "{}: belongs to user {owner} and this process to user {user}; processes share memory only with those of their \
         own user",
        path.display()
    )]
    Owner {
        /// The name.
        path: PathBuf,
        /// The user it belongs to.
        owner: u32,
        /// The user of this process.
        user: u32,
    },
    /// Opening: its layout has another version.
    #[error(
        "{}: its layout has version {found} and this program's has {expected}; use one version of Laxity",
        path.display()
    )]
    Version {
        /// The name.
        path: PathBuf,
        /// That of the file.
        found: u32,
        /// Ours.
        expected: u32,
    },
    /// Creating: there is not enough memory for it.
    #[error(
        "{}: needs {length} bytes, more than {} has left; enlarge that file system or ask for less",
        path.display(),
        path.parent().unwrap_or(Path::new("/")).display()
    )]
    Memory {
        /// The name.
        path: PathBuf,
        /// Bytes asked for.
        length: usize,
    },
    /// Another process holds the lock.
    #[error(
        "{}: {} has held its lock for {patience}; let it go on, or end it and all that it forked",
        path.display(),
        holder.map_or("another process".to_owned(), |pid| format!("process {pid}"))
    )]
    Busy {
        /// The name.
        path: PathBuf,
        /// The process that took the lock, if Linux says.
        holder: Option<u32>,
        /// For how long it was waited for.
        patience: Nanos,
    },
    /// This process does not know itself.
    #[error("{}: {error}", path.display())]
    Identity {
        /// The name.
        path: PathBuf,
        /// Why not.
        #[source]
        error: IdentityError,
    },
    /// Linux refuses.
    #[error("{}: cannot {action}: {error}", path.display())]
    System {
        /// The name.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Why not.
        #[source]
        error: io::Error,
    },
}

/// A mapped segment. Shared by threads and processes; all access is atomic or the caller's responsibility.
#[derive(Debug)]
pub struct Segment {
    start: NonNull<u8>,
    length: usize,
    // Dropped before the descriptor is closed.
    _unshared: Unshared,
    /// For locks. The mapping was made through another description of the file, as mappings keep theirs open: a forked
    /// child has the mapping, and would keep the locks.
    file: OwnedFd,
    path: PathBuf,
    /// The boot of the machine.
    boot: u64,
    /// Where the presence byte is that this process holds.
    presence: AtomicUsize,
    /// `flock` keeps processes apart, this the threads of this one.
    threads: Mutex<()>,
}

// SAFETY: the mapping stays until the value is dropped, whichever thread does that; what is in it is reached through
// atomics or through unsafe functions.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    /// Zeroed memory of `length` bytes beyond the header, to be published as `path`.
    ///
    /// # Errors
    /// [`SegmentError::Memory`] and [`SegmentError::System`].
    pub fn draft(path: &Path, format: Format, length: usize) -> Result<Segment, SegmentError> {
        let too_large = || SegmentError::Memory { path: path.to_owned(), length };
        let directory = path.parent().unwrap_or(Path::new("/"));
        let total = HEADER.checked_add(length).ok_or_else(too_large)?;
        let size = u64::try_from(total).ok().filter(|&size| size <= i64::MAX as u64).ok_or_else(too_large)?;
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = retry_on_intr(|| {
            fault::point("open").and_then(|()| rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR))
        })
        .map_err(|error| system(path, "create a file for it", error))?;
        // Also sets the length.
        let reserve = || rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, size);
        loop {
            match fault::point("fallocate").and_then(|()| reserve()) {
                Ok(()) => break,
                Err(Errno::INTR) => {}
                Err(Errno::NOSPC | Errno::FBIG | Errno::DQUOT) => return Err(too_large()),
                Err(error) => return Err(system(path, "reserve memory for it", error)),
            }
        }
        let segment = map(file, path, total)?;
        segment.u64(LENGTH).store(total as u64, Ordering::Relaxed);
        segment.u32(VERSION).store(format.version, Ordering::Relaxed);
        segment.u64(MAGIC).store(u64::from_ne_bytes(format.magic), Ordering::Relaxed);
        Ok(segment)
    }

    /// Gives it its name, all at once.
    ///
    /// # Errors
    /// [`SegmentError::Exists`] if a segment has the name; that one is not touched.
    pub fn publish(&self) -> Result<(), SegmentError> {
        // A file without a name is reached through /proc; by descriptor alone only the superuser may link it.
        let itself = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let link = || rustix::fs::linkat(CWD, itself.as_str(), CWD, &self.path, AtFlags::SYMLINK_FOLLOW);
        match fault::point("linkat").and_then(|()| link()) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => Err(SegmentError::Exists { path: self.path.clone() }),
            Err(error) => Err(system(&self.path, "give it its name", error)),
        }
    }

    /// The segment called `path`.
    ///
    /// # Errors
    /// [`SegmentError::NotFound`], [`SegmentError::Foreign`], [`SegmentError::Owner`], [`SegmentError::Version`],
    /// [`SegmentError::Identity`] or [`SegmentError::System`].
    pub fn open(path: &Path, format: Format) -> Result<Segment, SegmentError> {
        let foreign = |reason| SegmentError::Foreign { path: path.to_owned(), reason };
        // Not blocking: the name may be that of a pipe.
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let open = || fault::point("open").and_then(|()| rustix::fs::open(path, flags, Mode::empty()));
        let file = retry_on_intr(open).map_err(|error| match error {
            Errno::NOENT => SegmentError::NotFound { path: path.to_owned() },
            Errno::LOOP | Errno::ISDIR | Errno::NXIO => foreign("not a file"),
            // Another user's file, if that user keeps others from opening it.
            Errno::ACCESS => match rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(status) if status.st_uid != geteuid().as_raw() => not_ours(path, &status),
                _ => system(path, "open it", error),
            },
            error => system(path, "open it", error),
        })?;
        Segment::adopt(file, path, format)
    }

    /// The segment in `file`, which another process of this user handed over; called `path` in errors.
    ///
    /// # Errors
    /// As [`Segment::open`].
    pub fn adopt(file: OwnedFd, path: &Path, format: Format) -> Result<Segment, SegmentError> {
        let foreign = |reason| SegmentError::Foreign { path: path.to_owned(), reason };
        let status = fault::point("fstat").and_then(|()| rustix::fs::fstat(&file));
        let status = status.map_err(|error| system(path, "ask for its size and owner", error))?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return Err(foreign("not a file"));
        }
        if status.st_uid != geteuid().as_raw() {
            return Err(not_ours(path, &status));
        }
        if Mode::from_raw_mode(status.st_mode as RawMode).intersects(Mode::WGRP | Mode::WOTH) {
            return Err(foreign("other users may write to it"));
        }
        let length = usize::try_from(status.st_size).map_err(|_| foreign("not a file"))?;
        if length < HEADER {
            return Err(foreign("too short"));
        }
        let segment = map(file, path, length)?;
        if segment.u64(MAGIC).load(Ordering::Relaxed) != u64::from_ne_bytes(format.magic) {
            return Err(foreign("another kind of file"));
        }
        let found = segment.u32(VERSION).load(Ordering::Relaxed);
        if found != format.version {
            return Err(SegmentError::Version { path: path.to_owned(), found, expected: format.version });
        }
        if segment.u64(LENGTH).load(Ordering::Relaxed) != length as u64 {
            return Err(foreign("its length is not what it was created with"));
        }
        Ok(segment)
    }

    /// Bytes, the header included.
    #[expect(clippy::len_without_is_empty, reason = "there is always a header")]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Its name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The boot of the machine, as this process knows it: it had to, to open the segment.
    pub fn boot(&self) -> u64 {
        self.boot
    }

    /// The word at `offset` from the start. Panics if it is not aligned or not within the segment.
    #[inline]
    pub fn u32(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: within the mapping and aligned, as checked; an AtomicU32 has no invalid value, and these bytes are
        // accessed atomically, or through the unsafe functions below, whose callers promise not to do so meanwhile.
        unsafe { AtomicU32::from_ptr(self.pointer(offset, 4).cast()) }
    }

    /// The word at `offset` from the start. Panics if it is not aligned or not within the segment.
    #[inline]
    pub fn u64(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: as in `u32`.
        unsafe { AtomicU64::from_ptr(self.pointer(offset, 8).cast()) }
    }

    /// `count` words from `offset` on. Panics if they are not aligned or not within the segment.
    #[inline]
    pub fn u64s(&self, offset: usize, count: usize) -> &[AtomicU64] {
        let length = count.checked_mul(8).expect("as many words as fit into memory");
        if !offset.is_multiple_of(8) {
            misaligned(offset, 8);
        }
        // SAFETY: within the mapping and aligned, as checked; otherwise as in `u32`.
        unsafe { std::slice::from_raw_parts(self.at(offset, length).cast(), count) }
    }

    /// Copies `bytes` to `offset`, byte by byte: for what is written once. Panics if they do not fit.
    pub fn store_bytes(&self, offset: usize, bytes: &[u8]) {
        for (index, &byte) in bytes.iter().enumerate() {
            self.u8(offset + index).store(byte, Ordering::Relaxed);
        }
    }

    /// Copies `range` out, byte by byte. Panics if it is not within the segment.
    pub fn load_bytes(&self, range: Range<usize>) -> Vec<u8> {
        range.map(|offset| self.u8(offset).load(Ordering::Relaxed)).collect()
    }

    fn u8(&self, offset: usize) -> &AtomicU8 {
        // SAFETY: as in `u32`.
        unsafe { AtomicU8::from_ptr(self.pointer(offset, 1)) }
    }

    /// `length` bytes from `offset` on. Panics if they are not within the segment.
    ///
    /// # Safety
    /// While the slice lives no thread writes these bytes, in this process or another.
    #[inline]
    pub unsafe fn bytes(&self, offset: usize, length: usize) -> &[u8] {
        // SAFETY: within the mapping, as checked, and mapped for as long as `self` lives; any byte is a valid u8; the
        // caller vouches for the rest.
        unsafe { std::slice::from_raw_parts(self.at(offset, length), length) }
    }

    /// `length` bytes from `offset` on, to write. Panics if they are not within the segment.
    ///
    /// # Safety
    /// While the slice lives no other thread reads or writes these bytes, in this process or another.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "exclusive by the caller's promise")]
    pub unsafe fn bytes_mut(&self, offset: usize, length: usize) -> &mut [u8] {
        // SAFETY: as in `bytes`.
        unsafe { std::slice::from_raw_parts_mut(self.at(offset, length), length) }
    }

    /// A pointer to the word of `size` bytes at `offset`, which is also its alignment.
    #[inline]
    pub(crate) fn pointer(&self, offset: usize, size: usize) -> *mut u8 {
        if !offset.is_multiple_of(size) {
            misaligned(offset, size);
        }
        self.at(offset, size)
    }

    /// A pointer to `size` bytes at `offset`, wherever that is.
    #[inline]
    fn at(&self, offset: usize, size: usize) -> *mut u8 {
        if offset.checked_add(size).is_none_or(|end| end > self.length) {
            beyond(offset, size, self.length);
        }
        // SAFETY: within one mapping.
        unsafe { self.start.as_ptr().add(offset) }
    }
}

impl AsFd for Segment {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length, and nothing borrowed from `self` lives any more.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

// Functions of their own, so that a caller that passes the checks does not prepare their texts.

#[cold]
fn misaligned(offset: usize, size: usize) -> ! {
    panic!("offset {offset} is not aligned to {size}");
}

#[cold]
fn beyond(offset: usize, size: usize, length: usize) -> ! {
    panic!("offset {offset} + {size} is beyond the {length} bytes of the segment");
}

/// Maps all of `file`.
fn map(file: OwnedFd, path: &Path, length: usize) -> Result<Segment, SegmentError> {
    let boot = boot().map_err(|error| SegmentError::Identity { path: path.to_owned(), error })?;
    let locks = fork::reopen(&file).map_err(|error| system(path, "open it once more, for its locks", error))?;
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping, at an address that Linux chooses.
    let map = || unsafe { rustix::mm::mmap(std::ptr::null_mut(), length, protection, MapFlags::SHARED, &file, 0) };
    let start = fault::point("mmap").and_then(|()| map()).map_err(|error| system(path, "map it", error))?;
    let start = NonNull::new(start.cast()).expect("mmap without MAP_FIXED never maps address 0");
    let unshared = unshare(locks.as_fd());
    Ok(Segment {
        start,
        length,
        _unshared: unshared,
        file: locks,
        path: path.to_owned(),
        boot,
        presence: AtomicUsize::new(lock::NO_PRESENCE),
        threads: Mutex::new(()),
    })
}

fn not_ours(path: &Path, status: &Stat) -> SegmentError {
    SegmentError::Owner { path: path.to_owned(), owner: status.st_uid, user: geteuid().as_raw() }
}

fn system(path: &Path, action: &'static str, error: Errno) -> SegmentError {
    SegmentError::System { path: path.to_owned(), action, error: error.into() }
}
