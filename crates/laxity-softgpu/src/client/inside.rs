//! Marks the threads that run kernels and callbacks. They cannot issue operations or wait for them: they would wait for
//! themselves.

use std::cell::Cell;

use crate::error::GpuError;

thread_local! {
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// This thread belongs to a soft GPU from now on.
pub(super) fn enter() {
    IS_INSIDE.set(true);
}

/// Whether this thread belongs to a soft GPU.
pub(super) fn is_inside() -> bool {
    IS_INSIDE.get()
}

/// [`GpuError::Inside`] if this thread belongs to a soft GPU.
pub(super) fn refuse() -> Result<(), GpuError> {
    if is_inside() { Err(GpuError::Inside) } else { Ok(()) }
}
