//! A GPU kernel that is a callable of Python.

use laxity_device::{Buffer, Device, DeviceView, KernelResult};
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::live::message::Message;
use crate::vx::memory::Memory;

/// A GPU kernel that is a callable of Python, and what it uses.
pub struct Kernel {
    callable: Py<PyAny>,
    reads: Vec<Buffer>,
    writes: Vec<Buffer>,
    device: Device,
}

impl Kernel {
    /// Of buffers of `device`.
    pub fn new(callable: Py<PyAny>, reads: Vec<Buffer>, writes: Vec<Buffer>, device: Device) -> Self {
        Kernel { callable, reads, writes, device }
    }

    /// Calls it with buffers of device memory: what it reads, read-only, then what it writes.
    pub fn run(self, view: &DeviceView<'_>) -> KernelResult {
        let read = |buffer: &Buffer| view.read(buffer, 0..buffer.len());
        let readings = self.reads.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let write = |buffer: &Buffer| view.write(buffer, 0..buffer.len());
        let mut writings = self.writes.iter().map(write).collect::<Result<Vec<_>, _>>()?;
        let (views, outcome) = Python::attach(|py| {
            // As long as there is a view, the process stays connected, and the memory its own.
            let memory = Memory::of((self.device, self.reads, self.writes));
            let read = readings.iter().map(|bytes| Message::read(memory.clone(), bytes));
            let written = writings.iter_mut().map(|bytes| Message::written(memory.clone(), bytes));
            let outcome = PyTuple::new(py, read.chain(written).collect::<Vec<_>>())
                .and_then(|given| self.callable.call1(py, given));
            (memory.close(), outcome.map(drop))
        });
        if views > 0 {
            // No other operation may use the bytes from now on, as Python still does.
            std::mem::forget((readings, writings));
        }
        outcome?;
        match views {
            0 => Ok(()),
            views => Err(PyBufferError::new_err(format!(
                "{views} of the buffers that a GPU kernel got are still in use, by numpy arrays or other views that it \
                 has kept; copy what must live longer"
            ))
            .into()),
        }
    }
}
