//! A mutex in a segment. Its holder inherits the priorities of its waiters, where Linux offers that. If the holder ends,
//! in whatever way, the next thread gets the mutex and is told.
//!
//! It is the C library's (`PTHREAD_MUTEX_ROBUST`, `PTHREAD_PRIO_INHERIT`), which keeps the list that Linux walks when a
//! thread ends. A holder that died carries out no instruction any more when the next thread is told of its death, however
//! the rest of its process ends. Without waiters, locking and unlocking make no system call.

use std::io;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::futex::{OWNER_DIED, WAITERS};

use crate::segment::Segment;

/// Bytes that a mutex takes, which are also its alignment.
pub const SIZE: usize = 64;

const _: () = assert!(size_of::<libc::pthread_mutex_t>() <= SIZE && align_of::<libc::pthread_mutex_t>() <= SIZE);

/// Which C library laid the mutexes of a segment out: processes share them only if theirs says the same.
pub const LAYOUT: u64 = {
    let library = if cfg!(target_env = "musl") { 2 } else { 1 };
    library << 32 | (size_of::<libc::pthread_mutex_t>() as u64) << 16 | size_of::<usize>() as u64
};

/// A mutex of a segment.
#[derive(Clone, Copy, Debug)]
pub struct Mutex<'a> {
    mutex: NonNull<libc::pthread_mutex_t>,
    segment: PhantomData<&'a Segment>,
}

/// What came of trying.
#[derive(Debug)]
pub enum Attempt<'a> {
    /// It is ours.
    Taken(Guard<'a>),
    /// A thread that lives has it.
    Busy,
}

/// Unlocks when dropped, on the thread that locked it.
#[derive(Debug)]
pub struct Guard<'a> {
    mutex: Mutex<'a>,
    /// Whether its last holder ended without unlocking it: what it guards may be half-done.
    pub is_inherited: bool,
    /// The C library lists it with its thread.
    not_send: PhantomData<*mut ()>,
}

impl Segment {
    /// Makes a mutex that no thread holds in the [`SIZE`] bytes at `offset`.
    ///
    /// # Errors
    /// If Linux offers no robust mutexes.
    ///
    /// # Safety
    /// These bytes are zero, belong to nothing else, and no other thread knows of the mutex yet.
    pub unsafe fn make_mutex(&self, offset: usize) -> io::Result<()> {
        // Without priority inheritance where Linux or the C library has none.
        // SAFETY: the caller vouches for the bytes.
        unsafe { self.init(offset, libc::PTHREAD_PRIO_INHERIT).or_else(|_| self.init(offset, libc::PTHREAD_PRIO_NONE)) }
    }

    /// Makes a new mutex where another one was, the holder of which is gone without Linux having marked the mutex: a thread
    /// that calls `exec` gets the number of its process first, so that Linux does not recognize its locks.
    ///
    /// # Errors
    /// If Linux offers no robust mutexes.
    ///
    /// # Safety
    /// These bytes are a mutex's, and no other thread uses it but to read a word of it atomically.
    pub unsafe fn remake_mutex(&self, offset: usize) -> io::Result<()> {
        for word in (0..SIZE).step_by(8) {
            self.u64(offset + word).store(0, Ordering::Relaxed);
        }
        // SAFETY: the bytes are zero, and the caller vouches that they belong to this mutex alone.
        unsafe { self.make_mutex(offset) }
    }

    /// # Safety
    /// As [`Segment::make_mutex`].
    unsafe fn init(&self, offset: usize, protocol: libc::c_int) -> io::Result<()> {
        let mut attributes = std::mem::MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
        let attributes = attributes.as_mut_ptr();
        // SAFETY: attributes are initialized first and used by this thread only; the mutex is zeroed memory of the
        // right size and alignment that no other thread uses, as the caller promises.
        unsafe {
            check(libc::pthread_mutexattr_init(attributes))?;
            let made = check(libc::pthread_mutexattr_setpshared(attributes, libc::PTHREAD_PROCESS_SHARED))
                .and_then(|()| check(libc::pthread_mutexattr_setrobust(attributes, libc::PTHREAD_MUTEX_ROBUST)))
                .and_then(|()| check(libc::pthread_mutexattr_settype(attributes, libc::PTHREAD_MUTEX_ERRORCHECK)))
                .and_then(|()| check(libc::pthread_mutexattr_setprotocol(attributes, protocol)))
                .and_then(|()| check(libc::pthread_mutex_init(self.place(offset).as_ptr(), attributes)));
            libc::pthread_mutexattr_destroy(attributes);
            made
        }
    }

