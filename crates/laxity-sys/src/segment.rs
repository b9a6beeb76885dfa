//! Memory with a name that processes share.
//!
//! ```text
//! Segment::draft ---> (no name) --- publish ---> (named) --- unlink ---> (no name, until the last mapping goes)
//! ```
//!
//! A segment is a file in a file system that lives in memory, usually below `/dev/shm`. It gets its name only when it is
//! whole: a creator that dies earlier leaves nothing behind. All of it is reserved beforehand, so that too little
//! memory is an error of the creator and not a signal to whoever writes first.

use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, CWD, FallocateFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

/// What a segment contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// The first eight bytes.
    pub magic: [u8; 8],
    /// Of the layout; processes with different versions cannot share a segment.
    pub version: u32,
}

/// Bytes at the start that say what the segment is. What users store comes after them.
pub const HEADER: usize = 64;

const MAGIC: usize = 0;
const VERSION: usize = 8;
const LENGTH: usize = 16;

/// Why there is no segment.
#[derive(Debug)]
pub enum SegmentError {
    /// Creating: the name is taken.
    Exists {
        /// The name.
        path: PathBuf,
    },
    /// Opening: no segment has the name.
    NotFound {
        /// The name.
        path: PathBuf,
    },
    /// Opening: the file is something else.
    Foreign {
        /// The name.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Opening: its layout has another version.
    Version {
        /// The name.
        path: PathBuf,
        /// That of the file.
        found: u32,
        /// Ours.
        expected: u32,
    },
    /// Creating: there is not enough memory for it.
    Memory {
        /// The name.
        path: PathBuf,
        /// Bytes asked for.
        length: usize,
    },
    /// Linux refuses.
    System {
        /// The name.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Why not.
        error: io::Error,
    },
}

/// A mapped segment. Shared by threads and processes; all access is atomic or the caller's responsibility.
#[derive(Debug)]
pub struct Segment {
    start: NonNull<u8>,
    length: usize,
    file: OwnedFd,
    path: PathBuf,
    /// `flock` keeps processes apart, this the threads of this one.
    threads: Mutex<()>,
}

// SAFETY: the mapping stays until the value is dropped, whichever thread does that; what is in it is reached through
// atomics or through unsafe functions.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

/// The lock of a segment: one holder in all processes. Let go when dropped, and by Linux if the process dies.
#[derive(Debug)]
pub struct Locked<'a> {
    segment: &'a Segment,
    _threads: MutexGuard<'a, ()>,
}

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
        let file = rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| system(path, "create a file for it", error))?;
        // Also sets the length.
        loop {
            match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, size) {
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
        match rustix::fs::linkat(CWD, itself.as_str(), CWD, &self.path, AtFlags::SYMLINK_FOLLOW) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => Err(SegmentError::Exists { path: self.path.clone() }),
            Err(error) => Err(system(&self.path, "give it its name", error)),
        }
    }

    /// The segment called `path`.
    ///
    /// # Errors
    /// [`SegmentError::NotFound`], [`SegmentError::Foreign`], [`SegmentError::Version`] or [`SegmentError::System`].
    pub fn open(path: &Path, format: Format) -> Result<Segment, SegmentError> {
        let foreign = |reason| SegmentError::Foreign { path: path.to_owned(), reason };
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| match error {
            Errno::NOENT => SegmentError::NotFound { path: path.to_owned() },
            Errno::LOOP | Errno::ISDIR => foreign("not a file"),
            error => system(path, "open it", error),
        })?;
        Segment::adopt(file, path, format)
    }

    /// The segment in `file`, which another process handed over; called `path` in errors.
    ///
    /// # Errors
    /// [`SegmentError::Foreign`], [`SegmentError::Version`] or [`SegmentError::System`].
    pub fn adopt(file: OwnedFd, path: &Path, format: Format) -> Result<Segment, SegmentError> {
        let foreign = |reason| SegmentError::Foreign { path: path.to_owned(), reason };
        let size = rustix::fs::fstat(&file).map_err(|error| system(path, "ask for its size", error))?.st_size;
        let length = usize::try_from(size).map_err(|_| foreign("not a file"))?;
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

    /// The word at `offset` from the start. Panics if it is not aligned or not within the segment.
    #[inline]
    pub fn u32(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: within the mapping and aligned, as checked; an AtomicU32 has no invalid value, and everyone accesses
        // these bytes atomically, or, through the unsafe functions below, promises not to meet.
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
    /// While the slice lives nobody writes these bytes, in this process or another.
    #[inline]
    pub unsafe fn bytes(&self, offset: usize, length: usize) -> &[u8] {
        // SAFETY: within the mapping, as checked, and mapped for as long as `self` lives; any byte is a valid u8; the
        // caller vouches for the rest.
        unsafe { std::slice::from_raw_parts(self.at(offset, length), length) }
    }

    /// `length` bytes from `offset` on, to write. Panics if they are not within the segment.
    ///
    /// # Safety
    /// While the slice lives nobody else reads or writes these bytes, in this process or another.
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

    /// Waits for the lock.
    ///
    /// # Errors
    /// [`SegmentError::System`].
    pub fn lock(&self) -> Result<Locked<'_>, SegmentError> {
        // Whoever panicked left nothing half-done here: this mutex guards no data.
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match rustix::fs::flock(&self.file, FlockOperation::LockExclusive) {
                Ok(()) => return Ok(Locked { segment: self, _threads: threads }),
                Err(Errno::INTR) => {}
                Err(error) => return Err(system(&self.path, "lock it", error)),
            }
        }
    }
}

