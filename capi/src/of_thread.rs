//! Values that belong to one thread.

use std::cell::{RefCell, RefMut};
use std::sync::{Arc, Weak};
use std::thread::{self, ThreadId};

use crate::error::{CallError, Error};
use crate::handle::{self, Handle};

thread_local! {
    /// Is there for as long as this thread.
    static LIFE: Arc<()> = Arc::new(());
}

/// A value that one thread alone may use, though any thread may hold its handle.
pub(crate) struct OfThread<T> {
    owner: ThreadId,
    /// The owner's [`LIFE`].
    life: Weak<()>,
    value: RefCell<T>,
}

// SAFETY: `OfThread::get` gives the value to its owner only, and the functions that release handles drop it there
// only.
unsafe impl<T> Send for OfThread<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for OfThread<T> {}

impl<T> OfThread<T> {
    pub fn new(value: T) -> Self {
        // A thread that is ending makes values for which it has ended.
        let life = LIFE.try_with(Arc::downgrade).unwrap_or_default();
        OfThread { owner: thread::current().id(), life, value: RefCell::new(value) }
    }

    /// The value. Called by its owner.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }

    /// Whether the owner has ended.
    fn is_orphan(&self) -> bool {
        self.life.strong_count() == 0
    }

    /// As [`OfThread::release_if`], whatever the value.
    ///
    /// # Safety
    /// As for [`handle::take`].
    pub unsafe fn release<H: Handle<Value = OfThread<T>>>(place: *mut *mut H) -> Result<(), Error> {
        // SAFETY: as the caller promises.
        unsafe { OfThread::release_if(place, |_| Ok(())) }
    }

    /// Releases the handle at `place`, if its value's owner calls and `check` has nothing against it. If the owner has ended without doing so, any thread may:
    /// the value's registration has ended with its thread, and its memory stays.
    ///
    /// # Safety
    /// As for [`handle::take`].
    pub unsafe fn release_if<H: Handle<Value = OfThread<T>>>(
        place: *mut *mut H,
        check: impl FnOnce(&T) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let may = |value: &OfThread<T>| if value.is_orphan() { Ok(()) } else { check(&*value.get()?) };
        // SAFETY: as the caller promises.
        let taken = unsafe { handle::take_if(place, may) }?;
        match taken {
            // What it holds is to be dropped on the owner's thread only.
            Some(value) if value.is_orphan() => std::mem::forget(value),
            value => drop(value),
        }
        Ok(())
    }

    /// The value, if its owner calls.
    pub fn get(&self) -> Result<RefMut<'_, T>, Error> {
        if thread::current().id() == self.owner { Ok(self.value.borrow_mut()) } else { Err(CallError::Thread.into()) }
    }
}
