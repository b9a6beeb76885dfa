//! `laxity.Violation`.

use laxity_trace::check::Violation;
use pyo3::prelude::*;

/// Something that a schedule must not do.
#[pyclass(frozen, eq, module = "laxity", name = "Violation")]
#[derive(PartialEq)]
pub struct PyViolation {
    pub checker: &'static str,
    pub violation: Violation,
}

#[pymethods]
impl PyViolation {
    /// Which checker found it: "legality", "policy" or "deadlines".
    #[getter]
    fn checker(&self) -> &'static str {
        self.checker
    }

    /// When, in ns.
    #[getter]
    fn at_ns(&self) -> u64 {
        self.violation.at.as_nanos()
    }

    /// The CPU, if it happened on one.
    #[getter]
    fn cpu(&self) -> Option<u16> {
        self.violation.cpu.map(|cpu| cpu.0)
    }

    /// The number of the task whose job did or suffered it, if one did.
    #[getter]
    fn task(&self) -> Option<u32> {
        self.violation.job.map(|job| job.task.0)
    }

    /// The job's index within its task.
    #[getter]
    fn job(&self) -> Option<u32> {
        self.violation.job.map(|job| job.index)
    }

    fn __str__(&self) -> String {
        self.violation.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<laxity.Violation of {}: {}>", self.checker, self.violation)
    }
}
