//! The pointers that C holds, to values with a tag of their type.

use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicU64, Ordering};

use laxity_sys::process::forks;

use crate::error::{CallError, Error};

/// A type that C knows by name only.
pub(crate) trait Handle: Sized {
    /// The type of the value. Threads share it.
    type Value: Send + Sync;
    /// The first bytes of its memory.
    const TAG: u64;
    /// Its name in messages.
    const NAME: &'static str;
    /// Whether a child made by `fork` may use it as its parent may: a description does not say which process has it.
    const IS_DESCRIPTION: bool = false;
}

/// The memory that a handle points to.
#[repr(C)]
struct Tagged<T> {
    /// [`Handle::TAG`], and 0 once it is released.
    tag: AtomicU64,
    /// [`forks`] of the process that made it.
    forks: u32,
    value: T,
}

/// A handle to `value`, which C owns until it is released.
pub(crate) fn make<H: Handle>(value: H::Value) -> *mut H {
    Box::into_raw(Box::new(Tagged { tag: AtomicU64::new(H::TAG), forks: forks(), value })).cast()
}

/// The value of `handle`, which is this process's: a child made by `fork` has no part in what its parent is attached to.
///
/// # Safety
/// `handle` is null, or points to 8 bytes that can be read; if they are `H`'s tag, it is from [`make`] and is not
/// released while the result is used.
pub(crate) unsafe fn get<'a, H: Handle>(handle: *const H) -> Result<&'a H::Value, Error> {
    // SAFETY: as the caller promises.
    unsafe { tag_of(handle) }?;
    // SAFETY: the tag says that it is from `make`, and the caller promises that it is not released meanwhile.
    let tagged = unsafe { &*handle.cast::<Tagged<H::Value>>() };
    if tagged.is_here::<H>() { Ok(&tagged.value) } else { Err(CallError::Forked { handle: H::NAME }.into()) }
}

impl<T> Tagged<T> {
    /// Whether this process may use it.
    fn is_here<H: Handle>(&self) -> bool {
        H::IS_DESCRIPTION || self.forks == forks()
    }
}

/// The tag of `handle`, which is its type's.
///
/// # Safety
/// As for [`get`].
unsafe fn tag_of<'a, H: Handle>(handle: *const H) -> Result<&'a AtomicU64, Error> {
    if handle.is_null() {
        return Err(CallError::Null { argument: H::NAME }.into());
    }
    if !handle.cast::<Tagged<H::Value>>().is_aligned() {
        return Err(CallError::Handle { expected: H::NAME }.into());
    }
    // SAFETY: not null and aligned (checked above); the caller promises that it can be read. `Tagged` is `repr(C)`: the
    // tag comes first.
    let tag = unsafe { &*handle.cast::<AtomicU64>() };
    if tag.load(Ordering::Relaxed) == H::TAG { Ok(tag) } else { Err(CallError::Handle { expected: H::NAME }.into()) }
}

/// Takes the value of the handle at `place` and leaves null there; `None` if null is there already.
///
/// `None`, too, in a child made by `fork`, where the value stays in memory as it is: to drop it is to end what the parent
/// goes on using, or to wait for threads that the child does not have.
///
/// # Safety
/// `place` is null or can be read and written, and [`get`]'s promise holds for what is there.
pub(crate) unsafe fn take<H: Handle>(place: *mut *mut H) -> Result<Option<H::Value>, Error> {
    // SAFETY: as the caller promises.
    unsafe { take_if(place, |_| Ok(())) }
}

/// As [`take`], if `check` has nothing against it.
///
/// # Safety
/// As for [`take`].
pub(crate) unsafe fn take_if<H: Handle>(
    place: *mut *mut H,
    check: impl FnOnce(&H::Value) -> Result<(), Error>,
) -> Result<Option<H::Value>, Error> {
    // SAFETY: as the caller promises.
    let place = unsafe { out(place, "handle") }?;
    if place.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller promises.
    let tag = unsafe { tag_of(*place) }?;
    // SAFETY: as its tag says, it is from `make`; the caller promises that it is not released meanwhile.
    let tagged = unsafe { &*place.cast::<Tagged<H::Value>>() };
    if !tagged.is_here::<H>() {
        *place = std::ptr::null_mut();
        return Ok(None);
    }
    check(&tagged.value)?;
    // Of two threads that release it at the same time, one gets it.
    if tag.compare_exchange(H::TAG, 0, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        return Err(CallError::Handle { expected: H::NAME }.into());
    }
    let handle = std::mem::replace(place, std::ptr::null_mut());
    // SAFETY: it came from `make`, as its tag said, which only one caller can clear.
    let tagged = unsafe { Box::from_raw(handle.cast::<Tagged<H::Value>>()) };
    Ok(Some(tagged.value))
}

/// `count` values that C passes; none if `count` is 0.
///
/// # Safety
/// `start` is null, or `count` values can be read there and do not change while the result is used.
pub(crate) unsafe fn slice<'a, T>(start: *const T, count: usize, argument: &'static str) -> Result<&'a [T], Error> {
    if count == 0 {
        return Ok(&[]);
    }
    check_values(start, count, argument)?;
    // SAFETY: not null, aligned, and not more than there can be (checked above), and otherwise as the caller promises.
    Ok(unsafe { std::slice::from_raw_parts(start, count) })
}

/// As [`slice()`], to be written.
///
/// # Safety
/// `start` is null, or `count` values can be read and written there, and no other thread uses them.
pub(crate) unsafe fn slice_mut<'a, T>(
    start: *mut T,
    count: usize,
    argument: &'static str,
) -> Result<&'a mut [T], Error> {
    if count == 0 {
        return Ok(&mut []);
    }
    check_values(start, count, argument)?;
    // SAFETY: as in `slice`.
    Ok(unsafe { std::slice::from_raw_parts_mut(start, count) })
}

/// Whether there may be `count` values at `start`, which a slice requires.
fn check_values<T>(start: *const T, count: usize, argument: &'static str) -> Result<(), Error> {
    if start.is_null() {
        return Err(CallError::Null { argument }.into());
    }
    if !start.is_aligned() {
        return Err(CallError::Misaligned { argument, alignment: align_of::<T>() }.into());
    }
    // No object of C is larger than half of what there are addresses for.
    let most = isize::MAX as usize / size_of::<T>().max(1);
    if count > most { Err(CallError::TooMany { argument, count, most }.into()) } else { Ok(()) }
}

/// The place for a result.
///
/// # Safety
/// `place` is null, or can be written and no other thread uses it meanwhile.
pub(crate) unsafe fn out<'a, T>(place: *mut T, argument: &'static str) -> Result<&'a mut T, Error> {
    // SAFETY: as the caller promises; null is checked.
    unsafe { place.as_mut() }.ok_or(CallError::Null { argument }.into())
}

/// A text that C passes.
///
/// # Safety
/// `text` is null, or ends with NUL and does not change while the result is used.
pub(crate) unsafe fn text<'a>(text: *const c_char, argument: &'static str) -> Result<&'a str, Error> {
    if text.is_null() {
        return Err(CallError::Null { argument }.into());
    }
    // SAFETY: not null (checked above), and otherwise as the caller promises.
    unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| CallError::Text { argument }.into())
}
