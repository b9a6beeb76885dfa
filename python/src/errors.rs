//! Rust errors as the exceptions of `laxity._errors`, with their parts.

use std::fmt::Display;
use std::io;
use std::path::Path;

use laxity_model::{WorkloadError, WorkloadErrors};
use laxity_plan::UnsupportedFeatures;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::result::SimulationResult;

/// The exception that `laxity._errors.FACTORY(*args)` makes; whatever is raised on the way, otherwise.
fn exception<'py>(py: Python<'py>, factory: &str, args: impl PyCallArgs<'py>) -> PyErr {
    exception_of(py, "laxity._errors", factory, args)
}

/// The same for a factory in another module.
pub fn exception_of<'py>(py: Python<'py>, module: &str, factory: &str, args: impl PyCallArgs<'py>) -> PyErr {
    let made = py.import(module).and_then(|module| module.getattr(factory)?.call1(args));
    match made {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    }
}

/// `laxity.WorkloadError`.
///
/// A workload that was not read from a file (`named` is false) has no lines a person could look at: its errors then
/// name fields only.
pub fn workload_error(py: Python<'_>, errors: WorkloadErrors, named: bool) -> PyErr {
    let parts: Vec<_> = errors.into_vec().into_iter().map(|error| issue(error, named)).collect();
    exception(py, "workload_error", (parts,))
}

/// The arguments of `laxity.WorkloadIssue`: file, line, column, field, message and the whole as text.
type Issue = (Option<String>, Option<usize>, Option<usize>, String, String, String);

fn issue(mut error: WorkloadError, named: bool) -> Issue {
    if !named {
        error.file = None;
        error.position = None;
    }
    let text = error.to_string();
    let (line, column) = (error.position.map(|at| at.line), error.position.map(|at| at.column));
    (error.file, line, column, error.path.to_string(), error.message, text)
}

/// `laxity.SimulationError`; `workload` names it where there are several.
pub fn refusal(py: Python<'_>, refusal: &UnsupportedFeatures, workload: Option<&str>) -> PyErr {
    let of = |reason: &String| match workload {
        Some(name) => format!("workload {name}: {reason}"),
        None => reason.clone(),
    };
    let reasons: Vec<String> = refusal.reasons().iter().map(of).collect();
    exception(py, "SimulationError", (reasons,))
}

/// `laxity.RunError`, with what was measured until then.
pub fn run_error(py: Python<'_>, text: &str, result: Option<SimulationResult>) -> PyErr {
    exception(py, "run_error", (text, result))
}

/// `laxity.TraceError`.
pub fn trace_error(py: Python<'_>, error: &impl Display) -> PyErr {
    exception(py, "TraceError", (error.to_string(),))
}

/// `OSError` or the subclass of it that fits, naming the file as Python's own do.
pub fn file_error(path: &Path, error: io::Error) -> PyErr {
    match error.raw_os_error() {
        // The text of the system, without the number that Rust adds and Python has anyway.
        Some(code) => {
            let text = error.to_string();
            let reason = text.split(" (os error").next().unwrap_or(&text).to_owned();
            PyOSError::new_err((code, reason, path.to_path_buf()))
        }
        None => PyOSError::new_err(format!("{}: {error}", path.display())),
    }
}

/// `ValueError`, for an argument that cannot be read.
pub fn value_error(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// `laxity.LaxityError`, for a result whose trace was not kept.
pub fn no_trace(py: Python<'_>) -> PyErr {
    exception(py, "LaxityError", ("this result has no trace; pass `trace=True` to `laxity.simulate` to keep it",))
}