impl AsFd for Segment {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Locked<'_> {
    /// Whether the segment still has its name: if not, who opened it came too late.
    pub fn is_named(&self) -> bool {
        let ours = rustix::fs::fstat(&self.segment.file);
        let named = rustix::fs::statat(CWD, &self.segment.path, AtFlags::SYMLINK_NOFOLLOW);
        match (ours, named) {
            (Ok(ours), Ok(named)) => (ours.st_dev, ours.st_ino) == (named.st_dev, named.st_ino),
            _ => false,
        }
    }

    /// Takes its name away, if it has it. Names are taken away only by who holds the lock.
    ///
    /// # Errors
    /// [`SegmentError::System`].
    pub fn unlink(&self) -> Result<(), SegmentError> {
        if !self.is_named() {
            return Ok(());
        }
        let path = &self.segment.path;
        rustix::fs::unlink(path).map_err(|error| system(path, "remove it", error))
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // Cannot fail: the descriptor is open and the lock ours.
        let _ = rustix::fs::flock(&self.segment.file, FlockOperation::Unlock);
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length, and nothing borrowed from `self` lives any more.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

// Functions of their own, so that who passes the checks does not prepare what they say.

#[cold]
fn misaligned(offset: usize, size: usize) -> ! {
    panic!("offset {offset} is not aligned to {size}");
}

#[cold]
fn beyond(offset: usize, size: usize, length: usize) -> ! {
    panic!("offset {offset} + {size} is beyond the {length} bytes of the segment");
}

fn map(file: OwnedFd, path: &Path, length: usize) -> Result<Segment, SegmentError> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping, at an address that Linux chooses.
    let start = unsafe { rustix::mm::mmap(std::ptr::null_mut(), length, protection, MapFlags::SHARED, &file, 0) }
        .map_err(|error| system(path, "map it", error))?;
    let start = NonNull::new(start.cast()).expect("mmap without MAP_FIXED never maps address 0");
    Ok(Segment { start, length, file, path: path.to_owned(), threads: Mutex::new(()) })
}

fn system(path: &Path, action: &'static str, error: Errno) -> SegmentError {
    SegmentError::System { path: path.to_owned(), action, error: error.into() }
}

impl fmt::Display for SegmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SegmentError::Exists { path } => write!(f, "{}: exists already", path.display()),
            SegmentError::NotFound { path } => write!(f, "{}: there is no such segment", path.display()),
            SegmentError::Foreign { path, reason } => write!(f, "{}: not one of ours: {reason}", path.display()),
            SegmentError::Version { path, found, expected } => write!(
                f,
                "{}: its layout has version {found} and this program's has {expected}; use one version of Laxity",
                path.display()
            ),
            SegmentError::Memory { path, length } => write!(
                f,
                "{}: needs {length} bytes, more than {} has left; enlarge that file system or ask for less",
                path.display(),
                path.parent().unwrap_or(Path::new("/")).display()
            ),
            SegmentError::System { path, action, error } => {
                write!(f, "{}: cannot {action}: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for SegmentError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SegmentError::System { error, .. } => Some(error),
            _ => None,
        }
    }
}
