//! Serializable values as Python objects.

use pyo3::prelude::*;
use serde::Serialize;

use crate::errors::value_error;

/// The value as dicts, lists, strings and numbers: what its JSON says.
pub fn to_python<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(value).map_err(value_error)?;
    py.import("json")?.call_method1("loads", (text,))
}
