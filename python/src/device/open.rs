//! Soft GPUs that are opened, and their memory.

use std::path::PathBuf;

use laxity_device::{Buffer, Device, DeviceOptions, Service, Wait};
use laxity_model::{Nanos, parse_rate, parse_size};
use pyo3::prelude::*;

use super::errors::device_error;
use crate::argument::{choice, fields};
use crate::errors::value_error;
use crate::gpu::PyArbitration;
use crate::gpu::errors::bad_argument;

/// Soft GPUs that this process has opened; `laxity.gpu.Device` documents it.
#[pyclass(frozen, module = "laxity._native", name = "_Device")]
pub struct PyDevice {
    device: Device,
}

/// Memory of a soft GPU.
#[pyclass(frozen, module = "laxity._native", name = "_Buffer")]
pub struct PyBuffer {
    buffer: Buffer,
}

/// What a device is like, as `laxity.gpu` says it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Options {
    name: String,
    arbitration: Option<Py<PyArbitration>>,
    gpus: Option<u16>,
    memory: String,
    copy_engines: Option<u8>,
    copy_rate: Option<String>,
    linger: String,
    spins: bool,
    handling: Scheduled,
    engines: Scheduled,
    server: Option<PathBuf>,
    stack: Option<String>,
    bandwidth: Option<String>,
}

choice! {
    /// A priority, or a name.
    enum Scheduled: "\"owners\", \"as_is\", or a priority from 1 to 99" {
        Priority(u8),
        Name(String),
    }
}

impl Scheduled {
    fn service(&self, py: Python<'_>) -> PyResult<Service> {
        match self {
            Scheduled::Priority(priority) => Ok(Service::Fixed(*priority)),
            Scheduled::Name(name) if name == "owners" => Ok(Service::Owners),
            Scheduled::Name(name) if name == "as_is" => Ok(Service::AsIs),
            Scheduled::Name(name) => {
                let text = "is no way to schedule threads; write \"owners\", \"as_is\", or a priority from 1 to 99";
                Err(bad_argument(py, format!("{name:?} {text}")))
            }
        }
    }
}

impl Options {
    fn read(&self, py: Python<'_>) -> PyResult<DeviceOptions> {
        let size = |text: &str| parse_size(text).map_err(|reason| bad_argument(py, reason));
        let arbitration = self.arbitration.as_ref().map(|arbitration| arbitration.get().arbitration(py)).transpose()?;
        let config = arbitration.as_ref().map(|arbitration| *arbitration.config());
        let mut options = DeviceOptions::new(&self.name);
        options.gpus = self.gpus.or(config.map(|config| config.gpus)).unwrap_or(options.gpus);
        let copy_engines = self.copy_engines.or(config.map(|config| config.copy_engines));
        options.gpu.copy_engines = copy_engines.unwrap_or(options.gpu.copy_engines);
        options.gpu.memory = size(&self.memory)?;
        options.gpu.copy_rate = self.copy_rate.as_deref().map(size).transpose()?;
        options.gpu.linger = self.linger.parse::<Nanos>().map_err(value_error)?;
        options.wait = if self.spins { Wait::Spinning } else { Wait::Blocking };
        options.handling = self.handling.service(py)?;
        options.engines = self.engines.service(py)?;
        options.server.clone_from(&self.server);
        // No address space has room for such a stack.
        let stack = self.stack.as_deref().map(size).transpose()?;
        options.stack = stack.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let rate = |text: &str| parse_rate(text).map_err(|reason| bad_argument(py, reason));
        options.bandwidth = self.bandwidth.as_deref().map(rate).transpose()?;
        Ok(DeviceOptions { arbitration, ..options })
    }
}

impl PyDevice {
    pub fn get(&self) -> &Device {
        &self.device
    }
}

impl PyBuffer {
    pub fn get(&self) -> &Buffer {
        &self.buffer
    }
}

#[pymethods]
impl PyDevice {
    #[new]
    fn new(py: Python<'_>, options: &Bound<'_, PyAny>) -> PyResult<Self> {
        let options = fields::<Options>(options)?.read(py)?;
        // A server may have to be started.
        let device = py.detach(|| Device::open(&options)).map_err(|error| device_error(py, &error))?;
        Ok(PyDevice { device })
    }

    #[getter]
    fn gpus(&self) -> usize {
        self.device.gpus().len()
    }

    fn alloc(&self, py: Python<'_>, nbytes: usize, gpu: u16) -> PyResult<PyBuffer> {
        let buffer = py.detach(|| self.device.alloc_on(gpu, nbytes));
        Ok(PyBuffer { buffer: buffer.map_err(|error| device_error(py, &error))? })
    }
}
