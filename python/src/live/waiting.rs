//! Waits without the GIL that Ctrl-C ends.

use laxity_model::{Instant, Nanos};
use laxity_sys::clock;
use pyo3::prelude::*;

use crate::errors::value_error;

/// How often Python's signal handlers get their turn.
const BETWEEN_LOOKS: Nanos = Nanos::from_millis(50);

/// When a wait of `timeout`, a span as text, that begins now is over; `None` is for ever.
pub fn deadline(timeout: Option<&str>) -> PyResult<Instant> {
    let Some(timeout) = timeout else { return Ok(Instant::NEVER) };
    let timeout: Nanos = timeout.parse().map_err(value_error)?;
    Ok(if timeout.is_zero() { Instant::ZERO } else { clock::now().saturating_add(timeout) })
}

/// Calls `wait` until it has an answer or `deadline` has come, each time with an instant until which it may wait;
/// without the GIL, but for the first, which may not wait at all. In between, signal handlers run, and what they raise
/// ends this.
pub fn wait_until<T: Send>(
    py: Python<'_>,
    deadline: Instant,
    mut wait: impl FnMut(Instant) -> Option<T> + Send,
) -> PyResult<Option<T>> {
    let mut found = wait(Instant::ZERO);
    while found.is_none() {
        let now = clock::now();
        if now >= deadline {
            return Ok(None);
        }
        let until = deadline.min(now.saturating_add(BETWEEN_LOOKS));
        found = py.detach(|| wait(until));
        if found.is_none() {
            py.check_signals()?;
        }
    }
    Ok(found)
}
