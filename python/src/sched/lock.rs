//! Locks of a system, and holding one as a context manager.

use laxity_model::{EngineOrder, GpuSync, LockId, Nanos};
use laxity_sched::{LockConfig, LockProgress, LockRequest};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::errors::bad_argument;
use super::own::Place;

/// What a lock of a system is: a resource that one or several jobs hold at once, or the tokens of GPUs. Jobs that hold it
/// inherit the priorities of jobs that wait, by the system's rule, under EDF too.
#[pyclass(frozen, eq, module = "laxity.sched", name = "Lock")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PyLock(Kind);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Queue { replicas: u16, order: EngineOrder },
    Tokens { gpus: u16, tokens: u16, fifo_length: Option<u16>, fifo_requests: Option<u16> },
}

impl PyLock {
    /// In a system of so many CPUs.
    pub fn config(&self, cpus: usize) -> LockConfig {
        match self.0 {
            Kind::Queue { replicas, order } => {
                LockConfig::Queue { replicas, order, progress: LockProgress::Inheritance }
            }
            Kind::Tokens { gpus, tokens, fifo_length, fifo_requests } => {
                let [fifo_length, fifo_requests] = [fifo_length, fifo_requests].map(|number| number.map(u32::from));
                let sync = GpuSync { tokens: tokens.into(), fifo_length, fifo_requests, ..GpuSync::DEFAULT };
                LockConfig::tokens(&sync, gpus, u32::try_from(cpus).unwrap_or(u32::MAX))
            }
        }
    }
}

#[pymethods]
impl PyLock {
    /// A mutex, or a semaphore that `replicas` jobs hold at once. `order` says which job that waits is next: "priority",
    /// the most urgent one, or "fifo", the one that waits longest.
    ///
    /// Raises ConfigError for another order; the system refuses 0 replicas.
    #[staticmethod]
    #[pyo3(signature = (replicas=1, *, order="priority"))]
    fn queue(py: Python<'_>, replicas: u16, order: &str) -> PyResult<Self> {
        let order = match order {
            "priority" => EngineOrder::Priority,
            "fifo" => EngineOrder::Fifo,
            _ => return Err(bad_argument(py, format!("order {order:?} is none; write \"priority\" or \"fifo\""))),
        };
        Ok(PyLock(Kind::Queue { replicas, order }))
    }

    /// GPUSync's tokens: `tokens` of each of `gpus` GPUs. Replica `r` is a token of GPU `r % gpus`.
    ///
    /// Args:
    ///     gpus: how many GPUs there are.
    ///     tokens: how many jobs hold tokens of one GPU at once.
    ///     fifo_length: the longest FIFO queue of a token, its holder included; None: as short as the CPUs allow.
    ///     fifo_requests: the most requests in all FIFO queues; None: as many as the system has CPUs.
    #[staticmethod]
    #[pyo3(signature = (*, gpus=1, tokens=1, fifo_length=None, fifo_requests=None))]
    fn tokens(gpus: u16, tokens: u16, fifo_length: Option<u16>, fifo_requests: Option<u16>) -> Self {
        PyLock(Kind::Tokens { gpus, tokens, fifo_length, fifo_requests })
    }
}

/// A part of a job in which it holds a lock of the system: from `with`, which waits for the lock and answers which replica
/// was granted, to its end. The job is suspended while it waits.
///
/// Raises OrderError where there is no job, it is suspended or holds the lock already, or the system has no such lock,
/// UseError in other threads.
#[pyclass(frozen, module = "laxity.sched", name = "Hold")]
pub struct PyHold {
    pub place: Place,
    pub lock: u16,
    pub length: Nanos,
    pub gpu: Option<u16>,
}

#[pymethods]
impl PyHold {
    fn __enter__(&self, py: Python<'_>) -> PyResult<u16> {
        let request = LockRequest { lock: LockId(self.lock), length: self.length, only: self.gpu };
        self.place.tell(py, move |task| task.lock(request, &mut ()).map(|replica| replica.0))
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        let lock = LockId(self.lock);
        self.place.tell(py, move |task| task.unlock(lock, &mut ()))
    }
}
