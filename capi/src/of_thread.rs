//! Values that belong to one thread.

use std::cell::{RefCell, RefMut};
use std::thread::{self, ThreadId};

use crate::error::{CallError, Error};

/// A value that one thread alone may use, though any thread may hold its handle.
pub(crate) struct OfThread<T> {
    owner: ThreadId,
    value: RefCell<T>,
}

// SAFETY: `OfThread::get` gives the value to its owner only, and the functions that release handles drop it there
// only.
unsafe impl<T> Send for OfThread<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for OfThread<T> {}

impl<T> OfThread<T> {
    pub fn new(value: T) -> Self {
        OfThread { owner: thread::current().id(), value: RefCell::new(value) }
    }

    /// The value. Called by its owner.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }

    /// The value, if its owner calls.
    pub fn get(&self) -> Result<RefMut<'_, T>, Error> {
        if thread::current().id() == self.owner { Ok(self.value.borrow_mut()) } else { Err(CallError::Thread.into()) }
    }
}
