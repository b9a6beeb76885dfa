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

/// Calls `wait` until it has an answer or `deadline` has come, without the GIL and each time with an instant until which
/// it may wait. In between, signal handlers run, and what they raise ends this.
pub fn wait_until<T: Send>(
    py: Python<'_>,
    deadline: Instant,
    mut wait: impl FnMut(Instant) -> Option<T> + Send,
) -> PyResult<Option<T>> {
    loop {
        let until = deadline.min(clock::now().saturating_add(BETWEEN_LOOKS));
        let found = py.detach(|| wait(until));
        if found.is_some() || until == deadline {
            return Ok(found);
        }
        py.check_signals()?;
    }
}
