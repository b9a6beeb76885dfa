//! `laxity.nanos`.

use laxity_model::Nanos;
use pyo3::prelude::*;

use crate::errors::value_error;

/// A span of time in ns: `nanos("1.5 ms")` is 1500000. Exact.
///
/// Raises ValueError for a text without a unit, or finer than 1 ns.
#[pyfunction]
pub fn nanos(span: &str) -> PyResult<u64> {
    let span: Nanos = span.parse().map_err(value_error)?;
    Ok(span.as_nanos())
}
