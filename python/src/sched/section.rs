//! Parts of a job, as context managers: non-preemptive sections and suspensions.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::own::Place;

/// A part of a job in which no other task gets the thread's CPU: from `with` to its end. Sections nest. The CPU that another
/// task was to have meanwhile goes to it at the end.
///
/// Raises OrderError where there is no job or it is suspended, UseError in other threads.
#[pyclass(frozen, module = "laxity.sched", name = "Section")]
pub struct PySection {
    pub place: Place,
}

/// A part of a job in which its thread waits, so that others get its CPU: from `with` to its end.
///
/// Raises OrderError where there is no job or it is suspended, UseError in other threads.
#[pyclass(frozen, module = "laxity.sched", name = "Suspension")]
pub struct PySuspension {
    pub place: Place,
}

#[pymethods]
impl PySection {
    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        slf.get().place.tell(slf.py(), |task| task.enter_section())?;
        Ok(slf)
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.place.tell(py, |task| task.leave_section().map(drop))
    }
}

#[pymethods]
impl PySuspension {
    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        slf.get().place.tell(slf.py(), |task| task.suspend().map(drop))?;
        Ok(slf)
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.place.tell(py, |task| task.resume().map(drop))
    }
}
