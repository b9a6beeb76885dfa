//! Parts of a job, as context managers: sections, locks, events, and the work of interrupt threads.

use std::sync::Arc;

use laxity_scx::{InterruptThread, Lock};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::own::KernelTask;
use crate::sched::own::Place;

/// A part of a job in which no job of another task preempts it, for 10 ms at most: from `with` to its end. Sections do not nest,
/// and a sleep ends one.
///
/// Raises OrderError where there is no job or the task is in a section, UseError in other threads.
#[pyclass(frozen, module = "laxity.sched.kernel", name = "KernelSection")]
pub struct PyKernelSection {
    pub place: Place<KernelTask>,
}

/// A lock between tasks of this process, made by `Scheduler.lock`. While tasks wait for it, the job that holds it has at least
/// the priority of the most urgent of them, under EDF too, and so do in turn the holders of locks that it waits for.
#[pyclass(frozen, module = "laxity.sched.kernel", name = "KernelLock")]
pub struct PyKernelLock {
    pub lock: Arc<Lock>,
    /// Of which scheduler.
    pub of: u64,
}

/// A part of a job in which it holds a lock: from `with`, which waits for it, to its end. The job is suspended while it
/// waits.
///
/// Raises OrderError where there is no job or it has the lock, UseError in other threads. Ctrl-C ends the wait of the main thread.
#[pyclass(frozen, module = "laxity.sched.kernel", name = "KernelHold")]
pub struct PyKernelHold {
    pub place: Place<KernelTask>,
    pub lock: Arc<Lock>,
}

/// A wait for an event, in whatever call: from `with` to its end. The first sleep in it completes the job, and the wake-up releases
/// the next one, which is `Task.job` after the `with`. If nothing in it sleeps, its end does both.
///
/// Raises OrderError if a lock is held, in a section, or where events do not release jobs; UseError in other threads.
#[pyclass(frozen, module = "laxity.sched.kernel", name = "KernelEvent")]
pub struct PyKernelEvent {
    pub place: Place<KernelTask>,
}

/// A part of a job in which an interrupt thread works for it: from `with`, before the device is told to begin, to its end.
///
/// Raises OrderError if eight threads work for the task already, UseError in other threads.
#[pyclass(frozen, module = "laxity.sched.kernel", name = "KernelExpectation")]
pub struct PyKernelExpectation {
    pub place: Place<KernelTask>,
    pub thread: InterruptThread,
}

#[pymethods]
impl PyKernelSection {
    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        slf.get().place.say(slf.py(), KernelTask::enter_section)?;
        Ok(slf)
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.place.say_without_gil(py, KernelTask::leave_section)
    }
}

#[pymethods]
impl PyKernelHold {
    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let Self { place, lock } = slf.get();
        place.say_without_gil(slf.py(), |task| task.lock(lock))?;
        Ok(slf)
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.place.say_without_gil(py, |task| task.unlock(&self.lock))
    }
}

#[pymethods]
impl PyKernelEvent {
    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let place = &slf.get().place;
        place.say_without_gil(slf.py(), KernelTask::await_first)?;
        place.say(slf.py(), KernelTask::begin_event)?;
        Ok(slf)
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.place.say_without_gil(py, KernelTask::end_event)
    }
}

#[pymethods]
impl PyKernelExpectation {
    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let Self { place, thread } = slf.get();
        place.say(slf.py(), |task| task.expect(thread))?;
        Ok(slf)
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.place.say(py, |task| task.expect_no_more(&self.thread))
    }
}