    /// The mutex at `offset`.
    ///
    /// # Safety
    /// [`Segment::make_mutex`] made it, in this process or one with the same [`LAYOUT`], in this PID namespace and
    /// since the machine was started.
    pub unsafe fn mutex(&self, offset: usize) -> Mutex<'_> {
        Mutex { mutex: self.place(offset), segment: PhantomData }
    }

    fn place(&self, offset: usize) -> NonNull<libc::pthread_mutex_t> {
        assert!(offset.is_multiple_of(SIZE), "offset {offset} is not aligned to {SIZE}");
        NonNull::new(self.pointer(offset, SIZE).cast()).expect("a mapping is not at address 0")
    }
}

impl<'a> Mutex<'a> {
    /// Waits until it is ours.
    ///
    /// # Errors
    /// If this thread has it already.
    pub fn lock(self) -> io::Result<Guard<'a>> {
        // SAFETY: a mutex, as the maker of `self` promised, in memory that is mapped for as long as 'a.
        self.taken(unsafe { libc::pthread_mutex_lock(self.mutex.as_ptr()) })
    }

    /// Takes it unless a thread that lives has it, this one included.
    ///
    /// # Errors
    /// If Linux refuses for another reason.
    pub fn try_lock(self) -> io::Result<Attempt<'a>> {
        // SAFETY: as in `lock`.
        match unsafe { libc::pthread_mutex_trylock(self.mutex.as_ptr()) } {
            libc::EBUSY | libc::EDEADLK => Ok(Attempt::Busy),
            result => self.taken(result).map(Attempt::Taken),
        }
    }

    fn taken(self, result: libc::c_int) -> io::Result<Guard<'a>> {
        let guard = |is_inherited| Guard { mutex: self, is_inherited, not_send: PhantomData };
        match result {
            libc::EOWNERDEAD => {
                let guard = guard(true);
                // SAFETY: as in `lock`, and this thread holds it. If it dies from here on, its death is found again.
                check(unsafe { libc::pthread_mutex_consistent(self.mutex.as_ptr()) })?;
                Ok(guard)
            }
            result => check(result).map(|()| guard(false)),
        }
    }

    /// Whether its holder ended without unlocking it, and no thread has taken it over yet. One load.
    pub fn is_abandoned(self) -> bool {
        self.word() & OWNER_DIED != 0
    }

    /// Whether a thread that has not ended holds it. One load.
    pub fn is_held(self) -> bool {
        let word = self.word();
        word & OWNER_DIED == 0 && word & !WAITERS != 0
    }

    /// Whether the thread that has this number in Linux holds it. One load.
    pub fn is_held_by(self, thread: u32) -> bool {
        self.word() & !WAITERS == thread
    }

    /// What Linux reads of it, and marks.
    fn word(self) -> u32 {
        // The word that Linux marks is the first of glibc's mutex and the second of musl's.
        let word = if cfg!(target_env = "musl") { 1 } else { 0 };
        // SAFETY: a mutex is longer than two words, and all threads use this word atomically.
        let word = unsafe { AtomicU32::from_ptr(self.mutex.as_ptr().cast::<u32>().add(word)) };
        word.load(Ordering::Acquire)
    }

    /// Unlocks what [`Guard::keep`] kept.
    ///
    /// # Errors
    /// If this thread does not hold it.
    pub fn unlock(self) -> io::Result<()> {
        // SAFETY: as in `lock`; a robust mutex is unlocked by its holder only, other threads get an error.
        check(unsafe { libc::pthread_mutex_unlock(self.mutex.as_ptr()) })
    }
}

impl Guard<'_> {
    /// Keeps the mutex until [`Mutex::unlock`] on this thread, or the thread's end.
    pub fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let unlocked = self.mutex.unlock();
        assert!(unlocked.is_ok(), "a guard stays on its thread, which holds the mutex: {unlocked:?}");
    }
}

fn check(error: libc::c_int) -> io::Result<()> {
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}
