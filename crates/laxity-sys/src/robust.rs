//! A word of shared memory that says whether the thread that holds it lives.
//!
//! ```text
//!              while_held                 its end
//! 0 (free) ------------> thread id ------------> 0
//!                            |
//!                            +-- the thread ends: OWNER_DIED, and one thread that waits on the word is woken
//! ```
//!
//! Linux itself makes the last transition, also when the process is killed at any instruction: it walks the thread's
//! *robust list* (`set_robust_list(2)`). Thread ids compare within a PID namespace, but as the ending thread compares
//! its own, this works across containers too.

use std::io;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::futex::{OWNER_DIED, WAITERS};

use crate::fault;

/// What a word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// No thread holds it.
    Free,
    /// A thread that lives.
    Alive,
    /// A thread that ended without releasing it.
    Died,
}

impl Holder {
    /// What `value` means.
    pub fn of(value: u32) -> Self {
        match value {
            0 => Holder::Free,
            value if value & OWNER_DIED != 0 => Holder::Died,
            _ => Holder::Alive,
        }
    }
}

/// `struct robust_list` of Linux: a circle of entries through the head.
#[repr(C)]
struct Entry {
    next: *const Entry,
}

/// `struct robust_list_head` of Linux.
#[repr(C)]
struct Head {
    list: Entry,
    /// From an entry to its word.
    futex_offset: libc::c_long,
    pending: *const Entry,
}

/// What Linux reads when the thread ends; its address must not change.
struct List {
    head: Head,
    entry: Entry,
}

/// Holds a word for the thread that called [`hold`] until dropped.
struct Held<'a> {
    word: &'a AtomicU32,
    list: *mut List,
    /// The list that the C library had registered.
    previous: *const Head,
    /// A robust list belongs to one thread.
    not_send: PhantomData<*mut ()>,
}

/// Carries out `body` while this thread holds `word`, and answers with its result; `None` if another thread holds it.
///
/// Meanwhile the thread's robust list is ours: a robust mutex of the C library that `body` locked would not be
/// recovered. Meant for threads that do nothing else.
///
/// # Errors
/// If Linux refuses, or the thread holds a robust mutex of the C library or another word already.
pub fn while_held<R>(word: &AtomicU32, body: impl FnOnce() -> R) -> io::Result<Option<R>> {
    let held = hold(word)?;
    Ok(held.map(|_held| body()))
}

/// A value that could be forgotten outlives the memory that Linux writes to; hence it does not leave this module.
fn hold(word: &AtomicU32) -> io::Result<Option<Held<'_>>> {
    let previous = registered()?;
    let list = Box::into_raw(Box::new(List {
        head: Head { list: Entry { next: std::ptr::null() }, futex_offset: 0, pending: std::ptr::null() },
        entry: Entry { next: std::ptr::null() },
    }));
    // SAFETY: `list` was just allocated and is known to this function alone.
    unsafe {
        let entry = &raw const (*list).entry;
        (*list).head.list.next = entry;
        (*list).entry.next = &raw const (*list).head.list;
        (*list).head.futex_offset = (word.as_ptr() as usize).wrapping_sub(entry as usize) as libc::c_long;
    }
    // From here on `Drop` undoes what was done.
    let held = Held { word, list, previous, not_send: PhantomData };
    // SAFETY: the list is well-formed and stays where it is until `Drop` has registered the previous one again. The
    // entry is listed before the word is taken: if the thread ends between the two, Linux sees that the word is not
    // its own and leaves it alone.
    unsafe { register(&raw const (*list).head)? };
    let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    // A thread may always wait on the word, so Linux is always asked to wake.
    let taken = word.compare_exchange(0, thread | WAITERS, Ordering::SeqCst, Ordering::SeqCst);
    if taken.is_err() {
        return Ok(None);
    }
    Ok(Some(held))
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        // Not ours if it was never taken.
        let _ = self.word.compare_exchange(thread | WAITERS, 0, Ordering::SeqCst, Ordering::SeqCst);
        // SAFETY: `previous` was this thread's list before, and belongs to the C library, which keeps it for as long
        // as the thread lives. Only then is ours freed, which nothing else points to.
        unsafe {
            if register(self.previous).is_ok() {
                drop(Box::from_raw(self.list));
            }
        }
    }
}

/// The robust list of this thread, which must be empty.
fn registered() -> io::Result<*const Head> {
    fault::point("get_robust_list")?;
    let mut head: *const Head = std::ptr::null();
    let mut length: libc::size_t = 0;
    // SAFETY: both results point to variables of the right types.
    let result = unsafe { libc::syscall(libc::SYS_get_robust_list, 0, &raw mut head, &raw mut length) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a registered head is valid while its thread lives, and this is its thread.
    if !head.is_null() && unsafe { (*head).list.next != &raw const (*head).list } {
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, "this thread holds a robust mutex already"));
    }
    Ok(head)
}

/// # Safety
/// `head` is null or a well-formed list that stays valid until another is registered or the thread has ended.
unsafe fn register(head: *const Head) -> io::Result<()> {
    fault::point("set_robust_list")?;
    // SAFETY: the caller vouches for `head`; the length is that of the structure.
    let result = unsafe { libc::syscall(libc::SYS_set_robust_list, head, size_of::<Head>()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use laxity_model::Instant;

    use super::*;
    use crate::futex;

    #[test]
    fn a_word_that_was_released_is_free() {
        let word = AtomicU32::new(0);
        let inside = while_held(&word, || Holder::of(word.load(Ordering::SeqCst)));
        assert!(matches!(inside, Ok(Some(Holder::Alive))));
        assert_eq!(Holder::of(word.load(Ordering::SeqCst)), Holder::Free);
    }

    #[test]
    fn a_word_that_is_held_is_not_taken() {
        let word = AtomicU32::new(0);
        let inner = while_held(&word, || {
            assert!(while_held(&word, || ()).is_err(), "this thread's list is in use");
            thread::scope(|scope| scope.spawn(|| while_held(&word, || ())).join().expect("no panic"))
        });
        assert!(matches!(inner, Ok(Some(Ok(None)))), "another thread finds the word taken");
    }

    /// A thread that does not release the word stands for one that is killed.
    #[test]
    fn the_end_of_the_holder_marks_the_word_and_wakes_a_waiter() {
        let word: &'static AtomicU32 = Box::leak(Box::new(AtomicU32::new(0)));
        let holder = thread::spawn(move || {
            std::mem::forget(hold(word).expect("Linux offers robust lists").expect("it is free"));
            thread::sleep(std::time::Duration::from_millis(5));
        });
        loop {
            match word.load(Ordering::SeqCst) {
                value if Holder::of(value) == Holder::Died => break,
                // Waits for ever: only Linux wakes it.
                value if Holder::of(value) == Holder::Alive => drop(futex::wait(word, value, Instant::NEVER)),
                _ => thread::yield_now(),
            }
        }
        holder.join().expect("it ended");
        assert!(matches!(while_held(word, || ()), Ok(None)), "the word stays marked until its finder clears it");
    }
}
